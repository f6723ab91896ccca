/* The hand: goes round each ring, removes documents from the directory in address order, and turns
 * what no reader holds into clean runs.
 *
 * Threads: any; the clean lock admits one per stripe. Blocks: for locks, and for the disk when a
 * segment has to be announced first. Allocates: nothing. Keeps: E5, E6.
 */
#pragma once

#include "engine/store.h"

/* What one step did. */
struct eng_clean_step {
    uint64_t moved_units;   /* the hand passed over */
    uint64_t cleaned_units; /* became clean */
    uint64_t busy_units;    /* left in place for readers and puts in progress */
    uint64_t longest_units; /* run of those that became clean */
};

/* One step of a pool's hand: about 4 MiB or 128 documents, to where no document lies across, or a
 * whole new segment. `limit_units`: clean space to hold at most; older runs are forgotten beyond
 * it. NO_SPACE: the ring has no segments. IO. Needs the clean lock, not the alloc lock. */
GYRE_MUST_USE gyre_err eng_clean_step_locked(struct eng_stripe *stripe, uint8_t pool,
                                             uint64_t limit_units, struct eng_clean_step *step_out);
