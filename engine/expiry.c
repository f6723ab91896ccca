#include "engine/expiry.h"

#include "engine/pool.h"
#include "engine/slot.h"

/* The record tells purged documents of the last three purges; those of earlier ones have left with
 * a sweep. Of a document that the record has no mark for, nothing but its header's pool could say
 * that it must go. Its metadata is read for labels only when there are bans. */
bool eng_spent_locked(const struct eng_stripe *stripe, uint32_t slot, uint64_t entry, uint32_t now)
{
    const struct eng_store *store = stripe->store;
    const struct eng_slot *record = &stripe->slots[slot];
    uint8_t pool = eng_slot_pool(record);
    uint64_t offset = eng_entry_offset(entry);
    uint64_t room = stripe->segment_units - offset % stripe->segment_units;

    if ((record->class_ >> ENG_CLASS_EPOCH_SHIFT) != (eng_pool_epoch(store, pool) & 3))
        return true;
    if ((record->class_ & ENG_CLASS_LOOK) == 0 || offset >= stripe->area_bytes >> ENG_UNIT_SHIFT)
        return false;
    const struct eng_doc *doc =
        (const struct eng_doc *)(const void *)(stripe->data + (offset << ENG_UNIT_SHIFT));
    if (eng_doc_check(doc, stripe->crc_seed, offset, room) != GYRE_OK)
        return false; /* for a reader to find out, and to count */
    if (doc->pool_epoch != (uint32_t)eng_pool_epoch(store, doc->pool))
        return true;
    return doc->type != ENG_PART && eng_stale(store, doc, now);
}
