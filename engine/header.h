/* The two copies of a stripe's header and segment table in the volume file.
 *
 * Threads: one per stripe. Blocks: for the disk. Allocates: nothing. Keeps: E42.
 */
#pragma once

#include "engine/store.h"

/* Picks the newest header that is whole and whose segment table is. *rows_out gets
 * stripe->n_segments rows. DAMAGED: there is none. IO. */
GYRE_MUST_USE gyre_err eng_header_read(int volume_fd, const struct eng_superblock *super,
                                       uint32_t stripe, struct eng_stripe_header *header_out,
                                       struct eng_segment_row *rows_out);

/* Writes header and table over the older copies: after a crash in the middle the newer ones are
 * still there. Generation, copies, checksums and identity are filled in; *generation is the newest
 * one's before and after. Not yet durable. IO, DISK_FULL. */
GYRE_MUST_USE gyre_err eng_header_write(int volume_fd, const struct eng_superblock *super,
                                        uint32_t stripe, struct eng_stripe_header *header,
                                        const struct eng_segment_row *rows, uint64_t *generation);

/* Writes both copies of a stripe that has never held anything. IO, DISK_FULL. */
GYRE_MUST_USE gyre_err eng_header_init(int volume_fd, const struct eng_superblock *super,
                                       uint32_t stripe);
