/* Changing metadata in place: of objects, and of alternates in their vectors. */
#include "engine/change.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/check.h"
#include "engine/base/sys.h"
#include "engine/seal.h"
#include "engine/vector.h"

#include "api/handle.h"
#include "api/store.h"

_Static_assert((int)GYRE_CHANGE_META == (int)ENG_CHANGE_META &&
                   (int)GYRE_CHANGE_LABELS == (int)ENG_CHANGE_LABELS,
               "numbers are handed on as they are");

static uint64_t now_ms(void)
{
    return eng_clock_real_ns() / 1000000;
}

/* ---- Objects ---- */

void gyre_change_init(struct gyre_change *change)
{
    *change = (struct gyre_change){.struct_size = sizeof *change};
}

static bool change_valid(const struct gyre_change *change)
{
    return change != NULL && change->struct_size == sizeof *change &&
           (change->meta != NULL || change->meta_len == 0) &&
           (change->labels != NULL || change->n_labels == 0) &&
           change->n_labels <= GYRE_LABELS_MAX && change->zero_ == 0 &&
           (change->what & ~(2u * GYRE_CHANGE_LABELS - 1)) == 0 &&
           (change->flags & ~((unsigned)GYRE_PUT_SYNC | 0x1Fu << 24)) == 0;
}

static gyre_err change_object(struct gyre_store *store, const uint8_t key[32],
                              const struct gyre_change *change, uint64_t if_serial,
                              uint64_t *serial_out)
{
    const struct eng_change what = {
        .key = key,
        .pool = api_pool_of(change->flags),
        .what = change->what,
        .meta = change->meta,
        .meta_len = change->meta_len,
        .etag_hash = change->etag_hash,
        .expires = change->expires,
        .pin_until = change->pin_until,
        .labels = change->labels,
        .n_labels = change->n_labels,
        .if_serial = if_serial,
        .now_ms = now_ms(),
        .sync = (change->flags & GYRE_PUT_SYNC) != 0,
    };
    if (change->meta_len > GYRE_META_MAX)
        return GYRE_META_TOO_LARGE;
    gyre_err err = eng_change(store->engine, &what, serial_out);
    return err == GYRE_TOO_LARGE ? GYRE_META_TOO_LARGE : err;
}

gyre_err gyre_change(struct gyre_store *store, const struct gyre_key *key,
                     const struct gyre_change *change, uint64_t *serial_out)
{
    uint64_t serial = 0;
    if (serial_out != NULL)
        *serial_out = 0;
    if (key == NULL || !change_valid(change))
        return GYRE_INVALID;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    err = api_pool_usable(store, api_pool_of(change->flags))
              ? change_object(store, key->bytes, change, change->if_serial, &serial)
              : GYRE_INVALID;
    api_leave(store, shard);
    if (err == GYRE_OK && serial_out != NULL)
        *serial_out = serial;
    return err;
}

/* ---- Alternates ---- */

/* The record of one that lies inside, as it is to be; for the caller to free. */
static gyre_err change_inside(const struct gyre_change *change, struct eng_alternate *at_out,
                              uint8_t **record_out)
{
    struct eng_inline head;
    memcpy(&head, at_out->inside, sizeof head);
    bool renew = (change->what & GYRE_CHANGE_META) != 0;
    uint32_t meta_len = renew ? (uint32_t)change->meta_len : head.meta_len;
    const uint8_t *body = at_out->inside + sizeof head + head.meta_len;
    uint32_t body_len = at_out->inside_len - (uint32_t)sizeof head - head.meta_len;
    *record_out = malloc(sizeof head + meta_len + body_len);
    if (*record_out == NULL)
        return GYRE_NO_MEMORY;
    if (meta_len > 0)
        memcpy(*record_out + sizeof head,
               renew ? change->meta : (const void *)(at_out->inside + sizeof head), meta_len);
    if (body_len > 0)
        memcpy(*record_out + sizeof head + meta_len, body, body_len);
    head.meta_len = meta_len;
    if ((change->what & GYRE_CHANGE_ETAG) != 0)
        head.etag_hash = change->etag_hash;
    memcpy(*record_out, &head, sizeof head);
    at_out->inside_len = (uint32_t)sizeof head + meta_len + body_len;
    return GYRE_OK;
}

/* The alternate of an id, copied out of its vector; one that lies inside gets its changed record in
 * *record_out, to be freed. */
static gyre_err find_alternate(struct gyre_store *store, const struct gyre_key *key, uint32_t id,
                               const struct gyre_change *change, struct eng_alternate *at_out,
                               uint8_t **record_out)
{
    const struct eng_want want = {.key = key->bytes, .pool = api_pool_of(change->flags)};
    struct eng_ref ref;
    uint32_t i = 0;
    uint32_t n = 0;
    gyre_err err;
    *record_out = NULL;
    TRY(eng_find(store->engine, &want, eng_clock_real_s(), ENG_NO_COUNT, &ref));
    if (ref.doc->type == ENG_VECTOR)
        TRY(eng_vector_check(ref.body, ref.doc->body_len, &n));
    while (i < n && eng_vector_at(ref.body, i).entry.alt_id != id)
        i++;
    if (i == n) {
        err = GYRE_NOT_FOUND;
        goto out;
    }
    *at_out = eng_vector_at(ref.body, i);
    at_out->vary = NULL; /* stays with the vector */
    if (at_out->inside == NULL)
        goto out;
    err = change->if_serial != 0 && change->if_serial != api_inside_serial(&ref, at_out)
              ? GYRE_CHANGED
              : GYRE_OK;
    if (err != GYRE_OK)
        goto out;
    err = change_inside(change, at_out, record_out);
out:
    eng_ref_release(&ref);
    return err;
}

static gyre_err change_alternate(struct gyre_store *store, const struct gyre_key *key, uint32_t id,
                                 const struct gyre_change *change)
{
    struct eng_alternate at = {0};
    uint8_t *record;
    uint64_t serial;
    gyre_err err;
    TRY(find_alternate(store, key, id, change, &at, &record));
    at.inside = record;
    if (at.inside == NULL) {
        uint8_t own_key[32];
        eng_alternate_key(key->bytes, at.entry.head_salt, own_key);
        TRY(change_object(store, own_key, change, change->if_serial, &serial));
    }
    if ((change->what & GYRE_CHANGE_EXPIRES) != 0)
        at.entry.expires = change->expires;
    if (at.inside != NULL || (change->what & GYRE_CHANGE_EXPIRES) != 0) {
        const struct eng_edit edit = {
            .key = key->bytes,
            .pool = api_pool_of(change->flags),
            .add = &at,
            .touch = true,
            .now_ms = now_ms(),
            .sync = (change->flags & GYRE_PUT_SYNC) != 0,
        };
        err = eng_vector_edit(store->engine, &edit, &serial);
    }
out:
    free(record);
    return err == GYRE_TOO_LARGE ? GYRE_META_TOO_LARGE : err;
}

gyre_err gyre_alternate_change(struct gyre_store *store, const struct gyre_key *key, uint32_t id,
                               const struct gyre_change *change)
{
    if (key == NULL || id == 0 || !change_valid(change))
        return GYRE_INVALID;
    if (change->meta_len > GYRE_META_MAX)
        return GYRE_META_TOO_LARGE;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    err = api_pool_usable(store, api_pool_of(change->flags))
              ? change_alternate(store, key, id, change)
              : GYRE_INVALID;
    api_leave(store, shard);
    return err;
}
