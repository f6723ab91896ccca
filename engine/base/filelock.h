/* Byte-range locks between processes: who holds a byte is alive, in whatever container.
 *
 * These are POSIX record locks. They belong to the process, are not inherited over fork, and are
 * all lost as soon as the process closes ANY descriptor of that file. So a lock file is opened once
 * per process, on a descriptor nobody else sees, and never opened a second time "just to look".
 * Locks of the process itself never conflict with and never show in a probe.
 *
 * Owns:    the process holds what it took until it drops it or dies. Threads: any. Blocks:
 * never. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/base/gyre_err.h"

enum eng_filelock_kind {
    ENG_FILELOCK_SHARED,    /* with other shared ones; the descriptor must be readable */
    ENG_FILELOCK_EXCLUSIVE, /* alone; the descriptor must be writable */
};

/* Takes byte `off`, or changes the kind of a lock held there. LOCKED if another process is in the
 * way; UNSUPPORTED, IO. */
GYRE_MUST_USE gyre_err eng_filelock_try(int fd, uint64_t off, enum eng_filelock_kind kind);

/* Gives byte `off` back; not holding it is no error. */
void eng_filelock_drop(int fd, uint64_t off);

/* Whether another process holds any of the `len` bytes from `off` on; *pid_out as below. */
GYRE_MUST_USE gyre_err eng_filelock_probe_range(int fd, uint64_t off, uint64_t len, bool *held_out,
                                                pid_t *pid_out);

/* Whether another process holds byte `off` in a way that keeps us from taking it exclusively.
 * *pid_out is that process as seen from here, 0 if nobody holds it or its pid means nothing in our
 * pid namespace: decide by *held_out, show *pid_out to people. */
GYRE_MUST_USE gyre_err eng_filelock_probe(int fd, uint64_t off, bool *held_out, pid_t *pid_out);
