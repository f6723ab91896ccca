/* Visiting the objects of a pool. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/check.h"
#include "engine/base/sys.h"
#include "engine/directory.h"
#include "engine/locks.h"
#include "engine/pool.h"

#include "api/each.h"
#include "api/handle.h"
#include "api/store.h"

/* Where documents of the pool begin, in ENG_UNIT. */
struct offsets {
    uint64_t *at;
    size_t n, capacity;
};

static gyre_err append(struct offsets *offsets, uint64_t offset)
{
    if (offsets->n == offsets->capacity) {
        size_t capacity = offsets->capacity == 0 ? 256 : offsets->capacity * 2;
        uint64_t *at = reallocarray(offsets->at, capacity, sizeof *at);
        if (at == NULL)
            return GYRE_NO_MEMORY;
        offsets->at = at;
        offsets->capacity = capacity;
    }
    offsets->at[offsets->n++] = offset;
    return GYRE_OK;
}

/* All documents that begin in one segment. */
static gyre_err collect_segment_locked(struct eng_stripe *stripe, uint32_t segment,
                                       struct offsets *offsets)
{
    uint64_t segment_bytes = stripe->segment_units << ENG_UNIT_SHIFT;
    uint64_t granule = segment * segment_bytes / ENG_GRANULE;
    uint64_t end = granule + segment_bytes / ENG_GRANULE;
    for (; granule < end; granule++) {
        uint32_t slot = atomic_load_explicit(&stripe->granules[granule], memory_order_relaxed);
        for (; slot != ENG_NO_SLOT; slot = stripe->slots[slot].next) {
            const struct eng_bucket *bucket = &stripe->buckets[slot / ENG_BUCKET_ENTRIES];
            uint64_t entry = atomic_load_explicit(&bucket->entry[slot % ENG_BUCKET_ENTRIES],
                                                  memory_order_relaxed);
            gyre_err err = append(offsets, eng_entry_offset(entry));
            if (err != GYRE_OK)
                return err;
        }
    }
    return GYRE_OK;
}

/* Takes down the pool's documents in segments [first, first + n). */
static gyre_err collect(struct eng_stripe *stripe, uint8_t pool, uint32_t first, uint32_t n,
                        struct offsets *offsets)
{
    gyre_err err = GYRE_OK;
    offsets->n = 0;
    eng_alloc_lock(stripe);
    for (uint32_t i = first; i < first + n && err == GYRE_OK; i++) {
        const struct eng_segment_row *row = &stripe->rt->segments[i];
        if (row->state == ENG_SEGMENT_RING && eng_pool_of_ring(row->pool) == pool)
            err = collect_segment_locked(stripe, i, offsets);
    }
    eng_alloc_unlock(stripe);
    return err;
}

/* The key and the type are all that is taken from the bytes there, so that nothing needs to be
 * believed: what has become of the document since is answered by the look-up. */
static const struct eng_doc *doc_at(const struct eng_stripe *stripe, uint64_t offset)
{
    return (const struct eng_doc *)(const void *)(stripe->data + (offset << ENG_UNIT_SHIFT));
}

struct tour {
    bool uploads; /* their records, and nothing else */
    struct gyre_store *store;
    enum gyre_pool pool;
    const struct api_newer *newer; /* NULL: everything */
    bool (*visit)(void *data, const struct gyre_handle *handle);
    void *data;
    struct offsets offsets;
    bool go_on;
};

/* A row may be read while a ring enters its segment: what is written there from now on was not
 * there throughout. */
static bool may_hold_newer(const struct tour *tour, const struct eng_stripe *stripe,
                           uint32_t segment)
{
    return tour->newer == NULL || tour->newer->may_hold(tour->newer, stripe, segment);
}

static gyre_err visit_one(struct tour *tour, uint32_t stripe, const struct eng_doc *doc)
{
    unsigned flags = API_GET_NO_COUNT;
    struct gyre_key key = gyre_key_of_digest(doc->key);
    struct gyre_handle *handle;
    if (doc->type == ENG_PART || doc->type == ENG_TOMBSTONE ||
        ((doc->flags & ENG_DOC_UPLOAD) != 0) != tour->uploads ||
        (tour->newer != NULL && doc->serial <= tour->newer->serials[stripe]))
        return GYRE_OK;
    flags |= tour->pool == GYRE_POOL_META  ? API_GET_META_POOL
             : tour->pool > GYRE_POOL_META ? GYRE_GET_HEAD | GYRE_IN_POOL(tour->pool)
                                           : GYRE_GET_HEAD;
    gyre_err err = api_handle_open(tour->store, &key, eng_clock_real_s(), flags, &handle);
    if (err == GYRE_NOT_FOUND || err == GYRE_EXPIRED)
        return GYRE_OK;
    if (err != GYRE_OK)
        return err;
    if (handle->info.pool == tour->pool)
        tour->go_on = tour->visit(tour->data, handle);
    api_handle_close(handle);
    return GYRE_OK;
}

/* The meta pool is small, and one look at all of it under the lock neither misses an object
 * replaced meanwhile nor sees it twice. Of the main pool one segment at a time is looked at. */
static gyre_err visit_stripe(struct tour *tour, struct eng_stripe *stripe)
{
    uint64_t area_units = stripe->area_bytes >> ENG_UNIT_SHIFT;
    uint32_t step = tour->pool == GYRE_POOL_META ? stripe->n_segments : 1;
    gyre_err err = GYRE_OK;
    for (uint32_t first = 0; first < stripe->n_segments && tour->go_on; first += step) {
        if (tour->pool != GYRE_POOL_META && !may_hold_newer(tour, stripe, first))
            continue;
        err = collect(stripe, (uint8_t)tour->pool, first, step, &tour->offsets);
        for (size_t i = 0; i < tour->offsets.n && err == GYRE_OK && tour->go_on; i++) {
            if (tour->offsets.at[i] < area_units)
                err = visit_one(tour, stripe->index, doc_at(stripe, tour->offsets.at[i]));
        }
        if (err != GYRE_OK)
            break;
    }
    return err;
}

gyre_err api_each(struct gyre_store *store, enum gyre_pool pool, const struct api_newer *newer,
                  bool (*visit)(void *data, const struct gyre_handle *handle), void *data)
{
    struct tour tour = {.store = store, .pool = pool, .newer = newer, .visit = visit, .data = data};
    gyre_err err = GYRE_OK;
    tour.go_on = pool != GYRE_POOL_META || api_meta_used(store);
    for (uint32_t i = 0; i < store->engine->n_stripes && err == GYRE_OK && tour.go_on; i++)
        err = visit_stripe(&tour, &store->engine->stripes[i]);
    free(tour.offsets.at);
    return err;
}

gyre_err api_each_upload(struct gyre_store *store,
                         bool (*visit)(void *data, const struct gyre_handle *handle), void *data)
{
    struct tour tour = {
        .uploads = true, .store = store, .pool = GYRE_POOL_META, .visit = visit, .data = data};
    gyre_err err = GYRE_OK;
    tour.go_on = api_meta_used(store);
    for (uint32_t i = 0; i < store->engine->n_stripes && err == GYRE_OK && tour.go_on; i++)
        err = visit_stripe(&tour, &store->engine->stripes[i]);
    free(tour.offsets.at);
    return err;
}

gyre_err gyre_each(struct gyre_store *store, enum gyre_pool pool,
                   bool (*visit)(void *data, const struct gyre_handle *handle), void *data)
{
    if (visit == NULL)
        return GYRE_INVALID;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    if (!api_pool_usable(store, (unsigned)pool)) {
        api_leave(store, shard);
        return GYRE_INVALID;
    }
    err = api_each(store, pool, NULL, visit, data);
    api_leave(store, shard);
    return err;
}

gyre_err gyre_each_meta(struct gyre_store *store,
                        bool (*visit)(void *data, const struct gyre_handle *handle), void *data)
{
    return gyre_each(store, GYRE_POOL_META, visit, data);
}
