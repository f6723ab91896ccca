/* Slot records: what the runtime segment knows of each directory entry, and the lists that lead
 * from a granule of the log to the entries of the documents that start in it.
 *
 * Threads: under the alloc lock. Blocks: never. Allocates: nothing. Keeps: E3.
 */
#pragma once

#include "engine/directory.h"

/* The record of a document of `units` that its writer has just checksummed and written whole:
 * marked as verified, for a reader would take the sums of the very bytes they were made from. */
struct eng_slot eng_slot_fresh(uint16_t tenant, uint8_t retention, uint8_t pool, uint64_t units);
/* Fills the record of `slot` from `record`, lists it by the offset in `entry` and counts it as
 * live. */
void eng_slot_list_locked(struct eng_stripe *stripe, uint32_t slot, uint64_t entry,
                          const struct eng_slot *record);
/* Takes it off its list and out of the totals; `entry` is the one it was listed by. */
void eng_slot_unlist_locked(struct eng_stripe *stripe, uint32_t slot, uint64_t entry);
/* Gives a listed document its exact length in place of an estimate. */
void eng_slot_measure_locked(struct eng_stripe *stripe, uint32_t slot, uint64_t entry,
                             uint32_t units);
/* A slot word of the next generation, with the `flags` (verified, hits) given. */
uint32_t eng_slot_next_word(const struct eng_slot *slot, uint32_t flags);
