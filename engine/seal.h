/* Makes the structures of engine/format.h valid, and decides whether bytes read back are one of
 * them.
 *
 * Threads: any; all functions are pure. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/gyre_err.h"
#include "engine/format.h"

/* Put the checksum into a structure that is otherwise ready to be written. */
void eng_superblock_seal(struct eng_superblock *super);
void eng_stripe_header_seal(struct eng_stripe_header *header);
void eng_data_head_seal(struct eng_data_head *head);
void eng_ban_row_seal(struct eng_ban_row *row);

/* Whether a page is a superblock that this version can use on a volume file of that many bytes.
 * NO_STORE: it is none at all. DAMAGED: it was one. INCOMPATIBLE: whole, but of another major
 * version or with features unknown here. */
GYRE_MUST_USE gyre_err eng_superblock_check(const struct eng_superblock *super,
                                            uint64_t volume_bytes);

/* Whether a page is the header of this stripe. DAMAGED. */
GYRE_MUST_USE gyre_err eng_stripe_header_check(const struct eng_stripe_header *header,
                                               const struct eng_superblock *super, uint32_t stripe);

/* The checksum a header keeps of its segment table. */
uint32_t eng_segment_table_crc(const struct eng_segment_row *rows, uint32_t n_segments);
/* Whether these rows are the ones with that checksum, and every field of theirs makes sense.
 * DAMAGED. */
GYRE_MUST_USE gyre_err eng_segment_table_check(const struct eng_segment_row *rows,
                                               uint32_t n_segments, uint32_t crc);

/* Whether a data file that begins like this belongs to the stripe. DAMAGED, INCOMPATIBLE, FOREIGN
 * (another store or stripe). */
GYRE_MUST_USE gyre_err eng_data_head_check(const struct eng_data_head *head,
                                           const struct eng_superblock *super, uint32_t stripe);
/* What eng_data_head_check wants to see, sealed. */
struct eng_data_head eng_data_head_of(const struct eng_superblock *super, uint32_t stripe);

/* What document headers of a stripe are sealed with, besides their offset. */
uint32_t eng_crc_seed(const uint8_t uuid[16], uint32_t stripe);

/* Whether a row of the ban table is one; an unused row is. */
bool eng_ban_row_valid(const struct eng_ban_row *row);

/* Whether `len` bytes are the body of a VECTOR: count, entries and strings all lie inside. DAMAGED.
 * *count_out gets the entries. */
GYRE_MUST_USE gyre_err eng_vector_check(const void *body, size_t len, uint32_t *count_out);
