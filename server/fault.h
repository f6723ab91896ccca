/* Stored bytes that turn out not to be there while they are sent: what has been read of them are
 * zeros (gyre_guard_faults), and no client may get those for the object.
 *
 *   fault while libh2o encrypts  -> the socket is shut down before anything of it is written
 *   fault while bytes are copied -> noted by the thread; its next write shuts its socket down
 *   fault in the kernel's copy   -> the send fails
 *
 * Threads: each has its own note. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Takes faults for this process; before threads. False when the system refuses. */
bool srv_fault_guard(void);

/* Whether this thread has had a fault since it was last asked. */
bool srv_fault_taken(void);

/* The thread is about to read stored bytes for the socket `fd`: a fault from now on, or one that
 * nobody has asked about, shuts it down. And the end of that. */
void srv_fault_begin(int fd);
void srv_fault_end(void);

/* Faults since the process began. */
uint64_t srv_fault_count(void);
