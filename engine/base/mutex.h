/* A mutex in memory shared between processes that survives the death of its holder.
 *
 *     FREE -> HELD              [lock, trylock -> OK]
 *     HELD -> FREE              [unlock]
 *     HELD -> ORPHAN            holder died
 *     ORPHAN -> HELD, tainted   [lock, trylock -> OWNER_DEAD]
 *     HELD, tainted -> HELD     [consistent] after repairing what the lock guards
 *     HELD, tainted -> LOST     [unlock] without that; for good
 *
 * Owns:    nothing outside its 64 bytes. Threads: any of any process. Blocks: eng_mutex_lock.
 * Allocates: nothing.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "engine/base/check.h"

struct eng_mutex {
    _Alignas(64) pthread_mutex_t mutex_; /* 40 or 48 bytes by architecture */
    uint32_t rank_;                      /* [c] see rank.h */
};
GYRE_STATIC_SIZE(struct eng_mutex, 64);

enum eng_mutex_result {
    ENG_MUTEX_OK,         /* held */
    ENG_MUTEX_OWNER_DEAD, /* held; the last holder died inside: repair, then eng_mutex_consistent */
    ENG_MUTEX_BUSY,       /* not held; from trylock and lock_until */
    ENG_MUTEX_LOST,       /* not held and never again: a repair was given up */
};

/* Makes a free mutex of shared memory. UNSUPPORTED where the C library or kernel has no robust
 * mutexes. */
GYRE_MUST_USE gyre_err eng_mutex_init(struct eng_mutex *mutex, unsigned rank);

/* Ends a mutex that no process uses any more. */
void eng_mutex_fini(struct eng_mutex *mutex);

/* Waits for the mutex: OK, OWNER_DEAD, LOST. Where lock order is checked, aborts if the thread
 * holds it already or holds one of the same or a higher rank. */
GYRE_MUST_USE enum eng_mutex_result eng_mutex_lock(struct eng_mutex *mutex);

/* Waits until a point of eng_clock_mono_ns at most: OK, OWNER_DEAD, BUSY, LOST. */
GYRE_MUST_USE enum eng_mutex_result eng_mutex_lock_until(struct eng_mutex *mutex,
                                                         uint64_t deadline_ns);

/* Without waiting: OK, OWNER_DEAD, BUSY, LOST. */
GYRE_MUST_USE enum eng_mutex_result eng_mutex_trylock(struct eng_mutex *mutex);

/* What the mutex guards is whole again, after OWNER_DEAD. The caller holds it. */
void eng_mutex_consistent(struct eng_mutex *mutex);

/* Lets go. Aborts if the thread does not hold it. */
void eng_mutex_unlock(struct eng_mutex *mutex);
