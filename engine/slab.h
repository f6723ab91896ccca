/* Slabs: page-exclusive stretches of log in which one writer at a time packs small documents.
 *
 *   slab: NONE -> BUSY [eng_slab_acquire] -> IDLE [eng_slab_release] -> BUSY [eng_slab_acquire]
 *         IDLE -> NONE [eng_slab_acquire when full, eng_slabs_retire]
 *
 * A slab stays reserved until it is retired, so the hand leaves all of it alone, and padding a page
 * can only overwrite the slab owner's own bytes.
 *
 * Owns:    the cache, from eng_slabs_create to eng_slabs_destroy. Threads: any.
 * Blocks:  while all slabs of a ring are busy, and as eng_log_reserve. Keeps: E9.
 */
#pragma once

#include "engine/store.h"

#define ENG_SLABS 16 /* open per ring and stripe */

/* A slab held by one writer. */
struct eng_slab {
    uint64_t start, end; /* units, whole pages */
    uint64_t used;       /* units from the stripe's start: everything before is taken */
    uint32_t reservation;
    uint8_t ring;
    uint8_t state_;
};

/* Documents up to here (bytes, header included) go into slabs. */
#define ENG_SLAB_DOC_MAX (16u << 10)

/* NO_MEMORY. */
GYRE_MUST_USE gyre_err eng_slabs_create(struct eng_slab_cache **cache_out);
/* All slabs must have been retired, or the stripe be past use. NULL is allowed. */
void eng_slabs_destroy(struct eng_slab_cache *cache);

/* A slab of the ring with room for `units`, the caller's until eng_slab_release. NO_SPACE, BUSY,
 * IO. */
GYRE_MUST_USE gyre_err eng_slab_acquire(struct eng_stripe *stripe, uint8_t ring, uint64_t units,
                                        struct eng_slab **slab_out);
void eng_slab_release(struct eng_stripe *stripe, struct eng_slab *slab);

/* Ends all slabs of the stripe and gives their unused pages back: documents written later lie
 * behind the rings' resume points. Waits for busy ones. */
void eng_slabs_retire(struct eng_stripe *stripe);
