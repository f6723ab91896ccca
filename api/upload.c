/* Uploads: the engine's (engine/upload.h), with parts that are put as any object is. */
#include "engine/upload.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/check.h"
#include "engine/base/crc32c.h"
#include "engine/base/sys.h"
#include "engine/keep.h"

#include "api/each.h"
#include "api/handle.h"
#include "api/put.h"
#include "api/store.h"

_Static_assert(GYRE_UPLOAD_PARTS_MAX == ENG_UPLOAD_NUMBERS, "numbers are handed on as they are");

static uint64_t now_ms(void)
{
    return eng_clock_real_ns() / 1000000;
}

void gyre_upload_options_init(struct gyre_upload_options *options)
{
    *options = (struct gyre_upload_options){.struct_size = sizeof *options};
}

static gyre_err begin(struct gyre_store *store, const struct gyre_key *key,
                      const struct gyre_upload_options *options, struct gyre_upload_id *id_out)
{
    struct eng_upload_record record = {.tenant = options->tenant, .retention = options->retention};
    const struct iovec meta = {(void *)(uintptr_t)options->meta, options->meta_len};
    gyre_err err;
    TRY(eng_random_bytes(record.id, sizeof record.id));
    memcpy(record.key, key->bytes, sizeof record.key);
    atomic_store_explicit(&store->engine->rt.head->meta_used, 1, memory_order_relaxed);
    TRY(eng_upload_begin(store->engine, &record, &meta,
                         options->created != 0 ? options->created : eng_clock_real_s(),
                         options->abandon_at, now_ms(), (options->flags & GYRE_PUT_SYNC) != 0));
    memcpy(id_out->bytes, record.id, sizeof id_out->bytes);
out:
    return err;
}

gyre_err gyre_upload_begin(struct gyre_store *store, const struct gyre_key *key,
                           const struct gyre_upload_options *options, struct gyre_upload_id *id_out)
{
    if (id_out == NULL)
        return GYRE_INVALID;
    *id_out = (struct gyre_upload_id){{0}};
    if (key == NULL || options == NULL || options->struct_size != sizeof *options ||
        (options->meta == NULL && options->meta_len > 0) || options->tenant >= GYRE_TENANTS_MAX ||
        options->zero_ != 0 || (options->flags & ~(unsigned)GYRE_PUT_SYNC) != 0)
        return GYRE_INVALID;
    if (options->meta_len > GYRE_UPLOAD_META_MAX)
        return GYRE_META_TOO_LARGE;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    err = begin(store, key, options, id_out);
    api_leave(store, shard);
    return err;
}

/* The record of an upload as an open handle without a claim. */
static gyre_err open_record(struct gyre_store *store, const struct gyre_key *key,
                            const struct gyre_upload_id *id, struct gyre_handle **handle_out)
{
    struct gyre_key record_key;
    eng_upload_key(key->bytes, id->bytes, 0, record_key.bytes);
    gyre_err err = api_handle_open(store, &record_key, eng_clock_real_s(),
                                   API_GET_META_POOL | API_GET_NO_COUNT, handle_out);
    if (err == GYRE_OK)
        (*handle_out)->head_only = true; /* the body is not the caller's */
    return err == GYRE_EXPIRED ? GYRE_NOT_FOUND : err;
}

gyre_err gyre_upload_get(struct gyre_store *store, const struct gyre_key *key,
                         const struct gyre_upload_id *id, struct gyre_handle **handle_out)
{
    if (handle_out == NULL)
        return GYRE_INVALID;
    *handle_out = NULL;
    if (key == NULL || id == NULL)
        return GYRE_INVALID;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    err = open_record(store, key, id, handle_out);
    if (err != GYRE_OK) {
        api_leave(store, shard);
        return err;
    }
    (*handle_out)->shard = shard;
    api_leave_with_claim(store, shard);
    return GYRE_OK;
}

/* ---- Parts ---- */

/* Turns a put into one of a part: its bytes go into kept PARTs of the object to be. */
static gyre_err aim(struct gyre_put *put, struct gyre_store *store, const struct gyre_key *key,
                    const struct gyre_upload_id *id, uint32_t number)
{
    struct eng_ref ref;
    put->upload = malloc(sizeof *put->upload);
    if (put->upload == NULL)
        return GYRE_NO_MEMORY;
    gyre_err err = eng_upload_find(store->engine, key->bytes, id->bytes, 0, eng_clock_real_s(),
                                   &ref, put->upload);
    eng_ref_release(&ref);
    if (err != GYRE_OK)
        return err;
    put->upload->number = number;
    put->spec.tenant = put->upload->tenant;
    put->spec.retention = put->upload->retention;
    put->spec.object_serial = put->upload->object_serial;
    put->spec.held = true;
    put->attempt = (uint32_t)eng_object_serial(store->engine, ENG_POOL_MAIN, key->bytes);
    return GYRE_OK;
}

gyre_err gyre_upload_put(struct gyre_store *store, const struct gyre_key *key,
                         const struct gyre_upload_id *id, uint32_t number, uint64_t length,
                         unsigned flags, struct gyre_put **put_out)
{
    struct gyre_put_options options;
    if (put_out == NULL)
        return GYRE_INVALID;
    *put_out = NULL;
    if (key == NULL || id == NULL || number == 0 || number > GYRE_UPLOAD_PARTS_MAX ||
        (flags & ~(unsigned)GYRE_PUT_SYNC) != 0)
        return GYRE_INVALID;
    gyre_put_options_init(&options);
    options.length = length;
    options.flags = flags;
    struct gyre_put *put;
    gyre_err err = gyre_put_begin(store, key, &options, &put);
    if (err != GYRE_OK)
        return err;
    err = aim(put, store, key, id, number);
    if (err != GYRE_OK)
        gyre_put_abort(&put);
    *put_out = put;
    return err;
}

gyre_err gyre_put_set_md5(struct gyre_put *put, const uint8_t md5[16])
{
    if (put == NULL || md5 == NULL)
        return GYRE_INVALID;
    GYRE_CHECK(put->magic == API_PUT_LIVE);
    if (put->upload == NULL || put->failed != GYRE_OK)
        return GYRE_STATE;
    memcpy(put->upload->md5, md5, sizeof put->upload->md5);
    return GYRE_OK;
}

gyre_err api_upload_publish(struct gyre_put *put, const struct eng_part_row *rows,
                            uint64_t *serial_out)
{
    struct eng_upload_part part = {
        .record = *put->upload,
        .meta = {(void *)(uintptr_t)put->meta, put->meta_len},
        .parts = put->parts,
        .rows = rows,
        .now_ms = now_ms(),
        .sync = put->sync,
    };
    if (put->meta_len > GYRE_PART_META_MAX)
        return GYRE_META_TOO_LARGE;
    part.record.n_rows = (uint32_t)put->n_parts;
    part.record.length = put->accepted;
    part.record.completing_until = 0;
    part.record.crc = 0;
    for (size_t i = 0; i < put->n_parts; i++)
        part.record.crc = eng_crc32c_combine(part.record.crc, rows[i].crc, rows[i].length);
    gyre_err err = eng_upload_put(put->store->engine, &part, serial_out);
    if (put->n_parts > 0 && put->parts[0].extent.stripe == NULL)
        put->n_parts = 0; /* they are the store's now */
    return err;
}

static bool visit_part(const struct eng_ref *ref, const struct eng_upload_record *record,
                       bool (*visit)(void *data, const struct gyre_part *part), void *data)
{
    struct gyre_part part = {
        .number = record->number,
        .crc32c = record->crc,
        .length = record->length,
        .serial = ref->doc->serial,
        .created = ref->doc->created,
        .meta = ref->meta,
        .meta_len = eng_doc_user_meta_len(ref->doc),
    };
    memcpy(part.md5, record->md5, sizeof part.md5);
    return visit(data, &part);
}

static gyre_err each_part(struct gyre_store *store, const struct gyre_key *key,
                          const struct gyre_upload_id *id, uint32_t after,
                          bool (*visit)(void *data, const struct gyre_part *part), void *data)
{
    struct eng_upload_record record;
    struct eng_ref ref;
    struct gyre_key record_key;
    uint32_t now = eng_clock_real_s();
    gyre_err err = eng_upload_find(store->engine, key->bytes, id->bytes, 0, now, &ref, &record);
    eng_ref_release(&ref);
    for (uint32_t number = after + 1; err == GYRE_OK && number <= ENG_UPLOAD_NUMBERS; number++) {
        const struct eng_want want = {.key = record_key.bytes, .pool = ENG_POOL_META};
        eng_upload_key(key->bytes, id->bytes, number, record_key.bytes);
        if (!eng_probable(store->engine, &want))
            continue;
        err = eng_upload_find(store->engine, key->bytes, id->bytes, number, now, &ref, &record);
        if (err == GYRE_NOT_FOUND) {
            err = GYRE_OK;
            continue;
        }
        bool go_on = err == GYRE_OK && visit_part(&ref, &record, visit, data);
        eng_ref_release(&ref);
        if (!go_on)
            break;
    }
    return err;
}

gyre_err gyre_upload_each_part(struct gyre_store *store, const struct gyre_key *key,
                               const struct gyre_upload_id *id, uint32_t after,
                               bool (*visit)(void *data, const struct gyre_part *part), void *data)
{
    if (key == NULL || id == NULL || visit == NULL)
        return GYRE_INVALID;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    err = each_part(store, key, id, after > ENG_UPLOAD_NUMBERS ? ENG_UPLOAD_NUMBERS : after, visit,
                    data);
    api_leave(store, shard);
    return err;
}

/* ---- All uploads ---- */

struct tour {
    struct gyre_store *store;
    bool (*visit)(void *data, const struct gyre_key *key, const struct gyre_upload_id *id,
                  const struct gyre_handle *handle);
    void *data;
};

static bool visit_upload(void *data, const struct gyre_handle *handle)
{
    struct tour *tour = data;
    struct eng_upload_record record;
    if (!eng_upload_read(&handle->doc, &record) || record.number != 0)
        return true;
    struct gyre_key key = gyre_key_of_digest(record.key);
    struct gyre_upload_id id;
    memcpy(id.bytes, record.id, sizeof id.bytes);
    return tour->visit(tour->data, &key, &id, handle);
}

gyre_err gyre_each_upload(struct gyre_store *store,
                          bool (*visit)(void *data, const struct gyre_key *key,
                                        const struct gyre_upload_id *id,
                                        const struct gyre_handle *handle),
                          void *data)
{
    if (visit == NULL)
        return GYRE_INVALID;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    struct tour tour = {store, visit, data};
    err = api_each_upload(store, visit_upload, &tour);
    api_leave(store, shard);
    return err;
}

/* ---- Ending ---- */

/* OK, INVALID. */
static gyre_err take_choices(const struct gyre_part_choice *choices, size_t n,
                             struct eng_upload_choice *out)
{
    for (size_t i = 0; i < n; i++) {
        if (choices[i].number == 0 || choices[i].number > GYRE_UPLOAD_PARTS_MAX ||
            (i > 0 && choices[i].number <= choices[i - 1].number))
            return GYRE_INVALID;
        out[i] = (struct eng_upload_choice){choices[i].number, choices[i].serial};
    }
    return GYRE_OK;
}

static gyre_err complete(struct gyre_store *store, const struct gyre_key *key,
                         const struct gyre_upload_id *id, const struct eng_upload_choice *choices,
                         size_t n, const struct gyre_put_options *options, uint64_t *serial_out)
{
    struct gyre_put put; /* for what options mean */
    struct gyre_put_options own = *options;
    own.pool = GYRE_POOL_MAIN;
    own.tenant = 0;
    gyre_err err = api_put_init(&put, store, key, &own, GYRE_LENGTH_UNKNOWN);
    if (err != GYRE_OK)
        return err;
    struct eng_commit commit = {
        .spec = put.spec,
        .meta = put.meta,
        .meta_len = put.meta_len,
        .condition = put.condition,
        .if_serial = put.if_serial,
        .now_ms = now_ms(),
        .sync = put.sync,
    };
    commit.now = (uint32_t)(commit.now_ms / 1000);
    err = eng_upload_complete(store->engine, id->bytes, choices, n, &commit, serial_out);
    api_put_fini(&put);
    return err;
}

gyre_err gyre_upload_complete(struct gyre_store *store, const struct gyre_key *key,
                              const struct gyre_upload_id *id,
                              const struct gyre_part_choice *choices, size_t n_choices,
                              const struct gyre_put_options *options, uint64_t *serial_out)
{
    uint64_t serial = 0;
    if (serial_out != NULL)
        *serial_out = 0;
    if (key == NULL || id == NULL || options == NULL || (choices == NULL && n_choices > 0) ||
        n_choices > GYRE_UPLOAD_PARTS_MAX)
        return GYRE_INVALID;
    struct eng_upload_choice *taken = calloc(n_choices + 1, sizeof *taken);
    if (taken == NULL)
        return GYRE_NO_MEMORY;
    uint32_t shard;
    gyre_err err = take_choices(choices, n_choices, taken);
    if (err == GYRE_OK)
        err = api_enter(store, &shard);
    if (err == GYRE_OK) {
        err = complete(store, key, id, taken, n_choices, options, &serial);
        api_leave(store, shard);
    }
    free(taken);
    if (err == GYRE_OK && serial_out != NULL)
        *serial_out = serial;
    return err;
}

gyre_err gyre_upload_abort(struct gyre_store *store, const struct gyre_key *key,
                           const struct gyre_upload_id *id, unsigned flags)
{
    if (key == NULL || id == NULL || (flags & ~(unsigned)GYRE_PUT_SYNC) != 0)
        return GYRE_INVALID;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    err = eng_upload_end(store->engine, key->bytes, id->bytes, (flags & GYRE_PUT_SYNC) != 0);
    api_leave(store, shard);
    return err;
}

gyre_err gyre_upload_sweep(struct gyre_store *store, uint32_t now)
{
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    err = eng_keep_sweep(store->engine, now);
    api_leave(store, shard);
    return err;
}

/* ---- Parts of an object ---- */

gyre_err gyre_handle_part(const struct gyre_handle *handle, uint32_t index,
                          struct gyre_part *part_out)
{
    if (part_out == NULL)
        return GYRE_INVALID;
    *part_out = (struct gyre_part){0};
    if (handle == NULL)
        return GYRE_INVALID;
    GYRE_CHECK(handle->magic == API_HANDLE_LIVE);
    const struct eng_doc *doc = handle->doc.doc;
    if (doc->type != ENG_HEAD || (doc->flags & ENG_DOC_NUMBERED) == 0)
        return GYRE_RANGE;
    uint64_t n = doc->body_len / sizeof(struct eng_part_row);
    uint64_t offset = 0;
    uint32_t seen = 0;
    for (uint64_t i = 0; i < n; i++) {
        struct eng_part_row row;
        memcpy(&row, handle->doc.body + i * sizeof row, sizeof row);
        if (row.sub == 0)
            seen++;
        if (seen > index + 1)
            break;
        if (seen == index + 1 && row.sub == 0) {
            *part_out = (struct gyre_part){.number = row.part_no, .offset = offset};
            memcpy(part_out->md5, row.md5, sizeof part_out->md5);
        }
        if (seen == index + 1) {
            part_out->crc32c = eng_crc32c_combine(part_out->crc32c, row.crc, row.length);
            part_out->length += row.length;
        }
        offset += row.length;
    }
    return seen > index ? GYRE_OK : GYRE_RANGE;
}
