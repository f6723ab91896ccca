/* Taking the two locks of a stripe, with the repair that is due when their last holder died inside.
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
};

/* Rings, reservations, directory, slots, segment table. */
void eng_alloc_lock(struct eng_stripe *stripe);
void eng_alloc_unlock(struct eng_stripe *stripe);

/* The superblock and the ban table; *orphaned_out: its last holder died inside. */
void eng_facts_lock(struct eng_store *store, bool *orphaned_out);
void eng_facts_unlock(struct eng_store *store);

/* The hand. */
void eng_clean_lock(struct eng_stripe *stripe);
void eng_clean_unlock(struct eng_stripe *stripe);
