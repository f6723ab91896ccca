/* Visiting the meta pool. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/check.h"
#include "engine/base/sys.h"
#include "engine/directory.h"
#include "engine/locks.h"

#include "api/handle.h"
#include "api/store.h"

/* Where the documents of the pool begin, in ENG_UNIT. */
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

/* One look under the lock, so that an object replaced meanwhile is not seen twice or missed. The
 * pool is a small part of a store. */
static gyre_err collect(struct eng_stripe *stripe, struct offsets *offsets)
{
    gyre_err err = GYRE_OK;
    offsets->n = 0;
    eng_alloc_lock(stripe);
    for (uint32_t i = 0; i < stripe->n_segments && err == GYRE_OK; i++) {
        const struct eng_segment_row *row = &stripe->rt->segments[i];
        if (row->state == ENG_SEGMENT_RING && row->pool == ENG_POOL_META)
            err = collect_segment_locked(stripe, i, offsets);
    }
    eng_alloc_unlock(stripe);
    return err;
}

/* The key is all that is taken from the bytes there, so that nothing needs to be believed: what has
 * become of the document since is answered by the look-up. */
static struct gyre_key key_at(const struct eng_stripe *stripe, uint64_t offset)
{
    const struct eng_doc *doc =
        (const struct eng_doc *)(const void *)(stripe->data + (offset << ENG_UNIT_SHIFT));
    return gyre_key_of_digest(doc->key);
}

static gyre_err visit_stripe(struct gyre_store *store, struct eng_stripe *stripe,
                             struct offsets *offsets,
                             bool (*visit)(void *data, const struct gyre_handle *handle),
                             void *data, bool *go_on)
{
    gyre_err err = collect(stripe, offsets);
    uint64_t area_units = stripe->area_bytes >> ENG_UNIT_SHIFT;
    for (size_t i = 0; i < offsets->n && err == GYRE_OK && *go_on; i++) {
        if (offsets->at[i] >= area_units)
            continue;
        struct gyre_key key = key_at(stripe, offsets->at[i]);
        struct gyre_handle *handle;
        err = api_handle_open(store, &key, eng_clock_real_s(), API_GET_META_POOL | API_GET_NO_COUNT,
                              &handle);
        if (err == GYRE_OK) {
            *go_on = visit(data, handle);
            api_handle_close(handle);
        } else if (err == GYRE_NOT_FOUND || err == GYRE_EXPIRED) {
            err = GYRE_OK;
        }
    }
    return err;
}

gyre_err gyre_each_meta(struct gyre_store *store,
                        bool (*visit)(void *data, const struct gyre_handle *handle), void *data)
{
    if (visit == NULL)
        return GYRE_INVALID;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    struct offsets offsets = {0};
    bool go_on = api_meta_used(store);
    for (uint32_t i = 0; i < store->engine->n_stripes && err == GYRE_OK && go_on; i++)
        err = visit_stripe(store, &store->engine->stripes[i], &offsets, visit, data, &go_on);
    free(offsets.at);
    api_leave(store, shard);
    return err;
}
