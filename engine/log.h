/* Space in a stripe: two rings of segments per pool (M, and S where the policy wants one), the
 * clean runs ahead of their writers, and the reservations of extents that are being written.
 *
 *   segment: FREE -> RING [eng_ring_enter_locked]
 *   bytes:   document or dead -> clean run [cleaner] -> reserved [eng_log_take_locked]
 *            -> document | dead [eng_log_end_locked] | clean run again [eng_log_trim_locked]
 *
 * Everything handed out is whole pages inside one segment, so no two owners ever share a page.
 *
 * Threads: all _locked functions need the alloc lock. Blocks: eng_log_reserve, which may have to
 * clean. Allocates: nothing. Keeps: E6, E7, E8.
 */
#pragma once

#include "engine/store.h"

#define ENG_PAGE_UNITS (ENG_PAGE / ENG_UNIT)

/* The number of a pool's ring. */
static inline uint8_t eng_ring_id(uint8_t pool, enum eng_ring_kind kind)
{
    return (uint8_t)(kind == ENG_RING_M ? pool : ENG_MAX_POOLS + pool);
}

static inline uint8_t eng_ring_pool(uint8_t ring)
{
    return ring % ENG_MAX_POOLS;
}

static inline enum eng_ring_kind eng_ring_kind_of(uint8_t ring)
{
    return ring < ENG_MAX_POOLS ? ENG_RING_M : ENG_RING_S;
}

/* Reserves `units` (whole pages) in a ring, cleaning up to one lap of it itself when nothing
 * clean fits. *start_out in units, *reservation_out for eng_log_end_locked. NO_SPACE: a lap freed
 * too little. BUSY: puts in progress or readers hold what is needed. TOO_LARGE: longer than a
 * segment. IO. */
GYRE_MUST_USE gyre_err eng_log_reserve(struct eng_stripe *stripe, uint8_t ring, uint64_t units,
                                       bool is_slab, uint64_t *start_out,
                                       uint32_t *reservation_out);
/* A slab: from `least` to `most` units, as the next clean run has them. *units_out: how many.
 * Results as eng_log_reserve. */
GYRE_MUST_USE gyre_err eng_log_reserve_slab(struct eng_stripe *stripe, uint8_t ring, uint64_t least,
                                            uint64_t most, uint64_t *start_out, uint64_t *units_out,
                                            uint32_t *reservation_out);
/* The same from what is clean already. NO_SPACE: nothing that is fits. BUSY. */
GYRE_MUST_USE gyre_err eng_log_take_locked(struct eng_stripe *stripe, uint8_t ring, uint64_t units,
                                           bool is_slab, uint64_t *start_out,
                                           uint32_t *reservation_out);
/* The same for copies the hand makes, which earn nothing: from `least` to `most` units. */
GYRE_MUST_USE gyre_err eng_log_take_copy_locked(struct eng_stripe *stripe, uint8_t ring,
                                                uint64_t least, uint64_t most, uint64_t *start_out,
                                                uint64_t *units_out, uint32_t *reservation_out);
/* Gives [start, end of the reservation) back to the ring; `start` in units, on a page boundary. */
void eng_log_trim_locked(struct eng_stripe *stripe, uint32_t reservation, uint64_t start);
/* Ends a reservation: what is in it is judged by the directory alone from now on. */
void eng_log_end_locked(struct eng_stripe *stripe, uint32_t reservation);

/* The same with the lock taken here, and before it, unless `trim_from` is ENG_NO_TRIM, the
 * trimming. Where the lock is not to be had the reservation becomes nobody's, and is ended by
 * whoever looks after the dead. */
#define ENG_NO_TRIM UINT64_MAX
void eng_log_end(struct eng_stripe *stripe, uint32_t reservation, uint64_t trim_from);

/* A ring by its number, and the segment of an offset in units. */
struct eng_ring *eng_ring_of(const struct eng_stripe *stripe, uint8_t ring);
uint32_t eng_segment_of(const struct eng_stripe *stripe, uint64_t offset_units);
/* Whether the ring would grow by a FREE segment rather than go round. */
bool eng_ring_may_grow_locked(const struct eng_stripe *stripe, uint8_t ring);
/* Sets how many segments the rings of a pool should have, as the policy wants it. Rings come to it
 * as their hands pass from segment to segment. */
void eng_ring_share_locked(struct eng_stripe *stripe, uint8_t pool);
/* The segments the hand of this ring enters next, at most `max`; how many. */
size_t eng_ring_ahead_locked(const struct eng_stripe *stripe, uint8_t ring, uint32_t *segments_out,
                             size_t max);
/* Moves the hand into its next segment: a FREE one, which is clean as a whole at once; or, where
 * the pool's other ring has more than its share, the one that ring would enter next; or else the
 * successor of the one it is in. Extends the horizon if need be. NO_SPACE: the ring has no segment
 * and may take none. IO. Needs the clean lock too. */
GYRE_MUST_USE gyre_err eng_ring_enter_locked(struct eng_stripe *stripe, uint8_t ring);

/* Whether a hand will soon reach segments that the last header does not announce. */
bool eng_log_horizon_low_locked(const struct eng_stripe *stripe);
