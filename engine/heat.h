/* What the policy has learned, in a file beside the volume: hit counters and grades of the
 * documents, the ghost, and the mode, so that a store does not begin cold after a reboot.
 *
 * heat.gyre, little-endian; written anew under another name and then renamed:
 *   0   u64 magic, u32 version, u32 stripes, u8 uuid[16], u32 CRC-32C of the 32 bytes before, u32 0
 *   then for each stripe
 *   0   u32 slots, u32 ghost places, u64 window, u64 evictions in the epoch, u32 epoch, u32 mode
 *   32  u16 for each slot: entry check 12 | hits 2 | grade 2; 0 for a free one
 *       u16 for each place of the ghost
 *       u32 CRC-32C of the stripe's bytes before it
 *
 * It is advice. A file that is missing, damaged, of another store or of another time is no error: a
 * stripe whose bytes are wrong begins cold, and a counter whose entry is another one is left out.
 *
 * Threads: saving, one at a time (the maintenance leader, or whoever closes alone); loading, while
 * the store is opened. Blocks: for the disk. Allocates: a buffer. Keeps: E79.
 */
#pragma once

#include "engine/store.h"

#define ENG_HEAT_NAME "heat.gyre"
#define ENG_HEAT_NEW_NAME "heat.gyre.new"

/* Writes the file. DISK_FULL, IO, NO_MEMORY, NO_FILES, ACCESS: what was there before stays. */
GYRE_MUST_USE gyre_err eng_heat_save(struct eng_store *store);
/* Gives the documents that are still there what was saved; how many stripes were read whole. */
uint32_t eng_heat_load(struct eng_store *store);
/* Bytes of the file for a layout. */
uint64_t eng_heat_bytes(const struct eng_superblock *super);
