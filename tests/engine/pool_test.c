#include "engine/pool.h"

#include "engine/expiry.h"
#include "engine/slot.h"
#include "tests/engine/images.h"
#include "tests/engine/small_store.h"

static void put_some(struct eng_store *store, uint64_t version)
{
    for (uint64_t n = 0; n < 20; n++) {
        struct put put = {.n = n, .version = version, .length = 100 + 7000 * n};
        CHECK_OK(put.length < ENG_BIG_BODY ? put_small(store, &put, NULL)
                                           : put_parts(store, &put, 65536, 65536, NULL));
    }
}

static void expect_gone(struct eng_store *store)
{
    for (uint64_t n = 0; n < 20; n++)
        expect_none(store, n);
}

TEST(inv_E81_a_purged_pool_stays_purged_in_any_run)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    struct put fact = {.n = 99, .version = 1, .length = 50, .pool = ENG_POOL_META};
    put_some(store, 1);
    CHECK_OK(put_small(store, &fact, NULL));
    CHECK_OK(eng_pool_purge(store, ENG_POOL_MAIN));
    expect_gone(store);
    put_some(store, 2);
    for (int run = 0; run < 3; run++) {
        for (uint64_t n = 0; n < 20; n++)
            expect(store, n, 2);
        struct eng_ref ref;
        CHECK_OK(find(store, 99, ENG_POOL_META, 0, &ref)); /* another pool's */
        eng_ref_release(&ref);
        struct eng_check_report report = check_store(store, false);
        CHECK_EQ_U64(report.objects, 21);
        CHECK_OK(eng_store_close(store, run == 1));
        store = open_ok(&o);
    }
    CHECK_OK(eng_pool_purge(store, ENG_POOL_MAIN));
    CHECK_OK(eng_pool_purge(store, ENG_POOL_META));
    expect_gone(store);
    CHECK_OK(eng_store_close(store, true));
    store = open_ok(&o);
    expect_gone(store);
    check_store(store, false);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}

/* The documents reached the disk, directory and header did not, the purge did. */
TEST(inv_E81_rolling_forward_brings_nothing_purged_back)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    put_some(store, 1);
    CHECK_OK(eng_pool_purge(store, ENG_POOL_MAIN));
    struct put put = {.n = 3, .version = 2, .length = 5000};
    CHECK_OK(put_small(store, &put, NULL));
    char copy[600];
    snprintf(copy, sizeof copy, "%s-copy", o.dirs[0].path);
    copy_files(o.dirs[0].path, copy);
    struct opening p;
    opening_init(&p, copy);
    struct eng_store *again = open_ok(&p);
    expect(again, 3, 2);
    for (uint64_t n = 0; n < 20; n++)
        if (n != 3)
            expect_none(again, n);
    close_checked(again, &p);
    close_checked(store, &o);
}

/* An object whose parts were begun before a purge, and that is committed after it, came before it.
 */
TEST(a_put_across_a_purge_is_purged_and_leaks_nothing)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    struct key key = key_of(7);
    uint8_t body[70000] = {0};
    struct eng_part part;
    struct eng_commit commit = {
        .spec = {.key = key.bytes, .type = ENG_HEAD, .total_len = sizeof body, .parts = 1},
        .parts = &part,
        .n_parts = 1,
        .now = 1000,
    };
    uint64_t serial;
    commit.spec.object_serial = eng_object_serial(store, 0, key.bytes);
    CHECK_OK(eng_part_begin(store, &commit.spec, 1, 0, 0, sizeof body, &part));
    CHECK_OK(eng_part_write(&part, body, sizeof body));
    CHECK_OK(eng_part_finish(&part, &commit.spec));
    CHECK_OK(eng_pool_purge(store, ENG_POOL_MAIN));
    struct eng_part_row row = {.length = sizeof body, .part_no = 1, .crc = part.crc};
    commit.body = &row;
    commit.body_len = sizeof row;
    CHECK_OK(eng_commit(store, &commit, &serial));
    expect_none(store, 7);
    check_store(store, false);
    close_checked(store, &o);
}

TEST(inv_E83_what_is_kept_leaves_at_the_hand_once_its_time_is_over)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    struct put fact = {.n = 1, .version = 1, .length = 50, .pool = ENG_POOL_META, .expires = 2000};
    struct put stays = {.n = 2, .version = 1, .length = 50, .pool = ENG_POOL_META};
    CHECK_OK(put_small(store, &fact, NULL)); /* expired since 1970 */
    CHECK_OK(put_small(store, &stays, NULL));
    CHECK_OK(eng_pool_purge(store, ENG_POOL_MAIN)); /* of no concern to the meta pool */
    struct eng_ref ref;
    CHECK_OK(find(store, 1, ENG_POOL_META, 0, &ref)); /* at second 1000 */
    CHECK(eng_spent_locked(ref.stripe, ref.slot, ref.entry, 2000));
    CHECK(!eng_spent_locked(ref.stripe, ref.slot, ref.entry, 1999));
    eng_ref_release(&ref);
    /* Fill the pool until its hand has come round. */
    for (uint64_t n = 100; n < 1100; n++) {
        struct put more = {
            .n = n, .version = 1, .length = 3500, .pool = ENG_POOL_META, .expires = 2000};
        CHECK_OK(put_small(store, &more, NULL));
    }
    CHECK_ERR(find(store, 1, ENG_POOL_META, ENG_ANY_AGE, &ref), GYRE_NOT_FOUND);
    CHECK_OK(find(store, 2, ENG_POOL_META, ENG_ANY_AGE, &ref));
    eng_ref_release(&ref);
    close_checked(store, &o);
}

TEST(names_of_pools)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    uint8_t pool = 7;
    CHECK_OK(eng_pool_find(store, "meta", &pool));
    CHECK_EQ_INT(pool, ENG_POOL_META);
    CHECK_OK(eng_pool_find(store, "main", &pool));
    CHECK_EQ_INT(pool, ENG_POOL_MAIN);
    CHECK_ERR(eng_pool_find(store, "mai", &pool), GYRE_NOT_FOUND);
    CHECK_ERR(eng_pool_find(store, "", &pool), GYRE_NOT_FOUND);
    CHECK_ERR(eng_pool_find(store, "a name of more than sixteen bytes", &pool), GYRE_NOT_FOUND);
    CHECK_EQ_U64(eng_pool_bytes(store, ENG_POOL_MAIN), 0);
    put_some(store, 1);
    CHECK_EQ_U64(eng_pool_bytes(store, ENG_POOL_MAIN),
                 atomic_load(&store->stripes[0].rt->live_units) << ENG_UNIT_SHIFT);
    CHECK(eng_pool_capacity_bytes(store, ENG_POOL_MAIN) > 40 << 20);
    close_checked(store, &o);
}
