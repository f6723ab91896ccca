#include "engine/cleaner.h"

#include "engine/base/broken.h"
#include "engine/base/check.h"
#include "engine/base/step.h"
#include "engine/base/sys.h"
#include "engine/directory.h"
#include "engine/expiry.h"
#include "engine/locks.h"
#include "engine/log.h"
#include "engine/pages.h"
#include "engine/pin.h"
#include "engine/pool.h"
#include "engine/runs.h"
#include "engine/slot.h"

/* Why bytes that a reader holds are never handed out: a step
 *   1. marks, under the alloc lock, the pages of all reservations, and of pins as they are seen
 * then;
 *   2. removes from the directory, still under the lock, documents on unmarked pages;
 *   3. passes fence B and marks the pages of all pins again (pin.h);
 *   4. queues, under the lock, the pages nobody marked.
 * A reader whose pin is not seen in 3 finds its entry gone. A writer can get none of these pages
 * before 4, so what was true of reservations in 1 is enough: a document published in between lies
 * on pages marked there. */

#define BATCH_UNITS ((UINT64_C(4) << 20) / ENG_UNIT)
#define GRANULE_UNITS (ENG_GRANULE / ENG_UNIT)

enum { BATCH_DOCUMENTS = 128, GRANULE_DOCUMENTS = GRANULE_UNITS };

/* One step in progress. */
struct batch {
    struct eng_stripe *stripe;
    struct eng_ring *ring;
    uint64_t start, segment_end; /* units */
    uint64_t covered;            /* documents looked at end here or before */
    uint64_t end;                /* once known: no document lies across it */
    uint32_t documents;
    uint64_t evicted, evicted_units, hops, expired;
    uint32_t now; /* Unix seconds */
    uint64_t
        settled_pages; /* busy, and waiting will not change it: slabs, documents that never leave */
    struct eng_pages pages;
};

static void mark_extent(void *data, uint64_t start, uint64_t end)
{
    struct batch *batch = data;
    (void)eng_pages_mark(&batch->pages, start, end);
}

static void mark_pins(struct batch *batch)
{
    eng_pin_each(batch->stripe->store, batch->stripe, batch->start, batch->segment_end, mark_extent,
                 batch);
}

static void mark_reservations_locked(struct batch *batch)
{
    const struct eng_stripe_rt *rt = batch->stripe->rt;
    for (uint32_t i = 0; i < rt->reservations_high; i++) {
        const struct eng_reservation *at = &rt->reservations[i];
        uint64_t fresh = eng_pages_mark(&batch->pages, at->start, at->end);
        batch->settled_pages += at->is_slab ? fresh : 0;
    }
}

/* A document whose first page stays anyway gains nothing by leaving: pages are what is reused. */
static bool stays(struct batch *batch, uint32_t slot, uint64_t entry)
{
    const struct eng_stripe *stripe = batch->stripe;
    uint64_t page = (eng_entry_offset(entry) - batch->start) / ENG_PAGE_UNITS;
    if (eng_pages_busy(&batch->pages, page))
        return true;
    if (!eng_pool_never_evicts(stripe->store, eng_slot_pool(&stripe->slots[slot])) &&
        !eng_entry_keep(entry))
        return false;
    bool spent = eng_spent_locked(stripe, slot, entry, batch->now);
    batch->expired += spent;
    return !spent;
}

static void decide_locked(struct batch *batch, uint32_t slot)
{
    struct eng_stripe *stripe = batch->stripe;
    const struct eng_slot *record = &stripe->slots[slot];
    uint64_t entry = eng_directory_entry(stripe, slot);
    uint64_t end = eng_entry_offset(entry) + record->units;
    batch->documents++;
    if (end > batch->segment_end)
        end = batch->segment_end;
    if (end > batch->covered)
        batch->covered = end;
    if (stays(batch, slot, entry)) {
        batch->settled_pages += eng_pages_mark(&batch->pages, eng_entry_offset(entry), end);
        batch->hops++;
        return;
    }
    batch->evicted++;
    batch->evicted_units += record->units;
    GYRE_CHECK(eng_directory_remove_locked(stripe, slot, entry));
    GYRE_STEP("cleaner.decide.evicted");
}

/* A document found in a granule. */
struct found {
    uint64_t offset;
    uint32_t slot;
};

/* The documents that start in a granule at or behind the batch's start, by offset. Several entries
 * of one offset cannot be, but are no danger: what does not fit stays for the next lap. */
static uint32_t list_granule_locked(const struct batch *batch, uint64_t granule,
                                    struct found found[GRANULE_DOCUMENTS])
{
    uint32_t n = 0;
    uint32_t slot = eng_granule_first_locked(batch->stripe, granule);
    for (; slot != ENG_NO_SLOT && n < GRANULE_DOCUMENTS;
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

static bool is_enough(const struct batch *batch, uint64_t at)
{
    return batch->documents >= BATCH_DOCUMENTS || at - batch->start >= BATCH_UNITS;
}

/* Decides documents in address order until it is enough and a page boundary is reached that no
 * document crosses. */
static void decide_documents_locked(struct batch *batch)
{
    struct found found[GRANULE_DOCUMENTS];
    uint64_t at = batch->start;
    while (at < batch->segment_end) {
        uint64_t granule = at / GRANULE_UNITS;
        uint32_t n = list_granule_locked(batch, granule, found);
        for (uint32_t i = 0; i < n; i++) {
            uint64_t offset = found[i].offset;
            if (offset % ENG_PAGE_UNITS == 0 && batch->covered <= offset && offset > batch->start &&
                is_enough(batch, offset)) {
                batch->end = offset;
                return;
            }
            decide_locked(batch, found[i].slot);
        }
        at = (granule + 1) * GRANULE_UNITS;
        if (batch->covered <= at && is_enough(batch, at))
            break;
    }
    batch->end = at < batch->segment_end ? at : batch->segment_end;
}

static uint64_t busy_units(const struct batch *batch)
{
    uint64_t busy = 0;
    for (uint64_t page = 0; page < (batch->end - batch->start) / ENG_PAGE_UNITS; page++)
        busy += eng_pages_busy(&batch->pages, page);
    /* Slabs behind the end count as settled here too; the difference is in favour of NO_SPACE. */
    return (busy > batch->settled_pages ? busy - batch->settled_pages : 0) * ENG_PAGE_UNITS;
}

/* Queues the stretches of pages that nobody marked and moves the hand behind them. */
static void queue_runs_locked(struct batch *batch, uint64_t limit_units,
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
            eng_runs_push_locked(batch->ring, batch->stripe->segment_units, start, start + units,
                                 limit_units);
        }
        step->cleaned_units += units;
        if (units > step->longest_units)
            step->longest_units = units;
        page++; /* a busy one, or past the end */
    }
    batch->ring->hand = batch->end;
}

static void begin_locked(struct batch *batch, struct eng_stripe *stripe, struct eng_ring *ring)
{
    batch->stripe = stripe;
    batch->ring = ring;
    batch->start = batch->covered = ring->hand;
    batch->segment_end = (ring->hand_segment + UINT64_C(1)) * stripe->segment_units;
    batch->documents = 0;
    batch->evicted = batch->evicted_units = batch->hops = batch->settled_pages = 0;
    batch->expired = 0;
    batch->now = eng_clock_real_s();
    eng_pages_init(&batch->pages, batch->start, batch->segment_end);
}

static void count(struct eng_store *store, const struct batch *batch)
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

gyre_err eng_clean_step_locked(struct eng_stripe *stripe, uint8_t pool, uint64_t limit_units,
                               struct eng_clean_step *step_out)
{
    struct eng_ring *ring = eng_ring_of(stripe, pool);
    struct batch batch;
    gyre_err err = GYRE_OK;
    *step_out = (struct eng_clean_step){0};
    eng_alloc_lock(stripe);
    if (at_segment_end(stripe, ring)) {
        TRY(eng_ring_enter_locked(stripe, pool));
        if (at_segment_end(stripe, ring)) { /* a new segment, clean as it is */
            step_out->moved_units = step_out->cleaned_units = step_out->longest_units =
                stripe->segment_units;
            goto out;
        }
    }
    begin_locked(&batch, stripe, ring);
    mark_pins(&batch);
    mark_reservations_locked(&batch);
    GYRE_STEP("cleaner.step.marked");
    decide_documents_locked(&batch);
    eng_alloc_unlock(stripe);
    GYRE_STEP("cleaner.step.decided");
    if (GYRE_BROKEN != GYRE_LATE_UNLINK)
        mark_pins(&batch);
    step_out->moved_units = batch.end - batch.start;
    step_out->busy_units = busy_units(&batch);
    eng_alloc_lock(stripe);
    queue_runs_locked(&batch, limit_units, step_out);
    count(stripe->store, &batch);
out:
    eng_alloc_unlock(stripe);
    return err;
}
