/* Taking the two locks of a stripe, with the repair that is due when their last holder died inside.
 *
 * A writer's call takes its locks within a bound, so that a process that was stopped while it held
 * one costs BUSY and no hang; what must be undone then is left to whoever looks after the dead.
 *
 * Order: clean_lock (rank 1) before alloc_lock (rank 2); never two stripes at once.
 * Threads: any. Blocks: for the other holder. Allocates: nothing.
 */
#pragma once

#include "engine/store.h"

enum {
    ENG_RANK_CLEAN = 1,
    ENG_RANK_TABLE,
    ENG_RANK_ALLOC,
    ENG_RANK_SLAB,
    ENG_RANK_KEEPER,
    ENG_RANK_FACTS,
    ENG_RANK_FLIGHT,
};

/* Rings, reservations, directory, slots, segment table. */
void eng_alloc_lock(struct eng_stripe *stripe);
void eng_alloc_unlock(struct eng_stripe *stripe);
/* The same within store->lock_wait_ns. BUSY: a process that holds it was stopped. */
GYRE_MUST_USE gyre_err eng_alloc_lock_bounded(struct eng_stripe *stripe);

/* The superblock and the ban table; *orphaned_out: its last holder died inside. */
void eng_facts_lock(struct eng_store *store, bool *orphaned_out);
void eng_facts_unlock(struct eng_store *store);

/* The hand. */
void eng_clean_lock(struct eng_stripe *stripe);
void eng_clean_unlock(struct eng_stripe *stripe);
GYRE_MUST_USE gyre_err eng_clean_lock_bounded(struct eng_stripe *stripe); /* as for the other */
/* Any of a store's locks, within the same bound; OWNER_DEAD, OK or BUSY. */
GYRE_MUST_USE enum eng_mutex_result eng_lock_bounded(const struct eng_store *store,
                                                     struct eng_mutex *mutex);
