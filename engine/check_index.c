/* The structures around the documents: rings, runs, reservations, slot lists; see check_internal.h.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "engine/check_internal.h"
#include "engine/log.h"
#include "engine/runs.h"

/* ---- Rings ---- */

static bool is_of(const struct eng_segment_row *row, uint8_t ring)
{
    return row->state == ENG_SEGMENT_RING && row->pool == eng_ring_pool(ring) &&
           row->kind == eng_ring_kind_of(ring);
}

static uint32_t segments_of_ring(const struct eng_stripe *stripe, uint8_t ring)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < stripe->n_segments; i++)
        n += is_of(&stripe->rt->segments[i], ring);
    return n;
}

/* Succession leads through all of the ring's segments and back. */
static void check_ring(struct eng_checking *c, const struct eng_stripe *stripe, uint8_t ring_id)
{
    const struct eng_ring *ring = &stripe->rt->rings[ring_id];
    const struct eng_segment_row *rows = stripe->rt->segments;
    uint32_t n = segments_of_ring(stripe, ring_id);
    uint32_t at = ring->tail_segment;

    if (n != ring->n_segments)
        eng_check_violated(c, stripe, "E48", "ring %u has %" PRIu32 " segments and counts %" PRIu32,
                           ring_id, n, ring->n_segments);
    if (n == 0 || n != ring->n_segments)
        return;
    for (uint32_t i = 0; i < n; i++) {
        if (at >= stripe->n_segments || !is_of(&rows[at], ring_id)) {
            eng_check_violated(c, stripe, "E48", "ring %u leads to segment %" PRIu32, ring_id, at);
            return;
        }
        at = rows[at].successor;
        if ((at == ring->tail_segment) != (i == n - 1)) {
            eng_check_violated(c, stripe, "E48",
                               "ring %u closes after %" PRIu32 " of %" PRIu32 " segments", ring_id,
                               i + 1, n);
            return;
        }
    }
    uint64_t start = ring->hand_segment * stripe->segment_units;
    if (ring->hand_segment >= stripe->n_segments || !is_of(&rows[ring->hand_segment], ring_id) ||
        ring->hand < start || ring->hand > start + stripe->segment_units)
        eng_check_violated(c, stripe, "E48", "the hand of ring %u is at %" PRIu64, ring_id,
                           ring->hand);
}

static void check_free_segments(struct eng_checking *c, const struct eng_stripe *stripe)
{
    for (uint32_t i = 0; i < stripe->n_segments; i++) {
        const struct eng_segment_row *row = &stripe->rt->segments[i];
        if (row->state == ENG_SEGMENT_FREE ? row->successor != ENG_NO_SEGMENT
                                           : row->pool >= stripe->store->super.n_pools)
            eng_check_violated(c, stripe, "E48",
                               "segment %" PRIu32 " is neither free nor in a ring", i);
    }
}

/* ---- Extents that are nobody's document: runs and reservations ---- */

struct extent {
    uint64_t start, end; /* units */
    bool is_run;
};

static int by_start(const void *a, const void *b)
{
    const struct extent *x = a;
    const struct extent *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

static size_t collect_extents(const struct eng_stripe *stripe, struct extent *out)
{
    const struct eng_stripe_rt *rt = stripe->rt;
    size_t n = 0;

    for (uint32_t ring = 0; ring < ENG_RINGS; ring++)
        for (uint32_t i = 0; i < rt->rings[ring].n_runs; i++) {
            const struct eng_run *run = eng_run_get(&rt->rings[ring], i);
            out[n++] = (struct extent){run->start, run->end, true};
        }
    for (uint32_t i = 0; i < ENG_RESERVATIONS; i++)
        if (rt->reservations[i].start != rt->reservations[i].end)
            out[n++] = (struct extent){rt->reservations[i].start, rt->reservations[i].end, false};
    return n;
}

static bool document_starts_in(const struct eng_stripe *stripe, const struct extent *extent)
{
    uint64_t per_granule = ENG_GRANULE / ENG_UNIT;

    for (uint64_t g = extent->start / per_granule; g * per_granule < extent->end; g++) {
        uint32_t slot = eng_granule_first_locked(stripe, g);
        for (; slot != ENG_NO_SLOT; slot = eng_granule_next_locked(stripe, slot)) {
            uint64_t offset = eng_entry_offset(eng_directory_entry(stripe, slot));
            if (offset >= extent->start && offset < extent->end)
                return true;
        }
    }
    return false;
}

static gyre_err check_extents(struct eng_checking *c, const struct eng_stripe *stripe)
{
    struct extent *extents = malloc((ENG_RINGS * ENG_RUNS + ENG_RESERVATIONS) * sizeof *extents);

    uint64_t reserved = 0;

    if (extents == NULL)
        return GYRE_NO_MEMORY;
    size_t n = collect_extents(stripe, extents);
    if (n > 0)
        qsort(extents, n, sizeof *extents, by_start);
    for (size_t i = 0; i < n; i++) {
        const struct extent *at = &extents[i];
        if (at->start >= at->end || at->end > stripe->area_bytes >> ENG_UNIT_SHIFT ||
            at->start % ENG_PAGE_UNITS != 0)
            eng_check_violated(c, stripe, "E7", "a run or reservation from %" PRIu64 " to %" PRIu64,
                               at->start, at->end);
        else if (stripe->rt->segments[eng_segment_of(stripe, at->start)].state != ENG_SEGMENT_RING)
            eng_check_violated(c, stripe, "E6",
                               "a run or reservation at %" PRIu64 " lies in a free segment",
                               at->start);
        else if (at->is_run && document_starts_in(stripe, at))
            eng_check_violated(c, stripe, "E6", "the clean run at %" PRIu64 " holds a document",
                               at->start);
        if (i + 1 < n && at->end > extents[i + 1].start)
            eng_check_violated(c, stripe, "E6",
                               "runs or reservations at %" PRIu64 " and %" PRIu64 " overlap",
                               at->start, extents[i + 1].start);
    }
    for (size_t i = 0; i < n; i++)
        reserved += extents[i].is_run ? 0 : extents[i].end - extents[i].start;
    free(extents);
    if (reserved != atomic_load_explicit(&stripe->rt->reserved_units, memory_order_relaxed))
        eng_check_violated(c, stripe, "E8", "%" PRIu64 " units are reserved", reserved);
    return GYRE_OK;
}

/* ---- Slot lists ---- */

struct totals {
    uint64_t listed, units;
};

static void check_lists(struct eng_checking *c, const struct eng_stripe *stripe, uint64_t *seen,
                        struct totals *totals)
{
    uint64_t n_slots = (uint64_t)stripe->n_buckets * ENG_BUCKET_ENTRIES;

    for (uint64_t g = 0; g < stripe->area_bytes / ENG_GRANULE; g++) {
        uint32_t slot = eng_granule_first_locked(stripe, g);
        while (slot != ENG_NO_SLOT) {
            if (slot >= n_slots || (seen[slot / 64] >> (slot % 64) & 1) != 0) {
                eng_check_violated(c, stripe, "E3",
                                   "the list of granule %" PRIu64 " leads to slot %" PRIu32, g,
                                   slot);
                break;
            }
            seen[slot / 64] |= UINT64_C(1) << (slot % 64);
            uint64_t entry = eng_directory_entry(stripe, slot);
            if (entry == 0 || eng_entry_offset(entry) / (ENG_GRANULE / ENG_UNIT) != g)
                eng_check_violated(c, stripe, "E3",
                                   "slot %" PRIu32 " is listed in granule %" PRIu64
                                   " and lies elsewhere",
                                   slot, g);
            totals->listed++;
            totals->units += stripe->slots[slot].units;
            slot = eng_granule_next_locked(stripe, slot);
        }
    }
}

static void check_buckets(struct eng_checking *c, const struct eng_stripe *stripe,
                          const uint64_t *seen)
{
    for (uint32_t b = 0; b < stripe->n_buckets; b++) {
        if ((atomic_load_explicit(&stripe->buckets[b].ctl, memory_order_relaxed) & 1) != 0)
            eng_check_violated(c, stripe, "E1", "bucket %" PRIu32 " is half written", b);
        for (uint32_t i = 0; i < ENG_BUCKET_ENTRIES; i++) {
            uint32_t slot = b * ENG_BUCKET_ENTRIES + i;
            if (eng_directory_entry(stripe, slot) != 0 && (seen[slot / 64] >> (slot % 64) & 1) == 0)
                eng_check_violated(c, stripe, "E3", "slot %" PRIu32 " is in no list", slot);
        }
    }
}

static gyre_err check_slots(struct eng_checking *c, const struct eng_stripe *stripe)
{
    struct totals totals = {0};
    uint64_t *seen =
        calloc((uint64_t)stripe->n_buckets * ENG_BUCKET_ENTRIES / 64 + 1, sizeof *seen);

    if (seen == NULL)
        return GYRE_NO_MEMORY;
    check_lists(c, stripe, seen, &totals);
    check_buckets(c, stripe, seen);
    free(seen);
    uint64_t documents = atomic_load_explicit(&stripe->rt->documents, memory_order_relaxed);
    uint64_t units = atomic_load_explicit(&stripe->rt->live_units, memory_order_relaxed);
    if (documents != totals.listed || units != totals.units)
        eng_check_violated(c, stripe, "E3",
                           "%" PRIu64 " documents of %" PRIu64 " units are counted, %" PRIu64
                           " of %" PRIu64 " listed",
                           documents, units, totals.listed, totals.units);
    return GYRE_OK;
}

gyre_err eng_check_index(struct eng_checking *c, struct eng_stripe *stripe)
{
    gyre_err err;

    for (uint8_t ring = 0; ring < ENG_RINGS; ring++)
        check_ring(c, stripe, ring);
    check_free_segments(c, stripe);
    err = check_slots(c, stripe);
    return err == GYRE_OK ? check_extents(c, stripe) : err;
}
