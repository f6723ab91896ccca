/* The keep bit: documents that the hand leaves in place, and letting go of them again.
 *
 * Kept in a pool that evicts are: objects pinned until a time, with their parts, and parts of
 * uploads in progress. Whoever sets the bit clears it; what the dead left is found by a sweep,
 * which asks of each kept document who still wants it.
 *
 * Threads: any. Blocks: on cold headers. Keeps: E84, E85.
 */
#pragma once

#include "engine/writer.h"

/* Around keeping documents that are nobody's reservation and writing down why: until the end, no
 * sweep lets go of what is kept after the beginning. */
void eng_keep_begin(struct eng_store *store);
void eng_keep_end(struct eng_store *store);

/* Sets or clears the keep bit of the part that a row names. NOT_FOUND, QUOTA (set only), BUSY. */
GYRE_MUST_USE gyre_err eng_keep_part(struct eng_store *store, const struct eng_want *want,
                                     bool keep);
/* Clears it for all parts that `n` rows of an object name. */
void eng_keep_end_rows(struct eng_store *store, const uint8_t key[32], uint8_t pool,
                       uint64_t object_serial, const struct eng_part_row *rows, size_t n);

/* Clears every keep bit that nobody wants at `now` (Unix seconds), and ends uploads whose time is
 * over. BUSY: while something is being kept, or no pin is free, nothing is let go of; to be called
 * again. NO_MEMORY, IO. */
GYRE_MUST_USE gyre_err eng_keep_sweep(struct eng_store *store, uint32_t now);
/* Whether a sweep could find anything: something is kept in a pool that evicts. */
bool eng_keep_any(const struct eng_store *store);
