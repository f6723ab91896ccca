/* A directory entry: one word that says where a document lies and how long it is at most.
 *
 *   63..48 tag | 47..14 offset in ENG_UNIT | 13..7 size class | 6..5 kind | 4 zone | 3 keep | 2..0
 * low bits of the serial; 0 is an empty entry
 *
 * Size classes go four steps to each doubling, from 128 bytes on: class c holds up to (4 + c % 4)
 * << (c / 4 + 5) bytes.
 *
 * Threads: any; pure functions. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/format.h"

enum eng_kind { ENG_KIND_EMPTY = 0, ENG_KIND_DOC = 1, ENG_KIND_VECTOR = 2, ENG_KIND_PART = 3 };

enum {
    ENG_ENTRY_TAG_SHIFT = 48,
    ENG_ENTRY_OFFSET_SHIFT = 14,
    ENG_ENTRY_CLASS_SHIFT = 7,
    ENG_ENTRY_KIND_SHIFT = 5,
    ENG_ENTRY_ZONE_SHIFT = 4,
    ENG_ENTRY_KEEP_SHIFT = 3,
    ENG_ENTRY_SERIAL_MASK = 7,
};
#define ENG_ENTRY_OFFSET_MASK ((UINT64_C(1) << 34) - 1)

static inline uint16_t eng_entry_tag(uint64_t entry)
{
    return (uint16_t)(entry >> ENG_ENTRY_TAG_SHIFT);
}

/* In units. */
static inline uint64_t eng_entry_offset(uint64_t entry)
{
    return entry >> ENG_ENTRY_OFFSET_SHIFT & ENG_ENTRY_OFFSET_MASK;
}

static inline unsigned eng_entry_class(uint64_t entry)
{
    return entry >> ENG_ENTRY_CLASS_SHIFT & 0x7F;
}

static inline enum eng_kind eng_entry_kind(uint64_t entry)
{
    return (enum eng_kind)(entry >> ENG_ENTRY_KIND_SHIFT & 3);
}

/* The ring it was written to. */
static inline bool eng_entry_in_main(uint64_t entry)
{
    return (entry >> ENG_ENTRY_ZONE_SHIFT & 1) != 0;
}

static inline bool eng_entry_keep(uint64_t entry)
{
    return (entry >> ENG_ENTRY_KEEP_SHIFT & 1) != 0;
}

/* Longest extent of a size class, in units. */
static inline uint64_t eng_size_class_units(unsigned size_class)
{
    uint64_t bytes = (uint64_t)(4 + (size_class & 3)) << ((size_class >> 2) + 5);
    return eng_div_up(bytes, ENG_UNIT);
}

/* At least the extent's length in units, at most 25 % more. */
static inline uint64_t eng_entry_units_bound(uint64_t entry)
{
    return eng_size_class_units(eng_entry_class(entry));
}

/* Class of an extent of 1 to 2^31 units. */
static inline unsigned eng_size_class(uint64_t units)
{
    GYRE_CHECK(units > 0 && units <= UINT64_C(1) << 31);
    uint64_t bytes = units << ENG_UNIT_SHIFT;
    unsigned doubling = eng_log2_floor(bytes); /* 7 for one unit */
    uint64_t step = UINT64_C(1) << (doubling - 2);
    uint64_t quarters = eng_div_up(bytes, step) - 4; /* 4 is the first class of the next doubling */
    return (doubling - ENG_UNIT_SHIFT) * 4 + (unsigned)quarters;
}

static inline uint64_t eng_entry_make(uint16_t tag, uint64_t offset_units, uint64_t units,
                                      enum eng_kind kind, uint8_t zone, bool keep, uint64_t serial)
{
    GYRE_CHECK(offset_units <= ENG_ENTRY_OFFSET_MASK && kind != ENG_KIND_EMPTY);
    return (uint64_t)tag << ENG_ENTRY_TAG_SHIFT | offset_units << ENG_ENTRY_OFFSET_SHIFT |
           (uint64_t)eng_size_class(units) << ENG_ENTRY_CLASS_SHIFT |
           (uint64_t)kind << ENG_ENTRY_KIND_SHIFT | (uint64_t)(zone & 1) << ENG_ENTRY_ZONE_SHIFT |
           (uint64_t)keep << ENG_ENTRY_KEEP_SHIFT | (serial & ENG_ENTRY_SERIAL_MASK);
}
