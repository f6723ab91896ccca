/* Visiting pools; and the meta pool: found like any object, never evicted, bounded. */
#include "tests/api/fixture.h"

static gyre_err put_fact(struct gyre_store *store, uint64_t n, uint64_t seed, size_t len)
{
    struct gyre_key key = key_of(n);
    struct gyre_put_options options;
    uint8_t *bytes = pattern_new(seed, len);
    gyre_put_options_init(&options);
    options.pool = GYRE_POOL_META;
    options.meta = &n;
    options.meta_len = sizeof n;
    gyre_err err = gyre_put(store, &key, &options, bytes, len, NULL);
    free(bytes);
    return err;
}

struct seen {
    unsigned times[1000];
    unsigned total, stop_after;
};

static bool visit(void *data, const struct gyre_handle *handle)
{
    struct seen *seen = data;
    uint64_t n;
    size_t len;
    memcpy(&n, gyre_handle_meta(handle, &len), sizeof n);
    CHECK(len == sizeof n && n < 1000);
    CHECK_EQ_U64(gyre_handle_info(handle)->pool, GYRE_POOL_META);
    struct gyre_piece piece;
    CHECK_OK(gyre_handle_piece(handle, 0, &piece));
    CHECK(pattern_is(n, 0, piece.base, piece.len));
    seen->times[n]++;
    return ++seen->total != seen->stop_after;
}

static void check_all_seen_once(struct gyre_store *store, unsigned n)
{
    static struct seen seen;
    memset(&seen, 0, sizeof seen);
    CHECK_OK(gyre_each_meta(store, visit, &seen));
    CHECK_EQ_U64(seen.total, n);
    for (unsigned i = 0; i < n; i++)
        CHECK_EQ_U64(seen.times[i], 1);
}

TEST(changes_of_facts_are_counted_and_those_of_objects_are_not)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    uint64_t before = gyre_meta_changes(store);
    put_pattern(store, 5000, 1, 100);
    CHECK_EQ_U64(gyre_meta_changes(store), before);
    CHECK_OK(put_fact(store, 1, 1, 10));
    uint64_t made = gyre_meta_changes(store);
    CHECK_EQ_U64(made, before + 2);
    CHECK_ERR(gyre_delete(store, &key, GYRE_IF_SERIAL, 0, GYRE_IN_POOL(GYRE_POOL_META)),
              GYRE_CHANGED);
    made = gyre_meta_changes(store);
    CHECK_OK(gyre_delete(store, &key, GYRE_ALWAYS, 0, 0));
    CHECK_EQ_U64(gyre_meta_changes(store), made + 2); /* even: nothing is under way */
    put_pattern(store, 5000, 1, 100);
    CHECK_EQ_U64(gyre_meta_changes(store), made + 2);
    close_store(store);
}

TEST(each_fact_is_visited_once)
{
    struct gyre_store *store = open_store();
    check_all_seen_once(store, 0);
    put_pattern(store, 5000, 1, 100);
    check_all_seen_once(store, 0);
    for (uint64_t n = 0; n < 300; n++)
        CHECK_OK(put_fact(store, n, n, 10 + n));
    check_all_seen_once(store, 300);
    for (uint64_t n = 0; n < 300; n += 2)
        CHECK_OK(put_fact(store, n, n, 500 + n)); /* replaced */
    check_all_seen_once(store, 300);
    static struct seen seen = {.stop_after = 7};
    CHECK_OK(gyre_each_meta(store, visit, &seen));
    CHECK_EQ_U64(seen.total, 7);
    CHECK_ERR(gyre_each_meta(store, NULL, NULL), GYRE_INVALID);
    close_store(store);
    store = open_store();
    check_all_seen_once(store, 300);
    for (uint64_t n = 0; n < 300; n++) {
        struct gyre_key key = key_of(n);
        CHECK_OK(gyre_exists(store, &key, 0, GYRE_STRICT));
        CHECK_OK(gyre_exists(store, &key, 0, GYRE_PROBABLE));
        CHECK_OK(gyre_delete(store, &key, GYRE_ALWAYS, 0, 0));
        check_absent(store, n);
    }
    check_all_seen_once(store, 0);
    close_store(store);
}

TEST(looking_in_two_pools_counts_once)
{
    struct gyre_store *store = open_store();
    struct gyre_stats stats = {.struct_size = sizeof stats};
    struct gyre_key here = key_of(1), absent = key_of(2);
    struct gyre_handle *handle;
    CHECK_OK(put_fact(store, 1, 1, 100));
    CHECK_OK(gyre_get(store, &here, 0, 0, &handle));
    gyre_release(handle);
    CHECK_ERR(gyre_get(store, &absent, 0, 0, &handle), GYRE_NOT_FOUND);
    CHECK_OK(gyre_exists(store, &here, 0, GYRE_STRICT));
    CHECK_OK(gyre_each_meta(store, visit, &(struct seen){0})); /* neither of them is a get */
    CHECK_OK(gyre_stat(store, &stats));
    CHECK_EQ_U64(stats.hits, 1);
    CHECK_EQ_U64(stats.misses, 1);
    close_store(store);
}

TEST(facts_stay_while_objects_come_and_go)
{
    struct gyre_store *store = open_store();
    for (uint64_t n = 0; n < 100; n++)
        CHECK_OK(put_fact(store, n, n, 200));
    for (uint64_t n = 1000; n < 1000 + 3 * GYRE_SIZE_MIN / 500000; n++)
        put_pattern(store, n, n, 500000);
    check_all_seen_once(store, 100);
    for (uint64_t n = 0; n < 100; n++)
        check_object(store, n, n, 200);
    close_store(store);
}

static bool visit_object(void *data, const struct gyre_handle *handle)
{
    struct seen *seen = data;
    uint64_t length = gyre_handle_info(handle)->length, n = length % 1000;
    struct gyre_piece piece;
    CHECK_EQ_U64(gyre_handle_info(handle)->pool, GYRE_POOL_MAIN);
    CHECK_ERR(gyre_handle_piece(handle, 0, &piece), GYRE_STATE);
    seen->times[n]++;
    return ++seen->total != seen->stop_after;
}

TEST(each_object_of_the_main_pool_is_visited_once)
{
    struct gyre_store *store = open_store();
    static struct seen seen;
    CHECK_OK(put_fact(store, 5, 5, 300));
    for (uint64_t n = 0; n < 200; n++)
        put_pattern(store, 1000 + n, n, n + (n % 3 == 0 ? 200000 : 1000)); /* the length names it */
    for (uint64_t n = 0; n < 200; n += 5)
        put_pattern(store, 1000 + n, n, n + (n % 2 == 0 ? 200000 : 1000)); /* replaced */
    struct gyre_key gone = key_of(1007);
    CHECK_OK(gyre_delete(store, &gone, GYRE_ALWAYS, 0, 0));
    CHECK_OK(gyre_each(store, GYRE_POOL_MAIN, visit_object, &seen));
    CHECK_EQ_U64(seen.total, 199);
    for (unsigned n = 0; n < 200; n++)
        CHECK_EQ_U64(seen.times[n], n != 7);
    seen = (struct seen){.stop_after = 3};
    CHECK_OK(gyre_each(store, GYRE_POOL_MAIN, visit_object, &seen));
    CHECK_EQ_U64(seen.total, 3);
    CHECK_ERR(gyre_each(store, (enum gyre_pool)2, visit_object, &seen), GYRE_INVALID);
    CHECK_ERR(gyre_each(store, GYRE_POOL_MAIN, NULL, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_each(NULL, GYRE_POOL_MAIN, visit_object, &seen), GYRE_INVALID);
    close_store(store);
}

/* The pool goes round over its dead documents, and says so when the live ones fill it. */
TEST(the_pool_is_bounded_but_not_worn_out)
{
    struct gyre_store *store = open_store();
    for (unsigned round = 0; round < 4000; round++)
        CHECK_OK(put_fact(store, round % 10, round % 10, 5000));
    gyre_err err = GYRE_OK;
    uint64_t n = 10;
    while (n < 100000 && err == GYRE_OK) {
        err = put_fact(store, n, n, 5000);
        n += err == GYRE_OK;
    }
    CHECK_ERR(err, GYRE_NO_SPACE);
    CHECK(n > 50);
    for (uint64_t i = 0; i < n; i++)
        check_object(store, i, i, 5000);
    struct gyre_key key = key_of(3);
    CHECK_OK(gyre_delete(store, &key, GYRE_ALWAYS, 0, 0));
    put_pattern(store, 200000, 1, 100000); /* the main pool is not concerned */
    check_object(store, 200000, 1, 100000);
    close_store(store);
}

TEST(large_objects_do_not_belong_there)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    struct gyre_put_options options;
    struct gyre_put *put;
    static uint8_t bytes[70000];
    gyre_put_options_init(&options);
    options.pool = GYRE_POOL_META;
    CHECK_ERR(gyre_put(store, &key, &options, bytes, 65536, NULL), GYRE_TOO_LARGE);
    CHECK_OK(gyre_put(store, &key, &options, bytes, 65535, NULL));
    CHECK_OK(gyre_put_begin(store, &key, &options, &put));
    CHECK_OK(gyre_put_write(put, bytes, 60000));
    CHECK_ERR(gyre_put_write(put, bytes, 6000), GYRE_TOO_LARGE);
    gyre_put_abort(&put);
    options.length = 65536;
    CHECK_ERR(gyre_put_begin(store, &key, &options, &put), GYRE_TOO_LARGE);
    close_store(store);
}

TEST(a_key_in_both_pools_is_the_main_one_until_deleted)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    CHECK_OK(put_fact(store, 1, 1, 100));
    put_pattern(store, 1, 2, 200);
    check_object(store, 1, 2, 200);
    CHECK_OK(gyre_delete(store, &key, GYRE_ALWAYS, 0, 0));
    check_absent(store, 1);
    close_store(store);
}
