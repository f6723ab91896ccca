/* The hand: goes round each ring, decides about documents in address order (policy.h), and turns
 * what nobody needs into clean runs.
 *
 * Threads: any; the clean lock admits one per stripe. Blocks: for locks, and for the disk when a
 * segment has to be announced first. Allocates: a buffer while it copies. Keeps: E5, E6, E72.
 */
#pragma once

#include "engine/store.h"

/* What one step did. */
struct eng_clean_step {
    uint64_t moved_units;   /* the hand passed over */
    uint64_t cleaned_units; /* became clean */
    uint64_t busy_units;    /* left in place for readers and puts in progress */
    uint64_t longest_units; /* run that became clean, joined to the one before it */
};

/* One step of a ring's hand: about 4 MiB or 128 documents, to where no document lies across, or a
 * whole new segment. `limit_units`: clean space to hold at most; older runs are forgotten beyond
 * it. `hard`: nobody stays for being hit. NO_SPACE: the ring has no segments. IO. Needs the clean
 * lock, not the alloc lock. */
GYRE_MUST_USE gyre_err eng_clean_step_locked(struct eng_stripe *stripe, uint8_t ring,
                                             uint64_t limit_units, bool hard,
                                             struct eng_clean_step *step_out);
