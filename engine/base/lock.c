#include "engine/base/lock.h"

#include <errno.h>
#include <time.h>

#include "engine/base/check.h"
#include "engine/base/rank.h"

void eng_lock_init(struct eng_lock *lock, unsigned rank)
{
    int rc = pthread_mutex_init(&lock->mutex_, NULL);
    GYRE_CHECK(rc == 0);
    lock->rank_ = rank;
}

void eng_lock_fini(struct eng_lock *lock)
{
    int rc = pthread_mutex_destroy(&lock->mutex_);
    GYRE_CHECK(rc == 0);
}

void eng_lock_acquire(struct eng_lock *lock)
{
    eng_rank_enter(lock->rank_, false);
    int rc = pthread_mutex_lock(&lock->mutex_);
    GYRE_CHECK(rc == 0);
}

bool eng_lock_try(struct eng_lock *lock)
{
    int rc = pthread_mutex_trylock(&lock->mutex_);
    GYRE_CHECK(rc == 0 || rc == EBUSY);
    if (rc == 0)
        eng_rank_enter(lock->rank_, true);
    return rc == 0;
}

void eng_lock_release(struct eng_lock *lock)
{
    eng_rank_leave(lock->rank_);
    int rc = pthread_mutex_unlock(&lock->mutex_);
    GYRE_CHECK(rc == 0);
}

void eng_cond_init(struct eng_cond *cond)
{
    pthread_condattr_t attr;
    int rc = pthread_condattr_init(&attr);
    GYRE_CHECK(rc == 0);
    rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    GYRE_CHECK(rc == 0);
    rc = pthread_cond_init(&cond->cond_, &attr);
    GYRE_CHECK(rc == 0);
    pthread_condattr_destroy(&attr);
}

void eng_cond_fini(struct eng_cond *cond)
{
    int rc = pthread_cond_destroy(&cond->cond_);
    GYRE_CHECK(rc == 0);
}

void eng_cond_signal(struct eng_cond *cond)
{
    int rc = pthread_cond_signal(&cond->cond_);
    GYRE_CHECK(rc == 0);
}

void eng_cond_broadcast(struct eng_cond *cond)
{
    int rc = pthread_cond_broadcast(&cond->cond_);
    GYRE_CHECK(rc == 0);
}

/* The rank stays noted while asleep: the thread takes the lock again before it can take any other.
 */
void eng_cond_wait(struct eng_cond *cond, struct eng_lock *lock)
{
    GYRE_ASSERT(eng_rank_held(lock->rank_));
    int rc = pthread_cond_wait(&cond->cond_, &lock->mutex_);
    GYRE_CHECK(rc == 0);
}

bool eng_cond_wait_until(struct eng_cond *cond, struct eng_lock *lock, uint64_t deadline_ns)
{
    const struct timespec deadline = {
        .tv_sec = (time_t)(deadline_ns / UINT64_C(1000000000)),
        .tv_nsec = (long)(deadline_ns % UINT64_C(1000000000)),
    };
    GYRE_ASSERT(eng_rank_held(lock->rank_));
    int rc = pthread_cond_timedwait(&cond->cond_, &lock->mutex_, &deadline);
    GYRE_CHECK(rc == 0 || rc == ETIMEDOUT);
    return rc == 0;
}
