#include "engine/change.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/bits.h"
#include "engine/base/step.h"
#include "engine/keep.h"

#define ROUNDS_MAX 100

static bool is_in(const struct eng_change *change, unsigned what)
{
    return (change->what & what) != 0;
}

static struct eng_spec spec_of(const struct eng_change *change, const struct eng_doc *doc,
                               const uint64_t *old_labels)
{
    struct eng_spec spec = {
        .key = change->key,
        .type = doc->type,
        .flags = doc->flags & (ENG_DOC_UPLOAD | ENG_DOC_NUMBERED | ENG_DOC_ALTERNATE),
        .total_len = doc->total_len,
        .object_serial = doc->object_serial,
        .etag_hash = is_in(change, ENG_CHANGE_ETAG) ? change->etag_hash : doc->etag_hash,
        .parts = doc->parts,
        .created = doc->created,
        .expires = is_in(change, ENG_CHANGE_EXPIRES) ? change->expires : doc->expires,
        .pin_until = is_in(change, ENG_CHANGE_PIN) ? change->pin_until : doc->pin_until,
        .alt_id = doc->alt_id,
        .tenant = doc->tenant,
        .pool = doc->pool,
        .retention = doc->retention,
        .labels = is_in(change, ENG_CHANGE_LABELS) ? change->labels : old_labels,
        .n_labels = is_in(change, ENG_CHANGE_LABELS) ? change->n_labels : eng_doc_labels(doc),
        .stored_ticks = eng_doc_stored_ticks(doc),
    };
    return spec;
}

/* Keeps an object's parts, all or none. */
static gyre_err keep_parts(struct eng_store *store, const struct eng_ref *head)
{
    const struct eng_doc *doc = head->doc;
    uint64_t n = doc->type == ENG_HEAD ? doc->body_len / sizeof(struct eng_part_row) : 0;
    const struct eng_part_row *rows = (const struct eng_part_row *)(const void *)head->body;
    for (uint64_t i = 0; i < n; i++) {
        uint8_t key[32];
        const struct eng_part_row *row = &rows[i];
        eng_part_key(doc->key, doc->object_serial, row->part_no, row->attempt, row->sub, key);
        const struct eng_want want = {key, doc->pool, true, doc->object_serial};
        gyre_err err = eng_keep_part(store, &want, true);
        if (err != GYRE_OK) {
            eng_keep_end_rows(store, doc->key, doc->pool, doc->object_serial, rows, i);
            return err;
        }
    }
    return GYRE_OK;
}

static void end_keeping(struct eng_store *store, const struct eng_ref *head)
{
    const struct eng_doc *doc = head->doc;
    if (doc->type == ENG_HEAD)
        eng_keep_end_rows(store, doc->key, doc->pool, doc->object_serial,
                          (const struct eng_part_row *)(const void *)head->body,
                          doc->body_len / sizeof(struct eng_part_row));
}

/* Writes the document again if it is still the one that is pinned. */
static gyre_err rewrite(struct eng_store *store, const struct eng_change *change,
                        const struct eng_ref *old, uint64_t *serial_out)
{
    const struct eng_doc *doc = old->doc;
    uint32_t user_len = eng_doc_user_meta_len(doc);
    uint64_t labels[ENG_DOC_LABELS_MAX];
    memcpy(labels, old->meta + user_len, eng_doc_labels(doc) * sizeof labels[0]);
    struct eng_commit commit = {
        .spec = spec_of(change, doc, labels),
        .meta = is_in(change, ENG_CHANGE_META) ? change->meta : old->meta,
        .meta_len = is_in(change, ENG_CHANGE_META) ? change->meta_len : user_len,
        .body = old->body,
        .body_len = doc->body_len,
        .condition = ENG_IF_SERIAL,
        .if_serial = doc->serial,
        .now = (uint32_t)(change->now_ms / 1000),
        .now_ms = change->now_ms,
        .sync = change->sync,
        .keeps_age = true,
    };
    return eng_commit(store, &commit, serial_out);
}

/* Keeps the parts for the document that is about to say so. */
static gyre_err pin(struct eng_store *store, const struct eng_change *change,
                    const struct eng_ref *old, uint64_t *serial_out)
{
    eng_keep_begin(store);
    gyre_err err = keep_parts(store, old);
    if (err == GYRE_OK) {
        GYRE_STEP("change.parts.kept");
        err = rewrite(store, change, old, serial_out);
        if (err != GYRE_OK)
            end_keeping(store, old);
    }
    eng_keep_end(store);
    return err;
}

static gyre_err change_once(struct eng_store *store, const struct eng_change *change,
                            const struct eng_ref *old, uint64_t *serial_out)
{
    uint32_t now = (uint32_t)(change->now_ms / 1000);
    bool was_pinned = old->doc->pin_until > now;
    bool is_pinned = is_in(change, ENG_CHANGE_PIN) ? change->pin_until > now : was_pinned;
    if (old->doc->type == ENG_VECTOR)
        return GYRE_STATE;
    if (change->if_serial != 0 && old->doc->serial != change->if_serial)
        return GYRE_CHANGED;
    if (is_pinned && !was_pinned)
        return pin(store, change, old, serial_out);
    gyre_err err = rewrite(store, change, old, serial_out);
    if (err == GYRE_OK && was_pinned && !is_pinned)
        end_keeping(store, old);
    return err;
}

gyre_err eng_change(struct eng_store *store, const struct eng_change *change, uint64_t *serial_out)
{
    const struct eng_want want = {.key = change->key, .pool = change->pool};
    *serial_out = 0;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        struct eng_ref old;
        gyre_err err =
            eng_find(store, &want, (uint32_t)(change->now_ms / 1000), ENG_NO_COUNT, &old);
        if (err != GYRE_OK)
            return err == GYRE_EXPIRED ? GYRE_NOT_FOUND : err;
        err = change_once(store, change, &old, serial_out);
        eng_ref_release(&old);
        if (err != GYRE_CHANGED || change->if_serial != 0)
            return err;
    }
    return GYRE_BUSY;
}
