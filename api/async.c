/* The asynchronous forms: a bounded queue in front of a few threads that make the blocking calls.
 */
#include "api/async.h"

#include <stdlib.h>

#include "engine/base/check.h"

#include "api/handle.h"
#include "api/store.h"

/* The thread of a pool that this is; NULL elsewhere. */
static _Thread_local struct eng_thread *self;

struct worker {
    struct api_pool *pool;
    struct eng_thread *thread;
};

void api_pool_init(struct api_pool *pool)
{
    eng_lock_init(&pool->lock, 0);
    eng_cond_init(&pool->ready);
}

void api_pool_start(struct api_pool *pool, uint32_t threads)
{
    eng_lock_acquire(&pool->lock);
    pool->wanted = threads;
    pool->stop = false;
    eng_lock_release(&pool->lock);
}

static void run_job(const struct api_job *job)
{
    if (job->got != NULL) {
        struct gyre_handle *handle;
        gyre_err err = api_handle_open(job->store, &job->key, job->now, job->flags, &handle);
        if (err == GYRE_OK) {
            handle->shard = job->shard;
            api_claim(job->store, job->shard);
        }
        job->got(job->data, err, handle);
    } else {
        job->populated(job->data, gyre_populate(job->handle, job->offset, job->len));
    }
    api_leave(job->store, job->shard);
}

static void work(void *data)
{
    struct worker worker = *(struct worker *)data;
    free(data);
    struct api_pool *pool = worker.pool;
    self = worker.thread;
    eng_lock_acquire(&pool->lock);
    for (;;) {
        while (pool->n_jobs == 0 && !pool->stop)
            eng_cond_wait(&pool->ready, &pool->lock);
        if (pool->n_jobs == 0)
            break;
        struct api_job job = pool->jobs[pool->first];
        pool->first = (pool->first + 1) % API_POOL_JOBS;
        pool->n_jobs--;
        eng_lock_release(&pool->lock);
        run_job(&job);
        if (self == NULL)
            return; /* the job was the store's last call, so this very thread has stopped the pool
                     */
        eng_lock_acquire(&pool->lock);
    }
    eng_lock_release(&pool->lock);
}

/* As many threads as can be had, at least one. BUSY, NO_MEMORY. */
static gyre_err start_locked(struct api_pool *pool)
{
    gyre_err err = GYRE_OK;
    pool->jobs = calloc(API_POOL_JOBS, sizeof *pool->jobs);
    pool->threads = calloc(pool->wanted, sizeof *pool->threads);
    if (pool->jobs == NULL || pool->threads == NULL)
        err = GYRE_NO_MEMORY;
    while (err == GYRE_OK && pool->n_threads < pool->wanted) {
        struct worker *worker = malloc(sizeof *worker);
        if (worker == NULL) {
            err = GYRE_NO_MEMORY;
            break;
        }
        *worker = (struct worker){pool, &pool->threads[pool->n_threads]};
        err = eng_thread_start(worker->thread, "gyre-async", work, worker);
        if (err == GYRE_OK)
            pool->n_threads++;
        else
            free(worker);
    }
    if (pool->n_threads > 0)
        return GYRE_OK;
    free(pool->jobs);
    free(pool->threads);
    pool->jobs = NULL;
    pool->threads = NULL;
    return err;
}

gyre_err api_pool_submit(struct api_pool *pool, const struct api_job *job)
{
    gyre_err err = GYRE_OK;
    eng_lock_acquire(&pool->lock);
    GYRE_CHECK(!pool->stop);
    if (pool->n_threads == 0)
        err = start_locked(pool);
    if (err == GYRE_OK && pool->n_jobs == API_POOL_JOBS)
        err = GYRE_BUSY;
    if (err == GYRE_OK) {
        pool->jobs[(pool->first + pool->n_jobs) % API_POOL_JOBS] = *job;
        pool->n_jobs++;
        eng_cond_signal(&pool->ready);
    }
    eng_lock_release(&pool->lock);
    return err;
}

void api_pool_stop(struct api_pool *pool)
{
    eng_lock_acquire(&pool->lock);
    pool->stop = true;
    eng_cond_broadcast(&pool->ready);
    eng_lock_release(&pool->lock);
    for (uint32_t i = 0; i < pool->n_threads; i++) {
        if (&pool->threads[i] == self) {
            pthread_detach(pthread_self());
            self = NULL;
        } else {
            eng_thread_join(&pool->threads[i]);
        }
    }
    free(pool->threads);
    free(pool->jobs);
    pool->threads = NULL;
    pool->jobs = NULL;
    pool->n_threads = pool->first = pool->n_jobs = 0;
}

gyre_err gyre_get_async(struct gyre_store *store, const struct gyre_key *key, uint32_t now,
                        unsigned flags,
                        void (*done)(void *data, gyre_err err, struct gyre_handle *handle),
                        void *data)
{
    if (key == NULL || done == NULL || (flags & ~API_GET_FLAGS) != 0)
        return GYRE_INVALID;
    if (flags & GYRE_GET_NOWAIT)
        flags = (flags & ~(unsigned)GYRE_GET_NOWAIT) | GYRE_GET_LAZY;
    struct api_job job = {
        .store = store, .flags = flags, .key = *key, .now = now, .got = done, .data = data};
    gyre_err err = api_enter(store, &job.shard);
    if (err != GYRE_OK)
        return err;
    err = api_pool_submit(&store->async, &job);
    if (err != GYRE_OK)
        api_leave(store, job.shard);
    return err;
}

gyre_err gyre_populate_async(struct gyre_handle *handle, uint64_t offset, uint64_t len,
                             void (*done)(void *data, gyre_err err), void *data)
{
    if (handle == NULL || done == NULL)
        return GYRE_INVALID;
    struct gyre_store *store = handle->store;
    struct api_job job = {.store = store,
                          .handle = handle,
                          .offset = offset,
                          .len = len,
                          .populated = done,
                          .data = data};
    gyre_err err = api_enter(store, &job.shard);
    if (err != GYRE_OK)
        return err;
    err = api_pool_submit(&store->async, &job);
    if (err != GYRE_OK)
        api_leave(store, job.shard);
    return err;
}
