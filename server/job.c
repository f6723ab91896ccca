#include "server/job.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "server/loop.h"

/* [c] const after create  [w] under `lock` */
struct srv_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct srv_job *head;  /* [w] next to run */
    struct srv_job **tail; /* [w] */
    size_t n_queued;       /* [w] */
    size_t n_busy;         /* [w] */
    uint64_t n_done;       /* [w] */
    size_t max_queued;     /* [c] */
    bool is_stopping;      /* [w] */
    size_t n_threads;      /* [c] */
    pthread_t threads[];   /* [c] */
};

/* Of the job this worker runs. The job itself cannot say: it may be gone by then. */
static _Thread_local bool is_detached;

void srv_job_detach(void)
{
    is_detached = true;
}

void srv_job_finish(struct srv_job *job)
{
    struct srv_loop *loop = job->loop_; /* the job is its owner's again once it is posted */

    srv_loop_post(loop, job);
    srv_loop_expect(loop, -1);
}

/* The oldest job, or NULL once the pool stops and none is left. `had`: the caller has run one. */
static struct srv_job *take(struct srv_pool *pool, bool had)
{
    pthread_mutex_lock(&pool->lock);
    pool->n_busy -= had;
    pool->n_done += had;
    while (pool->head == NULL && !pool->is_stopping)
        pthread_cond_wait(&pool->wake, &pool->lock);
    struct srv_job *job = pool->head;
    if (job != NULL) {
        pool->head = job->next_;
        if (pool->head == NULL)
            pool->tail = &pool->head;
        pool->n_queued--;
        pool->n_busy++;
    }
    pthread_mutex_unlock(&pool->lock);
    return job;
}

static void *work(void *arg)
{
    struct srv_pool *pool = arg;
    bool had = false;
    for (struct srv_job *job; (job = take(pool, had)) != NULL; had = true) {
        is_detached = false;
        job->run(job);
        if (!is_detached)
            srv_job_finish(job);
    }
    return NULL;
}

struct srv_pool *srv_pool_create(size_t n_threads, size_t max_queued)
{
    struct srv_pool *pool = calloc(1, sizeof *pool + n_threads * sizeof pool->threads[0]);
    if (pool == NULL)
        return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pool->tail = &pool->head;
    pool->max_queued = max_queued;
    for (; pool->n_threads < n_threads; pool->n_threads++) {
        if (pthread_create(&pool->threads[pool->n_threads], NULL, work, pool) != 0) {
            srv_pool_destroy(pool);
            return NULL;
        }
    }
    return pool;
}

void srv_pool_destroy(struct srv_pool *pool)
{
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->is_stopping = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->n_threads; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

static bool submit(struct srv_pool *pool, struct srv_loop *loop, struct srv_job *job, size_t limit)
{
    job->loop_ = loop;
    job->next_ = NULL;
    pthread_mutex_lock(&pool->lock);
    bool has_room = pool->n_queued < limit;
    if (has_room) {
        srv_loop_expect(loop, 1);
        *pool->tail = job;
        pool->tail = &job->next_;
        pool->n_queued++;
        pthread_cond_signal(&pool->wake);
    }
    pthread_mutex_unlock(&pool->lock);
    return has_room;
}

bool srv_job_submit(struct srv_pool *pool, struct srv_loop *loop, struct srv_job *job)
{
    return submit(pool, loop, job, pool->max_queued);
}

void srv_job_submit_admitted(struct srv_pool *pool, struct srv_loop *loop, struct srv_job *job)
{
    submit(pool, loop, job, SIZE_MAX);
}

void srv_pool_stats(struct srv_pool *pool, struct srv_pool_stats *stats)
{
    pthread_mutex_lock(&pool->lock);
    *stats = (struct srv_pool_stats){pool->n_threads, pool->n_busy, pool->n_queued, pool->n_done};
    pthread_mutex_unlock(&pool->lock);
}
