/* A check that no two owners of log space overlap, and that the totals are the sums. */
#pragma once

#include "engine/directory.h"
#include "engine/locks.h"
#include "engine/log.h"
#include "engine/runs.h"
#include "tests/engine/open_store.h"

struct owned {
    uint64_t start, end;
    char what; /* 'd'ocument, 'r'un, reser'v'ation */
};

static inline int by_start(const void *a, const void *b)
{
    const struct owned *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* Live documents never overlap each other or clean runs; reservations overlap neither runs nor each
 * other; nothing crosses a segment end; the totals are the sums. */
static inline void check_space(struct eng_stripe *stripe)
{
    struct eng_stripe_rt *rt = stripe->rt;
    uint64_t n_slots = (uint64_t)stripe->n_buckets * ENG_BUCKET_ENTRIES;
    struct owned *owned =
        malloc((n_slots + ENG_RESERVATIONS + ENG_RINGS * (size_t)ENG_RUNS) * sizeof *owned);
    CHECK(owned != NULL);
    size_t n = 0;
    uint64_t live = 0, documents = 0, reserved = 0;
    eng_alloc_lock(stripe);
    for (uint64_t slot = 0; slot < n_slots; slot++) {
        uint64_t entry = eng_directory_entry(stripe, (uint32_t)slot);
        if (entry == 0)
            continue;
        uint64_t start = eng_entry_offset(entry);
        owned[n++] = (struct owned){start, start + stripe->slots[slot].units, 'd'};
        live += stripe->slots[slot].units;
        documents++;
    }
    for (uint32_t i = 0; i < ENG_RESERVATIONS; i++) {
        struct eng_reservation *at = &rt->reservations[i];
        CHECK(at->start == at->end || i < rt->reservations_high);
        reserved += at->end - at->start;
        if (at->start < at->end)
            owned[n++] = (struct owned){at->start, at->end, 'v'};
    }
    for (uint8_t ring_id = 0; ring_id < ENG_RINGS; ring_id++) {
        struct eng_ring *ring = &rt->rings[ring_id];
        uint64_t clean = 0;
        for (uint32_t i = 0; i < ring->n_runs; i++) {
            const struct eng_run *run = eng_run_get(ring, i);
            const struct eng_segment_row *row = &rt->segments[run->start / stripe->segment_units];
            CHECK_EQ_INT(eng_ring_id(row->pool, (enum eng_ring_kind)row->kind), ring_id);
            clean += run->end - run->start;
            for (uint64_t at = run->start;
                 at < run->end;) { /* runs of neighbouring segments may have been joined */
                uint64_t end = (at / stripe->segment_units + 1) * stripe->segment_units;
                owned[n++] = (struct owned){at, end < run->end ? end : run->end, 'r'};
                at = end;
            }
        }
        CHECK_EQ_U64(ring->clean_units, clean);
    }
    CHECK_EQ_U64(atomic_load(&rt->live_units), live);
    CHECK_EQ_U64(atomic_load(&rt->documents), documents);
    CHECK_EQ_U64(atomic_load(&rt->reserved_units), reserved);
    eng_alloc_unlock(stripe);
    qsort(owned, n, sizeof *owned, by_start);
    uint64_t document_end = 0, run_end = 0, reservation_end = 0;
    for (size_t i = 0; i < n; i++) {
        struct owned *at = &owned[i];
        CHECK(at->start / stripe->segment_units == (at->end - 1) / stripe->segment_units);
        CHECK(at->start >= run_end);
        if (at->what == 'd')
            CHECK_MSG(at->start >= document_end, "document [%ju, %ju) begins before %ju",
                      (uintmax_t)at->start, (uintmax_t)at->end, (uintmax_t)document_end);
        if (at->what == 'v')
            CHECK(at->start >= reservation_end);
        if (at->what == 'r')
            CHECK(at->start >= document_end && at->start >= reservation_end);
        if (at->what == 'd')
            document_end = at->end;
        if (at->what == 'v')
            reservation_end = at->end;
        if (at->what == 'r')
            run_end = at->end;
    }
    free(owned);
}
