/* Opening and closing: options that are refused, modes, what outlives the store. */
#include "tests/api/fixture.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

static gyre_err try_open(const struct gyre_options *options, char message[512])
{
    struct gyre_store *store = (struct gyre_store *)message;
    gyre_err err = gyre_open(options, &store, message, 512);
    CHECK((err == GYRE_OK) == (store != NULL));
    CHECK((err == GYRE_OK) == (message[0] == '\0'));
    if (err == GYRE_OK)
        close_store(store);
    return err;
}

TEST(absurd_options_are_refused_with_a_sentence)
{
    char message[512];
    struct gyre_options good = options_for("store", GYRE_SIZE_MIN), bad;
    CHECK_ERR(try_open(NULL, message), GYRE_INVALID);
    static const size_t sizes[] = {0, 1, sizeof bad - 1, sizeof bad + 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bad = good;
        bad.struct_size = sizes[i];
        CHECK_ERR(try_open(&bad, message), GYRE_INVALID);
    }
    bad = good;
    bad.dirs = NULL;
    CHECK_ERR(try_open(&bad, message), GYRE_INVALID);
    bad = good;
    bad.n_dirs = 0;
    CHECK_ERR(try_open(&bad, message), GYRE_INVALID);
    bad.n_dirs = SIZE_MAX;
    CHECK_ERR(try_open(&bad, message), GYRE_INVALID);
    bad = good;
    bad.mode = (enum gyre_open_mode)7;
    CHECK_ERR(try_open(&bad, message), GYRE_INVALID);
    bad = good;
    bad.async_threads = 65;
    CHECK_ERR(try_open(&bad, message), GYRE_INVALID);
    bad = good;
    bad.segment_bytes = 3000000;
    CHECK_ERR(try_open(&bad, message), GYRE_INVALID);
    bad = good;
    bad.size_bytes = GYRE_SIZE_MIN - 1;
    CHECK_ERR(try_open(&bad, message), GYRE_INVALID);
    struct gyre_data_dir nameless = {.path = ""};
    bad = good;
    bad.dirs = &nameless;
    CHECK_ERR(try_open(&bad, message), GYRE_INVALID);
    nameless.path = NULL;
    CHECK_ERR(try_open(&bad, message), GYRE_INVALID);
    CHECK_ERR(gyre_open(&good, NULL, message, sizeof message), GYRE_INVALID);
    good.mode = GYRE_OPEN_EXISTING;
    CHECK_ERR(try_open(&good, message), GYRE_NO_STORE);
}

TEST(a_message_is_cut_to_its_buffer)
{
    struct gyre_options options = options_for("none", GYRE_SIZE_MIN);
    options.mode = GYRE_OPEN_EXISTING;
    struct gyre_store *store;
    char message[16];
    memset(message, 'x', sizeof message);
    CHECK_ERR(gyre_open(&options, &store, message, 8), GYRE_NO_STORE);
    CHECK_EQ_U64(strlen(message), 7);
    CHECK(message[8] == 'x');
    CHECK_ERR(gyre_open(&options, &store, message, 0), GYRE_NO_STORE);
    CHECK_ERR(gyre_open(&options, &store, NULL, 0), GYRE_NO_STORE);
}

TEST(modes_open_make_and_reset)
{
    char message[512];
    struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
    options.mode = GYRE_OPEN_EXISTING;
    CHECK_ERR(try_open(&options, message), GYRE_NO_STORE);
    options.mode = GYRE_OPEN_OR_CREATE;
    struct gyre_store *store = open_with(&options);
    put_pattern(store, 1, 1, 1000);
    close_store(store);
    options.mode = GYRE_OPEN_EXISTING;
    store = open_with(&options);
    check_object(store, 1, 1, 1000);
    close_store(store);
    options.mode = GYRE_OPEN_RESET;
    store = open_with(&options);
    check_absent(store, 1);
    close_store(store);
}

TEST(a_store_in_use_is_locked)
{
    char message[512];
    struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
    struct gyre_store *store = open_with(&options);
    CHECK_ERR(try_open(&options, message), GYRE_LOCKED);
    options.mode = GYRE_OPEN_RESET;
    CHECK_ERR(try_open(&options, message), GYRE_LOCKED);
    close_store(store);
    CHECK_OK(try_open(&options, message));
}

TEST(objects_survive_reopening)
{
    static const size_t sizes[] = {0, 1, 4096, 65535, 65536, 3 * MIB + 17};
    struct gyre_store *store = open_store();
    for (size_t i = 0; i < 6; i++)
        put_pattern(store, i, 100 + i, sizes[i]);
    for (int round = 0; round < 3; round++) {
        close_store(store);
        store = open_store();
        for (size_t i = 0; i < 6; i++)
            check_object(store, i, 100 + i, sizes[i]);
    }
    close_store(store);
}

TEST(a_lost_data_file_is_replaced_only_when_asked)
{
    char message[512], path[600];
    struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
    struct gyre_store *store = open_with(&options);
    struct gyre_file file;
    put_pattern(store, 1, 1, 100000);
    CHECK_OK(gyre_file_at(store, 1, &file));
    snprintf(path, sizeof path, "%s", file.path);
    close_store(store);
    CHECK(unlink(path) == 0);
    CHECK_ERR(try_open(&options, message), GYRE_DAMAGED);
    CHECK(access(path, F_OK) != 0);
    options.replace_lost = true;
    store = open_with(&options);
    check_absent(store, 1);
    put_pattern(store, 1, 2, 100000);
    check_object(store, 1, 2, 100000);
    close_store(store);
}

TEST(a_sync_on_demand_is_counted)
{
    struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
    options.sync_interval_ms = 0;
    struct gyre_store *store = open_with(&options);
    put_pattern(store, 1, 1, 10);
    CHECK_OK(gyre_sync(store));
    struct gyre_stats stats = {.struct_size = sizeof stats};
    CHECK_OK(gyre_stat(store, &stats));
    CHECK(stats.syncs >= 1);
    close_store(store);
}

TEST(closing_nothing_is_refused)
{
    struct gyre_store *store = NULL;
    CHECK_ERR(gyre_close(NULL, 0), GYRE_INVALID);
    CHECK_ERR(gyre_close(&store, 0), GYRE_INVALID);
}

TEST(handles_outlive_close_and_keep_the_files_locked)
{
    char message[512];
    struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
    struct gyre_store *store = open_with(&options);
    struct gyre_handle *small, *big;
    struct gyre_key one = key_of(1), two = key_of(2);
    put_pattern(store, 1, 1, 5000);
    put_pattern(store, 2, 2, 2 * MIB);
    CHECK_OK(gyre_get(store, &one, 0, 0, &small));
    CHECK_OK(gyre_get(store, &two, 0, GYRE_GET_LAZY, &big));
    close_store(store);
    CHECK_ERR(try_open(&options, message), GYRE_LOCKED);
    check_pieces(small, 1);
    CHECK_OK(gyre_populate(big, 0, 2 * MIB));
    check_pieces(big, 2);
    CHECK_ERR(gyre_populate_async(big, 0, 1, (void (*)(void *, gyre_err))abort, NULL), GYRE_CLOSED);
    gyre_release(small);
    CHECK_ERR(try_open(&options, message), GYRE_LOCKED);
    gyre_release(big);
    CHECK_OK(try_open(&options, message));
}

TEST(puts_that_outlive_close_are_refused_and_leave_nothing)
{
    struct gyre_store *store = open_store();
    struct gyre_key one = key_of(1), two = key_of(2);
    struct gyre_put_options options;
    struct gyre_put *small, *big;
    uint8_t *bytes = pattern_new(5, 3 * MIB);
    gyre_put_options_init(&options);
    CHECK_OK(gyre_put_begin(store, &one, &options, &small));
    CHECK_OK(gyre_put_begin(store, &two, &options, &big));
    CHECK_OK(gyre_put_write(small, bytes, 100));
    CHECK_OK(gyre_put_write(big, bytes, 3 * MIB));
    close_store(store);
    CHECK_ERR(gyre_put_write(small, bytes, 1), GYRE_CLOSED);
    CHECK_ERR(gyre_put_commit(&small, NULL), GYRE_CLOSED);
    CHECK(small == NULL);
    CHECK_ERR(gyre_put_commit(&big, NULL), GYRE_CLOSED);
    store = open_store();
    check_absent(store, 1);
    check_absent(store, 2);
    close_store(store);
    free(bytes);
}

/* A call that lasts until it is told to end. */
struct slow_visit {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct gyre_store *store;
    int state; /* 0, 1 inside, 2 may leave */
    gyre_err err;
};

static bool visit_slowly(void *data, const struct gyre_handle *handle)
{
    struct slow_visit *slow = data;
    CHECK(handle != NULL);
    pthread_mutex_lock(&slow->lock);
    slow->state = 1;
    pthread_cond_broadcast(&slow->changed);
    while (slow->state != 2)
        pthread_cond_wait(&slow->changed, &slow->lock);
    pthread_mutex_unlock(&slow->lock);
    return true;
}

static void *run_slow_visit(void *data)
{
    struct slow_visit *slow = data;
    slow->err = gyre_each_meta(slow->store, visit_slowly, slow);
    return NULL;
}

static void begin_slow_visit(struct slow_visit *slow, pthread_t *thread)
{
    struct gyre_put_options options;
    struct gyre_key key = key_of(77);
    gyre_put_options_init(&options);
    options.pool = GYRE_POOL_META;
    CHECK_OK(gyre_put(slow->store, &key, &options, "fact", 4, NULL));
    CHECK(pthread_create(thread, NULL, run_slow_visit, slow) == 0);
    pthread_mutex_lock(&slow->lock);
    while (slow->state != 1)
        pthread_cond_wait(&slow->changed, &slow->lock);
    pthread_mutex_unlock(&slow->lock);
}

static void end_slow_visit(struct slow_visit *slow)
{
    pthread_mutex_lock(&slow->lock);
    slow->state = 2;
    pthread_cond_broadcast(&slow->changed);
    pthread_mutex_unlock(&slow->lock);
}

TEST(close_waits_no_longer_than_it_may)
{
    struct gyre_store *store = open_store();
    struct slow_visit slow = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, store, 0,
                              GYRE_OK};
    pthread_t thread;
    begin_slow_visit(&slow, &thread);
    CHECK_ERR(gyre_close(&store, 20), GYRE_TIMEOUT);
    CHECK(store == NULL);
    char message[512];
    struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
    CHECK_ERR(try_open(&options, message), GYRE_LOCKED);
    end_slow_visit(&slow);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(slow.err);
    CHECK_OK(try_open(&options, message)); /* the straggler has closed it */
}

static void *release_slow_visit_soon(void *data)
{
    usleep(20000);
    end_slow_visit(data);
    return NULL;
}

TEST(close_waits_for_calls_in_progress)
{
    struct gyre_store *store = open_store();
    struct slow_visit slow = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, store, 0,
                              GYRE_OK};
    pthread_t thread, releaser;
    begin_slow_visit(&slow, &thread);
    CHECK(pthread_create(&releaser, NULL, release_slow_visit_soon, &slow) == 0);
    CHECK_OK(gyre_close(&store, 60000));
    CHECK(pthread_join(thread, NULL) == 0 && pthread_join(releaser, NULL) == 0);
    CHECK_OK(slow.err);
}

/* Readers that go on until they are told that the store is closed. */
struct racer {
    struct gyre_store *store;
    pthread_barrier_t *start;
    uint64_t n;
    struct gyre_put *put;
    gyre_err err;
};

static void *race_commit(void *data)
{
    struct racer *racer = data;
    pthread_barrier_wait(racer->start);
    racer->err = gyre_put_commit(&racer->put, NULL);
    return NULL;
}

TEST(a_commit_racing_with_close_completes_or_is_refused)
{
    for (unsigned round = 0; round < 30; round++) {
        struct gyre_store *store = open_store();
        pthread_barrier_t start;
        pthread_barrier_init(&start, NULL, 5);
        struct racer racers[4];
        pthread_t threads[4];
        for (unsigned i = 0; i < 4; i++) {
            struct gyre_put_options options;
            struct gyre_key key = key_of(1000 * round + i);
            size_t len = i % 2 == 0 ? 300 : 200000;
            uint8_t *bytes = pattern_new(round + i, len);
            gyre_put_options_init(&options);
            racers[i] = (struct racer){.store = store, .start = &start, .n = i};
            CHECK_OK(gyre_put_begin(store, &key, &options, &racers[i].put));
            CHECK_OK(gyre_put_write(racers[i].put, bytes, len));
            free(bytes);
            CHECK(pthread_create(&threads[i], NULL, race_commit, &racers[i]) == 0);
        }
        pthread_barrier_wait(&start);
        CHECK_OK(gyre_close(&store, 60000));
        for (unsigned i = 0; i < 4; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        store = open_store();
        for (unsigned i = 0; i < 4; i++) {
            if (racers[i].err == GYRE_OK)
                check_object(store, 1000 * round + i, round + i, i % 2 == 0 ? 300 : 200000);
            else
                CHECK_ERR(racers[i].err, GYRE_CLOSED);
            if (racers[i].err != GYRE_OK)
                check_absent(store, 1000 * round + i);
        }
        close_store(store);
        pthread_barrier_destroy(&start);
    }
}
