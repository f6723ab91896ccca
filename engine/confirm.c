/* Headers as witnesses for directory entries; see recover_internal.h. */
#include "engine/base/io.h"
#include "engine/doc.h"
#include "engine/log.h"
#include "engine/pool.h"
#include "engine/recover_internal.h"
#include "engine/slot.h"

enum eng_kind eng_kind_of_type(uint16_t type)
{
    switch (type) {
    case ENG_DOC:
    case ENG_HEAD: return ENG_KIND_DOC;
    case ENG_PART: return ENG_KIND_PART;
    case ENG_VECTOR: return ENG_KIND_VECTOR;
    default: return ENG_KIND_EMPTY;
    }
}

bool eng_known_doc_check(const struct eng_recovering *r, const struct eng_doc *doc,
                         uint64_t offset_units, struct eng_known_doc *known_out)
{
    const struct eng_stripe *stripe = r->stripe;
    uint64_t room = stripe->segment_units - offset_units % stripe->segment_units;
    struct eng_stripe *owner;

    if (eng_doc_check(doc, stripe->crc_seed, offset_units, room) != GYRE_OK)
        return false;
    if (doc->pool >= stripe->store->super.n_pools ||
        doc->pool_epoch != (uint32_t)eng_pool_epoch(stripe->store, doc->pool))
        return false;
    known_out->doc = *doc;
    known_out->place = eng_place_of(stripe->store, doc->pool, doc->key, &owner);
    known_out->offset = offset_units;
    known_out->units = eng_doc_extent_units(doc);
    return owner == stripe;
}

static uint64_t file_off(uint64_t offset_units)
{
    return ENG_DATA_START + (offset_units << ENG_UNIT_SHIFT);
}

bool eng_known_doc_read(const struct eng_recovering *r, uint64_t offset_units,
                        struct eng_known_doc *known_out)
{
    struct eng_doc doc;

    if (eng_pread(r->stripe->fd, &doc, sizeof doc, file_off(offset_units)) != GYRE_OK)
        return false;
    return eng_known_doc_check(r, &doc, offset_units, known_out);
}

bool eng_known_doc_owns(const struct eng_known_doc *known, uint32_t slot, uint64_t entry)
{
    uint32_t bucket = slot / ENG_BUCKET_ENTRIES;

    return (bucket == known->place.bucket[0] || bucket == known->place.bucket[1]) &&
           eng_entry_tag(entry) == known->place.tag && eng_entry_offset(entry) == known->offset &&
           eng_entry_kind(entry) == eng_kind_of_type(known->doc.type) &&
           (entry & 7) == (known->doc.serial & 7) && known->units <= eng_entry_units_bound(entry);
}

void eng_segment_note(struct eng_recovering *r, const struct eng_known_doc *known)
{
    struct eng_segment_seen *seen = &r->seen[eng_segment_of(r->stripe, known->offset)];
    uint64_t serial = known->doc.serial;

    r->max_serial = serial > r->max_serial ? serial : r->max_serial;
    if (!seen->used || serial > seen->newest) {
        seen->newest = serial;
        seen->newest_end = known->offset + known->units;
        seen->pool = eng_ring_pool_of(&known->doc);
    }
    seen->used = true;
    if (serial <= r->header->serial_synced)
        return;
    seen->oldest_new = serial < seen->oldest_new ? serial : seen->oldest_new;
    if (known->offset + known->units > seen->new_end)
        seen->new_end = known->offset + known->units;
}

static void confirm_slot(struct eng_recovering *r, uint32_t slot)
{
    struct eng_stripe *stripe = r->stripe;
    uint64_t entry = eng_directory_entry(stripe, slot);
    struct eng_known_doc known;
    struct eng_doc doc;

    if (eng_pread(stripe->fd, &doc, sizeof doc, file_off(eng_entry_offset(entry))) != GYRE_OK)
        return; /* the disk may answer later; until then it is a miss */
    if (!eng_known_doc_check(r, &doc, eng_entry_offset(entry), &known) ||
        !eng_known_doc_owns(&known, slot, entry)) {
        (void)eng_directory_remove_locked(stripe, slot, entry);
        return;
    }
    const struct eng_slot record = eng_slot_of_doc(&known.doc, known.units);
    eng_slot_unlist_locked(stripe, slot, entry);
    eng_slot_list_locked(stripe, slot, entry, &record);
    atomic_fetch_and_explicit(&stripe->slots[slot].word, ~ENG_SLOT_ESTIMATE, memory_order_relaxed);
    eng_segment_note(r, &known);
}

/* Listing a slot anew puts it in front, so the slots of a granule are collected by their successors
 * first. */
static void confirm_granule(struct eng_recovering *r, uint64_t granule)
{
    struct eng_stripe *stripe = r->stripe;
    uint32_t slot = eng_granule_first_locked(stripe, granule);

    while (slot != ENG_NO_SLOT) {
        uint32_t next = eng_granule_next_locked(stripe, slot);
        confirm_slot(r, slot);
        slot = next;
    }
}

void eng_confirm_segment(struct eng_recovering *r, uint32_t segment)
{
    uint64_t per_segment = r->stripe->store->super.segment_bytes / ENG_GRANULE;

    for (uint64_t i = 0; i < per_segment; i++)
        confirm_granule(r, segment * per_segment + i);
}
