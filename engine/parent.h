/* Which object a PART belongs to, for the hand: a part leads to its HEAD without being read.
 *
 * One word for each 64 KiB of log, so of short parts side by side the last one noted is known. What
 * is not known, after opening for instance, is noted again when the object is asked for.
 *
 * Threads: any. Blocks: never. Allocates: nothing. Keeps: E77.
 */
#pragma once

#include "engine/directory.h"

#define ENG_PARENT_BYTES (64u << 10)

/* A HEAD as its parts know it. */
struct eng_parent {
    struct eng_stripe *stripe; /* NULL: not known */
    uint64_t identity;         /* eng_identity */
};

/* What the policy knows a document by: its two buckets and its tag. */
uint64_t eng_identity(const struct eng_stripe *stripe, uint32_t bucket, uint16_t tag);

/* Notes the HEAD at `head` of the part that `entry` leads to. */
void eng_parent_note(struct eng_stripe *stripe, uint64_t entry, const struct eng_parent *head);
struct eng_parent eng_parent_of(const struct eng_stripe *stripe, uint64_t entry);
/* The only entry that can be the HEAD; ENG_NO_SLOT: there is none, or more than one. Exact under
 * the alloc lock of head->stripe, else a moment's view. */
uint32_t eng_parent_find(const struct eng_parent *head, uint64_t *entry_out);
