#include "engine/base/mutex.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "engine/base/io.h"
#include "engine/base/rank.h"

/* Not the error-checking type: it takes a holder in another pid namespace whose thread has our
 * number for ourselves. */
gyre_err eng_mutex_init(struct eng_mutex *mutex, unsigned rank)
{
    pthread_mutexattr_t attr;
    memset(mutex, 0, sizeof *mutex);
    mutex->rank_ = rank;

    int rc = pthread_mutexattr_init(&attr);
    if (rc != 0)
        return eng_err_of_errno(rc);
    rc = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    if (rc == 0)
        rc = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    if (rc == 0)
        rc = pthread_mutex_init(&mutex->mutex_, &attr);
    pthread_mutexattr_destroy(&attr);
    return rc == 0 ? GYRE_OK : rc == ENOMEM ? GYRE_NO_MEMORY : GYRE_UNSUPPORTED;
}

void eng_mutex_fini(struct eng_mutex *mutex)
{
    int rc = pthread_mutex_destroy(&mutex->mutex_);
    GYRE_CHECK(rc == 0);
}

/* Anything not named here is a mistake of ours. */
static enum eng_mutex_result result_of(int rc)
{
    switch (rc) {
    case 0: return ENG_MUTEX_OK;
    case EOWNERDEAD: return ENG_MUTEX_OWNER_DEAD;
    case ETIMEDOUT:
    case EBUSY: return ENG_MUTEX_BUSY;
    default: GYRE_CHECK(rc == ENOTRECOVERABLE); return ENG_MUTEX_LOST;
    }
}

enum eng_mutex_result eng_mutex_lock(struct eng_mutex *mutex)
{
    eng_rank_enter(mutex->rank_, false);
    enum eng_mutex_result result = result_of(pthread_mutex_lock(&mutex->mutex_));
    GYRE_CHECK(result != ENG_MUTEX_BUSY);
    if (result == ENG_MUTEX_LOST)
        eng_rank_leave(mutex->rank_);
    return result;
}

enum eng_mutex_result eng_mutex_lock_until(struct eng_mutex *mutex, uint64_t deadline_ns)
{
    const struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / 1000000000),
                                      .tv_nsec = (long)(deadline_ns % 1000000000)};
    eng_rank_enter(mutex->rank_, false);
    enum eng_mutex_result result =
        result_of(pthread_mutex_clocklock(&mutex->mutex_, CLOCK_MONOTONIC, &deadline));
    if (result == ENG_MUTEX_LOST || result == ENG_MUTEX_BUSY)
        eng_rank_leave(mutex->rank_);
    return result;
}

enum eng_mutex_result eng_mutex_trylock(struct eng_mutex *mutex)
{
    enum eng_mutex_result result = result_of(pthread_mutex_trylock(&mutex->mutex_));
    if (result == ENG_MUTEX_OK || result == ENG_MUTEX_OWNER_DEAD)
        eng_rank_enter(mutex->rank_, true);
    return result;
}

void eng_mutex_consistent(struct eng_mutex *mutex)
{
    int rc = pthread_mutex_consistent(&mutex->mutex_);
    GYRE_CHECK(rc == 0);
}

void eng_mutex_unlock(struct eng_mutex *mutex)
{
    unsigned rank = mutex->rank_;
    int rc = pthread_mutex_unlock(&mutex->mutex_);
    GYRE_CHECK(rc == 0);
    eng_rank_leave(rank);
}
