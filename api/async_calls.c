/* The blocking calls as jobs. Each job makes the very call, inside one that keeps the store open;
 * so a store that is being closed refuses it, and says so. */
#include "api/async.h"

#include <stdlib.h>

#include "engine/base/check.h"
#include "engine/sync.h"
#include "engine/writer.h"

#include "api/delete.h"
#include "api/handle.h"
#include "api/put.h"
#include "api/store.h"

/* ---- Put ---- */

struct put_call {
    struct gyre_put_options options;
    const void *body;
    size_t len;
    struct gyre_put *put; /* a commit */
    void (*done)(void *data, gyre_err err, uint64_t serial);
};

static void run_put(const struct api_job *job)
{
    struct put_call *call = job->call;
    uint64_t serial = 0;
    gyre_err err = call->put != NULL ? api_put_commit_inside(&call->put, &serial)
                                     : api_put_inside(job->store, &job->key, &call->options,
                                                      call->body, call->len, &serial);
    call->done(job->data, err, err == GYRE_OK ? serial : 0);
    free(call);
    api_leave(job->store, job->shard);
}

static gyre_err submit_put(struct gyre_store *store, const struct gyre_key *key,
                           const struct put_call *call, void *data)
{
    struct api_job job = {.store = store, .run = run_put, .data = data};
    if (key != NULL)
        job.key = *key;
    struct put_call *own = malloc(sizeof *own);
    if (own == NULL)
        return GYRE_NO_MEMORY;
    *own = *call;
    job.call = own;
    gyre_err err = api_pool_enter(&job);
    if (err != GYRE_OK)
        free(own);
    return err;
}

gyre_err gyre_put_async(struct gyre_store *store, const struct gyre_key *key,
                        const struct gyre_put_options *options, const void *body, size_t len,
                        void (*done)(void *data, gyre_err err, uint64_t serial), void *data)
{
    struct put_call call = {.body = body, .len = len, .done = done};
    if (key == NULL || done == NULL || (body == NULL && len > 0))
        return GYRE_INVALID;
    if (options != NULL && options->struct_size != sizeof *options)
        return GYRE_INVALID;
    gyre_put_options_init(&call.options);
    if (options != NULL)
        call.options = *options;
    return submit_put(store, key, &call, data);
}

gyre_err gyre_put_commit_async(struct gyre_put **put,
                               void (*done)(void *data, gyre_err err, uint64_t serial), void *data)
{
    if (put == NULL || *put == NULL || done == NULL)
        return GYRE_INVALID;
    GYRE_CHECK((*put)->magic == API_PUT_LIVE);
    if (api_is_inherited((*put)->store, (*put)->life))
        return GYRE_STATE;
    const struct put_call call = {.put = *put, .done = done};
    gyre_err err = submit_put((*put)->store, NULL, &call, data);
    if (err == GYRE_OK)
        *put = NULL;
    return err;
}

/* ---- The rest ---- */

static void run_delete(const struct api_job *job)
{
    enum gyre_condition condition = (enum gyre_condition)job->len;
    gyre_err err = api_delete_inside(job->store, &job->key, condition, job->offset, job->flags);
    job->done(job->data, err);
    api_leave(job->store, job->shard);
}

gyre_err gyre_delete_async(struct gyre_store *store, const struct gyre_key *key,
                           enum gyre_condition condition, uint64_t if_serial, unsigned flags,
                           void (*done)(void *data, gyre_err err), void *data)
{
    if (done == NULL || !api_delete_valid(key, condition, flags))
        return GYRE_INVALID;
    struct api_job job = {.store = store,
                          .run = run_delete,
                          .key = *key,
                          .flags = flags,
                          .offset = if_serial,
                          .len = condition,
                          .done = done,
                          .data = data};
    return api_pool_enter(&job);
}

static void run_exists(const struct api_job *job)
{
    struct gyre_handle *handle;
    gyre_err err =
        api_handle_open(job->store, &job->key, job->now, GYRE_GET_HEAD | API_GET_NO_COUNT, &handle);
    if (err == GYRE_OK)
        api_handle_close(handle);
    job->done(job->data, err);
    api_leave(job->store, job->shard);
}

gyre_err gyre_exists_async(struct gyre_store *store, const struct gyre_key *key, uint32_t now,
                           void (*done)(void *data, gyre_err err), void *data)
{
    if (key == NULL || done == NULL)
        return GYRE_INVALID;
    struct api_job job = {
        .store = store, .run = run_exists, .key = *key, .now = now, .done = done, .data = data};
    return api_pool_enter(&job);
}

static void run_sync(const struct api_job *job)
{
    job->done(job->data, eng_sync_store(job->store->engine, false));
    api_leave(job->store, job->shard);
}

gyre_err gyre_sync_async(struct gyre_store *store, void (*done)(void *data, gyre_err err),
                         void *data)
{
    if (done == NULL)
        return GYRE_INVALID;
    struct api_job job = {.store = store, .run = run_sync, .done = done, .data = data};
    return api_pool_enter(&job);
}
