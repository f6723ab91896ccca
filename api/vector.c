/* Alternates: choosing one, adding and taking away. */
#include "engine/vector.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/check.h"
#include "engine/base/sys.h"
#include "engine/seal.h"

#include "api/handle.h"
#include "api/put.h"
#include "api/store.h"

_Static_assert(GYRE_ALTERNATES_MAX == ENG_ALTERNATES && GYRE_VARY_MAX == ENG_VARY_MAX,
               "numbers are handed on as they are");

static uint64_t now_ms(void)
{
    return eng_clock_real_ns() / 1000000;
}

/* ---- Adding ---- */

gyre_err gyre_alternate_put(struct gyre_store *store, const struct gyre_key *key,
                            const struct gyre_alternate *alternate,
                            const struct gyre_put_options *options, struct gyre_put **put_out)
{
    if (put_out == NULL)
        return GYRE_INVALID;
    *put_out = NULL;
    if (key == NULL || alternate == NULL || options == NULL || alternate->id == 0 ||
        alternate->vary_len > GYRE_VARY_MAX || alternate->flags > UINT16_MAX ||
        (alternate->vary == NULL && alternate->vary_len > 0))
        return GYRE_INVALID;
    struct api_alternate *own = calloc(1, sizeof *own + alternate->vary_len);
    if (own == NULL)
        return GYRE_NO_MEMORY;
    if (alternate->vary_len > 0)
        memcpy(own->vary, alternate->vary, alternate->vary_len);
    own->parent = *key;
    own->entry = (struct eng_vector_entry){
        .alt_id = alternate->id,
        .flags = alternate->flags,
        .vary_hash = alternate->vary_hash,
        .source_serial = alternate->source_serial,
        .origin_variant = alternate->origin,
        .created = alternate->created,
        .expires = alternate->expires,
        .vary_len = alternate->vary_len,
        .encoding = alternate->encoding,
        .quality = alternate->quality,
    };
    struct gyre_put *put;
    gyre_err err = gyre_put_begin(store, key, options, &put);
    if (err != GYRE_OK) {
        free(own);
        return err;
    }
    put->alternate = own;
    put->spec.flags |= ENG_DOC_ALTERNATE;
    put->spec.alt_id = alternate->id;
    own->entry.head_salt = eng_object_serial(store->engine, put->spec.pool, key->bytes);
    eng_alternate_key(key->bytes, own->entry.head_salt, put->key.bytes);
    *put_out = put;
    return GYRE_OK;
}

/* Adds what is stored, or lies in `inside`, to the vector. */
static gyre_err edit_in(struct gyre_put *put, const uint8_t *inside, size_t inside_len,
                        uint64_t serial)
{
    struct api_alternate *own = put->alternate;
    struct eng_alternate what = {own->entry, own->vary, inside, (uint32_t)inside_len};
    uint64_t vector_serial;
    what.entry.length = put->accepted;
    if (what.entry.origin_variant == 0)
        what.entry.source_serial = serial;
    if (inside != NULL)
        what.entry.flags |= ENG_ALTERNATE_INLINE;
    const struct eng_edit edit = {
        .key = own->parent.bytes,
        .pool = put->spec.pool,
        .tenant = put->spec.tenant,
        .add = &what,
        .condition = put->condition,
        .if_serial = put->if_serial,
        .now_ms = now_ms(),
        .sync = put->sync,
    };
    return eng_vector_edit(put->store->engine, &edit, &vector_serial);
}

/* A small one goes into the vector. TOO_LARGE: it gets a document of its own after all. */
static gyre_err publish_inside(struct gyre_put *put, uint64_t *serial_out)
{
    size_t len = sizeof(struct eng_inline) + put->meta_len + (size_t)put->accepted;
    const struct eng_inline head = {.etag_hash = put->spec.etag_hash,
                                    .meta_len = (uint32_t)put->meta_len};
    uint8_t *inside = malloc(len);
    if (inside == NULL)
        return GYRE_NO_MEMORY;
    memcpy(inside, &head, sizeof head);
    if (put->meta_len > 0)
        memcpy(inside + sizeof head, put->meta, put->meta_len);
    if (put->accepted > 0)
        memcpy(inside + sizeof head + put->meta_len, put->stage.bytes, (size_t)put->accepted);
    *serial_out = put->alternate->entry.head_salt; /* as good as a serial: given out once */
    gyre_err err = edit_in(put, inside, len, *serial_out);
    free(inside);
    return err;
}

gyre_err api_alternate_publish(struct gyre_put *put, uint64_t *serial_out)
{
    enum eng_condition condition = put->condition;
    bool fits = put->stage.filled == put->accepted && put->n_parts == 0 && !put->part_open &&
                put->meta_len + put->accepted <= ENG_INLINE_MAX && put->spec.n_labels == 0 &&
                put->spec.pin_until == 0 && put->spec.expires == 0;
    if (fits) {
        gyre_err err = publish_inside(put, serial_out);
        if (err != GYRE_TOO_LARGE)
            return err;
    }
    struct api_alternate *own = put->alternate;
    put->alternate = NULL; /* as any object is published, under a key that nothing names yet */
    put->condition = ENG_ALWAYS;
    gyre_err err = api_put_publish(put, NULL, serial_out);
    put->alternate = own;
    put->condition = condition;
    if (err != GYRE_OK)
        return err;
    err = edit_in(put, NULL, 0, *serial_out);
    if (err != GYRE_OK)
        eng_alternate_unlink(put->store->engine, put->spec.pool, put->key.bytes);
    return err;
}

/* ---- Choosing ---- */

/* The alternates of a pinned vector that may be chosen. */
struct choice {
    struct gyre_alternate *shown;
    struct eng_alternate *at;
    uint32_t n;
};

static struct gyre_alternate show(const struct eng_alternate *at)
{
    const struct eng_vector_entry *entry = &at->entry;
    return (struct gyre_alternate){
        .id = entry->alt_id,
        .origin = entry->origin_variant,
        .source_serial = entry->source_serial,
        .vary_hash = entry->vary_hash,
        .vary = at->vary,
        .vary_len = entry->vary_len,
        .created = entry->created,
        .expires = entry->expires,
        .flags = entry->flags & UINT16_MAX,
        .length = entry->length,
        .encoding = entry->encoding,
        .quality = entry->quality,
    };
}

/* `now` 0: expired ones too. NO_MEMORY, NOT_FOUND (no vector). */
static gyre_err list_choice(const struct eng_ref *ref, uint32_t now, struct choice *choice)
{
    uint32_t n;
    *choice = (struct choice){0};
    if (ref->doc->type != ENG_VECTOR ||
        eng_vector_check(ref->body, ref->doc->body_len, &n) != GYRE_OK)
        return GYRE_NOT_FOUND;
    choice->shown = calloc(n + 1, sizeof *choice->shown);
    choice->at = calloc(n + 1, sizeof *choice->at);
    if (choice->shown == NULL || choice->at == NULL)
        return GYRE_NO_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        const struct eng_alternate at = eng_vector_at(ref->body, i);
        if (now != 0 && at.entry.expires != 0 && now >= at.entry.expires)
            continue;
        choice->at[choice->n] = at;
        choice->shown[choice->n++] = show(&at);
    }
    return GYRE_OK;
}

static void free_choice(struct choice *choice)
{
    free(choice->shown);
    free(choice->at);
}

static void forget(struct choice *choice, size_t i)
{
    size_t behind = choice->n - i - 1;
    memmove(&choice->at[i], &choice->at[i + 1], behind * sizeof *choice->at);
    memmove(&choice->shown[i], &choice->shown[i + 1], behind * sizeof *choice->shown);
    choice->n--;
}

/* A handle of what lies inside the vector: the vector's document, seen through a narrower window.
 */
static gyre_err open_inside(struct gyre_store *store, struct eng_ref *vector,
                            const struct eng_alternate *at, unsigned flags,
                            struct gyre_handle **handle_out)
{
    struct gyre_handle *handle = api_handle_take();
    struct eng_inline head;
    if (handle == NULL)
        return GYRE_NO_MEMORY;
    memcpy(&head, at->inside, sizeof head);
    const uint8_t *meta = at->inside + sizeof head;
    const uint8_t *body = meta + head.meta_len;
    handle->store = store;
    handle->life = store->life;
    handle->doc = *vector;
    handle->doc.body_file_off += (uint64_t)(body - vector->body);
    handle->doc.meta = meta;
    handle->doc.body = body;
    handle->head_only = (flags & GYRE_GET_HEAD) != 0;
    handle->info = (struct gyre_info){
        .length = at->inside_len - sizeof head - head.meta_len,
        .serial = api_inside_serial(vector, at),
        .created = at->entry.created,
        .expires = at->entry.expires,
        .etag_hash = head.etag_hash,
        .meta_len = head.meta_len,
        .tenant = vector->doc->tenant,
        .pool = vector->doc->pool,
        .retention = vector->doc->retention,
    };
    handle->magic = API_HANDLE_LIVE;
    *vector = (struct eng_ref){0}; /* its pin is the handle's now */
    *handle_out = handle;
    return GYRE_OK;
}

static gyre_err open_outside(struct gyre_store *store, const struct eng_ref *vector,
                             const struct eng_alternate *at, uint32_t now, unsigned flags,
                             struct gyre_handle **handle_out)
{
    struct gyre_key key;
    eng_alternate_key(vector->doc->key, at->entry.head_salt, key.bytes);
    flags = (flags & (API_ONE_POOL - 1) & ~API_GET_META_POOL) | GYRE_IN_POOL(vector->doc->pool);
    gyre_err err = api_handle_open(store, &key, now, flags, handle_out);
    if (err == GYRE_OK && !(flags & API_GET_NO_COUNT))
        ENG_COUNT(store->engine, hits, UINT64_MAX); /* the vector's was the hit */
    return err == GYRE_EXPIRED ? GYRE_NOT_FOUND : err;
}

gyre_err api_vector_select(struct gyre_store *store, struct eng_ref *vector, uint32_t now,
                           unsigned flags, gyre_select_fn select, void *data,
                           struct gyre_handle **handle_out, uint32_t *id_out)
{
    struct choice choice;
    gyre_err err = list_choice(vector, now, &choice);
    *handle_out = NULL;
    while (err == GYRE_OK) {
        size_t i = choice.n > 0 ? select(data, choice.shown, choice.n) : SIZE_MAX;
        if (i >= choice.n) {
            err = GYRE_NOT_FOUND;
            break;
        }
        const struct eng_alternate at = choice.at[i];
        *id_out = at.entry.alt_id;
        err = at.inside != NULL ? open_inside(store, vector, &at, flags, handle_out)
                                : open_outside(store, vector, &at, now, flags, handle_out);
        if (err != GYRE_NOT_FOUND)
            break;
        forget(&choice, i); /* evicted */
        err = GYRE_OK;
    }
    free_choice(&choice);
    eng_ref_release(vector);
    return err;
}

size_t api_select_first(void *data, const struct gyre_alternate *alternates, size_t n)
{
    (void)data;
    (void)alternates;
    return n > 0 ? 0 : SIZE_MAX;
}

/* Inside a call. An object that is no vector is the only thing to choose. */
static gyre_err select_one(struct gyre_store *store, const struct gyre_key *key, uint32_t now,
                           unsigned flags, gyre_select_fn select, void *data,
                           struct gyre_handle **handle_out, uint32_t *id_out)
{
    const struct eng_want want = {.key = key->bytes, .pool = api_pool_of(flags)};
    unsigned eng_flags = ((flags & GYRE_GET_NOWAIT) != 0 ? ENG_NOWAIT : 0) |
                         ((flags & API_GET_NO_COUNT) != 0 ? ENG_NO_COUNT : 0);
    struct eng_ref ref;
    gyre_err err = eng_find(store->engine, &want, now, eng_flags, &ref);
    if (err != GYRE_OK)
        return err;
    if (ref.doc->type == ENG_VECTOR)
        return api_vector_select(store, &ref, now, flags, select, data, handle_out, id_out);
    const struct gyre_alternate only = {
        .source_serial = ref.doc->serial,
        .created = ref.doc->created,
        .expires = ref.doc->expires,
        .length = ref.doc->type == ENG_HEAD ? ref.doc->total_len : ref.doc->body_len,
    };
    eng_ref_release(&ref);
    if (select(data, &only, 1) != 0)
        return GYRE_NOT_FOUND;
    return api_handle_open(store, key, now, flags | API_GET_NO_COUNT, handle_out);
}

gyre_err gyre_select(struct gyre_store *store, const struct gyre_key *key, uint32_t now,
                     unsigned flags, gyre_select_fn select, void *data,
                     struct gyre_handle **handle_out, uint32_t *id_out)
{
    uint32_t id = 0;
    if (id_out != NULL)
        *id_out = 0;
    if (handle_out == NULL)
        return GYRE_INVALID;
    *handle_out = NULL;
    if (key == NULL || select == NULL || (flags & ~API_GET_FLAGS) != 0)
        return GYRE_INVALID;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    err = api_pool_usable(store, api_pool_of(flags))
              ? select_one(store, key, now, flags, select, data, handle_out, &id)
              : GYRE_INVALID;
    if (err != GYRE_OK) {
        api_leave(store, shard);
        return err;
    }
    if (id_out != NULL)
        *id_out = id;
    (*handle_out)->shard = shard;
    api_leave_with_claim(store, shard);
    return GYRE_OK;
}

/* ---- Looking, taking away ---- */

gyre_err gyre_alternates(struct gyre_store *store, const struct gyre_key *key,
                         void (*visit)(void *data, const struct gyre_alternate *alternates,
                                       size_t n, uint64_t serial),
                         void *data)
{
    if (key == NULL || visit == NULL)
        return GYRE_INVALID;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    const struct eng_want want = {.key = key->bytes, .pool = ENG_POOL_MAIN};
    struct eng_ref ref;
    struct choice choice = {0};
    err = eng_find(store->engine, &want, eng_clock_real_s(), ENG_NO_COUNT, &ref);
    if (err == GYRE_OK)
        err = list_choice(&ref, 0, &choice);
    if (err == GYRE_OK)
        visit(data, choice.shown, choice.n, ref.doc->serial);
    free_choice(&choice);
    eng_ref_release(&ref);
    api_leave(store, shard);
    return err;
}

gyre_err gyre_alternate_remove(struct gyre_store *store, const struct gyre_key *key, uint32_t id,
                               uint64_t if_serial, unsigned flags)
{
    if (key == NULL || id == 0 || (flags & ~((unsigned)GYRE_PUT_SYNC | 0x1Fu << 24)) != 0)
        return GYRE_INVALID;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    uint64_t serial;
    const struct eng_edit edit = {
        .key = key->bytes,
        .pool = api_pool_of(flags),
        .remove = id,
        .condition = if_serial != 0 ? ENG_IF_SERIAL : ENG_ALWAYS,
        .if_serial = if_serial,
        .now_ms = now_ms(),
        .sync = (flags & GYRE_PUT_SYNC) != 0,
    };
    err = api_pool_usable(store, edit.pool) ? eng_vector_edit(store->engine, &edit, &serial)
                                            : GYRE_INVALID;
    api_leave(store, shard);
    return err;
}
