#include "engine/writer.h"

#include "engine/locks.h"
#include "engine/log.h"

#define PART_MAX_BYTES (UINT64_C(64) << 20)

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Four to a segment, heads included. */
uint64_t eng_part_max_bytes(const struct eng_store *store)
{
    return least(store->super.segment_bytes / 4, PART_MAX_BYTES) - ENG_PAGE;
}

uint64_t eng_small_max_bytes(const struct eng_store *store)
{
    return store->super.segment_bytes / 2 - ENG_PAGE;
}

/* Its parts are all reserved at once, and chance spreads them unevenly over stripes; a put may hold
 * three quarters of each stripe's ring. And its table of parts is one document. */
uint64_t eng_object_max_bytes(const struct eng_store *store)
{
    uint64_t segments = 0;
    for (uint32_t i = 0; i < store->n_stripes; i++)
        segments += eng_ring_of(&store->stripes[i], ENG_POOL_MAIN)->max_segments;
    uint64_t space = segments * (store->super.segment_bytes / 8) * (store->n_stripes == 1 ? 5 : 4);
    uint64_t rows = eng_small_max_bytes(store) / 2 / sizeof(struct eng_part_row);
    return least(space, rows * eng_part_max_bytes(store));
}

uint64_t eng_object_serial(struct eng_store *store, uint8_t pool, const uint8_t key[32])
{
    struct eng_stripe *stripe;
    (void)eng_place_of(store, pool, key, &stripe);
    eng_alloc_lock(stripe);
    uint64_t serial = ++stripe->rt->serial;
    eng_alloc_unlock(stripe);
    return serial;
}
