#include <pthread.h>
#include <stdio.h>

#include "engine/base/hash.h"
#include "tests/engine/bare_stripe.h"

enum { BUCKETS = 4096, AREA = 1 << 30, SEGMENTS = 32 };

static struct eng_place place_of(const struct bare *bare, uint64_t n)
{
    return eng_place_of_hash(bare->stripe, eng_mix64(n + 1));
}

/* A place whose two buckets are not the same one. */
static struct eng_place wide_place(const struct bare *bare)
{
    uint64_t n = 0;
    while (place_of(bare, n).bucket[0] == place_of(bare, n).bucket[1])
        n++;
    return place_of(bare, n);
}

static uint64_t entry_of(const struct eng_place *place, uint64_t n)
{
    return eng_entry_make(place->tag, n * 4, 4, ENG_KIND_DOC, 1, false, n);
}

static gyre_err insert(const struct bare *bare, const struct eng_place *place, uint64_t entry,
                       struct eng_displaced *displaced_out)
{
    struct eng_slot record = {.units = 4, .class_ = 0};
    eng_alloc_lock(bare->stripe);
    gyre_err err = eng_directory_insert_locked(bare->stripe, place, entry, &record, displaced_out);
    eng_alloc_unlock(bare->stripe);
    return err;
}

/* Slot that holds `entry`, ENG_NO_SLOT if none of the place does. */
static uint32_t slot_of(const struct bare *bare, const struct eng_place *place, uint64_t entry)
{
    struct eng_candidates found;
    eng_directory_lookup(bare->stripe, place, &found);
    for (size_t i = 0; i < found.n; i++)
        if (found.at[i].entry == entry)
            return found.at[i].slot;
    return ENG_NO_SLOT;
}

static bool remove_entry(const struct bare *bare, const struct eng_place *place, uint64_t entry)
{
    eng_alloc_lock(bare->stripe);
    uint32_t slot = slot_of(bare, place, entry);
    bool removed = slot != ENG_NO_SLOT && eng_directory_remove_locked(bare->stripe, slot, entry);
    eng_alloc_unlock(bare->stripe);
    return removed;
}

TEST(an_entry_gives_back_what_went_in)
{
    struct test_rng rng = {test_seed()};
    for (int i = 0; i < 20000; i++) {
        uint16_t tag = (uint16_t)test_rng_next(&rng);
        uint64_t offset = test_rng_below(&rng, UINT64_C(1) << 34);
        uint64_t units = 1 + test_rng_below(&rng, UINT64_C(1) << test_rng_below(&rng, 24));
        enum eng_kind kind = (enum eng_kind)(1 + test_rng_below(&rng, 3));
        bool keep = test_rng_below(&rng, 2) == 1;
        uint64_t entry = eng_entry_make(tag, offset, units, kind, 1, keep, i);
        CHECK_EQ_INT(eng_entry_tag(entry), tag);
        CHECK_EQ_U64(eng_entry_offset(entry), offset);
        CHECK_EQ_INT(eng_entry_kind(entry), kind);
        CHECK_EQ_INT(eng_entry_keep(entry), keep);
        uint64_t bound = eng_entry_units_bound(entry);
        CHECK_MSG(bound >= units && bound <= units + units / 4 + 1, "%ju units, bound %ju",
                  (uintmax_t)units, (uintmax_t)bound);
    }
    for (unsigned c = 0; c < 120; c++) /* a bound is its own class's, so pins repeat it exactly */
        CHECK_EQ_U64(eng_size_class_units(eng_size_class(eng_size_class_units(c))),
                     eng_size_class_units(c));
}

TEST(inv_E2_either_bucket_leads_to_the_other)
{
    struct bare bare = bare_create(12345, 1 << 20, 1);
    for (uint64_t n = 0; n < 100000; n++) {
        struct eng_place place = place_of(&bare, n);
        CHECK(place.bucket[0] < 12345 && place.bucket[1] < 12345);
        CHECK_EQ_INT(eng_bucket_other(bare.stripe, place.bucket[1], place.tag), place.bucket[0]);
    }
}

TEST(at_load_85_percent_next_to_nothing_is_displaced)
{
    struct bare bare = bare_create(BUCKETS, AREA, SEGMENTS);
    uint64_t resident = (uint64_t)BUCKETS * ENG_BUCKET_ENTRIES * 85 / 100;
    uint64_t displaced_count = 0;
    for (uint64_t n = 0; n < 10 * resident; n++) { /* first in, first out, as the hand does */
        struct eng_displaced displaced;
        if (n >= resident) {
            struct eng_place old = place_of(&bare, n - resident);
            (void)remove_entry(&bare, &old, entry_of(&old, n - resident));
        }
        struct eng_place place = place_of(&bare, n);
        CHECK_OK(insert(&bare, &place, entry_of(&place, n), &displaced));
        displaced_count += displaced.slot != ENG_NO_SLOT;
    }
    printf("displaced %ju of %ju\n", (uintmax_t)displaced_count, (uintmax_t)(10 * resident));
    CHECK(displaced_count * 10000 < 10 * resident);
    uint64_t found = 0;
    for (uint64_t n = 9 * resident; n < 10 * resident; n++) {
        struct eng_place place = place_of(&bare, n);
        found += slot_of(&bare, &place, entry_of(&place, n)) != ENG_NO_SLOT;
    }
    CHECK(found + displaced_count >= resident);
}

TEST(fourteen_keys_of_one_tag_and_bucket_are_all_found)
{
    struct bare bare = bare_create(64, AREA, SEGMENTS);
    struct eng_place place = wide_place(&bare);
    struct eng_displaced displaced;
    for (uint64_t n = 0; n < ENG_CANDIDATES; n++) {
        CHECK_OK(insert(&bare, &place, entry_of(&place, n), &displaced));
        CHECK_EQ_U64(displaced.slot, ENG_NO_SLOT);
    }
    struct eng_candidates found;
    eng_directory_lookup(bare.stripe, &place, &found);
    CHECK_EQ_INT(found.n, ENG_CANDIDATES);
    for (uint64_t n = 0; n < ENG_CANDIDATES; n++)
        CHECK(slot_of(&bare, &place, entry_of(&place, n)) != ENG_NO_SLOT);

    uint32_t cold = slot_of(&bare, &place, entry_of(&place, 5));
    for (uint32_t i = 0; i < found.n; i++) /* a hit for each but one: that one has to go */
        if (found.at[i].slot != cold)
            eng_slot_count_hit(&bare.stripe->slots[found.at[i].slot], found.at[i].slot_word, 1);
    CHECK_OK(insert(&bare, &place, entry_of(&place, 100), &displaced));
    CHECK_EQ_U64(displaced.entry, entry_of(&place, 5));
    CHECK_EQ_U64(displaced.units, 4);
    CHECK_EQ_U64(atomic_load(&bare.stripe->rt->documents), ENG_CANDIDATES);
    CHECK_EQ_U64(atomic_load(&bare.stripe->rt->live_units), 4 * ENG_CANDIDATES);
}

TEST(of_equally_cold_entries_the_oldest_is_displaced)
{
    struct bare bare = bare_create(64, AREA, SEGMENTS);
    struct eng_place place = wide_place(&bare);
    struct eng_displaced displaced;
    for (uint64_t n = 0; n < ENG_CANDIDATES; n++) /* the log goes round: 50 is older than 0 */
        CHECK_OK(insert(&bare, &place, entry_of(&place, (n * 3 + 50) % 64), &displaced));
    CHECK_OK(insert(&bare, &place, entry_of(&place, 40), &displaced));
    CHECK_EQ_U64(displaced.entry, entry_of(&place, 50));
}

TEST(kept_entries_are_never_displaced)
{
    struct bare bare = bare_create(64, AREA, SEGMENTS);
    struct eng_place place = wide_place(&bare);
    struct eng_displaced displaced;
    for (uint64_t n = 0; n < ENG_CANDIDATES; n++)
        CHECK_OK(insert(&bare, &place, entry_of(&place, n) | 8, &displaced));
    CHECK_ERR(insert(&bare, &place, entry_of(&place, 100), &displaced), GYRE_NO_SPACE);
    for (uint64_t n = 0; n < ENG_CANDIDATES; n++)
        CHECK(slot_of(&bare, &place, entry_of(&place, n) | 8) != ENG_NO_SLOT);
}

/* Every entry must have its record on the list of its granule, and nothing else may be listed. */
static void check_lists(const struct bare *bare)
{
    const struct eng_stripe *stripe = bare->stripe;
    uint64_t entries = 0, listed = 0, units = 0;
    for (uint32_t slot = 0; slot < stripe->n_buckets * ENG_BUCKET_ENTRIES; slot++)
        entries += eng_directory_entry(stripe, slot) != 0;
    for (uint64_t g = 0; g < stripe->area_bytes / ENG_GRANULE; g++) {
        uint32_t at = eng_granule_first_locked(stripe, g);
        for (; at != ENG_NO_SLOT; at = eng_granule_next_locked(stripe, at)) {
            uint64_t entry = eng_directory_entry(stripe, at);
            CHECK(entry != 0);
            CHECK_EQ_U64(eng_entry_offset(entry) * ENG_UNIT / ENG_GRANULE, g);
            listed++;
            units += stripe->slots[at].units;
        }
    }
    CHECK_EQ_U64(listed, entries);
    CHECK_EQ_U64(atomic_load(&stripe->rt->documents), entries);
    CHECK_EQ_U64(atomic_load(&stripe->rt->live_units), units);
}

TEST(inv_E3_lists_and_totals_follow_the_entries)
{
    struct bare bare = bare_create(256, 1 << 24, 16);
    struct test_rng rng = {test_seed()};
    for (int i = 0; i < 30000; i++) {
        uint64_t n = test_rng_below(&rng, 2000);
        struct eng_place place = place_of(&bare, n);
        uint64_t entry = entry_of(&place, n);
        uint32_t slot = slot_of(&bare, &place, entry);
        struct eng_displaced displaced;
        if (slot == ENG_NO_SLOT) {
            CHECK_OK(insert(&bare, &place, entry, &displaced));
        } else if (test_rng_below(&rng, 2) == 0) {
            CHECK(remove_entry(&bare, &place, entry));
        } else {
            struct eng_slot record = {.units = 3};
            eng_alloc_lock(bare.stripe);
            CHECK(eng_directory_replace_locked(bare.stripe, slot, entry, entry, &record));
            CHECK(!eng_directory_replace_locked(bare.stripe, slot, entry + 1, entry, &record));
            eng_alloc_unlock(bare.stripe);
        }
    }
    check_lists(&bare);
}

TEST(inv_E4_a_late_mark_never_reaches_a_newer_document)
{
    struct bare bare = bare_create(64, AREA, SEGMENTS);
    struct eng_place place = place_of(&bare, 1);
    struct eng_displaced displaced;
    CHECK_OK(insert(&bare, &place, entry_of(&place, 1), &displaced));
    struct eng_candidates before;
    eng_directory_lookup(bare.stripe, &place, &before);
    struct eng_slot *slot = &bare.stripe->slots[before.at[0].slot];
    eng_slot_mark_verified(slot, before.at[0].slot_word);
    eng_slot_count_hit(slot, before.at[0].slot_word, 1);
    uint32_t marked = atomic_load(&slot->word);
    CHECK((marked & ENG_SLOT_VERIFIED) != 0 && (marked & ENG_SLOT_HITS) == ENG_SLOT_HIT);

    struct eng_slot record = {.units = 4};
    eng_alloc_lock(bare.stripe);
    CHECK(eng_directory_replace_locked(bare.stripe, before.at[0].slot, before.at[0].entry,
                                       before.at[0].entry, &record));
    eng_alloc_unlock(bare.stripe);
    eng_slot_mark_verified(slot, marked);
    eng_slot_count_hit(slot, marked, 1);
    CHECK_EQ_U64(atomic_load(&slot->word) & (ENG_SLOT_VERIFIED | ENG_SLOT_HITS), 0);
}

TEST(a_dead_holder_of_the_lock_leaves_nothing_broken)
{
    struct bare bare = bare_create(64, 1 << 20, 1);
    struct eng_displaced displaced;
    for (uint64_t n = 0; n < 300; n++) {
        struct eng_place place = place_of(&bare, n);
        CHECK_OK(insert(&bare, &place, entry_of(&place, n), &displaced));
    }
    struct eng_bucket *bucket = &bare.stripe->buckets[5];
    uint32_t twice = 0;
    while (bucket->entry[twice] == 0)
        twice++;
    /* Killed in the middle of a move: version odd, the entry in both buckets, lists half done. */
    atomic_fetch_add(&bucket->ctl, 1);
    bare.stripe->rt->bucket_in_flight = 5 + 1;
    uint64_t entry = bucket->entry[twice];
    uint32_t other = eng_bucket_other(bare.stripe, 5, eng_entry_tag(entry));
    atomic_store(&bare.stripe->buckets[other].entry[0], entry);
    bare.stripe->slots[5 * ENG_BUCKET_ENTRIES + twice].units = 1;
    atomic_store(&bare.stripe->granules[0], 17);

    eng_alloc_lock(bare.stripe);
    eng_directory_repair_locked(bare.stripe);
    eng_alloc_unlock(bare.stripe);
    CHECK((atomic_load(&bucket->ctl) & 1) == 0);
    CHECK_EQ_U64(bare.stripe->rt->bucket_in_flight, 0);
    check_lists(&bare);
    int copies = 0;
    for (uint32_t slot = 0; slot < 64 * ENG_BUCKET_ENTRIES; slot++)
        copies += eng_directory_entry(bare.stripe, slot) == entry;
    CHECK_EQ_INT(copies, 1);
}

/* ---- A resident key is never missed, whatever moves ---- */

struct movers {
    struct bare bare;
    uint64_t resident, churn;
    _Atomic bool stop;
    _Atomic uint64_t missed, looked, moved;
};

static void *look(void *data)
{
    struct movers *m = data;
    struct test_rng rng = {test_seed() ^ (uintptr_t)&rng};
    while (!atomic_load_explicit(&m->stop, memory_order_relaxed)) {
        uint64_t n = test_rng_below(&rng, m->resident);
        struct eng_place place = place_of(&m->bare, n);
        if (slot_of(&m->bare, &place, entry_of(&place, n) | 8) == ENG_NO_SLOT)
            atomic_fetch_add(&m->missed, 1);
        atomic_fetch_add_explicit(&m->looked, 1, memory_order_relaxed);
    }
    return NULL;
}

TEST(inv_E1_a_resident_key_is_never_missed)
{
    struct movers m = {.bare = bare_create(64, AREA, SEGMENTS), .resident = 300, .churn = 200};
    struct eng_displaced displaced;
    for (uint64_t n = 0; n < m.resident; n++) {
        struct eng_place place = place_of(&m.bare, n);
        CHECK_OK(insert(&m.bare, &place, entry_of(&place, n) | 8, &displaced));
    }
    pthread_t readers[2];
    for (int i = 0; i < 2; i++)
        CHECK_EQ_INT(pthread_create(&readers[i], NULL, look, &m), 0);
    /* The churn fills the last free slots, so that kept entries have to move to make room. */
    uint64_t rounds = test_full() ? 2000000 : 200000;
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t n = m.resident + i % m.churn;
        struct eng_place place = place_of(&m.bare, n);
        if (!remove_entry(&m.bare, &place, entry_of(&place, n)))
            (void)insert(&m.bare, &place, entry_of(&place, n), &displaced);
    }
    atomic_store(&m.stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(readers[i], NULL);
    CHECK(atomic_load(&m.looked) > 0);
    CHECK_EQ_U64(atomic_load(&m.missed), 0);
    check_lists(&m.bare);
}
