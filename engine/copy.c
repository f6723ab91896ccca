/* Copying documents the hand has met to M; see hand.h.
 *
 * The bytes are stable without a pin: whatever happens to the entry, only this hand could hand them
 * out. A copy keeps its serial, since it is the same document, and gets a header sealed for its new
 * place. Its entry is given the new place in one store, if it is still what the hand saw; readers
 * that have the old place pinned keep it busy for this lap. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/bits.h"
#include "engine/base/crc32c.h"
#include "engine/base/io.h"
#include "engine/base/step.h"
#include "engine/cleaner.h"
#include "engine/doc.h"
#include "engine/hand.h"
#include "engine/keeper.h"
#include "engine/locks.h"
#include "engine/parent.h"
#include "engine/slot.h"

#define SLICE (256u << 10)
#define CARRIER_UNITS (SLICE / ENG_UNIT)

/* Steps of M's hand that one copy may cause. */
enum { M_STEPS = 64 };

/* Room in M that copies are put into. */
struct carrier {
    uint64_t start, used, end; /* units; start == end: none */
    uint32_t reservation;
};

struct copying {
    struct eng_batch *batch;
    uint8_t m;
    struct carrier carrier;
    uint64_t small_units; /* of the small documents that are still to come */
    uint8_t *buffer;      /* SLICE bytes */
    bool m_is_full;
};

static uint64_t file_off(uint64_t units)
{
    return ENG_DATA_START + (units << ENG_UNIT_SHIFT);
}

static bool is_small(const struct eng_met *met)
{
    return eng_entry_kind(met->entry) != ENG_KIND_PART && met->units <= ENG_PACKED_MAX / ENG_UNIT;
}

static void end_carrier(struct copying *c)
{
    struct eng_stripe *stripe = c->batch->stripe;
    struct carrier *carrier = &c->carrier;
    if (carrier->start == carrier->end)
        return;
    eng_alloc_lock(stripe);
    uint64_t unused = eng_align_up(carrier->used, ENG_PAGE_UNITS);
    eng_log_trim_locked(stripe, carrier->reservation, unused);
    eng_log_end_locked(stripe, carrier->reservation);
    eng_alloc_unlock(stripe);
    *carrier = (struct carrier){0};
}

static gyre_err take(struct copying *c, uint64_t least, uint64_t most)
{
    struct eng_stripe *stripe = c->batch->stripe;
    struct carrier *carrier = &c->carrier;
    uint64_t units;
    eng_alloc_lock(stripe);
    gyre_err err = eng_log_take_copy_locked(stripe, c->m, least, most, &carrier->start, &units,
                                            &carrier->reservation);
    eng_alloc_unlock(stripe);
    carrier->used = carrier->start;
    carrier->end = err == GYRE_OK ? carrier->start + units : carrier->start;
    return err;
}

/* M's own copies find room in M as it is: its hand is at work already. */
static bool make_room(struct copying *c, uint64_t least, uint64_t most)
{
    struct eng_stripe *stripe = c->batch->stripe;
    for (int i = 0; i < M_STEPS; i++) {
        gyre_err err = take(c, least, most);
        if (err == GYRE_OK)
            return true;
        if (err != GYRE_NO_SPACE || c->batch->ring_id == c->m)
            return false;
        uint64_t target = 2 * eng_clean_target_units(stripe, eng_ring_of(stripe, c->m));
        struct eng_clean_step step;
        if (eng_clean_step_locked(stripe, c->m, target > 4 * least ? target : 4 * least, false,
                                  &step) != GYRE_OK)
            return false;
    }
    return false;
}

/* Finds a place for a document of `units`. */
static bool find_place(struct copying *c, const struct eng_met *met)
{
    struct carrier *carrier = &c->carrier;
    if (is_small(met) && carrier->end - carrier->used >= met->units)
        return true;
    end_carrier(c);
    uint64_t least = eng_align_up(met->units, ENG_PAGE_UNITS);
    uint64_t most = is_small(met) ? eng_align_up(c->small_units, ENG_PAGE_UNITS) : least;
    most = most < least ? least : most > CARRIER_UNITS && is_small(met) ? CARRIER_UNITS : most;
    return make_room(c, least, most);
}

/* The document's header if it is the one its entry speaks of, and whole as far as it goes. */
static bool header_fits(const struct copying *c, const struct eng_met *met,
                        const struct eng_doc *doc)
{
    const struct eng_stripe *stripe = c->batch->stripe;
    return eng_doc_check(doc, stripe->crc_seed, met->offset, met->units) == GYRE_OK &&
           eng_doc_extent_units(doc) == met->units && (doc->serial & 7) == (met->entry & 7);
}

static uint32_t crc_of_span(uint32_t crc, const uint8_t *slice, uint64_t slice_off, size_t len,
                            uint64_t start, uint64_t end)
{
    uint64_t from = start > slice_off ? start : slice_off;
    uint64_t to = end < slice_off + len ? end : slice_off + len;
    return from < to ? eng_crc32c(crc, slice + (from - slice_off), to - from) : crc;
}

/* Copies the bytes; false: they cannot be read or written, or are not what was stored. The sums are
 * taken again, since a copy must not make damage look new. */
static bool copy_bytes(struct copying *c, const struct eng_met *met, uint64_t to)
{
    const struct eng_stripe *stripe = c->batch->stripe;
    uint64_t bytes = (uint64_t)met->units << ENG_UNIT_SHIFT;
    uint64_t body_off = 0, body_end = 0, meta_end = 0;
    uint32_t meta_crc = 0, body_crc = 0;
    struct eng_doc doc = {0};
    bool hollow = stripe->store->hollow;
    for (uint64_t off = 0; off < bytes; off += SLICE) {
        size_t len = bytes - off < SLICE ? bytes - off : SLICE;
        if (hollow && off == 0)
            len = len < ENG_PAGE ? len : ENG_PAGE;
        if (eng_pread(stripe->fd, c->buffer, len, file_off(met->offset) + off) != GYRE_OK)
            return false;
        if (off == 0) {
            memcpy(&doc, c->buffer, sizeof doc);
            if (!header_fits(c, met, &doc))
                return false;
            meta_end = sizeof doc + (uint64_t)doc.meta_len;
            body_off = eng_doc_body_off(&doc);
            body_end = body_off + doc.body_len;
            struct eng_doc moved = doc;
            eng_doc_seal(&moved, stripe->crc_seed, to);
            memcpy(c->buffer, &moved, sizeof moved);
        }
        meta_crc = crc_of_span(meta_crc, c->buffer, off, len, sizeof doc, meta_end);
        body_crc = crc_of_span(body_crc, c->buffer, off, len, body_off, body_end);
        if (GYRE_STEP_ERR("copy.write.before") != GYRE_OK ||
            eng_pwrite(stripe->fd, c->buffer, len, file_off(to) + off) != GYRE_OK)
            return false;
        if (hollow)
            return true;
    }
    return meta_crc == doc.meta_crc && body_crc == doc.body_crc;
}

static bool publish_locked(struct copying *c, struct eng_met *met, uint64_t to)
{
    struct eng_stripe *stripe = c->batch->stripe;
    uint32_t slot = eng_directory_locate_locked(stripe, met->slot, met->entry);
    if (slot == ENG_NO_SLOT)
        return true; /* deleted or replaced meanwhile: nothing is left to be done */
    struct eng_slot record = eng_slot_record(&stripe->slots[slot]);
    uint32_t word = atomic_load_explicit(&stripe->slots[slot].word, memory_order_relaxed);
    word &= ENG_SLOT_FLAGS;
    uint32_t hits = word & ENG_SLOT_HITS;
    hits = met->promoted || hits == 0 ? 0 : hits - ENG_SLOT_HIT;
    atomic_store_explicit(&record.word, (word & ~(ENG_SLOT_HITS | ENG_SLOT_ESTIMATE)) | hits,
                          memory_order_relaxed);
    uint64_t entry = eng_entry_make(eng_entry_tag(met->entry), to, met->units,
                                    eng_entry_kind(met->entry), ENG_RING_M, false, met->entry);
    struct eng_parent head = eng_parent_of(stripe, met->entry);
    if (eng_entry_kind(met->entry) == ENG_KIND_PART && head.stripe != NULL)
        eng_parent_note(stripe, entry, &head);
    return eng_directory_replace_locked(stripe, slot, met->entry, entry, &record);
}

static void count(const struct copying *c, const struct eng_met *met)
{
    struct eng_store *store = c->batch->stripe->store;
    if (met->promoted)
        ENG_COUNT(store, promotions, 1);
    else
        ENG_COUNT(store, copies, 1);
    ENG_COUNT(store, copied_bytes, (uint64_t)met->units << ENG_UNIT_SHIFT);
}

/* True: it lies in M now, or is nobody's any more. */
static bool copy_one(struct copying *c, struct eng_met *met)
{
    struct eng_stripe *stripe = c->batch->stripe;
    if (c->m_is_full)
        return false;
    if (!find_place(c, met)) {
        c->m_is_full = true;
        return false;
    }
    uint64_t to = c->carrier.used;
    if (!copy_bytes(c, met, to))
        return false;
    GYRE_STEP("copy.written");
    c->carrier.used += met->units;
    eng_alloc_lock(stripe);
    bool done = publish_locked(c, met, to);
    eng_alloc_unlock(stripe);
    GYRE_STEP("copy.published");
    if (!is_small(met))
        end_carrier(c);
    return done;
}

void eng_copy_batch(struct eng_batch *batch)
{
    struct eng_stripe *stripe = batch->stripe;
    struct copying c = {
        .batch = batch,
        .m = eng_ring_id(eng_ring_pool(batch->ring_id), ENG_RING_M),
        .buffer = malloc(SLICE),
    };
    for (uint32_t i = 0; i < batch->n; i++)
        if (batch->met[i].fate == ENG_FATE_COPIED && is_small(&batch->met[i]))
            c.small_units += batch->met[i].units;
    for (uint32_t i = 0; i < batch->n; i++) {
        struct eng_met *met = &batch->met[i];
        if (met->fate != ENG_FATE_COPIED)
            continue;
        if (c.buffer != NULL && copy_one(&c, met)) {
            count(&c, met);
        } else if (eng_entry_kind(met->entry) == ENG_KIND_PART) {
            eng_evict_part(batch, met);
        } else {
            eng_alloc_lock(stripe);
            eng_evict_locked(batch, met);
            eng_alloc_unlock(stripe);
        }
        if (is_small(met))
            c.small_units -= met->units;
    }
    end_carrier(&c);
    free(c.buffer);
}
