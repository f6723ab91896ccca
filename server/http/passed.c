#include "server/http/passed.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/gyre.h"

enum { N_ROWS = 4096, UNIT_MS = 256 };

/* A row: 32 bits of the key, and when its time is over, in units, modulo 2^32; 0: free. */
struct srv_passed {
    _Atomic uint64_t rows[N_ROWS]; /* [a] relaxed: each says all of it */
};

struct srv_passed *srv_passed_create(void)
{
    return calloc(1, sizeof(struct srv_passed));
}

void srv_passed_destroy(struct srv_passed *passed)
{
    free(passed);
}

/* Keys are digests: any of their bits will do. */
static size_t row_of(const struct gyre_key *key)
{
    return (key->bytes[0] | (size_t)key->bytes[1] << 8) % N_ROWS;
}

static uint64_t tag_of(const struct gyre_key *key)
{
    uint32_t tag;
    memcpy(&tag, key->bytes + 4, sizeof tag);
    return (uint64_t)tag << 32;
}

static uint32_t units(int64_t ms)
{
    return (uint32_t)(ms / UNIT_MS);
}

void srv_passed_note(struct srv_passed *passed, const struct gyre_key *key, int64_t now_ms)
{
    atomic_store_explicit(&passed->rows[row_of(key)], tag_of(key) | units(now_ms + SRV_PASSED_MS),
                          memory_order_relaxed);
}

bool srv_passed_holds(const struct srv_passed *passed, const struct gyre_key *key, int64_t now_ms)
{
    uint64_t row = atomic_load_explicit(&passed->rows[row_of(key)], memory_order_relaxed);
    uint32_t left = (uint32_t)row - units(now_ms);
    return row != 0 && (row & ~(uint64_t)UINT32_MAX) == tag_of(key) && left != 0 &&
           left <= units(SRV_PASSED_MS) + 1;
}

void srv_passed_forget(struct srv_passed *passed, const struct gyre_key *key)
{
    uint64_t row = atomic_load_explicit(&passed->rows[row_of(key)], memory_order_relaxed);
    if ((row & ~(uint64_t)UINT32_MAX) == tag_of(key))
        atomic_store_explicit(&passed->rows[row_of(key)], 0, memory_order_relaxed);
}
