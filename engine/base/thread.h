/* A named thread of the library, deaf to the host program's signals.
 *
 * Owns:    the thread, from start to join; the structure must stay where it is for that time.
 * Threads: start and join from one. Blocks: join. Allocates: the stack.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "engine/base/gyre_err.h"

struct eng_thread {
    pthread_t id_;
    void (*run_)(void *data);
    void *data_;
    char name_[16];
    bool running_;
};

/* Runs run(data) in a new thread; `name` is cut to 15 bytes. All signals but its own faults are
 * blocked in it, so the program's handlers stay with the program's threads. NO_MEMORY, BUSY (the
 * system's thread limit). Nothing to join unless OK. */
GYRE_MUST_USE gyre_err eng_thread_start(struct eng_thread *thread, const char *name,
                                        void (*run)(void *data), void *data);

/* Waits for its end. A thread that was zeroed and never started, or is joined already, is allowed.
 */
void eng_thread_join(struct eng_thread *thread);
