/* An event loop that turns when the test says so: server/loop.h without sockets. The test's own
 * thread is the loop's.
 *
 * Threads: one, but srv_loop_post on any. Blocks: fake_turn, until a completion comes.
 */
#pragma once

#include <pthread.h>
#include <time.h>

#include "server/buf.h"
#include "server/job.h"
#include "server/loop.h"
#include "tests/harness/test.h"

struct srv_loop {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct srv_job *first; /* posted, oldest first */
    struct srv_job **last;
    struct srv_buf_pool *bufs;
};

static inline void fake_loop_init(struct srv_loop *loop, size_t budget)
{
    pthread_mutex_init(&loop->lock, NULL);
    pthread_cond_init(&loop->wake, NULL);
    loop->first = NULL;
    loop->last = &loop->first;
    loop->bufs = srv_buf_pool_create(budget);
    CHECK(loop->bufs != NULL);
}

static inline void fake_loop_fini(struct srv_loop *loop)
{
    CHECK_EQ_U64(srv_buf_pool_used_bytes(loop->bufs), 0);
    srv_buf_pool_destroy(loop->bufs);
}

void srv_loop_post(struct srv_loop *loop, struct srv_job *job)
{
    pthread_mutex_lock(&loop->lock);
    job->next_ = NULL;
    *loop->last = job;
    loop->last = &job->next_;
    pthread_cond_signal(&loop->wake);
    pthread_mutex_unlock(&loop->lock);
}

/* The fake ends when its test does, which waits for every completion by itself. */
void srv_loop_expect(struct srv_loop *loop, int n)
{
    (void)loop;
    (void)n;
}

unsigned srv_loop_index(const struct srv_loop *loop)
{
    (void)loop;
    return 0;
}

uint64_t srv_loop_now_ms(const struct srv_loop *loop)
{
    struct timespec now;

    (void)loop;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static inline bool fake_has_work(struct srv_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    bool has = loop->first != NULL;
    pthread_mutex_unlock(&loop->lock);
    return has;
}

/* Runs one completion, waiting for it up to 20 seconds. */
static inline void fake_turn(struct srv_loop *loop)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    pthread_mutex_lock(&loop->lock);
    while (loop->first == NULL)
        CHECK_MSG(pthread_cond_timedwait(&loop->wake, &loop->lock, &until) == 0,
                  "nothing came back to the loop");
    struct srv_job *job = loop->first;
    loop->first = job->next_;
    if (loop->first == NULL)
        loop->last = &loop->first;
    pthread_mutex_unlock(&loop->lock);
    job->done(job);
}
