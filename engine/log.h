/* Space in a stripe: one ring of segments per pool, the clean runs ahead of its writers, and the
 * reservations of extents that are being written.
 *
 *   segment: FREE -> RING [eng_ring_enter_locked]
 *   bytes:   document or dead -> clean run [cleaner] -> reserved [eng_log_take_locked]
 *            -> document | dead [eng_log_end_locked] | clean run again [eng_log_give_back_locked]
 *
 * Everything handed out is whole pages, so no two owners ever share one.
 *
 * Threads: all _locked functions need the alloc lock. Blocks: eng_log_reserve, which may have to
 * clean. Allocates: nothing. Keeps: E6, E7, E8.
 */
#pragma once

#include "engine/store.h"

#define ENG_PAGE_UNITS (ENG_PAGE / ENG_UNIT)

/* Reserves `units` (whole pages) in a pool's ring, cleaning up to one lap of it itself when nothing
 * clean fits. *start_out in units, *reservation_out for eng_log_end_locked. NO_SPACE: a lap freed
 * too little. BUSY: puts in progress hold what is needed. TOO_LARGE: longer than a segment. IO. */
GYRE_MUST_USE gyre_err eng_log_reserve(struct eng_stripe *stripe, uint8_t pool, uint64_t units,
                                       bool is_slab, uint64_t *start_out,
                                       uint32_t *reservation_out);
/* The same from what is clean already; NO_SPACE when none fits. BUSY. */
GYRE_MUST_USE gyre_err eng_log_take_locked(struct eng_stripe *stripe, uint8_t pool, uint64_t units,
                                           bool is_slab, uint64_t *start_out,
                                           uint32_t *reservation_out);
/* From now on documents inside are live, though the extent is still the writer's. */
void eng_log_keep_live_locked(struct eng_stripe *stripe, uint32_t reservation);
/* Gives the whole pages from `start` (units) to the end of the reservation back to the ring. */
void eng_log_trim_locked(struct eng_stripe *stripe, uint32_t reservation, uint64_t start);
/* Ends a reservation: what is in it is judged by the directory alone from now on. */
void eng_log_end_locked(struct eng_stripe *stripe, uint32_t reservation);

/* Queues [start, end) as clean, joined to the newest run if it follows it. The oldest run is
 * dropped while the queue is full or holds more than `limit_units`. */
void eng_runs_push_locked(struct eng_ring *ring, uint64_t start, uint64_t end,
                          uint64_t limit_units);
/* Forgets all clean runs of a segment. */
void eng_runs_drop_segment_locked(const struct eng_stripe *stripe, struct eng_ring *ring,
                                  uint32_t segment);

/* Pool a ring belongs to, and the ring of a pool. */
struct eng_ring *eng_ring_of(struct eng_stripe *stripe, uint8_t pool);
/* Whether the ring would grow by a FREE segment rather than go round. */
bool eng_ring_may_grow_locked(const struct eng_stripe *stripe, uint8_t pool);
/* The segments the hand of this ring enters next, at most `max`; how many. */
size_t eng_ring_ahead_locked(const struct eng_stripe *stripe, uint8_t pool, uint32_t *segments_out,
                             size_t max);
/* Moves the hand into its next segment: FREE ones first. Extends the horizon if need be. NO_SPACE:
 * the ring has no segment and may take none. IO. Needs the clean lock too. */
GYRE_MUST_USE gyre_err eng_ring_enter_locked(struct eng_stripe *stripe, uint8_t pool);

/* ---- For sync and recovery ---- */

/* Where roll-forward has to begin so that it meets everything written in this ring after now:
 * segment, and bytes into the area. Nothing is written before it but extents reserved already. */
void eng_ring_resume_point_locked(const struct eng_stripe *stripe, uint8_t pool,
                                  uint32_t *segment_out, uint64_t *cursor_bytes_out);
/* The segments a header should announce: those with clean runs behind the resume point's, those the
 * hands are in, and those they enter next; all rings. Returns how many of the ENG_HORIZON. */
size_t eng_log_horizon_locked(const struct eng_stripe *stripe, uint32_t segments_out[ENG_HORIZON]);
/* Whether hands will soon leave the announced segments, so that a sync should come first. */
bool eng_log_horizon_low_locked(const struct eng_stripe *stripe);
