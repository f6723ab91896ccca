#include "engine/cleaner.h"

#include "engine/admit.h"
#include "engine/base/broken.h"
#include "engine/base/check.h"
#include "engine/base/step.h"
#include "engine/base/sys.h"
#include "engine/hand.h"
#include "engine/locks.h"
#include "engine/pin.h"
#include "engine/runs.h"

/* Why bytes that a reader holds are never handed out: a step
 *   1. marks, under the alloc lock, the pages of all reservations, and of pins as they are seen
 * then;
 *   2. decides, still under the lock, about the documents: marks the pages of those that stay, and
 * removes those that go from the directory, PARTs a little later and after their HEADs;
 *   3. gives those that are copied their new places, without the lock but for each entry;
 *   4. passes fence B and marks the pages of all pins again (pin.h);
 *   5. queues, under the lock, the pages nobody marked.
 * A reader whose pin is not seen in 4 finds its entry gone, or leading elsewhere. A writer can get
 * none of these pages before 5, so what was true of reservations in 1 is enough: a document
 * published in between lies on pages marked there. */

static void mark_extent(void *data, uint64_t start, uint64_t end)
{
    struct eng_batch *batch = data;
    (void)eng_pages_mark(&batch->pages, start, end);
}

static void mark_pins(struct eng_batch *batch)
{
    eng_pin_each(batch->stripe->store, batch->stripe, batch->start, batch->segment_end, mark_extent,
                 batch);
}

static void mark_reservations_locked(struct eng_batch *batch)
{
    const struct eng_stripe_rt *rt = batch->stripe->rt;
    for (uint32_t i = 0; i < rt->reservations_high; i++) {
        const struct eng_reservation *at = &rt->reservations[i];
        uint64_t fresh = eng_pages_mark(&batch->pages, at->start, at->end);
        batch->settled_pages += at->is_slab ? fresh : 0;
    }
}

/* ---- Meeting documents ---- */

/* Where estimated lengths chain slab to slab there can be more than a batch has places for: the
 * rest stays for this lap. */
static void meet(struct eng_batch *batch, uint64_t offset, uint32_t slot)
{
    uint32_t units = batch->stripe->slots[slot].units;
    uint64_t end = offset + units;
    if (end > batch->segment_end)
        end = batch->segment_end;
    if (end > batch->covered)
        batch->covered = end;
    if (batch->n == ENG_BATCH_DOCUMENTS) {
        (void)eng_pages_mark(&batch->pages, offset, end);
        batch->hops++;
        return;
    }
    batch->met[batch->n++] = (struct eng_met){
        .offset = offset,
        .entry = eng_directory_entry(batch->stripe, slot),
        .units = units,
        .slot = slot,
    };
}

/* A document found in a granule. */
struct found {
    uint64_t offset;
    uint32_t slot;
};

/* The documents that start in a granule at or behind the batch's start, by offset. Several entries
 * of one offset cannot be, but are no danger: what does not fit stays for the next lap. */
static uint32_t list_granule_locked(const struct eng_batch *batch, uint64_t granule,
                                    struct found found[ENG_GRANULE_UNITS])
{
    uint32_t n = 0;
    uint32_t slot = eng_granule_first_locked(batch->stripe, granule);
    for (; slot != ENG_NO_SLOT && n < ENG_GRANULE_UNITS;
         slot = eng_granule_next_locked(batch->stripe, slot)) {
        uint64_t offset = eng_entry_offset(eng_directory_entry(batch->stripe, slot));
        if (offset < batch->start)
            continue;
        uint32_t at = n++;
        for (; at > 0 && found[at - 1].offset > offset; at--)
            found[at] = found[at - 1];
        found[at] = (struct found){offset, slot};
    }
    return n;
}

static bool is_enough(const struct eng_batch *batch, uint64_t at)
{
    return batch->n >= ENG_BATCH_ENOUGH || at - batch->start >= ENG_BATCH_UNITS;
}

/* Meets documents in address order until it is enough and a page boundary is reached that no
 * document crosses. */
static void meet_documents_locked(struct eng_batch *batch)
{
    struct found found[ENG_GRANULE_UNITS];
    uint64_t at = batch->start;
    while (at < batch->segment_end) {
        uint64_t granule = at / ENG_GRANULE_UNITS;
        uint32_t n = list_granule_locked(batch, granule, found);
        for (uint32_t i = 0; i < n; i++) {
            uint64_t offset = found[i].offset;
            if (offset % ENG_PAGE_UNITS == 0 && batch->covered <= offset && offset > batch->start &&
                is_enough(batch, offset)) {
                batch->end = offset;
                return;
            }
            meet(batch, offset, found[i].slot);
        }
        at = (granule + 1) * ENG_GRANULE_UNITS;
        if (batch->covered <= at && is_enough(batch, at))
            break;
    }
    batch->end = at < batch->segment_end ? at : batch->segment_end;
}

/* ---- What became free ---- */

static uint64_t busy_units(const struct eng_batch *batch)
{
    uint64_t busy = 0;
    for (uint64_t page = 0; page < (batch->end - batch->start) / ENG_PAGE_UNITS; page++)
        busy += eng_pages_busy(&batch->pages, page);
    /* Slabs behind the end count as settled here too; the difference is in favour of NO_SPACE. */
    return (busy > batch->settled_pages ? busy - batch->settled_pages : 0) * ENG_PAGE_UNITS;
}

/* Queues the stretches of pages that nobody marked and moves the hand behind them. */
static void queue_runs_locked(struct eng_batch *batch, uint64_t limit_units,
                              struct eng_clean_step *step)
{
    uint64_t n_pages = (batch->end - batch->start) / ENG_PAGE_UNITS;
    for (uint64_t page = 0; page < n_pages;) {
        uint64_t first = page;
        while (page < n_pages && !eng_pages_busy(&batch->pages, page))
            page++;
        uint64_t units = (page - first) * ENG_PAGE_UNITS;
        if (units > 0) {
            uint64_t start = batch->start + first * ENG_PAGE_UNITS;
            uint64_t run = eng_runs_push_locked(batch->ring, batch->stripe->segment_units, start,
                                                start + units, limit_units);
            step->longest_units = run > step->longest_units ? run : step->longest_units;
        }
        step->cleaned_units += units;
        page++; /* a busy one, or past the end */
    }
    batch->ring->hand = batch->end;
}

/* ---- A step ---- */

static void begin_locked(struct eng_batch *batch, struct eng_stripe *stripe, uint8_t ring_id,
                         bool hard)
{
    struct eng_ring *ring = eng_ring_of(stripe, ring_id);
    batch->stripe = stripe;
    batch->ring = ring;
    batch->ring_id = ring_id;
    batch->hard = hard;
    batch->segment = ring->hand_segment;
    batch->start = batch->covered = ring->hand;
    batch->segment_end = (ring->hand_segment + UINT64_C(1)) * stripe->segment_units;
    batch->n = batch->n_copied = 0;
    batch->evicted = batch->evicted_units = batch->hops = batch->settled_pages = 0;
    batch->expired = 0;
    batch->now = eng_clock_real_s();
    eng_pages_init(&batch->pages, batch->start, batch->segment_end);
}

static void count(struct eng_store *store, const struct eng_batch *batch)
{
    if (batch->evicted > 0) {
        ENG_COUNT(store, evictions, batch->evicted);
        ENG_COUNT(store, evicted_bytes, batch->evicted_units << ENG_UNIT_SHIFT);
    }
    if (batch->expired > 0)
        ENG_COUNT(store, expirations, batch->expired);
    if (batch->hops > 0)
        ENG_COUNT(store, hops, batch->hops);
}

static bool at_segment_end(const struct eng_stripe *stripe, const struct eng_ring *ring)
{
    return ring->n_segments == 0 ||
           ring->hand == (ring->hand_segment + UINT64_C(1)) * stripe->segment_units;
}

/* Copies to M can make M's hand take the very segment this ring's hand is in: then it is M's to
 * judge again. */
static bool still_ours(const struct eng_batch *batch)
{
    return batch->ring->n_segments > 0 && batch->ring->hand_segment == batch->segment &&
           batch->ring->hand == batch->start;
}

static void step_in_segment(struct eng_stripe *stripe, uint8_t ring_id, uint64_t limit_units,
                            bool hard, struct eng_clean_step *step)
{
    struct eng_batch batch;
    uint64_t start = eng_ring_of(stripe, ring_id)->hand; /* moves under the clean lock, ours */
    uint64_t segment_end = (start / stripe->segment_units + 1) * stripe->segment_units;
    uint64_t end = start + ENG_BATCH_UNITS;
    eng_measure(stripe, start, end < segment_end ? end : segment_end);
    eng_alloc_lock(stripe);
    begin_locked(&batch, stripe, ring_id, hard);
    mark_pins(&batch);
    mark_reservations_locked(&batch);
    GYRE_STEP("cleaner.step.marked");
    meet_documents_locked(&batch);
    eng_judge_locked(&batch);
    eng_alloc_unlock(stripe);
    GYRE_STEP("cleaner.step.decided");
    eng_evict_parts(&batch);
    if (batch.n_copied > 0)
        eng_copy_batch(&batch);
    if (GYRE_BROKEN != GYRE_LATE_UNLINK)
        mark_pins(&batch);
    step->moved_units = batch.end - batch.start;
    step->busy_units = busy_units(&batch);
    eng_alloc_lock(stripe);
    if (still_ours(&batch))
        queue_runs_locked(&batch, limit_units, step);
    count(stripe->store, &batch);
    eng_alloc_unlock(stripe);
}

gyre_err eng_clean_step_locked(struct eng_stripe *stripe, uint8_t ring_id, uint64_t limit_units,
                               bool hard, struct eng_clean_step *step_out)
{
    struct eng_ring *ring = eng_ring_of(stripe, ring_id);
    gyre_err err = GYRE_OK;
    *step_out = (struct eng_clean_step){0};
    eng_policy_learn(stripe);
    eng_alloc_lock(stripe);
    bool enter = at_segment_end(stripe, ring);
    if (enter)
        err = eng_ring_enter_locked(stripe, ring_id);
    bool clean = err == GYRE_OK && at_segment_end(stripe, ring); /* a new segment */
    eng_alloc_unlock(stripe);
    if (clean)
        step_out->moved_units = step_out->cleaned_units = step_out->longest_units =
            stripe->segment_units;
    else if (err == GYRE_OK)
        step_in_segment(stripe, ring_id, limit_units, hard, step_out);
    return err;
}
