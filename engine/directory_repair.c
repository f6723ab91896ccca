#include "engine/directory.h"

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/base/io.h"
#include "engine/doc.h"
#include "engine/pool.h"
#include "engine/slot.h"
#include "engine/tenant.h"

/* A holder of the alloc lock died somewhere between two stores. The directory itself is whole, word
 * by word; what may be wrong is one odd version, one entry that lies in both of its buckets, lists,
 * totals, and the record of the slot at work, which may belong to the entry before or after. So
 * everything that follows from the entries is made from them again, while readers go on reading
 * them. It takes milliseconds per million of slots, once per death. */

static void finish_bucket(struct eng_stripe *stripe)
{
    if (stripe->rt->bucket_in_flight == 0)
        return;
    uint32_t bucket = (uint32_t)(stripe->rt->bucket_in_flight - 1);
    GYRE_CHECK(bucket < stripe->n_buckets);
    struct eng_bucket *at = &stripe->buckets[bucket];
    uint64_t ctl = atomic_load_explicit(&at->ctl, memory_order_relaxed);
    if ((ctl & 1) != 0) /* as bucket_end would have, so it pairs with B of directory.c */
        atomic_store_explicit(&at->ctl, (uint32_t)(ctl + 1), memory_order_release);
    stripe->rt->bucket_in_flight = 0;
}

/* Whether an entry of the same document is listed already, from a move that did not end. */
static bool listed_already(const struct eng_stripe *stripe, uint64_t entry)
{
    uint64_t granule = eng_entry_offset(entry) / (ENG_GRANULE / ENG_UNIT);
    uint32_t at = eng_granule_first_locked(stripe, granule);
    for (; at != ENG_NO_SLOT; at = eng_granule_next_locked(stripe, at))
        if (eng_entry_offset(eng_directory_entry(stripe, at)) == eng_entry_offset(entry))
            return true;
    return false;
}

/* Of the slot that was at work neither length nor owner is certain: the document's own header says
 * both. Where it cannot be read, the length is what the size class allows at most, which is never
 * too short (the hand copes with documents that seem to overlap), and the pool that of its
 * segment. */
static struct eng_slot record_of(const struct eng_stripe *stripe, uint64_t entry)
{
    uint64_t offset = eng_entry_offset(entry);
    uint64_t bound = eng_entry_units_bound(entry);
    uint64_t in_segment = stripe->segment_units - offset % stripe->segment_units;
    uint64_t room = bound < in_segment ? bound : in_segment;
    struct eng_doc doc;
    if (eng_pread(stripe->fd, &doc, sizeof doc, ENG_DATA_START + (offset << ENG_UNIT_SHIFT)) ==
            GYRE_OK &&
        eng_doc_check(&doc, stripe->crc_seed, offset, room) == GYRE_OK)
        return eng_slot_of_doc(&doc, eng_doc_extent_units(&doc));
    uint8_t pool = eng_pool_of_ring(stripe->rt->segments[offset / stripe->segment_units].pool);
    return (struct eng_slot){
        .word = ENG_SLOT_ESTIMATE,
        .units = (uint32_t)room,
        .class_ = eng_class_of(pool, eng_pool_epoch(stripe->store, pool), true),
    };
}

/* Tenants are counted over all stripes, so not from zero: what the slot counted for is taken away
 * before it is counted again. */
static void relist(struct eng_stripe *stripe, uint32_t slot)
{
    uint64_t entry = eng_directory_entry(stripe, slot);
    bool at_work = stripe->rt->slot_in_flight == (uint64_t)slot + 1;
    bool counted = at_work ? stripe->rt->slot_counted != 0 : entry != 0;
    bool twice = entry != 0 && listed_already(stripe, entry);
    struct eng_slot record = eng_slot_record(&stripe->slots[slot]);
    if (counted && !twice)
        eng_tenant_count(stripe->store, record.tenant, -(uint64_t)record.units);
    if (entry == 0)
        return;
    if (at_work)
        record = record_of(stripe, entry);
    eng_slot_list_locked(stripe, slot, entry, &record);
    if (at_work)
        eng_slot_estimate(&stripe->slots[slot], &record);
    if (twice)
        (void)eng_directory_remove_locked(stripe, slot, entry);
}

void eng_directory_repair_locked(struct eng_stripe *stripe)
{
    finish_bucket(stripe);
    for (uint64_t g = 0; g < stripe->area_bytes / ENG_GRANULE; g++)
        atomic_store_explicit(&stripe->granules[g], ENG_NO_SLOT, memory_order_relaxed);
    atomic_store_explicit(&stripe->rt->live_units, 0, memory_order_relaxed);
    atomic_store_explicit(&stripe->rt->documents, 0, memory_order_relaxed);
    atomic_store_explicit(&stripe->rt->parts, 0, memory_order_relaxed);
    atomic_store_explicit(&stripe->rt->estimates, 0, memory_order_relaxed);
    for (uint32_t pool = 0; pool < ENG_MAX_POOLS; pool++) {
        atomic_store_explicit(&stripe->rt->pool_units[pool], 0, memory_order_relaxed);
        atomic_store_explicit(&stripe->rt->kept_units[pool], 0, memory_order_relaxed);
    }
    for (uint32_t slot = 0; slot < stripe->n_buckets * ENG_BUCKET_ENTRIES; slot++)
        relist(stripe, slot);
    stripe->rt->slot_in_flight = 0;
}
