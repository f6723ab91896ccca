/* How a store's bytes are divided: from sizes and wishes to the layout in a superblock.
 *
 * Threads: any; all functions are pure. Blocks: never. Allocates: nothing.
 * Keeps:   E40, E41.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/gyre_err.h"
#include "engine/format.h"

/* A pool to be made with a store; "small" has a place of its own. */
struct eng_pool_want {
    const char *name;
    uint64_t max_bytes;
    bool never_evicts;
};

#define ENG_MIN_SEGMENTS 8 /* per stripe; chosen sizes give at least 32 where there is room */
#define ENG_BAN_ROWS 1024
#define ENG_SMALL_FILES (64u << 10) /* set aside in each directory: the lock file, rounding */

struct eng_geometry_want {
    const uint64_t
        *dir_bytes;  /* bytes each data directory may use; the volume file lies in the first */
    uint32_t n_dirs; /* 1..ENG_MAX_STRIPES */
    uint64_t segment_bytes;            /* 0: chosen from the size */
    uint32_t stripes;                  /* 0: chosen from the size */
    uint32_t average_object_bytes;     /* 0: from the size, 4 to 16 KiB */
    const struct eng_pool_want *pools; /* besides main and meta */
    uint32_t n_pools;
};

/* Fills everything in *super_out that follows from the sizes; uuid, seeds, time, generation and
 * checksum stay zero. INVALID: `why` gets what does not fit, without file name and remedy ("a
 * segment of 3000000 bytes is not a power of two ..."). */
GYRE_MUST_USE gyre_err eng_geometry_make(const struct eng_geometry_want *want,
                                         struct eng_superblock *super_out, char *why,
                                         size_t why_size);

/* Whether all numbers of a superblock's layout are in range, aligned, inside volume_bytes, and no
 * two parts overlap. */
bool eng_layout_valid(const struct eng_superblock *super);

/* Bytes of a stripe's data file, and of its segment area alone. */
uint64_t eng_data_file_bytes(const struct eng_superblock *super, uint32_t stripe);
uint64_t eng_area_bytes(const struct eng_superblock *super, uint32_t stripe);

/* Offsets in the volume file. `copy` is 0 for A, 1 for B. */
uint64_t eng_superblock_off(unsigned copy);
uint64_t eng_header_off(uint32_t stripe, unsigned copy);
uint64_t eng_table_off(const struct eng_superblock *super, uint32_t stripe, unsigned copy);

/* Most segments a pool may take in a stripe. Those of all pools together are never more than the
 * stripe has. */
uint32_t eng_pool_max_segments(const struct eng_superblock *super, uint32_t stripe, uint32_t pool);
