/* Runs and reservations of a stripe without files. */
#include <sys/wait.h>

#include "engine/doc.h"
#include "engine/pages.h"
#include "engine/pin.h"
#include "engine/slab.h"
#include "tests/engine/bare_stripe.h"
#include "tests/engine/space.h"

enum { SEGMENT = 1 << 20, SEGMENTS = 16 };
#define SEGMENT_UNITS ((uint64_t)SEGMENT / ENG_UNIT)

/* One ring of all segments, the first `n` of them clean. */
static struct bare bare_with_ring(uint32_t n)
{
    struct bare bare = bare_create(64, (uint64_t)SEGMENTS * SEGMENT, SEGMENTS);
    struct eng_ring *ring = eng_ring_of(bare.stripe, ENG_POOL_MAIN);
    ring->n_segments = ring->max_segments = SEGMENTS;
    ring->tail_segment = SEGMENTS - 1;
    for (uint32_t i = 0; i < SEGMENTS; i++)
        bare.stripe->rt->segments[i] = (struct eng_segment_row){
            .state = ENG_SEGMENT_RING, .kind = ENG_RING_M, .successor = (i + 1) % SEGMENTS};
    for (uint32_t i = 0; i < n; i++)
        eng_runs_push_locked(ring, SEGMENT_UNITS, i * SEGMENT_UNITS, (i + 1) * SEGMENT_UNITS,
                             UINT64_MAX);
    ring->hand_segment = n == 0 ? 0 : n - 1;
    ring->hand = n * SEGMENT_UNITS;
    return bare;
}

static gyre_err take(const struct bare *bare, uint64_t units, uint64_t *start_out,
                     uint32_t *reservation_out)
{
    eng_alloc_lock(bare->stripe);
    gyre_err err =
        eng_log_take_locked(bare->stripe, ENG_POOL_MAIN, units, false, start_out, reservation_out);
    eng_alloc_unlock(bare->stripe);
    return err;
}

TEST(inv_E7_what_is_handed_out_is_whole_pages_of_one_segment)
{
    struct bare bare = bare_with_ring(8);
    struct test_rng rng = {test_seed()};
    uint32_t open[64];
    uint64_t starts[64], lengths[64];
    uint32_t n = 0;
    for (int i = 0; i < 3000; i++) {
        uint64_t units = (1 + test_rng_below(&rng, 60)) * ENG_PAGE_UNITS;
        if (n < 64 && test_rng_below(&rng, 2) == 0 &&
            take(&bare, units, &starts[n], &open[n]) == GYRE_OK) {
            CHECK_EQ_U64(starts[n] % ENG_PAGE_UNITS, 0);
            CHECK_EQ_U64(starts[n] / SEGMENT_UNITS, (starts[n] + units - 1) / SEGMENT_UNITS);
            lengths[n++] = units;
        } else if (n > 0) {
            uint64_t k = test_rng_below(&rng, n);
            uint64_t keep = test_rng_below(&rng, lengths[k] / ENG_PAGE_UNITS + 1) * ENG_PAGE_UNITS;
            eng_alloc_lock(bare.stripe);
            eng_log_trim_locked(bare.stripe, open[k],
                                starts[k] + (test_rng_below(&rng, 2) == 0 ? 0 : keep));
            eng_log_end_locked(bare.stripe, open[k]);
            eng_alloc_unlock(bare.stripe);
            n--;
            open[k] = open[n];
            starts[k] = starts[n];
            lengths[k] = lengths[n];
        }
        check_space(bare.stripe);
    }
}

TEST(a_run_is_cut_joined_and_given_back)
{
    struct bare bare = bare_with_ring(0);
    struct eng_ring *ring = eng_ring_of(bare.stripe, ENG_POOL_MAIN);
    uint64_t start;
    uint32_t n_older;
    uint64_t taken;
    eng_runs_push_locked(ring, SEGMENT_UNITS, 0, 320, UINT64_MAX);
    eng_runs_push_locked(ring, SEGMENT_UNITS, 320, 640, UINT64_MAX);
    CHECK_EQ_INT(ring->n_runs, 1);
    eng_runs_push_locked(ring, SEGMENT_UNITS, 672, SEGMENT_UNITS, UINT64_MAX);
    eng_runs_push_locked(ring, SEGMENT_UNITS, SEGMENT_UNITS, SEGMENT_UNITS + 32, UINT64_MAX);
    CHECK_EQ_INT(ring->n_runs, 3); /* not across the segment's end */
    CHECK(eng_runs_take_locked(ring, SEGMENT_UNITS, 704, 704, &start, &taken, &n_older));
    CHECK_EQ_U64(start, 672);
    CHECK_EQ_INT(n_older, 1);
    CHECK(eng_runs_take_locked(ring, SEGMENT_UNITS, 640, 640, &start, &taken,
                               &n_older)); /* used up: it is gone */
    CHECK_EQ_U64(start, 0);
    CHECK_EQ_INT(ring->n_runs, 2);
    CHECK(!eng_runs_take_locked(ring, SEGMENT_UNITS, SEGMENT_UNITS, SEGMENT_UNITS, &start, &taken,
                                &n_older));
    CHECK(eng_runs_give_back_locked(ring, SEGMENT_UNITS, 1344, 1376)); /* joins what follows */
    CHECK_EQ_INT(ring->n_runs, 2);
    CHECK(eng_runs_give_back_locked(ring, SEGMENT_UNITS, 32, 64)); /* in front, the same segment */
    CHECK_EQ_INT(ring->n_runs, 3);
    CHECK(
        !eng_runs_give_back_locked(ring, SEGMENT_UNITS, 2 * SEGMENT_UNITS, 2 * SEGMENT_UNITS + 32));
    CHECK(!eng_runs_give_back_locked(ring, SEGMENT_UNITS, SEGMENT_UNITS - 32, SEGMENT_UNITS));
    eng_runs_drop_segment_locked(ring, SEGMENT_UNITS, 0);
    CHECK_EQ_INT(ring->n_runs, 1);
    CHECK_EQ_U64(ring->clean_units, 32);
}

/* A restart takes the first run behind which nothing newer lies for the place where writing
 * stopped, and its hand begins there. */
TEST(what_is_given_back_before_newer_extents_is_not_where_writing_stopped)
{
    struct bare bare = bare_with_ring(0);
    struct eng_ring *ring = eng_ring_of(bare.stripe, ENG_POOL_MAIN);
    uint64_t start, taken;
    uint32_t n_older;
    eng_runs_push_locked(ring, SEGMENT_UNITS, 0, 320, UINT64_MAX);
    for (int i = 0; i < 2; i++)
        CHECK(eng_runs_take_locked(ring, SEGMENT_UNITS, 64, 64, &start, &taken, &n_older));
    ring->cursor = start + taken;
    CHECK(eng_runs_give_back_locked(ring, SEGMENT_UNITS, 32, 64));
    CHECK_EQ_INT(ring->n_left, 1);
    CHECK(eng_runs_give_back_locked(ring, SEGMENT_UNITS, 96, 128)); /* joins what follows */
    CHECK_EQ_INT(ring->n_runs, 2);
    CHECK_EQ_INT(ring->n_left, 1);
    eng_runs_drop_segment_locked(ring, SEGMENT_UNITS, 0);
    ring->cursor = 160;
    CHECK(eng_runs_give_back_locked(ring, SEGMENT_UNITS, 128, 160)); /* of the newest extent */
    CHECK_EQ_INT(ring->n_left, 0);
}

TEST(a_full_queue_forgets_its_oldest)
{
    struct bare bare = bare_with_ring(0);
    struct eng_ring *ring = eng_ring_of(bare.stripe, ENG_POOL_MAIN);
    for (uint64_t i = 0; i < 2 * ENG_RUNS; i++)
        eng_runs_push_locked(ring, UINT64_C(1) << 40, i * 64, i * 64 + 32, UINT64_MAX);
    CHECK_EQ_INT(ring->n_runs, ENG_RUNS);
    CHECK_EQ_U64(ring->clean_units, ENG_RUNS * 32);
    CHECK_EQ_U64(eng_run_get(ring, 0)->start, ENG_RUNS * 64);
    eng_runs_push_locked(ring, UINT64_C(1) << 40, 1 << 20, (1 << 20) + 320, 640);
    CHECK_EQ_U64(ring->clean_units, 640);
}

TEST(puts_in_progress_hold_three_quarters_at_most)
{
    struct bare bare = bare_with_ring(SEGMENTS);
    uint64_t start;
    uint32_t reservation;
    for (int i = 0; i < SEGMENTS * 3 / 4; i++)
        CHECK_OK(take(&bare, SEGMENT_UNITS, &start, &reservation));
    CHECK_ERR(take(&bare, ENG_PAGE_UNITS, &start, &reservation), GYRE_BUSY);
    eng_alloc_lock(bare.stripe);
    eng_log_end_locked(bare.stripe, 3);
    eng_alloc_unlock(bare.stripe);
    CHECK_OK(take(&bare, ENG_PAGE_UNITS, &start, &reservation));
    CHECK_EQ_INT(reservation, 3);
    check_space(bare.stripe);
}

TEST(a_lock_whose_holder_died_is_taken_over)
{
    struct bare bare = bare_with_ring(4);
    struct eng_place place = eng_place_of_hash(bare.stripe, 12345);
    struct eng_slot record = {.units = 10};
    struct eng_displaced displaced;
    uint64_t entry = eng_entry_make(place.tag, 40960, 10, ENG_KIND_DOC, 1, false, 1);
    eng_alloc_lock(bare.stripe);
    CHECK_OK(eng_directory_insert_locked(bare.stripe, &place, entry, &record, &displaced));
    eng_alloc_unlock(bare.stripe);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) { /* dies inside its bucket */
        eng_clean_lock(bare.stripe);
        eng_alloc_lock(bare.stripe);
        bare.stripe->rt->bucket_in_flight = (uint64_t)place.bucket[0] + 1;
        atomic_fetch_add(&bare.stripe->buckets[place.bucket[0]].ctl, 1);
        _exit(0);
    }
    CHECK_EQ_INT(waitpid(child, NULL, 0), child);
    struct eng_candidates found;
    eng_directory_lookup(bare.stripe, &place,
                         &found); /* finds the bucket odd, and its writer dead */
    CHECK_EQ_INT(found.n, 1);
    CHECK_EQ_U64(found.at[0].entry, entry);
    eng_clean_lock(bare.stripe);
    eng_clean_unlock(bare.stripe);
    check_space(bare.stripe);
}

/* ---- Pins ---- */

struct extents {
    int n;
    uint64_t start[8], end[8];
};

static void note_extent(void *data, uint64_t start, uint64_t end)
{
    struct extents *extents = data;
    CHECK(extents->n < 8);
    extents->start[extents->n] = start;
    extents->end[extents->n++] = end;
}

TEST(pins_name_their_extents_and_run_out_in_good_order)
{
    struct bare bare = bare_create(64, (uint64_t)SEGMENTS * SEGMENT, SEGMENTS);
    struct eng_stripe other = {.index = 5};
    uint32_t pins[3];
    for (int i = 0; i < 3; i++)
        CHECK_OK(eng_pin_acquire(bare.store, &pins[i]));
    eng_pin_set(bare.store, pins[0], bare.stripe,
                eng_entry_make(7, 1000, 5, ENG_KIND_DOC, 1, false, 3));
    eng_pin_set(bare.store, pins[1], &other, eng_entry_make(7, 1000, 5, ENG_KIND_DOC, 1, false, 3));
    struct extents extents = {0};
    eng_pin_each(bare.store, bare.stripe, 1004, 2000, note_extent, &extents);
    CHECK_EQ_INT(extents.n, 1);
    CHECK(extents.start[0] == 1000 && extents.end[0] >= 1005);
    extents.n = 0;
    eng_pin_each(bare.store, bare.stripe, 0, 1000, note_extent, &extents);
    CHECK_EQ_INT(extents.n, 0);
    eng_pin_clear(bare.store, pins[0]);
    eng_pin_each(bare.store, bare.stripe, 0, 2000, note_extent, &extents);
    CHECK_EQ_INT(extents.n, 0);
    CHECK_EQ_INT(eng_pin_count(bare.store), 3);
    for (int i = 3; i < ENG_PINS; i++)
        CHECK_OK(eng_pin_acquire(bare.store, &pins[2]));
    uint32_t none;
    CHECK_ERR(eng_pin_acquire(bare.store, &none), GYRE_BUSY);
    eng_pin_release(bare.store, pins[1]);
    CHECK_OK(eng_pin_acquire(bare.store, &none));
    CHECK_EQ_INT(none, pins[1]);
}

/* ---- Headers ---- */

TEST(inv_E10_a_header_is_valid_in_its_own_place_only)
{
    struct eng_doc doc = {.type = ENG_DOC, .body_len = 1000, .meta_len = 10, .serial = 5};
    eng_doc_seal(&doc, 77, 4711);
    CHECK_OK(eng_doc_check(&doc, 77, 4711, 100));
    CHECK_ERR(eng_doc_check(&doc, 78, 4711, 100), GYRE_DAMAGED);
    CHECK_ERR(eng_doc_check(&doc, 77, 4712, 100), GYRE_DAMAGED);
    CHECK_ERR(eng_doc_check(&doc, 77, 4711, 9), GYRE_DAMAGED); /* 10 units long */
    CHECK_OK(eng_doc_check(&doc, 77, 4711, 10));
    for (size_t bit = 0; bit < 8 * sizeof doc; bit++) {
        ((uint8_t *)&doc)[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK_ERR(eng_doc_check(&doc, 77, 4711, 100), GYRE_DAMAGED);
        ((uint8_t *)&doc)[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

TEST(inv_E10_no_length_leads_out_of_the_extent)
{
    static const uint64_t lengths[] = {
        0, 1, 1 << 20, UINT32_MAX, UINT64_C(1) << 40, UINT64_MAX - 4096, UINT64_MAX};
    for (uint16_t type = 0; type < 8; type++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
                struct eng_doc doc = {.type = type,
                                      .body_len = lengths[i],
                                      .meta_len = (uint32_t)lengths[k],
                                      .parts =
                                          (uint32_t)(lengths[i] / sizeof(struct eng_part_row))};
                eng_doc_seal(&doc, 1, 32);
                if (eng_doc_check(&doc, 1, 32, 20000) != GYRE_OK)
                    continue;
                CHECK(type >= ENG_DOC && type <= ENG_TOMBSTONE);
                CHECK(eng_doc_body_off(&doc) >= sizeof doc + doc.meta_len);
                CHECK(doc.body_len == 0 ||
                      eng_doc_body_off(&doc) + doc.body_len <= 20000 * UINT64_C(128));
                CHECK(sizeof doc + doc.meta_len <= 20000 * UINT64_C(128));
            }
}
