/* A store in a forked child of the process that opened it.
 *
 *   the parent's -> this process's too [eng_store_inherit] | gone from this process
 * [eng_store_forget]
 *
 * The child keeps descriptors and mappings, and takes a process slot of its own on the very
 * descriptor it has inherited: record locks belong to a process, and closing any other descriptor
 * of the file would drop them.
 *
 * Threads: one; the child uses the store in no other way yet. Keeps: E54.
 */
#pragma once

#include "engine/store.h"

/* Joins. Waits for others that open or close the store for ten seconds at most. CLOSED: the store's
 * last process closed it before. LOCKED: that wait was not enough. BUSY: no slot is free. IO,
 * NO_MEMORY. Unless OK it may be tried again. */
GYRE_MUST_USE gyre_err eng_store_inherit(struct eng_store *store);

/* Closes descriptors and mappings of a store that was never joined and frees it. Takes no lock,
 * shared or not, and changes nothing outside this process. */
void eng_store_forget(struct eng_store *store);
