#include "tests/api/fixture.h"

#include <sys/wait.h>
#include <unistd.h>

static const struct gyre_pool_want wants[] = {
    {.name = "small", .max_bytes = 4 << 20},
    {.name = "video", .max_bytes = 16 << 20},
    {.name = "facts", .max_bytes = 4 << 20, .never_evicts = true},
};

static struct gyre_options pool_options(void)
{
    struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
    options.pools = wants;
    options.n_pools = 3;
    return options;
}

static gyre_err put_in(struct gyre_store *store, uint8_t pool, uint64_t n, uint64_t seed,
                       size_t len)
{
    struct gyre_key key = key_of(n);
    struct gyre_put_options options;
    uint8_t *bytes = pattern_new(seed, len);
    gyre_put_options_init(&options);
    options.pool = pool;
    gyre_err err = gyre_put(store, &key, &options, bytes, len, NULL);
    free(bytes);
    return err;
}

static void expect_in(struct gyre_store *store, uint8_t pool, uint64_t n, uint64_t seed)
{
    struct gyre_key key = key_of(n);
    struct gyre_handle *handle;
    CHECK_OK(gyre_get(store, &key, 0, GYRE_IN_POOL(pool), &handle));
    CHECK_EQ_INT(gyre_handle_info(handle)->pool, pool);
    check_pieces(handle, seed);
    gyre_release(handle);
}

static struct gyre_pool_info info_of(struct gyre_store *store, uint8_t pool)
{
    struct gyre_pool_info info = {.struct_size = sizeof info};
    CHECK_OK(gyre_pool_at(store, pool, &info));
    return info;
}

TEST(pools_have_keys_names_and_bounds_of_their_own)
{
    struct gyre_options options = pool_options();
    struct gyre_store *store = open_with(&options);
    uint8_t video;
    uint8_t facts;
    CHECK_OK(gyre_pool_find(store, "video", &video));
    CHECK_OK(gyre_pool_find(store, "facts", &facts));
    CHECK_EQ_STR(info_of(store, facts).name, "facts");
    CHECK(info_of(store, facts).never_evicts && !info_of(store, video).never_evicts);
    put_pattern(store, 1, 1, 5000);
    CHECK_OK(put_in(store, video, 1, 2, 200000));
    CHECK_OK(put_in(store, facts, 1, 3, 100));
    for (int run = 0; run < 2; run++) {
        check_object(store, 1, 1, 5000);
        expect_in(store, GYRE_POOL_MAIN, 1, 1);
        expect_in(store, video, 1, 2);
        expect_in(store, facts, 1, 3);
        close_store(store);
        store = open_with(&options);
    }
    for (uint64_t n = 10; n < 200; n++)
        CHECK_OK(put_in(store, video, n, n, 300000)); /* round and round in its own segments */
    CHECK(info_of(store, video).bytes <= info_of(store, video).capacity_bytes);
    CHECK(info_of(store, video).capacity_bytes <= (18 << 20));
    check_object(store, 1, 1, 5000);
    expect_in(store, facts, 1, 3);
    gyre_err err = GYRE_OK;
    for (uint64_t n = 10; n < 2000 && err == GYRE_OK; n++)
        err = put_in(store, facts, n, n, 12000);
    CHECK_ERR(err, GYRE_NO_SPACE);
    struct gyre_key key = key_of(1);
    CHECK_OK(gyre_delete(store, &key, GYRE_ALWAYS, 0, GYRE_IN_POOL(facts)));
    check_object(store, 1, 1, 5000);
    close_store(store);
}

TEST(small_things_have_a_ring_of_their_own_and_no_keys)
{
    struct gyre_options options = pool_options();
    struct gyre_store *store = open_with(&options);
    uint8_t small;
    CHECK_OK(gyre_pool_find(store, "small", &small));
    CHECK_ERR(put_in(store, small, 1, 1, 10), GYRE_INVALID);
    put_pattern(store, 1, 1, 2000);
    for (uint64_t n = 100; n < 300; n++)
        put_pattern(store, n, n, 60000); /* what is large turns over, what is small stays */
    check_object(store, 1, 1, 2000);
    CHECK_EQ_U64(info_of(store, small).bytes, 0); /* it is main's */
    close_store(store);
    store = open_with(&options);
    check_object(store, 1, 1, 2000);
    for (uint64_t n = 1000; n < 4000; n++)
        put_pattern(store, n, n, 2000);
    check_absent(store, 1);
    check_object(store, 299, 299, 60000);
    struct gyre_check_report report = {.struct_size = sizeof report};
    CHECK_OK(gyre_check(store, true, NULL, NULL, &report));
    close_store(store);
}

TEST(wishes_for_pools_that_cannot_be_met_are_refused)
{
    const struct gyre_pool_want bad[][2] = {
        {{.name = "main", .max_bytes = 4 << 20}},
        {{.name = "", .max_bytes = 4 << 20}},
        {{.name = NULL, .max_bytes = 4 << 20}},
        {{.name = "a name of sixteen", .max_bytes = 4 << 20}},
        {{.name = "none", .max_bytes = 0}},
        {{.name = "all", .max_bytes = 60 << 20}},
        {{.name = "twice", .max_bytes = 4 << 20}, {.name = "twice", .max_bytes = 4 << 20}},
        {{.name = "small", .max_bytes = 4 << 20, .never_evicts = true}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
        struct gyre_store *store;
        char message[512];
        options.pools = bad[i];
        options.n_pools = bad[i][1].name != NULL ? 2 : 1;
        CHECK_ERR(gyre_open(&options, &store, message, sizeof message), GYRE_INVALID);
        CHECK_MSG(strstr(message, "pool") != NULL, "%s", message);
    }
}

TEST(a_purged_pool_is_empty_at_once)
{
    struct gyre_options options = pool_options();
    struct gyre_store *store = open_with(&options);
    uint8_t video;
    CHECK_OK(gyre_pool_find(store, "video", &video));
    CHECK_OK(put_in(store, video, 1, 1, 100000));
    put_pattern(store, 1, 2, 100000);
    CHECK_OK(gyre_purge_pool(store, video));
    struct gyre_key key = key_of(1);
    struct gyre_handle *handle;
    CHECK_ERR(gyre_get(store, &key, 0, GYRE_IN_POOL(video), &handle), GYRE_NOT_FOUND);
    check_object(store, 1, 2, 100000);
    CHECK_EQ_U64(info_of(store, video).purges, 1);
    CHECK_OK(put_in(store, video, 1, 3, 100));
    expect_in(store, video, 1, 3);
    CHECK_ERR(gyre_purge_pool(store, 9), GYRE_INVALID);
    close_store(store);
}

TEST(labels_ban_and_later_puts_are_free_of_it)
{
    struct gyre_store *store = open_store();
    struct gyre_put_options options;
    uint64_t labels[] = {gyre_label(GYRE_LABEL_TAG, "sale", 4),
                         gyre_label(GYRE_LABEL_PREFIX, "/shop/", 6)};
    gyre_put_options_init(&options);
    options.labels = labels;
    options.n_labels = 2;
    options.meta = "m";
    options.meta_len = 1;
    uint8_t body[100000] = {0};
    uint32_t count;
    for (uint64_t n = 0; n < 4; n++) {
        struct gyre_key key = key_of(n);
        CHECK_OK(gyre_put(store, &key, &options, body, n % 2 == 0 ? 100 : sizeof body, NULL));
    }
    put_pattern(store, 9, 9, 100);
    CHECK_OK(gyre_ban_label(store, GYRE_POOL_MAIN, labels[1], GYRE_PUT_SYNC));
    for (uint64_t n = 0; n < 4; n++)
        check_absent(store, n);
    check_object(store, 9, 9, 100);
    struct gyre_key key = key_of(0);
    struct gyre_handle *handle;
    CHECK_OK(gyre_put(store, &key, &options, body, 100, NULL));
    CHECK_OK(gyre_get(store, &key, 0, 0, &handle));
    size_t meta_len;
    CHECK(memcmp(gyre_handle_meta(handle, &meta_len), "m", 1) == 0);
    CHECK_EQ_INT(meta_len, 1);
    gyre_release(handle);
    key = key_of(9);
    CHECK_OK(gyre_ban_key(store, GYRE_POOL_MAIN, &key, 0));
    check_absent(store, 9);
    CHECK_OK(gyre_bans(store, &count));
    CHECK_EQ_INT(count, 2);
    options.n_labels = GYRE_LABELS_MAX + 1;
    CHECK_ERR(gyre_put(store, &key, &options, body, 1, NULL), GYRE_INVALID);
    close_store(store);
}

TEST(inv_E84_what_is_pinned_stays_until_its_time_and_takes_a_quarter_at_most)
{
    struct gyre_store *store = open_store();
    struct gyre_put_options options;
    gyre_put_options_init(&options);
    options.pin_until = UINT32_MAX;
    uint8_t *body = pattern_new(1, 400000);
    struct gyre_key key = key_of(1);
    CHECK_OK(gyre_put(store, &key, &options, body, 400000, NULL));
    key = key_of(2);
    CHECK_OK(gyre_put(store, &key, &options, body, 3000, NULL));
    options.pin_until = 1; /* over since 1970 */
    key = key_of(3);
    CHECK_OK(gyre_put(store, &key, &options, body, 400000, NULL));
    CHECK_OK(gyre_upload_sweep(store, 2));
    for (uint64_t n = 100; n < 400; n++)
        put_pattern(store, n, n, 400000);
    check_object(store, 1, 1, 400000);
    check_object(store, 2, 1, 3000);
    check_absent(store, 3);
    options.pin_until = UINT32_MAX;
    gyre_err err = GYRE_OK;
    uint64_t n = 1000;
    while (err == GYRE_OK && n < 1200) {
        key = key_of(n++);
        err = gyre_put(store, &key, &options, body, 400000, NULL);
    }
    CHECK_ERR(err, GYRE_QUOTA);
    check_absent(store, n - 1);
    struct gyre_pool_info info = info_of(store, GYRE_POOL_MAIN);
    CHECK(info.kept_bytes <= info.capacity_bytes / 4 && info.kept_bytes > info.capacity_bytes / 5);
    free(body);
    close_store(store);
}

TEST(a_quota_stops_objects_of_any_kind)
{
    struct gyre_store *store = open_store();
    struct gyre_put_options options;
    gyre_put_options_init(&options);
    options.tenant = 7;
    CHECK_OK(gyre_tenant_set_quota(store, 7, 1 << 20));
    uint8_t *body = pattern_new(1, 2 << 20);
    struct gyre_key key = key_of(1);
    CHECK_OK(gyre_put(store, &key, &options, body, 600000, NULL));
    CHECK_OK(gyre_put(store, &key, &options, body, 700000, NULL)); /* in place of the first */
    key = key_of(2);
    CHECK_ERR(gyre_put(store, &key, &options, body, 600000, NULL), GYRE_QUOTA);
    CHECK_ERR(gyre_put(store, &key, &options, body, 2 << 20, NULL), GYRE_QUOTA);
    struct gyre_put *put;
    CHECK_OK(gyre_put_begin(store, &key, &options, &put));
    gyre_err err = gyre_put_write(put, body, 2 << 20);
    CHECK(err == GYRE_OK || err == GYRE_QUOTA);
    CHECK_ERR(gyre_put_commit(&put, NULL), GYRE_QUOTA);
    check_absent(store, 2);
    check_object(store, 1, 1, 700000);
    free(body);
    close_store(store);
}

/* What another process does to the store that this one has open. */
static void in_another_process(const struct gyre_options *options,
                               void (*run)(struct gyre_store *store))
{
    pid_t pid = test_fork();
    if (pid == 0) {
        struct gyre_store *store = open_with(options);
        run(store);
        _exit(gyre_close(&store, 10000) == GYRE_OK ? 0 : 1);
    }
    test_join(pid);
}

static void ban_and_bound(struct gyre_store *store)
{
    uint64_t bytes;
    uint64_t quota;
    CHECK_OK(gyre_ban_label(store, GYRE_POOL_MAIN, gyre_label(GYRE_LABEL_TAG, "x", 1), 0));
    CHECK_OK(gyre_tenant_bytes(store, 7, &bytes, &quota));
    CHECK(bytes > 1000);
    CHECK_OK(gyre_tenant_set_quota(store, 7, 1));
}

static void purge(struct gyre_store *store)
{
    CHECK_OK(gyre_purge_pool(store, GYRE_POOL_MAIN));
    put_pattern(store, 3, 3, 1000);
}

TEST(bans_quotas_and_purges_count_in_every_process)
{
    struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
    struct gyre_store *store = open_with(&options);
    struct gyre_put_options put;
    uint64_t label = gyre_label(GYRE_LABEL_TAG, "x", 1);
    struct gyre_key key = key_of(1);
    uint8_t body[1000] = {0};
    gyre_put_options_init(&put);
    put.labels = &label;
    put.n_labels = 1;
    put.tenant = 7;
    CHECK_OK(gyre_put(store, &key, &put, body, sizeof body, NULL));
    put_pattern(store, 2, 2, 1000);
    in_another_process(&options, ban_and_bound);
    check_absent(store, 1);
    check_object(store, 2, 2, 1000);
    CHECK_ERR(gyre_put(store, &key, &put, body, sizeof body, NULL), GYRE_QUOTA);
    in_another_process(&options, purge);
    check_absent(store, 2);
    check_object(store, 3, 3, 1000);
    close_store(store);
    store = open_with(&options);
    check_absent(store, 2);
    check_object(store, 3, 3, 1000);
    close_store(store);
}
