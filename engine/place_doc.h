/* Writing one document that is not a PART to its place in the log, not yet known to anybody.
 *
 *   NONE -> PLACED [eng_placed_write] -> NONE [eng_placed_end, eng_placed_abort]
 *
 * Threads: one at a time. Blocks: as writer.h. Keeps: E9.
 */
#pragma once

#include <sys/uio.h>

#include "engine/slab.h"
#include "engine/writer.h"

/* A written document whose place is still held. */
struct eng_placed {
    struct eng_stripe *stripe; /* NULL: none */
    struct eng_slab *slab;     /* NULL: it has an extent of its own */
    uint32_t reservation;      /* of that extent */
    uint8_t ring;
    uint64_t start; /* units */
    uint64_t serial;
    bool in_small;          /* in the ring for small documents */
    bool remembered;        /* by the ghost, when its ring was chosen */
    struct eng_slot record; /* what its slot will say; units is its length */
};

/* Gives a serial, finds a place in the ring that the policy says, or where that is S and has none
 * in M of the same pool, and writes. `place` NULL: what is not for the policy, in M of the main
 * pool. NO_SPACE, BUSY, IO, TOO_LARGE. */
GYRE_MUST_USE gyre_err eng_placed_write(struct eng_stripe *stripe, const struct eng_place *place,
                                        const struct eng_spec *spec, const struct iovec *meta,
                                        const struct iovec *body, struct eng_placed *placed_out);
/* The directory judges its bytes from now on. */
void eng_placed_end(struct eng_placed *placed);
/* Makes it no document any more and frees the place: a refused document must not come back after a
 * crash. */
void eng_placed_abort(struct eng_placed *placed);
