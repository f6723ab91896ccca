/* A few threads that do for event loops what may block. Bytes to be populated are read first, by
 * io_uring where there is one (ring.h), so that a slow disk keeps no thread.
 *
 * Owns:    its threads and queue, from the first job to api_pool_stop.
 * Threads: any may submit. Jobs are done on the pool's threads, oldest first.
 * Blocks:  submitting never does; stopping waits for the threads.
 * Allocates: the queue and the threads at the first job.
 */
#pragma once

#include "engine/base/lock.h"
#include "engine/base/thread.h"

#include "api/gyre.h"

#define API_POOL_THREADS 64u
#define API_POOL_JOBS 1024u

/* One piece of work. Which of the two it is shows in `got`. */
struct api_job {
    struct gyre_store *store;
    uint32_t shard; /* the call that lasts from submission until `done` has returned */
    unsigned flags;
    struct gyre_key key; /* a get */
    uint32_t now;
    void (*got)(void *data, gyre_err err, struct gyre_handle *handle);
    struct gyre_handle *handle; /* a populate */
    uint64_t offset, len;
    void (*populated)(void *data, gyre_err err);
    void *data;
};

struct api_pool {
    struct eng_lock lock;
    struct eng_cond ready;
    struct api_job *jobs; /* [w] circular, API_POOL_JOBS of them */
    uint32_t first, n_jobs;
    uint32_t n_reading;    /* [w] jobs whose bytes are being read; they have a place in the queue */
    struct api_ring *ring; /* [w] from the first populate on; NULL where the system has none */
    bool has_tried_ring;   /* [w] */
    struct eng_thread *threads; /* [w] started by the first job */
    uint32_t n_threads, wanted;
    bool stop; /* [w] */
};

/* Once per structure. */
void api_pool_init(struct api_pool *pool);
/* Allows jobs on up to `threads` threads. */
void api_pool_start(struct api_pool *pool, uint32_t threads);
/* Ends the threads; no job is left then, because each counts as a call of its store. May be called
 * on a thread of the pool, which then ends by itself when it returns. */
void api_pool_stop(struct api_pool *pool);
/* Takes a job over. BUSY: the queue is full, or no thread could be started. NO_MEMORY. */
GYRE_MUST_USE gyre_err api_pool_submit(struct api_pool *pool, const struct api_job *job);
