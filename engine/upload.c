#include "engine/upload.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/base/crc32c.h"
#include "engine/base/hash.h"
#include "engine/base/step.h"
#include "engine/keep.h"
#include "engine/publish.h"
#include "engine/sync.h"

GYRE_STATIC_SIZE(struct eng_upload_record, 128);

#define COMPLETING_S 60
#define ROUNDS_MAX 100

/* Records of one upload differ in the last bytes of their keys alone: they are hashed again, with a
 * secret, before anything is looked up by them. */
void eng_upload_key(const uint8_t key[32], const uint8_t id[16], uint32_t number, uint8_t out[32])
{
    static const char what[] = "upload";
    const struct iovec pieces[] = {{(void *)(uintptr_t)what, sizeof what},
                                   {(void *)(uintptr_t)key, 32},
                                   {(void *)(uintptr_t)id, 16}};
    eng_sha256(pieces, GYRE_ARRAY_LEN(pieces), out);
    eng_store_u32(out + 28, eng_load_u32(out + 28) ^ number);
}

bool eng_upload_read(const struct eng_ref *ref, struct eng_upload_record *record_out)
{
    *record_out = (struct eng_upload_record){0};
    if ((ref->doc->flags & ENG_DOC_UPLOAD) == 0 || ref->doc->type != ENG_DOC ||
        ref->doc->body_len < sizeof *record_out)
        return false;
    memcpy(record_out, ref->body, sizeof *record_out);
    return ref->doc->body_len - sizeof *record_out ==
           record_out->n_rows * (uint64_t)sizeof(struct eng_part_row);
}

gyre_err eng_upload_find(struct eng_store *store, const uint8_t key[32], const uint8_t id[16],
                         uint32_t number, uint32_t now, struct eng_ref *ref_out,
                         struct eng_upload_record *record_out)
{
    uint8_t record_key[32];
    eng_upload_key(key, id, number, record_key);
    const struct eng_want want = {.key = record_key, .pool = ENG_POOL_META};
    gyre_err err = eng_find(store, &want, now, ENG_NO_COUNT, ref_out);
    *record_out = (struct eng_upload_record){0};
    if (err == GYRE_EXPIRED)
        return GYRE_NOT_FOUND;
    if (err != GYRE_OK || eng_upload_read(ref_out, record_out))
        return err;
    eng_ref_release(ref_out);
    return GYRE_NOT_FOUND;
}

/* ---- Writing records ---- */

/* What is the same for all of them. */
static struct eng_commit record_commit(const struct eng_upload_record *record,
                                       const uint8_t record_key[32], const struct iovec *meta,
                                       uint64_t now_ms)
{
    return (struct eng_commit){
        .spec = {.key = record_key,
                 .type = ENG_DOC,
                 .flags = ENG_DOC_UPLOAD,
                 .created = (uint32_t)(now_ms / 1000),
                 .tenant = record->tenant,
                 .pool = ENG_POOL_META,
                 .retention = record->retention},
        .meta = meta->iov_base,
        .meta_len = meta->iov_len,
        .body = record,
        .body_len = sizeof *record,
        .now = (uint32_t)(now_ms / 1000),
        .now_ms = now_ms,
    };
}

gyre_err eng_upload_begin(struct eng_store *store, struct eng_upload_record *record,
                          const struct iovec *meta, uint32_t created, uint32_t expires,
                          uint64_t now_ms, bool sync)
{
    uint8_t record_key[32];
    uint64_t serial;
    record->object_serial = eng_object_serial(store, ENG_POOL_MAIN, record->key);
    eng_upload_key(record->key, record->id, 0, record_key);
    struct eng_commit commit = record_commit(record, record_key, meta, now_ms);
    commit.spec.total_len = sizeof *record;
    commit.spec.created = created;
    commit.spec.expires = expires;
    commit.condition = ENG_IF_ABSENT;
    commit.sync = sync;
    return eng_commit(store, &commit, &serial);
}

static bool is_completing(const struct eng_upload_record *record, uint32_t now)
{
    return record->completing_until > now;
}

/* Removes the parts of a record that has been replaced, or whose upload has ended, but for those
 * that the object under the key has taken over: they lose their keep bit. */
static void free_rows(struct eng_store *store, const struct eng_upload_record *record,
                      const uint8_t *rows)
{
    const struct eng_want want = {.key = record->key, .pool = ENG_POOL_MAIN};
    struct eng_doc as_head = {.object_serial = record->object_serial, .pool = ENG_POOL_MAIN};
    struct eng_ref object;
    size_t from = 0;
    memcpy(as_head.key, record->key, sizeof as_head.key);
    gyre_err err = eng_find(store, &want, 0, ENG_NO_COUNT | ENG_ANY_AGE, &object);
    bool shares = err == GYRE_OK && object.doc->type == ENG_HEAD &&
                  object.doc->object_serial == record->object_serial;
    for (uint32_t i = 0; i < record->n_rows; i++) {
        struct eng_part_row row;
        memcpy(&row, rows + i * sizeof row, sizeof row);
        if (shares && eng_rows_have((const struct eng_part_row *)(const void *)object.body,
                                    object.doc->body_len / sizeof row, &row, &from))
            eng_keep_end_rows(store, record->key, ENG_POOL_MAIN, record->object_serial, &row, 1);
        else
            eng_row_remove(store, &as_head, &row);
    }
    eng_ref_release(&object);
}

/* ---- Parts ---- */

static gyre_err sync_parts(struct eng_store *store, const struct eng_part *parts, size_t n)
{
    uint64_t touched = 0;
    gyre_err err = GYRE_OK;
    for (size_t i = 0; i < n; i++)
        touched |= UINT64_C(1) << parts[i].extent.stripe->index;
    for (uint32_t i = 0; i < store->n_stripes && err == GYRE_OK; i++)
        if ((touched >> i & 1) != 0)
            err = eng_sync_stripe(&store->stripes[i], false);
    return err;
}

/* Whether parts may be put now. NOT_FOUND. */
static gyre_err check_open(struct eng_store *store, const struct eng_upload_record *record,
                           uint32_t now)
{
    struct eng_upload_record whole;
    struct eng_ref ref;
    gyre_err err = eng_upload_find(store, record->key, record->id, 0, now, &ref, &whole);
    eng_ref_release(&ref);
    if (err == GYRE_OK &&
        (is_completing(&whole, now) || whole.object_serial != record->object_serial))
        err = GYRE_NOT_FOUND;
    return err;
}

/* Writes the record over the one that was there, which stays pinned in *old_out. */
static gyre_err put_record(struct eng_store *store, const struct eng_upload_part *part,
                           struct eng_ref *old_out, struct eng_upload_record *old_record_out,
                           uint64_t *serial_out)
{
    const struct eng_upload_record *record = &part->record;
    uint32_t now = (uint32_t)(part->now_ms / 1000);
    size_t rows_len = record->n_rows * sizeof *part->rows;
    uint8_t record_key[32];
    gyre_err err = GYRE_BUSY;

    *old_out = (struct eng_ref){0};
    uint8_t *body = malloc(sizeof *record + rows_len);
    if (body == NULL)
        return GYRE_NO_MEMORY;
    memcpy(body, record, sizeof *record);
    if (rows_len > 0)
        memcpy(body + sizeof *record, part->rows, rows_len);
    eng_upload_key(record->key, record->id, record->number, record_key);
    for (int round = 0; round < ROUNDS_MAX; round++) {
        err = eng_upload_find(store, record->key, record->id, record->number, now, old_out,
                              old_record_out);
        if (err != GYRE_OK && err != GYRE_NOT_FOUND)
            break;
        struct eng_commit commit = record_commit(record, record_key, &part->meta, part->now_ms);
        commit.spec.total_len = commit.body_len = sizeof *record + rows_len;
        commit.body = body;
        commit.condition = err == GYRE_OK ? ENG_IF_SERIAL : ENG_IF_ABSENT;
        commit.if_serial = err == GYRE_OK ? old_out->doc->serial : 0;
        commit.sync = part->sync;
        err = eng_commit(store, &commit, serial_out);
        if (err == GYRE_OK)
            break;
        eng_ref_release(old_out);
        if (err != GYRE_CHANGED && err != GYRE_EXISTS && err != GYRE_NOT_FOUND)
            break;
    }
    free(body);
    return err;
}

gyre_err eng_upload_put(struct eng_store *store, struct eng_upload_part *part, uint64_t *serial_out)
{
    const struct eng_upload_record *record = &part->record;
    uint32_t now = (uint32_t)(part->now_ms / 1000);
    struct eng_upload_record old_record;
    struct eng_ref old;
    gyre_err err;

    *serial_out = 0;
    TRY(check_open(store, record, now));
    TRY(eng_parts_publish(store, part->parts, record->n_rows));
    GYRE_STEP("upload.put.published");
    err = part->sync ? sync_parts(store, part->parts, record->n_rows) : GYRE_OK;
    if (err == GYRE_OK)
        err = put_record(store, part, &old, &old_record, serial_out);
    if (err != GYRE_OK) {
        eng_parts_withdraw(store, part->parts, record->n_rows);
        goto out;
    }
    GYRE_STEP("upload.put.recorded");
    eng_parts_end(part->parts, record->n_rows);
    /* A completion that began in between may have read the old record: what is not wanted is left
     * to the sweep then. An upload that has ended leaves nothing. */
    err = check_open(store, record, now);
    if (err == GYRE_OK && old.stripe != NULL)
        free_rows(store, &old_record, old.body + sizeof old_record);
    eng_ref_release(&old);
out:
    return err;
}

/* ---- Ending ---- */

static gyre_err remove_record(struct eng_store *store, const uint8_t key[32], const uint8_t id[16],
                              uint32_t number, bool sync)
{
    uint8_t record_key[32];
    eng_upload_key(key, id, number, record_key);
    return eng_delete(store, ENG_POOL_META, record_key, ENG_ALWAYS, 0, sync);
}

/* Ends part `number`, if there is one. */
static gyre_err end_part(struct eng_store *store, const uint8_t key[32], const uint8_t id[16],
                         uint32_t number)
{
    struct eng_upload_record record;
    struct eng_ref ref;
    gyre_err err = eng_upload_find(store, key, id, number, 0, &ref, &record);
    if (err != GYRE_OK)
        return err == GYRE_NOT_FOUND ? GYRE_OK : err;
    /* Parts first: while their record is there, a sweep finds what is left of them. */
    free_rows(store, &record, ref.body + sizeof record);
    eng_ref_release(&ref);
    err = remove_record(store, key, id, number, false);
    return err == GYRE_NOT_FOUND ? GYRE_OK : err;
}

gyre_err eng_upload_end(struct eng_store *store, const uint8_t key[32], const uint8_t id[16],
                        bool sync)
{
    uint8_t base[32];
    gyre_err first = remove_record(store, key, id, 0, sync);
    bool found = first == GYRE_OK;
    gyre_err err = GYRE_OK;

    if (first != GYRE_OK && first != GYRE_NOT_FOUND)
        return first;
    GYRE_STEP("upload.end.record");
    eng_upload_key(key, id, 0, base);
    uint32_t last = eng_load_u32(base + 28);
    for (uint32_t number = 1; number <= ENG_UPLOAD_NUMBERS && err == GYRE_OK; number++) {
        const struct eng_want want = {.key = base, .pool = ENG_POOL_META};
        eng_store_u32(base + 28, last ^ number);
        if (eng_probable(store, &want))
            err = end_part(store, key, id, number);
    }
    return err == GYRE_OK && !found ? GYRE_NOT_FOUND : err;
}

/* ---- Completing ---- */

/* Rows of the object to be. */
struct table {
    struct eng_part_row *rows;
    size_t n, capacity;
    uint64_t length;
};

static gyre_err add_rows(struct table *table, const struct eng_upload_record *record,
                         const uint8_t *rows)
{
    size_t need = table->n + record->n_rows;
    if (need > table->capacity) {
        size_t capacity = need * 2;
        struct eng_part_row *grown = reallocarray(table->rows, capacity, sizeof *grown);
        if (grown == NULL)
            return GYRE_NO_MEMORY;
        table->rows = grown;
        table->capacity = capacity;
    }
    if (record->n_rows > 0) {
        memcpy(&table->rows[table->n], rows, record->n_rows * sizeof *table->rows);
        memcpy(table->rows[table->n].md5, record->md5, sizeof record->md5);
    }
    table->n = need;
    table->length += record->length;
    return GYRE_OK;
}

/* Whether every part is there. RANGE. */
static gyre_err check_rows(struct eng_store *store, const struct eng_upload_record *upload,
                           const struct table *table)
{
    for (size_t i = 0; i < table->n; i++) {
        const struct eng_part_row *row = &table->rows[i];
        uint8_t key[32];
        struct eng_ref part;
        eng_part_key(upload->key, upload->object_serial, row->part_no, row->attempt, row->sub, key);
        const struct eng_want want = {key, ENG_POOL_MAIN, true, upload->object_serial};
        gyre_err err = eng_find(store, &want, 0, ENG_NO_COUNT | ENG_ANY_AGE | ENG_HEADER, &part);
        if (err != GYRE_OK)
            return err == GYRE_NOT_FOUND ? GYRE_RANGE : err;
        eng_ref_release(&part);
    }
    return GYRE_OK;
}

static gyre_err collect(struct eng_store *store, const struct eng_upload_record *upload,
                        const struct eng_upload_choice *choices, size_t n, struct table *table)
{
    for (size_t i = 0; i < n; i++) {
        struct eng_upload_record record;
        struct eng_ref ref;
        gyre_err err =
            eng_upload_find(store, upload->key, upload->id, choices[i].number, 0, &ref, &record);
        if (err != GYRE_OK)
            return err == GYRE_NOT_FOUND ? GYRE_RANGE : err;
        if (choices[i].serial != 0 && choices[i].serial != ref.doc->serial)
            err = GYRE_CHANGED;
        else
            err = add_rows(table, &record, ref.body + sizeof record);
        eng_ref_release(&ref);
        if (err != GYRE_OK)
            return err;
    }
    return check_rows(store, upload, table);
}

/* OPEN -> COMPLETING, or back with `until` 0. */
static gyre_err set_completing(struct eng_store *store, const struct eng_upload_record *upload,
                               uint32_t until, uint64_t now_ms)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        struct eng_upload_record record;
        struct eng_ref ref;
        uint8_t record_key[32];
        uint64_t serial;
        gyre_err err = eng_upload_find(store, upload->key, upload->id, 0, (uint32_t)(now_ms / 1000),
                                       &ref, &record);
        if (err != GYRE_OK)
            return err;
        const struct iovec meta = {(void *)(uintptr_t)ref.meta, eng_doc_user_meta_len(ref.doc)};
        record.completing_until = until;
        eng_upload_key(record.key, record.id, 0, record_key);
        struct eng_commit commit = record_commit(&record, record_key, &meta, now_ms);
        commit.spec.total_len = sizeof record;
        commit.spec.created = ref.doc->created;
        commit.spec.expires = ref.doc->expires;
        commit.condition = ENG_IF_SERIAL;
        commit.if_serial = ref.doc->serial;
        err = eng_commit(store, &commit, &serial);
        eng_ref_release(&ref);
        if (err != GYRE_CHANGED)
            return err;
    }
    return GYRE_BUSY;
}

static gyre_err commit_object(struct eng_store *store, const struct eng_upload_record *upload,
                              const struct table *table, struct eng_commit *commit,
                              uint64_t *serial_out)
{
    commit->spec.type = table->length > 0 ? ENG_HEAD : ENG_DOC;
    commit->spec.flags = ENG_DOC_NUMBERED;
    commit->spec.object_serial = upload->object_serial;
    commit->spec.total_len = table->length;
    commit->spec.parts = (uint32_t)table->n;
    commit->spec.tenant = upload->tenant;
    commit->spec.retention = upload->retention;
    commit->spec.pool = ENG_POOL_MAIN;
    commit->body = table->rows;
    commit->body_len = table->n * sizeof *table->rows;
    return eng_commit(store, commit, serial_out);
}

gyre_err eng_upload_complete(struct eng_store *store, const uint8_t id[16],
                             const struct eng_upload_choice *choices, size_t n,
                             struct eng_commit *commit, uint64_t *serial_out)
{
    struct eng_upload_record upload;
    struct table table = {0};
    struct eng_ref ref;
    gyre_err err;

    *serial_out = 0;
    TRY(eng_upload_find(store, commit->spec.key, id, 0, commit->now, &ref, &upload));
    eng_ref_release(&ref);
    TRY(set_completing(store, &upload, commit->now + COMPLETING_S, commit->now_ms));
    err = collect(store, &upload, choices, n, &table);
    GYRE_STEP("upload.complete.collected");
    if (err == GYRE_OK)
        err = commit_object(store, &upload, &table, commit, serial_out);
    if (err != GYRE_OK) {
        gyre_err back = set_completing(store, &upload, 0, commit->now_ms);
        (void)back; /* a minute later it is open again by itself */
        goto out;
    }
    GYRE_STEP("upload.complete.object");
    /* The object is there. What cannot be cleaned up now is left to the sweep. */
    gyre_err ended = eng_upload_end(store, upload.key, upload.id, commit->sync);
    if (ended != GYRE_OK && ended != GYRE_NOT_FOUND && commit->sync)
        err = ended;
out:
    free(table.rows);
    return err;
}
