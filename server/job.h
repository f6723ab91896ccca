/* A pool of worker threads for whatever may block or take long, with completion back on the asking
 * loop.
 *
 * Owns:    the caller owns each srv_job from submit to `done`; the pool links it and allocates
 * nothing.
 * Threads: srv_job_submit on any thread; `run` on a worker; `done` on `loop`'s thread, always
 * exactly once after a true submit.
 * Blocks:  srv_job_submit never; srv_pool_destroy waits for running jobs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct srv_loop;
struct srv_pool;

struct srv_job {
    void (*run)(struct srv_job *job);
    void (*done)(struct srv_job *job);
    struct srv_loop *loop_;
    struct srv_job *next_;
};

/* In `run`, before the job is handed to somebody else: `done` is not posted when `run` returns but
 * by that somebody, with srv_job_finish. */
void srv_job_detach(void);
/* Posts `done` of a detached job, once, on any thread that ends after the loops. Never blocks. */
void srv_job_finish(struct srv_job *job);

/* Starts `n_threads` workers that hold at most `max_queued` waiting jobs; NULL when threads cannot
 * be had. */
struct srv_pool *srv_pool_create(size_t n_threads, size_t max_queued);

/* Runs what is queued, then stops. `done` of the last jobs is posted before it returns. */
void srv_pool_destroy(struct srv_pool *pool);

struct srv_pool_stats {
    size_t n_threads;
    size_t n_busy;
    size_t n_queued;
    uint64_t n_done;
};

void srv_pool_stats(struct srv_pool *pool, struct srv_pool_stats *stats_out);

/* Queues `job`. False, and nothing queued, when the pool is full: the caller answers 503. */
bool srv_job_submit(struct srv_pool *pool, struct srv_loop *loop, struct srv_job *job);

/* As srv_job_submit, but beyond max_queued: for work that a request already admitted cannot do
 * without (its next buffer, its commit). */
void srv_job_submit_admitted(struct srv_pool *pool, struct srv_loop *loop, struct srv_job *job);
