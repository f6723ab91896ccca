/* What is there after a store was closed, or its process died. */
#include "tests/engine/images.h"

#include <sys/wait.h>

#include "engine/cleaner.h"
#include "engine/geometry.h"
#include "engine/keeper.h"
#include "engine/locks.h"
#include "engine/log.h"
#include "engine/seal.h"
#include "engine/sync.h"

/* ---- Helpers ---- */

static void run_in_child(void (*run)(struct opening *o, uint32_t n), struct opening *o, uint32_t n)
{
    pid_t pid = test_fork();

    if (pid == 0) {
        run(o, n);
        fflush(stderr);
        _exit(0);
    }
    test_join(pid);
}

/* ---- Closed in order ---- */

TEST(inv_E47_all_objects_are_there_after_a_clean_close)
{
    struct opening o;
    uint64_t serial;

    opening_init(&o, test_path("data"));
    struct eng_store *store = open_ok(&o);
    put_many(store, 100, 1);
    serial = object_put_in(store, ENG_POOL_META, 1000, 1, 500, false);
    expect_version(store, 100, 1);
    check_store(store, false);
    CHECK_OK(eng_store_close(store, true));
    for (int i = 0; i < 3; i++) {
        store = open_ok(&o);
        CHECK_EQ_U64(recovered(store), 0);
        expect_version(store, 100, 1);
        check_store(store, false);
        CHECK_OK(eng_store_close(store, true));
    }
    store = open_ok(&o);
    CHECK(object_put(store, 0, 2, len_of(0, 2)) > serial);
    CHECK_OK(object_delete(store, 1, false));
    CHECK_OK(eng_store_close(store, true));
    store = open_ok(&o);
    CHECK_EQ_INT(object_version(store, 0, len_of), 2);
    CHECK_EQ_INT(object_version(store, 1, len_of), 0);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}

/* ---- Killed ---- */

static void put_and_die(struct opening *o, uint32_t n)
{
    struct eng_store *store = open_ok(o);

    put_many(store, n, 1);
    for (uint32_t i = 0; i < n; i += 3)
        CHECK_OK(object_delete(store, i, false));
    for (uint32_t i = 1; i < n; i += 3)
        object_put(store, i, 2, len_of(i, 2));
}

TEST(inv_E47_a_killed_process_leaves_every_commit_and_deletion)
{
    struct opening o;

    opening_init(&o, test_path("data"));
    run_in_child(put_and_die, &o, 90);
    for (int i = 0; i < 2; i++) {
        struct eng_store *store = open_ok(&o);
        for (uint32_t n = 0; n < 90; n++)
            CHECK_EQ_INT(object_version(store, n, len_of), n % 3 == 0 ? 0 : n % 3 == 1 ? 2 : 1);
        check_store(store, false);
        CHECK_OK(eng_store_close(store, i == 0));
    }
    opening_fini(&o);
}

/* ---- The log goes round ---- */

static size_t fixed_len(uint32_t number, uint32_t version)
{
    (void)version;
    return number % 2 == 0 ? 200000 : 9000;
}

static void expect_newest(struct eng_store *store, uint32_t next)
{
    for (uint32_t i = next > 400 ? next - 400 : 0; i < next; i++)
        CHECK_MSG(object_version(store, i, fixed_len) == 1, "object %u of %u", i, next);
}

/* About 550 of them fit. A hand that began anew in the wrong place would take newer ones first. */
TEST(newest_objects_survive_wrapping_and_every_kind_of_ending)
{
    struct opening o;
    uint32_t next = 0;

    opening_init(&o, test_path("data"));
    for (int round = 0; round < 6; round++) {
        struct eng_store *store = open_ok(&o);
        expect_newest(store, next);
        check_store(store, false);
        for (int i = 0; i < 770 + 37 * round; i++, next++) {
            object_put(store, next, 1, fixed_len(next, 1));
            if (i == 100 || i == 250)
                expect_newest(store, next + 1);
        }
        CHECK_OK(eng_store_close(store, round % 2 == 0));
    }
    opening_fini(&o);
}

/* ---- Ordering ---- */

TEST(inv_E45_a_header_announces_every_segment_that_is_in_use)
{
    struct opening o;

    opening_init(&o, test_path("data"));
    struct eng_store *store = open_ok(&o);
    struct eng_stripe *stripe = &store->stripes[0];
    for (uint32_t i = 0; i < 900; i++) {
        object_put(store, i, 1, fixed_len(i, 1));
        if (i % 100 == 0)
            CHECK_OK(eng_sync_store(store, false));
        const struct eng_stripe_rt *rt = stripe->rt;
        bool announced = false;
        eng_alloc_lock(stripe); /* the keeper moves the hand, too */
        for (uint32_t h = 0; h < rt->n_horizon; h++)
            announced = announced || rt->horizon[h] == rt->rings[ENG_POOL_MAIN].hand_segment;
        bool bounded = rt->n_horizon <= ENG_HORIZON;
        eng_alloc_unlock(stripe);
        CHECK(announced);
        CHECK(bounded);
    }
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}

/* Makes successors nonsense behind a right checksum. */
static void scramble_table(const char *path, const struct eng_superblock *super, unsigned copy,
                           struct test_rng *rng)
{
    uint32_t n = super->stripes[0].n_segments;
    struct pages table =
        read_pages(path, eng_table_off(super, 0, copy), n * sizeof(struct eng_segment_row));
    struct pages page = read_pages(path, eng_header_off(0, copy), ENG_PAGE);
    struct eng_segment_row *rows = (struct eng_segment_row *)(void *)table.bytes;
    struct eng_stripe_header *header = (struct eng_stripe_header *)(void *)page.bytes;

    for (uint32_t i = 0; i < n; i++)
        if (test_rng_below(rng, 3) == 0)
            rows[i].successor = (uint32_t)test_rng_below(rng, n);
    header->table_crc = eng_segment_table_crc(rows, n);
    eng_stripe_header_seal(header);
    write_pages(path, &table);
    write_pages(path, &page);
    free(table.bytes);
    free(page.bytes);
}

/* What the keeper does when it is awake. */
static void clean_ahead(struct eng_store *store)
{
    struct eng_stripe *stripe = &store->stripes[0];
    const struct eng_ring *ring = eng_ring_of(stripe, ENG_POOL_MAIN);
    uint64_t target = eng_clean_target_units(stripe, ring);

    for (bool enough = false; !enough;) {
        struct eng_clean_step step;
        eng_clean_lock(stripe);
        eng_alloc_lock(stripe);
        enough = ring->clean_units >= target;
        eng_alloc_unlock(stripe);
        if (!enough)
            CHECK_OK(eng_clean_step_locked(stripe, ENG_POOL_MAIN, 2 * target, &step));
        eng_clean_unlock(stripe);
    }
}

TEST(inv_E89_a_hand_enters_the_clean_segments_of_its_ring_before_it_takes_new_ones)
{
    struct opening o;

    opening_init(&o, test_path("data"));
    struct eng_store *store = open_ok(&o);
    for (uint32_t i = 0; i < 300; i++)
        object_put(store, i, 1, fixed_len(i, 1));
    clean_ahead(store);
    uint32_t segments = eng_ring_of(&store->stripes[0], ENG_POOL_MAIN)->n_segments;
    CHECK_OK(eng_store_close(store, true));
    for (int round = 0; round < 12; round++) {
        store = open_ok(&o);
        clean_ahead(store);
        CHECK(eng_ring_of(&store->stripes[0], ENG_POOL_MAIN)->n_segments <= segments + 1);
        for (uint32_t i = 0; i < 300; i++)
            CHECK_MSG(object_version(store, i, fixed_len) == 1, "round %d: object %u", round, i);
        CHECK_OK(eng_store_close(store, round % 2 == 0));
    }
    opening_fini(&o);
}

TEST(inv_E48_rings_are_whole_whatever_the_table_says)
{
    struct opening o;
    struct test_rng rng = {test_seed()};

    opening_init(&o, test_path("data"));
    struct eng_store *store = open_ok(&o);
    for (uint32_t i = 0; i < 300; i++)
        object_put(store, i, 1, fixed_len(i, 1));
    struct eng_superblock super = store->super;
    CHECK_OK(eng_store_close(store, true));
    for (int round = 0; round < 10; round++) {
        for (unsigned copy = 0; copy < 2; copy++)
            scramble_table(test_path("data/volume.gyre"), &super, copy, &rng);
        store = open_ok(&o);
        check_store(store, false);
        object_put(store, 1000, 1, fixed_len(1000, 1)); /* moves the hand, past nobody's bytes */
        for (uint32_t i = 0; i < 300; i++)
            CHECK_MSG(object_version(store, i, fixed_len) == 1, "round %d: object %u", round, i);
        CHECK_OK(eng_store_close(store, round % 2 == 0));
    }
    store = open_ok(&o);
    for (uint32_t i = 0; i < 1500; i++)
        object_put(store, i, 2, fixed_len(i, 2));
    check_store(store, false);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}
