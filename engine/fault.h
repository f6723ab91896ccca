/* Reads of a mapping whose bytes cannot be had: the file was cut short under it, or its medium
 * failed. The kernel says so with SIGBUS, in the middle of whatever reads.
 *
 *   SIGBUS -> zeros in the page's place, the page noted as a hole [on_sigbus] -> the read goes on
 *          -> whoever read, or is about to lend the bytes, asks [eng_fault_hit]
 *
 * A hole stays one as long as the mapping is watched: what is written to the file there is not
 * seen.
 *
 * Threads: any; the handler runs on the thread that read. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes SIGBUS for this process. `hook` (may be NULL) is called on the reading thread, inside the
 * signal handler, after each hole that is made: it may do only what a handler may. Faults outside
 * watched mappings go on as before. False when the system refuses. */
bool eng_fault_guard(void (*hook)(void));

/* Watches a mapping of file `fd` from `file_off` on, read only; nothing happens without a guard,
 * nor when too many are watched. And the end of it, before the mapping goes. */
void eng_fault_watch(const void *base, size_t bytes, int fd, uint64_t file_off);
void eng_fault_unwatch(const void *base);

/* Whether any byte of [at, at + len) lies in a hole. */
bool eng_fault_hit(const void *at, size_t len);

/* Holes made since the process began. */
uint64_t eng_fault_count(void);
