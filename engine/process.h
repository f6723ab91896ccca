/* The processes that have a store open: who of them is alive, and what the dead leave behind.
 *
 *   slot: FREE -> USED [eng_process_join] -> FREE [eng_process_leave]
 *         USED -> FREE [eng_processes_reap, eng_process_join] once its process is dead
 *
 * A process holds byte 16 + slot of the lock file for as long as it lives; the kernel lets go of it
 * when the last of its threads is gone, so what the dead wrote, and where, is settled by then.
 * Numbers of processes are for messages only: they are used again, and mean nothing in another
 * container.
 *
 * Threads: any. Blocks: for the table lock and the stripes' locks. Allocates: nothing.
 * Keeps:   E51, E52.
 */
#pragma once

#include "engine/store.h"

/* Takes a slot and its byte, after taking back what a dead process left in it. The caller holds the
 * opening lock. BUSY: all slots are in use. IO. */
GYRE_MUST_USE gyre_err eng_process_join(struct eng_store *store);
/* Gives pins, reservations and the slot back; the byte stays until the lock file is closed. A store
 * that never joined is allowed. */
void eng_process_leave(struct eng_store *store);

/* Whether another process has the store open; *pid_out may be NULL, and gets 0 where the number
 * means nothing here. True when in doubt. */
bool eng_processes_others(const struct eng_store *store, pid_t *pid_out);
/* Takes back what a process slot holds whose process is dead; whether that was so. */
bool eng_process_reap(struct eng_store *store, uint32_t index);
/* Takes back pins, reservations and flights of processes that are dead; how many processes. */
uint32_t eng_processes_reap(struct eng_store *store);
/* Whether a process that is alive, or not yet taken back, is between eng_keep_begin and its end. */
bool eng_processes_keep(const struct eng_store *store);
/* Processes that have a slot now. */
uint32_t eng_processes_count(const struct eng_store *store);
