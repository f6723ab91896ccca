/* The end of a put: everything it consists of becomes visible in one step, or nothing does. */
#include "api/put.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/check.h"
#include "engine/base/sys.h"

#include "api/handle.h"
#include "api/store.h"

#define API_COMMIT_TRIES 4

/* The HEAD's table. NULL without memory. */
static struct eng_part_row *make_rows(const struct gyre_put *put)
{
    struct eng_part_row *rows = calloc(put->n_parts + 1, sizeof *rows);
    for (size_t i = 0; rows != NULL && i < put->n_parts; i++) {
        const struct eng_part *part = &put->parts[i];
        rows[i] = (struct eng_part_row){
            .length = part->body_len,
            .part_no = part->part_no,
            .attempt = part->attempt,
            .sub = part->sub,
            .crc = part->crc,
        };
    }
    return rows;
}

/* A HEAD whose parts have been evicted is no object, though the engine counts it as one: the look
 * drops it. */
static bool is_there(const struct gyre_put *put, uint32_t now)
{
    unsigned flags = GYRE_GET_HEAD | API_GET_NO_COUNT |
                     (put->spec.pool == GYRE_POOL_META ? API_GET_META_POOL : 0);
    struct gyre_handle *handle;
    gyre_err err = api_handle_open(put->store, &put->key, now, flags, &handle);
    if (err == GYRE_OK)
        api_handle_close(handle);
    return err != GYRE_NOT_FOUND;
}

static gyre_err commit(struct gyre_put *put, uint16_t type, const void *body, size_t body_len,
                       uint64_t *serial_out)
{
    if (put->meta_len + put->spec.n_labels * sizeof(uint64_t) + body_len >
        eng_small_max_bytes(put->store->engine))
        return GYRE_META_TOO_LARGE;
    struct eng_commit whole = {
        .spec = put->spec,
        .meta = put->meta,
        .meta_len = put->meta_len,
        .body = body,
        .body_len = body_len,
        .parts = put->parts,
        .n_parts = put->n_parts,
        .condition = put->condition,
        .if_serial = put->if_serial,
        .now_ms = eng_clock_real_ns() / 1000000,
        .sync = put->sync,
    };
    whole.now = (uint32_t)(whole.now_ms / 1000);
    whole.spec.type = type;
    whole.spec.total_len = put->accepted;
    whole.spec.parts = (uint32_t)put->n_parts;
    if (put->spec.pool == GYRE_POOL_META)
        api_meta_begin(put->store);
    gyre_err err = eng_commit(put->store->engine, &whole, serial_out);
    for (unsigned try = 0;
         err == GYRE_EXISTS && try < API_COMMIT_TRIES && !is_there(put, whole.now); try++)
        err = eng_commit(put->store->engine, &whole, serial_out);
    if (err == GYRE_OK)
        put->n_parts = 0; /* they are the store's now */
    if (put->spec.pool == GYRE_POOL_META)
        api_meta_end(put->store);
    return err;
}

gyre_err api_put_publish(struct gyre_put *put, const void *small_body, uint64_t *serial_out)
{
    if (put->announced != GYRE_LENGTH_UNKNOWN && put->accepted != put->announced)
        return GYRE_LENGTH;
    if (put->alternate != NULL)
        return api_alternate_publish(put, serial_out);
    if (put->accepted < ENG_BIG_BODY && put->upload == NULL)
        return commit(put, ENG_DOC, small_body != NULL ? small_body : put->stage.bytes,
                      (size_t)put->accepted, serial_out);
    gyre_err err = api_spill_stage(put, true);
    if (err == GYRE_OK)
        err = api_spill_finish(put);
    if (err != GYRE_OK)
        return err;
    struct eng_part_row *rows = make_rows(put);
    if (rows == NULL)
        return GYRE_NO_MEMORY;
    err = put->upload != NULL
              ? api_upload_publish(put, rows, serial_out)
              : commit(put, ENG_HEAD, rows, put->n_parts * sizeof *rows, serial_out);
    free(rows);
    return err;
}

gyre_err api_put_settle(struct gyre_put *put)
{
    bool whole = put->announced == GYRE_LENGTH_UNKNOWN || put->accepted == put->announced;
    if (put->failed != GYRE_OK || !whole || put->accepted < ENG_BIG_BODY)
        return put->failed;
    uint32_t shard;
    gyre_err err = api_enter(put->store, &shard);
    if (err != GYRE_OK)
        return err;
    err = api_spill_stage(put, true);
    if (err == GYRE_OK)
        err = api_spill_finish(put);
    put->failed = err;
    api_leave(put->store, shard);
    return err;
}

/* Inside a call. Small bodies go from the caller's memory into the log in one write. */
static gyre_err put_whole(struct gyre_put *put, const void *body, size_t len, uint64_t *serial_out)
{
    gyre_err err = GYRE_OK;
    if (len < ENG_BIG_BODY)
        put->accepted = len;
    else
        err = api_put_append(put, body, len);
    return err == GYRE_OK ? api_put_publish(put, len < ENG_BIG_BODY ? body : NULL, serial_out)
                          : err;
}

gyre_err api_put_inside(struct gyre_store *store, const struct gyre_key *key,
                        const struct gyre_put_options *options, const void *body, size_t len,
                        uint64_t *serial_out)
{
    struct gyre_put put;
    gyre_err err = api_put_init(&put, store, key, options, len);
    if (err == GYRE_OK && options->length != GYRE_LENGTH_UNKNOWN && options->length != len)
        err = GYRE_LENGTH;
    if (err == GYRE_OK) {
        err = put_whole(&put, body, len, serial_out);
        api_put_fini(&put);
    }
    return err;
}

gyre_err gyre_put(struct gyre_store *store, const struct gyre_key *key,
                  const struct gyre_put_options *options, const void *body, size_t len,
                  uint64_t *serial_out)
{
    uint64_t serial = 0;
    if (serial_out != NULL)
        *serial_out = 0;
    if (key == NULL || (body == NULL && len > 0))
        return GYRE_INVALID;
    struct gyre_put_options defaults;
    gyre_put_options_init(&defaults);
    if (options == NULL)
        options = &defaults;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    err = api_put_inside(store, key, options, body, len, &serial);
    api_leave(store, shard);
    if (err == GYRE_OK && serial_out != NULL)
        *serial_out = serial;
    return err;
}

/* A private copy of the metadata. NO_MEMORY, and then nothing has changed. */
static gyre_err own_meta(struct gyre_put *put, const void *meta, size_t meta_len)
{
    void *copy = NULL;
    if (meta_len > 0) {
        copy = malloc(meta_len);
        if (copy == NULL)
            return GYRE_NO_MEMORY;
        memcpy(copy, meta, meta_len);
    }
    free(put->meta_owned);
    put->meta = put->meta_owned = copy;
    put->meta_len = meta_len;
    return GYRE_OK;
}

/* A private copy of the labels. NO_MEMORY. */
static gyre_err own_labels(struct gyre_put *put)
{
    size_t len = put->spec.n_labels * sizeof *put->labels_owned;
    put->labels_owned = malloc(len);
    if (put->labels_owned == NULL)
        return GYRE_NO_MEMORY;
    memcpy(put->labels_owned, put->spec.labels, len);
    put->spec.labels = put->labels_owned;
    return GYRE_OK;
}

gyre_err gyre_put_begin(struct gyre_store *store, const struct gyre_key *key,
                        const struct gyre_put_options *options, struct gyre_put **put_out)
{
    if (put_out == NULL)
        return GYRE_INVALID;
    *put_out = NULL;
    if (key == NULL || options == NULL)
        return GYRE_INVALID;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    struct gyre_put *put = malloc(sizeof *put);
    err = put == NULL ? GYRE_NO_MEMORY : api_put_init(put, store, key, options, options->length);
    if (err == GYRE_OK)
        err = own_meta(put, options->meta, options->meta_len);
    if (err == GYRE_OK && options->n_labels > 0) {
        err = own_labels(put);
        if (err != GYRE_OK)
            free(put->meta_owned);
    }
    if (err != GYRE_OK) {
        free(put);
        api_leave(store, shard);
        return err;
    }
    put->shard = shard;
    api_leave_with_claim(store, shard);
    *put_out = put;
    return GYRE_OK;
}

gyre_err gyre_put_set_meta(struct gyre_put *put, const void *meta, size_t meta_len,
                           uint64_t etag_hash, uint32_t expires)
{
    if (put == NULL || (meta == NULL && meta_len > 0))
        return GYRE_INVALID;
    GYRE_CHECK(put->magic == API_PUT_LIVE);
    if (put->failed != GYRE_OK || api_is_inherited(put->store, put->life))
        return GYRE_STATE;
    if (meta_len > GYRE_META_MAX)
        return GYRE_META_TOO_LARGE;
    gyre_err err = own_meta(put, meta, meta_len);
    if (err != GYRE_OK)
        return err;
    put->spec.etag_hash = etag_hash;
    put->spec.expires = expires;
    return GYRE_OK;
}

/* Begins a step of a streamed put. STATE, CLOSED. */
static gyre_err enter_put(const struct gyre_put *put, uint32_t *shard_out)
{
    GYRE_CHECK(put->magic == API_PUT_LIVE);
    *shard_out = 0;
    if (put->failed != GYRE_OK || api_is_inherited(put->store, put->life))
        return GYRE_STATE;
    return api_enter(put->store, shard_out);
}

/* Ends it; a failure sticks. */
static gyre_err leave_put(struct gyre_put *put, uint32_t shard, gyre_err err)
{
    put->failed = err;
    api_leave(put->store, shard);
    return err;
}

gyre_err gyre_put_reserve(struct gyre_put *put, size_t *len_inout, void **buffer_out)
{
    if (buffer_out == NULL)
        return GYRE_INVALID;
    *buffer_out = NULL;
    if (put == NULL || len_inout == NULL || *len_inout == 0)
        return GYRE_INVALID;
    uint32_t shard;
    gyre_err err = enter_put(put, &shard);
    if (err != GYRE_OK)
        return err;
    err = api_put_make_room(put, *len_inout);
    size_t room = put->stage.capacity - put->stage.filled;
    put->lent = err == GYRE_OK ? (*len_inout < room ? *len_inout : room) : 0;
    *len_inout = put->lent;
    *buffer_out = put->lent > 0 ? put->stage.bytes + put->stage.filled : NULL;
    return leave_put(put, shard, err);
}

gyre_err gyre_put_advance(struct gyre_put *put, size_t len)
{
    if (put == NULL)
        return GYRE_INVALID;
    uint32_t shard;
    gyre_err err = enter_put(put, &shard);
    if (err != GYRE_OK)
        return err;
    err = len > put->lent ? GYRE_STATE : api_put_filled(put, len);
    put->lent = 0;
    return leave_put(put, shard, err);
}

gyre_err gyre_put_write(struct gyre_put *put, const void *bytes, size_t len)
{
    if (put == NULL || (bytes == NULL && len > 0))
        return GYRE_INVALID;
    uint32_t shard;
    gyre_err err = enter_put(put, &shard);
    if (err != GYRE_OK)
        return err;
    put->lent = 0;
    return leave_put(put, shard, api_put_append(put, bytes, len));
}

/* The last step of either end. */
static void destroy_put(struct gyre_put *put)
{
    struct gyre_store *store = put->store;
    uint32_t shard = put->shard;
    bool inherited = api_is_inherited(store, put->life);
    api_put_fini(put);
    free(put);
    if (!inherited)
        api_unclaim(store, shard);
}

gyre_err api_put_commit_inside(struct gyre_put **put, uint64_t *serial_out)
{
    struct gyre_put *ended = *put;
    *put = NULL;
    gyre_err err =
        ended->failed != GYRE_OK ? ended->failed : api_put_publish(ended, NULL, serial_out);
    destroy_put(ended);
    return err;
}

gyre_err gyre_put_commit(struct gyre_put **put, uint64_t *serial_out)
{
    uint64_t serial = 0;
    if (serial_out != NULL)
        *serial_out = 0;
    if (put == NULL || *put == NULL)
        return GYRE_INVALID;
    struct gyre_put *ended = *put;
    *put = NULL;
    GYRE_CHECK(ended->magic == API_PUT_LIVE);
    gyre_err err = ended->failed;
    uint32_t shard;
    if (err == GYRE_OK && api_is_inherited(ended->store, ended->life))
        err = GYRE_STATE;
    if (err == GYRE_OK)
        err = api_enter(ended->store, &shard);
    if (err == GYRE_OK) {
        err = api_put_publish(ended, NULL, &serial);
        api_leave(ended->store, shard);
    }
    destroy_put(ended);
    if (err == GYRE_OK && serial_out != NULL)
        *serial_out = serial;
    return err;
}

void gyre_put_abort(struct gyre_put **put)
{
    if (put == NULL || *put == NULL)
        return;
    struct gyre_put *ended = *put;
    *put = NULL;
    GYRE_CHECK(ended->magic == API_PUT_LIVE);
    destroy_put(ended);
}
