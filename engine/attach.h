/* Giving a store whose files are open its volatile state: that of the processes that have it open
 * or died with it open in this boot, or, where neither is, one made from the files.
 *
 *   segment of this boot, store and build that the note names -> attached; exact, nothing is read
 *   none, nobody alive  -> made anew (recover.h)
 *   none, somebody alive -> refused
 *
 * Threads: one; the caller holds the opening lock. Blocks: for the disk. Keeps: E50, E53.
 */
#pragma once

#include "engine/lockfile.h"

/* Looks whether others have the store open, into home->in_use. LOCKED, explained: they do, and what
 * is asked for cannot be done beside them. */
GYRE_MUST_USE gyre_err eng_attach_check(const struct eng_store *store, struct eng_home *home);
/* Makes the store usable; its volume is open. All refusals are explained: LOCKED, BUSY (too many
 * processes), DAMAGED, DISK_FULL, IO, ACCESS, NO_FILES, NO_MEMORY. */
GYRE_MUST_USE gyre_err eng_attach(struct eng_store *store, const struct eng_home *home,
                                  const struct eng_lock_note *note);
