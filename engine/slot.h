/* Slot records: what the runtime segment knows of each directory entry, and the lists that lead
 * from a granule of the log to the entries of the documents that start in it.
 *
 * Threads: under the alloc lock. Blocks: never. Allocates: nothing. Keeps: E3.
 */
#pragma once

#include "engine/directory.h"

/* eng_slot.class_: epoch of the pool 2 | look 1 | spare 1 | pool 4. */
enum { ENG_CLASS_POOL = 0x0F, ENG_CLASS_LOOK = 0x20, ENG_CLASS_EPOCH_SHIFT = 6 };

/* `look`: when the document goes depends on its header: it can expire or be banned by a label, or
 * nobody has looked yet. `epoch`: of the pool when it was stored. */
static inline uint8_t eng_class_of(uint8_t pool, uint64_t epoch, bool look)
{
    return (uint8_t)((epoch & 3) << ENG_CLASS_EPOCH_SHIFT | (look ? ENG_CLASS_LOOK : 0) |
                     (pool & ENG_CLASS_POOL));
}

static inline uint8_t eng_slot_pool(const struct eng_slot *slot)
{
    return slot->class_ & ENG_CLASS_POOL;
}

/* What is written under the lock of a slot: readers change its word meanwhile. */
static inline struct eng_slot eng_slot_record(const struct eng_slot *slot)
{
    return (struct eng_slot){
        .units = slot->units,
        .tenant = slot->tenant,
        .retention = slot->retention,
        .class_ = slot->class_,
    };
}

/* The record of a document of `units`, as its header tells. */
struct eng_slot eng_slot_of_doc(const struct eng_doc *doc, uint64_t units);
/* The same for one that its writer has just checksummed and written whole: marked as verified, for
 * a reader would take the sums of the very bytes they were made from. */
struct eng_slot eng_slot_fresh(const struct eng_doc *doc, uint64_t units);
/* Fills the record of `slot` from `record`, lists it by the offset in `entry` and counts it as
 * live. */
void eng_slot_list_locked(struct eng_stripe *stripe, uint32_t slot, uint64_t entry,
                          const struct eng_slot *record);
/* Takes it off its list and out of the totals; `entry` is the one it was listed by. */
void eng_slot_unlist_locked(struct eng_stripe *stripe, uint32_t slot, uint64_t entry);
/* Marks the length of a listed document as an estimate if that of `record` is. */
void eng_slot_estimate(struct eng_slot *slot, const struct eng_slot *record);
/* Gives a listed document, whose record was made without its header, what the header tells. */
void eng_slot_measure_locked(struct eng_stripe *stripe, uint32_t slot, uint64_t entry,
                             const struct eng_slot *record);
/* A slot word of the next generation, with the `flags` (verified, hits) given. */
uint32_t eng_slot_next_word(const struct eng_slot *slot, uint32_t flags);
