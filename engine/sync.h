/* Durability and recovery of a stripe: header A/B, horizon, roll-forward.
 *
 * Threads: any. Blocks: for the disk.
 */
#pragma once

#include "engine/store.h"

/* Makes everything committed before the call durable, all stripes. IO. */
GYRE_MUST_USE gyre_err eng_sync_store(struct eng_store *store, bool clean);
/* The same for one stripe: cursors are noted, then data, then directory, then segment table and header reach the disk, in this order, so
 * that an entry covered by a header points at durable bytes. */
GYRE_MUST_USE gyre_err eng_sync_stripe(struct eng_stripe *stripe, bool clean);

/* Called with the alloc lock held before a ring enters a segment that the last header does not announce: writes a header with a fresh
 * horizon. Rare: the keeper extends it ahead of need. IO. */
GYRE_MUST_USE gyre_err eng_horizon_extend_locked(struct eng_stripe *stripe);

/* Rebuilds the stripe's runtime state from segment table and directory, then, unless `clean`, walks what may have been written since the
 * header. Every number read is checked first. Nothing else uses the stripe meanwhile. IO. */
GYRE_MUST_USE gyre_err eng_recover_stripe(struct eng_stripe *stripe, const struct eng_stripe_header *header,
                                          void (*progress)(void *data, const char *what, uint64_t done, uint64_t total), void *data);
