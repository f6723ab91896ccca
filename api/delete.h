/* Removing an object, for calls that are inside a store already.
 *
 * Threads: any. Blocks: as gyre_delete.
 */
#pragma once

#include "api/gyre.h"

/* Whether gyre_delete could do anything with these. */
bool api_delete_valid(const struct gyre_key *key, enum gyre_condition condition, unsigned flags);
/* gyre_delete inside a call. */
GYRE_MUST_USE gyre_err api_delete_inside(struct gyre_store *store, const struct gyre_key *key,
                                         enum gyre_condition condition, uint64_t if_serial,
                                         unsigned flags);
