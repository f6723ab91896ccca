/* The queue of clean runs of a ring, oldest first: runs of one segment rise, segments follow in the
 * order the hand entered them. Runs are whole pages, never empty, and never cross a
 * segment's end.
 *
 * Threads: under the alloc lock. Blocks: never. Allocates: nothing. Keeps: E6.
 */
#pragma once

#include "engine/store.h"

/* Run number i, 0 the oldest. */
struct eng_run *eng_run_at(struct eng_ring *ring, uint32_t i);
const struct eng_run *eng_run_get(const struct eng_ring *ring, uint32_t i);

/* Queues [start, end) as the newest, joined to the one before if that ends where this begins,
 * in the same segment. The oldest runs are forgotten while the queue is full or holds more than
 * `limit_units`. Returns the length of the run that it is, or is part of, now. */
uint64_t eng_runs_push_locked(struct eng_ring *ring, uint64_t segment_units, uint64_t start,
                              uint64_t end, uint64_t limit_units);

/* Cuts from `least` to `most` units (whole pages) from the oldest run that has `least`; false: none
 * has. Where less than `most` would do, the shortest run of the segment that is being written is
 * preferred: small demands do not spoil places for large ones, and what is written together lies
 * together. *n_older_out: how many runs lie before it. */
bool eng_runs_take_locked(struct eng_ring *ring, uint64_t segment_units, uint64_t least,
                          uint64_t most, uint64_t *start_out, uint64_t *units_out,
                          uint32_t *n_older_out);

/* Puts [start, end) back in front of what lies behind it. False when that place is not at the head
 * of the queue or the queue is full: the bytes then wait for the next lap. */
bool eng_runs_give_back_locked(struct eng_ring *ring, uint64_t segment_units, uint64_t start,
                               uint64_t end);

/* Forgets run number i. */
void eng_runs_drop_locked(struct eng_ring *ring, uint32_t i);
/* Forgets the runs of a segment, because its bytes are about to be judged again. */
void eng_runs_drop_segment_locked(struct eng_ring *ring, uint64_t segment_units, uint32_t segment);
