/* The asynchronous forms: a bounded queue in front of a few threads that make the blocking calls.
 */
#include "api/async.h"

#include <stdlib.h>

#include "engine/base/check.h"

#include "api/handle.h"
#include "api/ring.h"
#include "api/store.h"

/* The thread of a pool that this is; NULL elsewhere. */
static _Thread_local struct eng_thread *self;

enum { SPANS_MAX = 16 };

struct worker {
    struct api_pool *pool;
    struct eng_thread *thread;
};

void api_pool_init(struct api_pool *pool)
{
    eng_lock_init(&pool->lock, 0);
    eng_cond_init(&pool->ready);
    eng_cond_init(&pool->idle);
}

void api_pool_start(struct api_pool *pool, uint32_t threads)
{
    eng_lock_acquire(&pool->lock);
    pool->wanted = threads;
    pool->stop = false;
    eng_lock_release(&pool->lock);
}

static void run_get(const struct api_job *job)
{
    struct gyre_handle *handle;
    gyre_err err = api_handle_open(job->store, &job->key, job->now, job->flags, &handle);
    if (err == GYRE_OK) {
        handle->shard = job->shard;
        api_claim(job->store, job->shard);
    }
    job->got(job->data, err, handle);
    api_leave(job->store, job->shard);
}

static void run_populate(const struct api_job *job)
{
    gyre_err err = gyre_populate(job->handle, job->offset, job->len);
    /* Bodies are mostly read from front to back. */
    if (err == GYRE_OK)
        api_read_ahead(job->handle, job->offset + job->len, job->len);
    job->done(job->data, err);
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
        pool->n_running++;
        eng_lock_release(&pool->lock);
        job.run(&job);
        if (self == NULL)
            return; /* the job was the store's last call, so this very thread has stopped the pool
                     */
        eng_lock_acquire(&pool->lock);
        pool->n_running--;
        eng_cond_broadcast(&pool->idle);
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

static void queue_locked(struct api_pool *pool, const struct api_job *job)
{
    pool->jobs[(pool->first + pool->n_jobs) % API_POOL_JOBS] = *job;
    pool->n_jobs++;
    eng_cond_signal(&pool->ready);
}

gyre_err api_pool_submit(struct api_pool *pool, const struct api_job *job)
{
    gyre_err err = GYRE_OK;
    eng_lock_acquire(&pool->lock);
    GYRE_CHECK(!pool->stop);
    if (pool->n_threads == 0)
        err = start_locked(pool);
    if (err == GYRE_OK && pool->n_jobs + pool->n_held == API_POOL_JOBS)
        err = GYRE_BUSY;
    if (err == GYRE_OK)
        queue_locked(pool, job);
    eng_lock_release(&pool->lock);
    return err;
}

gyre_err api_pool_enter(struct api_job *job)
{
    gyre_err err = api_enter(job->store, &job->shard);
    if (err != GYRE_OK)
        return err;
    err = api_pool_submit(&job->store->async, job);
    if (err != GYRE_OK)
        api_leave(job->store, job->shard);
    return err;
}

/* ---- Jobs that wait ---- */

static gyre_err hold_locked(struct api_pool *pool)
{
    if (pool->n_jobs + pool->n_held >= API_POOL_JOBS)
        return GYRE_BUSY;
    gyre_err err = pool->n_threads > 0 ? GYRE_OK : start_locked(pool);
    pool->n_held += err == GYRE_OK;
    return err;
}

gyre_err api_pool_hold(struct api_pool *pool)
{
    eng_lock_acquire(&pool->lock);
    gyre_err err = hold_locked(pool);
    eng_lock_release(&pool->lock);
    return err;
}

void api_pool_resume(struct api_pool *pool, const struct api_job *job)
{
    eng_lock_acquire(&pool->lock);
    pool->n_held--;
    queue_locked(pool, job);
    eng_lock_release(&pool->lock);
}

void api_pool_let_go(struct api_pool *pool)
{
    eng_lock_acquire(&pool->lock);
    pool->n_held--;
    eng_cond_broadcast(&pool->idle);
    eng_lock_release(&pool->lock);
}

bool api_pool_drain(struct api_pool *pool, uint64_t deadline_ns)
{
    bool in_time = true;
    eng_lock_acquire(&pool->lock);
    while (pool->n_jobs + pool->n_held + pool->n_running > 0 && in_time)
        in_time = eng_cond_wait_until(&pool->idle, &pool->lock, deadline_ns);
    bool idle = pool->n_jobs + pool->n_held + pool->n_running == 0;
    eng_lock_release(&pool->lock);
    return idle;
}

/* ---- Reading first ---- */

/* A populate whose bytes are on their way. */
struct reading {
    struct api_pool *pool;
    struct api_job job;
};

/* On the ring's thread: what is left is to map and to verify, which is the processor's work. */
static void on_read(void *data)
{
    struct reading *reading = data;
    api_pool_resume(reading->pool, &reading->job);
    free(reading);
}

/* The ring, with a thread to go on and a place in the queue for one more job; NULL without. */
static struct api_ring *reserve(struct api_pool *pool)
{
    struct api_ring *ring = NULL;
    eng_lock_acquire(&pool->lock);
    if (!pool->has_tried_ring)
        pool->ring = api_ring_create();
    pool->has_tried_ring = true;
    if (pool->ring != NULL && hold_locked(pool) == GYRE_OK)
        ring = pool->ring;
    eng_lock_release(&pool->lock);
    return ring;
}

static struct api_span span_of(const struct eng_ref *ref, uint64_t off, uint64_t len)
{
    return (struct api_span){ref->stripe->fd, ref->body_file_off + off, len};
}

/* Where the bytes of the job lie; 0 when that is nowhere, or in more pieces than there is room
 * for. */
static size_t spans_of(const struct api_job *job, struct api_span spans[SPANS_MAX])
{
    const struct gyre_handle *handle = job->handle;
    uint64_t offset = job->offset, len = job->len;
    size_t n = 0;
    if (handle->head_only || offset > handle->info.length || len > handle->info.length - offset)
        return 0;
    if (handle->n_parts == 0) {
        spans[0] = span_of(&handle->doc, offset, len);
        return len > 0;
    }
    for (uint32_t i = api_part_at(handle, offset); len > 0; i++) {
        const struct api_part *part = &handle->parts[i];
        uint64_t off = offset - part->start, left = part->len - off;
        if (n == SPANS_MAX)
            return 0;
        spans[n] = span_of(&part->ref, off, len < left ? len : left);
        offset += spans[n].len;
        len -= spans[n++].len;
    }
    return n;
}

/* Has the job's bytes read before it is done; false when it must be done as it is. */
static bool read_first(struct api_pool *pool, const struct api_job *job)
{
    struct api_span spans[SPANS_MAX];
    size_t n = spans_of(job, spans);
    struct api_ring *ring = n == 0 ? NULL : reserve(pool);
    if (ring == NULL)
        return false;
    struct reading *reading = malloc(sizeof *reading);
    if (reading != NULL) {
        *reading = (struct reading){pool, *job};
        if (api_ring_read(ring, spans, n, on_read, reading))
            return true;
    }
    free(reading);
    api_pool_let_go(pool);
    return false;
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
    api_ring_destroy(pool->ring);
    pool->ring = NULL;
    pool->has_tried_ring = false;
    free(pool->threads);
    free(pool->jobs);
    pool->threads = NULL;
    pool->jobs = NULL;
    pool->n_threads = pool->first = pool->n_jobs = pool->n_running = 0;
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
    struct api_job job = {.store = store,
                          .run = run_get,
                          .flags = flags,
                          .key = *key,
                          .now = now,
                          .got = done,
                          .data = data};
    return api_pool_enter(&job);
}

gyre_err gyre_populate_async(struct gyre_handle *handle, uint64_t offset, uint64_t len,
                             void (*done)(void *data, gyre_err err), void *data)
{
    if (handle == NULL || done == NULL)
        return GYRE_INVALID;
    struct gyre_store *store = handle->store;
    struct api_job job = {.store = store,
                          .run = run_populate,
                          .handle = handle,
                          .offset = offset,
                          .len = len,
                          .done = done,
                          .data = data};
    gyre_err err = api_enter(store, &job.shard);
    if (err != GYRE_OK)
        return err;
    if (!read_first(&store->async, &job))
        err = api_pool_submit(&store->async, &job);
    if (err != GYRE_OK)
        api_leave(store, job.shard);
    return err;
}
