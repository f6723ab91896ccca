/* Which object a PART belongs to, for the hand: a part leads to its HEAD without being read.
 *
 * One word for each 64 KiB of log, so of short parts side by side the last one noted is known. What
 * is not known, after opening for instance, is noted again when the object is asked for.
 *
 * The word names a key's place, not a version of the object: a part of an earlier version, left by
 * a death, leads to the present HEAD. Only that HEAD's rows tell whose part it is, so they are read
 * before the HEAD is taken out.
 *
 * Threads: any. Blocks: eng_parent_names for the disk, the others never. Allocates: nothing.
 * Keeps: E77.
 */
#pragma once

#include "engine/directory.h"

#define ENG_PARENT_BYTES (64u << 10)

/* A HEAD as its parts know it. */
struct eng_parent {
    struct eng_stripe *stripe; /* NULL: not known */
    uint64_t identity;         /* eng_identity */
};

/* Entries that may be the HEAD, several where tags agree. */
struct eng_parent_heads {
    uint32_t n; /* 0: the HEAD has gone */
    struct {
        uint64_t entry;
        uint32_t slot;
    } at[ENG_CANDIDATES];
};

/* What the policy knows a document by: its two buckets and its tag. */
uint64_t eng_identity(const struct eng_stripe *stripe, uint32_t bucket, uint16_t tag);
/* The same where both buckets are known, in any order. */
static inline uint64_t eng_identity_of_buckets(uint32_t one, uint32_t other, uint16_t tag)
{
    return (uint64_t)(one < other ? one : other) << 16 | tag;
}

/* Notes the HEAD at `head` of the part that `entry` leads to. */
void eng_parent_note(struct eng_stripe *stripe, uint64_t entry, const struct eng_parent *head);
struct eng_parent eng_parent_of(const struct eng_stripe *stripe, uint64_t entry);
/* The entries that can be the HEAD. Exact under the alloc lock of head->stripe, else a moment's
 * view. */
void eng_parent_find(const struct eng_parent *head, struct eng_parent_heads *heads_out);
/* Whether the document at `head_entry`, of at most `head_units`, is a HEAD whose rows name the part
 * that `part_entry` in `part_slot` of `part_stripe` leads to. A HEAD that cannot be read names
 * none. */
bool eng_parent_names(const struct eng_stripe *head_stripe, uint64_t head_entry,
                      uint64_t head_units, const struct eng_stripe *part_stripe, uint32_t part_slot,
                      uint64_t part_entry);
