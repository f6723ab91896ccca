/* Durability of a stripe: what its header promises, and writing it in the right order.
 *
 * A header says: documents up to serial_synced are durable with their entries, and everything newer
 * lies in the announced segments (the horizon). So recovery looks at those alone.
 *
 * Threads: any. Blocks: for the disk. Allocates: nothing. Keeps: E45, E46.
 */
#pragma once

#include "engine/store.h"

/* Makes everything committed before the call durable, all stripes. `clean`: nothing will be written
 * after it, and the next opening need not recover. IO, DISK_FULL. */
GYRE_MUST_USE gyre_err eng_sync_store(struct eng_store *store, bool clean);
/* The same for one stripe: the newest serial is noted, then data, then directory, then segment
 * table and header reach the disk, in this order, so that an entry covered by a header points at
 * durable bytes. Calls that wait for each other share one pass. */
GYRE_MUST_USE gyre_err eng_sync_stripe(struct eng_stripe *stripe, bool clean);

/* Called with the alloc lock held before a ring enters a segment that the last header does not
 * announce: writes a header that does. Rare: the keeper syncs ahead of need. IO, DISK_FULL. */
GYRE_MUST_USE gyre_err eng_horizon_extend_locked(struct eng_stripe *stripe);

/* The segments that documents with serials from now on go to, unless a ring enters another. False
 * when there are more than the list has places for. */
bool eng_horizon_in_use_locked(const struct eng_stripe *stripe, uint32_t segments_out[ENG_HORIZON],
                               uint32_t *n_out);
