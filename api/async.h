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

/* One piece of work: `run` does it, calls back, and leaves the store. */
struct api_job {
    struct gyre_store *store;
    uint32_t shard; /* the call that lasts from submission until `run` has left it */
    void (*run)(const struct api_job *job);
    unsigned flags;
    struct gyre_key key;
    uint32_t now;
    void (*got)(void *data, gyre_err err, struct gyre_handle *handle); /* of a get */
    struct gyre_handle *handle;                                        /* a populate */
    uint64_t offset, len;
    void (*done)(void *data, gyre_err err); /* of all but a get */
    void *data;
    void *call; /* owned by `run`: whatever else it needs */
};

struct api_pool {
    struct eng_lock lock;
    struct eng_cond ready, idle;
    struct api_job *jobs; /* [w] circular, API_POOL_JOBS of them */
    uint32_t first, n_jobs;
    uint32_t n_held;       /* [w] jobs that wait for something; they have a place in the queue */
    uint32_t n_running;    /* [w] jobs on a thread */
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
/* Enters the job's store and takes the job over, or neither. CLOSED, and as api_pool_submit. */
GYRE_MUST_USE gyre_err api_pool_enter(struct api_job *job);

/* Keeps a place in the queue for a job that cannot go on yet, then queues it, or gives the place
 * back. BUSY: there is none. */
GYRE_MUST_USE gyre_err api_pool_hold(struct api_pool *pool);
void api_pool_resume(struct api_pool *pool, const struct api_job *job);
void api_pool_let_go(struct api_pool *pool);
/* Waits until no job is left, up to a point of eng_clock_mono_ns; false if some are. */
bool api_pool_drain(struct api_pool *pool, uint64_t deadline_ns);
