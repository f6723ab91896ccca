/* Getting an object: find, pin whole, verify; and letting it go again.
 *
 * An object of parts can be replaced between the look at its HEAD and the look at its parts. A part
 * that is missing therefore asks for a second look at the HEAD: another HEAD is the answer, the
 * same one means that the part is really gone.
 */
#include "api/handle.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/check.h"

#include "api/store.h"

/* HEADs that may change under one call before it gives up and says that there is none it can hold.
 */
#define API_HEAD_TRIES 16

#define API_HANDLES_KEPT 64u

/* Dead structures kept by a thread. The flag is for the exit hook alone. */
static _Thread_local struct {
    struct gyre_handle *first;
    uint32_t n;
    bool hooked;
} kept;

static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static bool exit_key_made;

static void free_kept(void *unused)
{
    (void)unused;
    while (kept.first != NULL) {
        struct gyre_handle *handle = kept.first;
        kept.first = handle->next_free;
        free(handle);
    }
    kept.n = 0;
    kept.hooked = false;
}

static void make_exit_key(void)
{
    exit_key_made = pthread_key_create(&exit_key, free_kept) == 0;
}

/* Whether this thread's list will be freed when the thread ends. */
static bool hook_exit(void)
{
    pthread_once(&exit_once, make_exit_key);
    kept.hooked = exit_key_made && pthread_setspecific(exit_key, &kept) == 0;
    return kept.hooked;
}

struct gyre_handle *api_handle_take(void)
{
    struct gyre_handle *handle = kept.first;
    if (likely(handle != NULL)) {
        kept.first = handle->next_free;
        kept.n--;
    } else if ((handle = malloc(sizeof *handle)) == NULL) {
        return NULL;
    }
    handle->magic = API_HANDLE_DEAD;
    handle->n_parts = 0;
    handle->parts = NULL;
    handle->head_only = false;
    return handle;
}

void api_handle_give(struct gyre_handle *handle)
{
    handle->magic = API_HANDLE_DEAD;
    if (kept.n >= API_HANDLES_KEPT || !(kept.hooked || hook_exit())) {
        free(handle);
        return;
    }
    handle->next_free = kept.first;
    kept.first = handle;
    kept.n++;
}

static void fill_info(struct gyre_handle *handle)
{
    const struct eng_doc *doc = handle->doc.doc;
    handle->info = (struct gyre_info){
        .length = doc->type == ENG_HEAD ? doc->total_len : doc->body_len,
        .serial = doc->serial,
        .created = doc->created,
        .expires = doc->expires,
        .etag_hash = doc->etag_hash,
        .meta_len = eng_doc_user_meta_len(doc),
        .parts =
            doc->type == ENG_HEAD ? (uint32_t)(doc->body_len / sizeof(struct eng_part_row)) : 0,
        .tenant = doc->tenant,
        .pool = doc->pool,
        .retention = doc->retention,
        .place = handle->doc.entry,
    };
}

/* Looks for DOC or HEAD in the main pool, then in the meta pool. Results as eng_find. */
static gyre_err find_document(struct gyre_handle *handle, const struct gyre_key *key, uint32_t now,
                              unsigned flags, unsigned eng_flags)
{
    struct gyre_store *store = handle->store;
    struct eng_want want = {.key = key->bytes, .pool = ENG_POOL_MAIN};
    gyre_err err = GYRE_NOT_FOUND;
    if (unlikely(flags >= API_ONE_POOL)) {
        want.pool = (uint8_t)api_flags_pool(flags);
        return eng_find(store->engine, &want, now, eng_flags, &handle->doc);
    }
    if (likely(!(flags & API_GET_META_POOL)))
        err = eng_find(store->engine, &want, now, eng_flags, &handle->doc);
    if (err == GYRE_NOT_FOUND && api_meta_used(store)) {
        want.pool = ENG_POOL_META;
        err = eng_find(store->engine, &want, now, eng_flags, &handle->doc);
        if (!(eng_flags & ENG_NO_COUNT))
            ENG_COUNT(store->engine, misses,
                      UINT64_MAX); /* the main pool's, taken back: only the answer counts */
    }
    return err;
}

/* Pins or looks for the parts of handle->doc. NOT_FOUND: the object is not whole. */
static gyre_err take_parts(struct gyre_handle *handle, unsigned flags, unsigned eng_flags)
{
    const struct eng_ref *head = &handle->doc;
    if (!api_parts_valid(handle->store->engine, head))
        return GYRE_NOT_FOUND;
    if (!(flags & GYRE_GET_HEAD))
        return api_parts_pin(handle, eng_flags);
    handle->head_only = true;
    return api_parts_probable(handle->store->engine, head) ? GYRE_OK : GYRE_NOT_FOUND;
}

/* Finds the object and its parts, following a HEAD that is being replaced. */
static gyre_err find_whole(struct gyre_handle *handle, const struct gyre_key *key, uint32_t now,
                           unsigned flags)
{
    unsigned eng_flags =
        (flags & GYRE_GET_NOWAIT ? ENG_NOWAIT : 0) | (flags & API_GET_NO_COUNT ? ENG_NO_COUNT : 0);
    uint64_t serial = 0;
    for (unsigned try = 0; try < API_HEAD_TRIES; try++) {
        gyre_err err = find_document(handle, key, now, flags, eng_flags);
        if (err != GYRE_OK)
            return err;
        eng_flags |= ENG_NO_COUNT;
        uint16_t type = handle->doc.doc->type;
        if (likely(type == ENG_DOC)) {
            handle->head_only = (flags & GYRE_GET_HEAD) != 0;
            return GYRE_OK;
        }
        err = type == ENG_HEAD ? take_parts(handle, flags, eng_flags) : GYRE_NOT_FOUND;
        if (err == GYRE_OK)
            return GYRE_OK;
        bool same = try > 0 && handle->doc.doc->serial == serial;
        serial = handle->doc.doc->serial;
        if (err == GYRE_NOT_FOUND && same && !(flags & GYRE_GET_NOWAIT))
            eng_drop(&handle->doc);
        eng_ref_release(&handle->doc);
        if (err != GYRE_NOT_FOUND || same)
            return err;
    }
    return GYRE_NOT_FOUND;
}

gyre_err api_handle_open(struct gyre_store *store, const struct gyre_key *key, uint32_t now,
                         unsigned flags, struct gyre_handle **handle_out)
{
    *handle_out = NULL;
    struct gyre_handle *handle = api_handle_take();
    if (unlikely(handle == NULL))
        return GYRE_NO_MEMORY;
    handle->store = store;
    handle->life = store->life;
    gyre_err err = find_whole(handle, key, now, flags);
    if (err != GYRE_OK) {
        api_handle_give(handle);
        return err;
    }
    if (handle->n_parts > 0 && !(flags & (GYRE_GET_NOWAIT | GYRE_GET_LAZY))) {
        err = api_handle_verify(handle);
        if (err != GYRE_OK) {
            api_handle_close(handle);
            return err == GYRE_DAMAGED ? GYRE_NOT_FOUND : err;
        }
    }
    fill_info(handle);
    handle->magic = API_HANDLE_LIVE;
    *handle_out = handle;
    return GYRE_OK;
}

void api_handle_close(struct gyre_handle *handle)
{
    for (uint32_t i = 0; i < handle->n_parts; i++)
        eng_ref_release(&handle->parts[i].ref);
    if (handle->n_parts > 1)
        free(handle->parts);
    eng_ref_release(&handle->doc);
    api_handle_give(handle);
}

void api_handle_forget(struct gyre_handle *handle)
{
    if (handle->n_parts > 1)
        free(handle->parts);
    api_handle_give(handle);
}

gyre_err gyre_get(struct gyre_store *store, const struct gyre_key *key, uint32_t now,
                  unsigned flags, struct gyre_handle **handle_out)
{
    if (handle_out == NULL)
        return GYRE_INVALID;
    *handle_out = NULL;
    if (key == NULL || (flags & ~API_GET_FLAGS) != 0)
        return GYRE_INVALID;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (unlikely(err != GYRE_OK))
        return err;
    if (unlikely(flags >= API_ONE_POOL) && !api_pool_usable(store, api_flags_pool(flags)))
        err = GYRE_INVALID;
    else
        err = api_handle_open(store, key, now, flags, handle_out);
    if (err != GYRE_OK) {
        api_leave(store, shard);
        return err;
    }
    (*handle_out)->shard = shard;
    api_leave_with_claim(store, shard);
    return GYRE_OK;
}

void gyre_release(struct gyre_handle *handle)
{
    if (handle == NULL)
        return;
    GYRE_CHECK(handle->magic == API_HANDLE_LIVE);
    struct gyre_store *store = handle->store;
    uint32_t shard = handle->shard;
    if (unlikely(api_is_inherited(store, handle->life))) {
        api_handle_forget(handle);
        return;
    }
    api_handle_close(handle);
    api_unclaim(store, shard);
}

const struct gyre_info *gyre_handle_info(const struct gyre_handle *handle)
{
    GYRE_CHECK(handle->magic == API_HANDLE_LIVE);
    return &handle->info;
}

const void *gyre_handle_meta(const struct gyre_handle *handle, size_t *len_out)
{
    GYRE_CHECK(handle->magic == API_HANDLE_LIVE);
    if (len_out != NULL)
        *len_out = handle->info.meta_len;
    return handle->doc.meta;
}

gyre_err gyre_exists(struct gyre_store *store, const struct gyre_key *key, uint32_t now,
                     enum gyre_certainty certainty)
{
    if (key == NULL || (certainty != GYRE_STRICT && certainty != GYRE_PROBABLE))
        return GYRE_INVALID;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    if (certainty == GYRE_PROBABLE) {
        struct eng_want main = {.key = key->bytes, .pool = ENG_POOL_MAIN};
        struct eng_want meta = {.key = key->bytes, .pool = ENG_POOL_META};
        bool there = eng_probable(store->engine, &main) ||
                     (api_meta_used(store) && eng_probable(store->engine, &meta));
        err = there ? GYRE_OK : GYRE_NOT_FOUND;
    } else {
        struct gyre_handle *handle;
        err = api_handle_open(store, key, now, GYRE_GET_HEAD | API_GET_NO_COUNT, &handle);
        if (err == GYRE_OK)
            api_handle_close(handle);
    }
    api_leave(store, shard);
    return err;
}
