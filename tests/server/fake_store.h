/* A store in plain memory whose objects can be made cold or damaged at will, behind the names of
 * api/gyre.h that the S3 handlers use: what a real store does only when memory is short or a disk
 * fails.
 *
 * Owns:    objects live until fake_store_fini; handles count on their object.
 * Threads: any. Blocks: never; a call that a real store waits in must not be made by the loop's
 * thread.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "api/gyre.h"
#include "tests/harness/test.h"

struct object {
    struct object *next;
    struct gyre_key key;
    struct gyre_info info;
    uint8_t *meta, *body;
    bool is_dead, is_cold_meta; /* cold until somebody waits for it */
    uint64_t resident;          /* body bytes in memory, from the start */
    uint64_t populations;
    uint64_t damaged_at; /* body offset */
};

struct gyre_handle {
    struct object *object;
    unsigned flags;
};

struct gyre_store {
    pthread_mutex_t lock;
    pthread_t loop;
    struct object *objects;
    uint64_t serial;
    _Atomic int handles;
    gyre_err get_err; /* what gyre_get answers instead, if not OK */
};

/* What a real store might wait in: never on the loop. */
static inline void may_block(const struct gyre_store *store)
{
    CHECK(!pthread_equal(store->loop, pthread_self()));
}

static struct gyre_store the_store;

static inline struct object *find_object(struct gyre_store *store, const struct gyre_key *key)
{
    struct object *at = store->objects;
    while (at != NULL && (at->is_dead || memcmp(&at->key, key, sizeof *key) != 0))
        at = at->next;
    return at;
}

gyre_err gyre_key_of_parts(enum gyre_domain domain, const struct iovec *parts, size_t n_parts,
                           struct gyre_key *key_out)
{
    uint64_t hash = 14695981039346656037u + domain + n_parts;
    memset(key_out, 0, sizeof *key_out);
    for (size_t i = 0; i < n_parts; i++)
        for (size_t k = 0; k < parts[i].iov_len; k++)
            hash = (hash ^ ((const uint8_t *)parts[i].iov_base)[k]) * 1099511628211u;
    memcpy(key_out->bytes, &hash, sizeof hash);
    return GYRE_OK;
}

gyre_err gyre_put(struct gyre_store *store, const struct gyre_key *key,
                  const struct gyre_put_options *options, const void *body, size_t len,
                  uint64_t *serial_out)
{
    struct object *object = calloc(1, sizeof *object);
    may_block(store);
    pthread_mutex_lock(&store->lock);
    CHECK(options->condition != GYRE_IF_SERIAL && find_object(store, key) == NULL);
    object->key = *key;
    object->info = (struct gyre_info){
        .length = len, .serial = ++store->serial, .meta_len = (uint32_t)options->meta_len};
    object->meta = malloc(options->meta_len + 1);
    memcpy(object->meta, options->meta, options->meta_len);
    object->body = malloc(len + 1);
    if (len > 0)
        memcpy(object->body, body, len);
    object->resident = len;
    object->damaged_at = UINT64_MAX;
    object->next = store->objects;
    store->objects = object;
    *(serial_out != NULL ? serial_out : &(uint64_t){0}) = object->info.serial;
    pthread_mutex_unlock(&store->lock);
    return GYRE_OK;
}

gyre_err gyre_get(struct gyre_store *store, const struct gyre_key *key, uint32_t now,
                  unsigned flags, struct gyre_handle **handle_out)
{
    (void)now;
    *handle_out = NULL;
    if ((flags & GYRE_GET_NOWAIT) == 0)
        may_block(store);
    pthread_mutex_lock(&store->lock);
    struct object *object = find_object(store, key);
    gyre_err err = object == NULL ? GYRE_NOT_FOUND : store->get_err;
    bool is_cold = object != NULL &&
                   (object->is_cold_meta || (object->info.parts == 0 && object->resident == 0));
    if (err == GYRE_OK && is_cold && (flags & GYRE_GET_NOWAIT) != 0)
        err = GYRE_WOULD_BLOCK;
    if (err == GYRE_OK && object->info.parts == 0) /* read whole, with its metadata */
        err = object->damaged_at < object->info.length ? GYRE_NOT_FOUND : GYRE_OK;
    if (err == GYRE_OK) {
        object->is_cold_meta = false;
        object->resident = object->info.parts == 0 ? object->info.length : object->resident;
        *handle_out = calloc(1, sizeof **handle_out);
        **handle_out = (struct gyre_handle){object, flags};
        atomic_fetch_add(&store->handles, 1);
    }
    pthread_mutex_unlock(&store->lock);
    return err;
}

void gyre_release(struct gyre_handle *handle)
{
    atomic_fetch_sub(&the_store.handles, handle != NULL);
    free(handle);
}

const struct gyre_info *gyre_handle_info(const struct gyre_handle *handle)
{
    return &handle->object->info;
}

const void *gyre_handle_meta(const struct gyre_handle *handle, size_t *len_out)
{
    *len_out = handle->object->info.meta_len;
    return handle->object->meta;
}

static inline uint64_t resident_of(const struct object *object)
{
    pthread_mutex_lock(&the_store.lock);
    uint64_t resident = object->resident;
    pthread_mutex_unlock(&the_store.lock);
    return resident;
}

bool gyre_resident(const struct gyre_handle *handle, uint64_t offset, uint64_t len)
{
    return offset + len <= resident_of(handle->object);
}

/* Pieces end at odd places, as parts do. */
gyre_err gyre_handle_piece(const struct gyre_handle *handle, uint64_t offset,
                           struct gyre_piece *piece_out)
{
    const struct object *object = handle->object;
    uint64_t end = (offset / 300007 + 1) * 300007;
    CHECK((handle->flags & GYRE_GET_HEAD) == 0);
    uint64_t resident = resident_of(object);
    if (offset >= resident)
        return GYRE_WOULD_BLOCK;
    end = end < resident ? end : resident;
    *piece_out = (struct gyre_piece){object->body + offset, end - offset, -1, 0};
    return GYRE_OK;
}

gyre_err gyre_populate(struct gyre_handle *handle, uint64_t offset, uint64_t len)
{
    struct object *object = handle->object;
    may_block(&the_store);
    CHECK(offset + len <= object->info.length && len > 0);
    pthread_mutex_lock(&the_store.lock);
    object->populations++;
    bool is_damaged = offset + len > object->damaged_at;
    if (is_damaged)
        object->is_dead = true;
    else if (offset + len > object->resident)
        object->resident = offset + len;
    pthread_mutex_unlock(&the_store.lock);
    return is_damaged ? GYRE_DAMAGED : GYRE_OK;
}

gyre_err gyre_copy(struct gyre_handle *handle, uint64_t offset, void *buffer, size_t len,
                   unsigned flags, size_t *copied_out)
{
    const struct object *object = handle->object;
    size_t n = len > 1000 ? 1000 : len;
    *copied_out = 0;
    if ((flags & GYRE_GET_NOWAIT) != 0 && offset + n > resident_of(object))
        return GYRE_WOULD_BLOCK;
    if ((flags & GYRE_GET_NOWAIT) == 0)
        may_block(&the_store);
    if (offset + n > object->damaged_at)
        return GYRE_DAMAGED;
    memcpy(buffer, object->body + offset, n);
    *copied_out = n;
    return GYRE_OK;
}
