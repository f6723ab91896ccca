/* Marks: how far a store has come, and what was stored since.
 *
 * A mark, little-endian: u8 uuid[16], u32 stripes, for each of them u64 serial, u32 n and n times
 * u32 segment; u32 CRC-32C of all before it. n is UINT32_MAX, and no segment follows, when there
 * were too many. A document newer than the serial lies in one of the segments, or in one that was
 * entered later, or in one whose time of entering is not known (see struct eng_segment_row).
 */
#include <string.h>

#include "engine/base/bits.h"
#include "engine/base/crc32c.h"
#include "engine/directory.h"
#include "engine/locks.h"
#include "engine/reader.h"
#include "engine/sync.h"

#include "api/each.h"
#include "api/store.h"

#define ALL_SEGMENTS UINT32_MAX

enum { UUID_BYTES = 16 };

_Static_assert(UUID_BYTES + 4 + ENG_MAX_STRIPES * (12 + 4 * ENG_HORIZON) + 4 <= GYRE_MARK_MAX,
               "the longest mark fits");

/* ---- Taking one ---- */

static size_t put_bytes(uint8_t *mark, size_t at, const void *bytes, size_t len)
{
    memcpy(mark + at, bytes, len);
    return at + len;
}

static size_t put_stripe(struct eng_stripe *stripe, uint8_t *mark, size_t at)
{
    uint32_t segments[ENG_HORIZON], n;

    eng_alloc_lock(stripe);
    uint64_t serial = stripe->rt->serial;
    bool complete = eng_horizon_in_use_locked(stripe, segments, &n);
    eng_alloc_unlock(stripe);
    uint32_t n_noted = complete ? n : ALL_SEGMENTS;
    at = put_bytes(mark, at, &serial, sizeof serial);
    at = put_bytes(mark, at, &n_noted, sizeof n_noted);
    return complete ? put_bytes(mark, at, segments, n * sizeof *segments) : at;
}

gyre_err gyre_mark(struct gyre_store *store, void *mark_out, size_t size, size_t *len_out)
{
    uint8_t mark[GYRE_MARK_MAX];
    uint32_t shard;

    if (mark_out == NULL || len_out == NULL)
        return GYRE_INVALID;
    *len_out = 0;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    struct eng_store *engine = store->engine;
    size_t len = put_bytes(mark, 0, engine->super.uuid, UUID_BYTES);
    len = put_bytes(mark, len, &engine->n_stripes, sizeof engine->n_stripes);
    for (uint32_t i = 0; i < engine->n_stripes; i++)
        len = put_stripe(&engine->stripes[i], mark, len);
    uint32_t crc = eng_crc32c(0, mark, len);
    len = put_bytes(mark, len, &crc, sizeof crc);
    if (len <= size) {
        memcpy(mark_out, mark, len);
        *len_out = len;
    } else {
        err = GYRE_RANGE;
    }
    api_leave(store, shard);
    return err;
}

/* ---- Reading one ---- */

struct since {
    struct api_newer newer;
    uint32_t n[ENG_MAX_STRIPES]; /* ALL_SEGMENTS: all */
    uint32_t segments[ENG_MAX_STRIPES][ENG_HORIZON];
};

static bool may_hold(const struct api_newer *newer, const struct eng_stripe *stripe,
                     uint32_t segment)
{
    const struct since *since = (const struct since *)newer;
    uint64_t serial = newer->serials[stripe->index];
    uint32_t n = since->n[stripe->index];

    eng_alloc_lock((struct eng_stripe *)(uintptr_t)stripe);
    const struct eng_segment_row row = stripe->rt->segments[segment];
    bool blurred = row.blurred != 0 && serial < stripe->rt->blurred_serial;
    eng_alloc_unlock((struct eng_stripe *)(uintptr_t)stripe);
    if (blurred || row.first_serial > serial || n == ALL_SEGMENTS)
        return true;
    for (uint32_t i = 0; i < n; i++)
        if (since->segments[stripe->index][i] == segment)
            return true;
    return false;
}

/* Takes `len` bytes off the front; false when there are fewer. */
static bool take(const uint8_t **at, const uint8_t *end, void *out, size_t len)
{
    if ((size_t)(end - *at) < len)
        return false;
    memcpy(out, *at, len);
    *at += len;
    return true;
}

static bool parse(const struct eng_store *engine, const uint8_t *mark, size_t len,
                  struct since *since_out)
{
    uint8_t uuid[UUID_BYTES];
    uint32_t crc, n_stripes;

    since_out->newer.may_hold = may_hold;
    if (len < sizeof crc)
        return false;
    const uint8_t *at = mark, *end = mark + len - sizeof crc;
    memcpy(&crc, end, sizeof crc);
    if (crc != eng_crc32c(0, mark, len - sizeof crc) || !take(&at, end, uuid, sizeof uuid) ||
        !take(&at, end, &n_stripes, sizeof n_stripes) ||
        memcmp(uuid, engine->super.uuid, sizeof uuid) != 0 || n_stripes != engine->n_stripes)
        return false;
    for (uint32_t i = 0; i < n_stripes; i++) {
        uint32_t *n = &since_out->n[i];
        if (!take(&at, end, &since_out->newer.serials[i], sizeof since_out->newer.serials[i]) ||
            !take(&at, end, n, sizeof *n))
            return false;
        if (*n == ALL_SEGMENTS)
            continue;
        if (*n > ENG_HORIZON ||
            !take(&at, end, since_out->segments[i], *n * sizeof since_out->segments[i][0]))
            return false;
    }
    return at == end;
}

gyre_err gyre_each_since(struct gyre_store *store, enum gyre_pool pool, const void *mark,
                         size_t len, bool (*visit)(void *data, const struct gyre_handle *handle),
                         void *data)
{
    struct since since;
    uint32_t shard;

    if (visit == NULL || mark == NULL || (pool != GYRE_POOL_MAIN && pool != GYRE_POOL_META))
        return GYRE_INVALID;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    if (parse(store->engine, mark, len, &since))
        err = api_each(store, pool, &since.newer, visit, data);
    else
        err = GYRE_FOREIGN;
    api_leave(store, shard);
    return err;
}

/* ---- One object ---- */

gyre_err gyre_holds(struct gyre_store *store, const struct gyre_key *key, uint64_t place)
{
    uint32_t shard;

    if (key == NULL)
        return GYRE_INVALID;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    struct eng_want main = {.key = key->bytes, .pool = ENG_POOL_MAIN};
    struct eng_want meta = {.key = key->bytes, .pool = ENG_POOL_META};
    bool there = eng_holds(store->engine, &main, place) ||
                 (api_meta_used(store) && eng_holds(store->engine, &meta, place));
    api_leave(store, shard);
    return there ? GYRE_OK : GYRE_NOT_FOUND;
}
