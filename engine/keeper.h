/* The background thread of an open store: keeps clean space ahead of the writers and syncs in time.
 *
 * Owns:    its thread, from eng_keeper_start to eng_keeper_stop. Threads: start and stop from one.
 * Blocks:  stop waits for the pass in progress.
 */
#pragma once

#include "engine/store.h"

/* NO_MEMORY, BUSY (the system's thread limit). */
GYRE_MUST_USE gyre_err eng_keeper_start(struct eng_store *store);
/* NULL keeper is allowed. */
void eng_keeper_stop(struct eng_store *store);
/* Asks for a pass soon. Never blocks for long; callable under the alloc lock. */
void eng_keeper_wake(struct eng_store *store);

/* Clean space the keeper holds ready in a ring, in units. */
uint64_t eng_clean_target_units(const struct eng_stripe *stripe, const struct eng_ring *ring);
