/* A lock and a condition between the threads of one process, with lock order checked.
 *
 * Owns:    nothing outside their own bytes. Threads: any. Blocks: acquire and the waits. Allocates:
 * nothing.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/gyre_err.h"

struct eng_lock {
    pthread_mutex_t mutex_;
    unsigned rank_; /* [c] see rank.h */
};

struct eng_cond {
    pthread_cond_t cond_; /* counts in the clock of eng_clock_mono_ns */
};

/* Cannot fail on Linux; anything unexpected aborts. */
void eng_lock_init(struct eng_lock *lock, unsigned rank);
void eng_lock_fini(struct eng_lock *lock);

void eng_lock_acquire(struct eng_lock *lock);
/* Whether it was free and is now held. */
GYRE_MUST_USE bool eng_lock_try(struct eng_lock *lock);
void eng_lock_release(struct eng_lock *lock);

void eng_cond_init(struct eng_cond *cond);
void eng_cond_fini(struct eng_cond *cond);
void eng_cond_signal(struct eng_cond *cond);
void eng_cond_broadcast(struct eng_cond *cond);

/* Lets go of the lock, sleeps, and holds it again on return. May wake for no reason: look at the
 * state in a loop. */
void eng_cond_wait(struct eng_cond *cond, struct eng_lock *lock);
/* The same up to a point of eng_clock_mono_ns; false once that has passed. */
bool eng_cond_wait_until(struct eng_cond *cond, struct eng_lock *lock, uint64_t deadline_ns);
