/* Putting objects: whole, or as a stream that is staged, spilled into parts, and published at once.
 */
#include "api/put.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/bits.h"
#include "engine/base/sys.h"

#include "api/store.h"

void gyre_put_options_init(struct gyre_put_options *options)
{
    *options =
        (struct gyre_put_options){.struct_size = sizeof *options, .length = GYRE_LENGTH_UNKNOWN};
}

/* INVALID for what no store could take. */
static gyre_err check_options(const struct gyre_put_options *options)
{
    if (options->struct_size != sizeof *options || (options->meta == NULL && options->meta_len > 0))
        return GYRE_INVALID;
    if (options->tenant >= GYRE_TENANTS_MAX || options->n_labels > GYRE_LABELS_MAX ||
        (options->labels == NULL && options->n_labels > 0))
        return GYRE_INVALID;
    if (options->condition != GYRE_ALWAYS && options->condition != GYRE_IF_ABSENT &&
        options->condition != GYRE_IF_SERIAL)
        return GYRE_INVALID;
    return (options->flags & ~(unsigned)GYRE_PUT_SYNC) != 0 ? GYRE_INVALID : GYRE_OK;
}

/* The longest body this put may have. */
static uint64_t length_limit(const struct gyre_put *put)
{
    return put->spec.pool == GYRE_POOL_META ? ENG_BIG_BODY - 1 : put->store->object_max_bytes;
}

/* Whether the document that will carry the metadata can be as long as it must. */
static gyre_err check_meta(const struct gyre_put *put, size_t meta_len)
{
    if (meta_len > GYRE_META_MAX)
        return GYRE_META_TOO_LARGE;
    uint64_t other = put->announced;
    if (put->announced == GYRE_LENGTH_UNKNOWN)
        other = 0;
    else if (put->announced >= ENG_BIG_BODY)
        other = eng_div_up(put->announced, eng_part_max_bytes(put->store->engine)) *
                sizeof(struct eng_part_row);
    return meta_len + put->spec.n_labels * sizeof(uint64_t) + other >
                   eng_small_max_bytes(put->store->engine)
               ? GYRE_META_TOO_LARGE
               : GYRE_OK;
}

gyre_err api_put_init(struct gyre_put *put, struct gyre_store *store, const struct gyre_key *key,
                      const struct gyre_put_options *options, uint64_t length)
{
    gyre_err err = check_options(options);
    if (err != GYRE_OK)
        return err;
    if (!api_pool_usable(store, options->pool))
        return GYRE_INVALID;
    *put = (struct gyre_put){
        .magic = API_PUT_LIVE,
        .life = store->life,
        .store = store,
        .key = *key,
        .condition = (enum eng_condition)options->condition,
        .if_serial = options->if_serial,
        .sync = (options->flags & GYRE_PUT_SYNC) != 0,
        .announced = length,
        .meta = options->meta,
        .meta_len = options->meta_len,
        .spec =
            {
                .total_len = length,
                .etag_hash = options->etag_hash,
                .created = options->created != 0 ? options->created : eng_clock_real_s(),
                .tenant = options->tenant,
                .pool = options->pool,
                .retention = options->retention,
                .pin_until = options->pin_until,
                .n_labels = options->n_labels,
            },
    };
    put->spec.key = put->key.bytes;
    put->spec.expires = options->expires;
    put->spec.labels = options->labels;
    if (length != GYRE_LENGTH_UNKNOWN && length > length_limit(put))
        return GYRE_TOO_LARGE;
    if (options->pool == GYRE_POOL_META)
        atomic_store_explicit(&store->engine->rt.head->meta_used, 1, memory_order_relaxed);
    return check_meta(put, options->meta_len);
}

void api_put_fini(struct gyre_put *put)
{
    put->magic = API_PUT_DEAD;
    bool inherited = api_is_inherited(put->store, put->life);
    for (size_t i = 0; i < put->n_parts + put->part_open; i++) {
        if (inherited)
            eng_part_forget(&put->parts[i]);
        else
            eng_part_abort(&put->parts[i]);
    }
    free(put->parts);
    free(put->meta_owned);
    free(put->labels_owned);
    free(put->upload);
    api_stage_fini(&put->stage);
}

gyre_err api_put_make_room(struct gyre_put *put, size_t want)
{
    struct api_stage *stage = &put->stage;
    if (api_put_spilling(put) || want > API_STAGE_BIG)
        want = API_STAGE_BIG;
    if (put->announced != GYRE_LENGTH_UNKNOWN && want > put->announced - put->accepted)
        want = put->announced > put->accepted ? (size_t)(put->announced - put->accepted) : 1;
    gyre_err err = api_stage_grow(stage, want);
    if (err != GYRE_OK || stage->filled < stage->capacity)
        return err;
    return api_spill_stage(put, false);
}

/* Writes out what has been staged long enough. A stage that is full and may not grow begins the
 * first part. */
static gyre_err spill_if_due(struct gyre_put *put)
{
    struct api_stage *stage = &put->stage;
    bool due = api_put_spilling(put)
                   ? stage->filled >= API_SPILL_BYTES || stage->filled == stage->capacity
                   : stage->filled == API_STAGE_BIG;
    return due ? api_spill_stage(put, false) : GYRE_OK;
}

/* LENGTH, TOO_LARGE: these bytes are too many. */
static gyre_err check_more(const struct gyre_put *put, size_t len)
{
    if (put->announced != GYRE_LENGTH_UNKNOWN)
        return len > put->announced - put->accepted ? GYRE_LENGTH : GYRE_OK;
    return len > length_limit(put) - put->accepted ? GYRE_TOO_LARGE : GYRE_OK;
}

gyre_err api_put_filled(struct gyre_put *put, size_t len)
{
    gyre_err err = check_more(put, len);
    if (err != GYRE_OK)
        return err;
    put->stage.filled += len;
    put->accepted += len;
    return spill_if_due(put);
}

/* Takes some of the bytes, at least one: straight into parts where nothing is staged, else by way
 * of the stage, and of that only as much as completes a page when the rest is long enough to go
 * straight. */
static gyre_err append_some(struct gyre_put *put, const uint8_t *bytes, size_t len,
                            size_t *taken_out)
{
    struct api_stage *stage = &put->stage;
    bool spilling = api_put_spilling(put);
    bool direct = spilling ? len >= API_STAGE_SMALL || len == put->announced - put->accepted
                           : len >= API_STAGE_BIG;
    if (direct && spilling && stage->filled > 0 && stage->filled % ENG_PAGE == 0) {
        gyre_err err = api_spill_stage(put, false);
        if (err != GYRE_OK)
            return err;
    }
    if (direct && stage->filled == 0) {
        gyre_err err = api_spill_direct(put, bytes, len, taken_out);
        put->accepted += *taken_out;
        if (err != GYRE_OK || *taken_out > 0)
            return err;
    }
    size_t n = len;
    if (direct && spilling && stage->filled % ENG_PAGE != 0)
        n = ENG_PAGE - stage->filled % ENG_PAGE;
    gyre_err err = api_put_make_room(put, n);
    if (err != GYRE_OK)
        return err;
    if (n > stage->capacity - stage->filled)
        n = stage->capacity - stage->filled;
    if (n > len)
        n = len;
    memcpy(stage->bytes + stage->filled, bytes, n);
    *taken_out = n;
    err = api_put_filled(put, n);
    if (err == GYRE_OK && direct && spilling && stage->filled > 0)
        err = api_spill_stage(put, false);
    return err;
}

gyre_err api_put_append(struct gyre_put *put, const uint8_t *bytes, size_t len)
{
    gyre_err err = check_more(put, len);
    while (err == GYRE_OK && len > 0) {
        size_t taken = 0;
        err = append_some(put, bytes, len, &taken);
        bytes += taken;
        len -= taken;
    }
    return err;
}
