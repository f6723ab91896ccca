/* Misses are fetched once: threads read along, processes wait, whoever dies or gives up is
 * followed by another, and what is not to be shared holds nobody up. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/api/fixture.h"

enum { LONG_MS = 60000 };

static struct gyre_miss look(struct gyre_store *store, uint64_t n, uint32_t wait_ms)
{
    struct gyre_key key = key_of(n);
    struct gyre_miss miss;
    CHECK_OK(gyre_miss_get(store, &key, 0, 0, wait_ms, &miss));
    return miss;
}

static struct gyre_fill *expect_fill(struct gyre_store *store, uint64_t n)
{
    struct gyre_miss miss = look(store, n, LONG_MS);
    CHECK_EQ_INT(miss.kind, GYRE_MISS_FILL);
    return miss.fill;
}

static void begin(struct gyre_fill *fill, uint64_t length, const char *meta)
{
    struct gyre_put_options options;
    gyre_put_options_init(&options);
    options.length = length;
    options.meta = meta;
    options.meta_len = strlen(meta);
    CHECK_OK(gyre_fill_begin(fill, &options));
}

static void write_pattern(struct gyre_fill *fill, uint64_t seed, uint64_t offset, size_t len)
{
    uint8_t *bytes = malloc(len + 1);
    CHECK(bytes != NULL);
    pattern_fill(seed, offset, bytes, len);
    CHECK_OK(gyre_fill_write(fill, bytes, len));
    free(bytes);
}

/* All of it, from a follower, in steps of a length of its own. */
static void read_along(struct gyre_follow *follow, uint64_t seed, uint64_t length, size_t step)
{
    uint8_t *buffer = malloc(step);
    uint64_t offset = 0;
    size_t n = 1;
    CHECK(buffer != NULL);
    while (n > 0) {
        CHECK_OK(gyre_follow_read(follow, offset, buffer, step, LONG_MS, &n));
        CHECK_MSG(pattern_is(seed, offset, buffer, n), "wrong bytes from %llu on",
                  (unsigned long long)offset);
        offset += n;
    }
    CHECK_EQ_U64(offset, length);
    free(buffer);
}

static void expect_no_pins(struct gyre_store *store)
{
    struct gyre_stats stats = {.struct_size = sizeof stats};
    CHECK_OK(gyre_stat(store, &stats));
    CHECK_EQ_U64(stats.pins, 0);
    CHECK_EQ_U64(stats.reserved_bytes % 4096, 0);
}

TEST(a_miss_is_filled_and_then_a_hit)
{
    struct gyre_store *store = open_store();
    struct gyre_fill *fill = expect_fill(store, 1);
    uint64_t serial = 0;
    CHECK_ERR(gyre_fill_write(fill, "x", 1), GYRE_STATE);
    begin(fill, 70000, "meta");
    write_pattern(fill, 1, 0, 70000);
    CHECK_ERR(gyre_drain(store, 20), GYRE_TIMEOUT);
    CHECK_OK(gyre_fill_commit(&fill, &serial));
    CHECK(fill == NULL && serial != 0);
    CHECK_OK(gyre_drain(store, LONG_MS));
    struct gyre_miss miss = look(store, 1, 0);
    CHECK_EQ_INT(miss.kind, GYRE_MISS_HIT);
    check_pieces(miss.handle, 1);
    gyre_release(miss.handle);
    expect_no_pins(store);
    close_store(store);
}

TEST(wrong_arguments_are_refused)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    struct gyre_miss miss;
    struct gyre_put_options options;
    gyre_put_options_init(&options);
    options.pool = GYRE_POOL_META;
    CHECK_ERR(gyre_miss_get(store, NULL, 0, 0, 0, &miss), GYRE_INVALID);
    CHECK_ERR(gyre_miss_get(store, &key, 0, 1u << 8, 0, &miss), GYRE_INVALID);
    CHECK_ERR(gyre_miss_get(store, &key, 0, 0, 0, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_miss_get(store, &key, 0, GYRE_IN_POOL(9), 0, &miss), GYRE_INVALID);
    CHECK_ERR(gyre_miss_get_async(store, &key, 0, 0, 0, NULL, NULL), GYRE_INVALID);
    struct gyre_fill *fill = expect_fill(store, 1);
    CHECK_ERR(gyre_fill_begin(fill, &options), GYRE_INVALID);
    begin(fill, 10, "");
    options.pool = GYRE_POOL_MAIN;
    CHECK_ERR(gyre_fill_begin(fill, &options), GYRE_STATE);
    CHECK_ERR(gyre_fill_commit(&fill, NULL), GYRE_LENGTH);
    check_absent(store, 1);
    close_store(store);
}

/* ---- Threads ---- */

struct crowd {
    struct gyre_store *store;
    uint64_t length;
    size_t step;
    _Atomic uint32_t filled, followed, hit, passed;
    bool unknown, pass, give_up;
};

static void fetch(struct crowd *crowd, struct gyre_fill *fill)
{
    uint64_t piece = 50000;
    uint32_t before = atomic_fetch_add(&crowd->filled, 1);
    if (crowd->pass) {
        usleep(2000);
        gyre_fill_pass(&fill);
        return;
    }
    begin(fill, crowd->unknown ? GYRE_LENGTH_UNKNOWN : crowd->length, "described");
    for (uint64_t offset = 0; offset < crowd->length; offset += piece) {
        write_pattern(fill, 5, offset,
                      crowd->length - offset < piece ? crowd->length - offset : piece);
        if (crowd->give_up && before == 0 && offset > crowd->length / 2) {
            gyre_fill_abort(&fill, GYRE_IO);
            return;
        }
    }
    CHECK_OK(gyre_fill_commit(&fill, NULL));
}

/* Whether it went on to the end; false: what was followed broke. */
static bool follow(const struct crowd *crowd, struct gyre_follow *follow)
{
    uint8_t *buffer = malloc(crowd->step);
    size_t meta_len;
    const char *meta = gyre_follow_meta(follow, &meta_len);
    uint64_t offset = 0;
    size_t n = 1;
    gyre_err err = GYRE_OK;
    CHECK(buffer != NULL && meta_len == 9 && memcmp(meta, "described", 9) == 0);
    while (n > 0 && err == GYRE_OK) {
        err = gyre_follow_read(follow, offset, buffer, crowd->step, LONG_MS, &n);
        CHECK(pattern_is(5, offset, buffer, n));
        offset += n;
    }
    CHECK(err == GYRE_OK || (crowd->give_up && err == GYRE_IO));
    CHECK(err != GYRE_OK || offset == crowd->length);
    free(buffer);
    gyre_follow_end(follow);
    return err == GYRE_OK;
}

static void *want_it(void *data)
{
    struct crowd *crowd = data;
    struct gyre_miss miss;
    do {
        miss = look(crowd->store, 1, LONG_MS);
        if (miss.kind == GYRE_MISS_HIT) {
            atomic_fetch_add(&crowd->hit, 1);
            check_pieces(miss.handle, 5);
            gyre_release(miss.handle);
        } else if (miss.kind == GYRE_MISS_PASS) {
            atomic_fetch_add(&crowd->passed, 1);
        } else if (miss.kind == GYRE_MISS_FILL) {
            fetch(crowd, miss.fill);
            if (crowd->pass)
                break;
        } else {
            CHECK_EQ_INT(miss.kind, GYRE_MISS_FOLLOW);
            if (follow(crowd, miss.follow)) {
                atomic_fetch_add(&crowd->followed, 1);
                break;
            }
        }
    } while (miss.kind == GYRE_MISS_FILL || miss.kind == GYRE_MISS_FOLLOW);
    return NULL;
}

enum { CROWD = 8 };

static void run_crowd(struct crowd *crowd)
{
    pthread_t threads[CROWD];
    for (int i = 0; i < CROWD; i++)
        CHECK(pthread_create(&threads[i], NULL, want_it, crowd) == 0);
    for (int i = 0; i < CROWD; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    expect_no_pins(crowd->store);
}

TEST(threads_that_miss_together_fetch_once)
{
    static const uint64_t lengths[] = {0, 1, 5000, 65535, 65536, 300001, 3000000};
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof lengths[0]; i++) {
        struct crowd crowd = {
            .store = store, .length = lengths[i / 2], .step = 7000, .unknown = i % 2 == 0};
        run_crowd(&crowd);
        CHECK_EQ_INT(crowd.filled, 1);
        CHECK_EQ_INT(crowd.followed + crowd.hit, CROWD);
        CHECK_EQ_INT(crowd.passed, 0);
        CHECK_OK(gyre_delete(store, &key, GYRE_ALWAYS, 0, 0));
    }
    close_store(store);
}

TEST(when_whoever_fetches_gives_up_one_other_does)
{
    struct gyre_store *store = open_store();
    struct crowd crowd = {.store = store, .length = 900000, .step = 20000, .give_up = true};
    run_crowd(&crowd);
    CHECK_EQ_INT(crowd.filled, 2);
    check_object(store, 1, 5, 900000);
    close_store(store);
}

/* Each of those who waited for the first is told; those who come later fetch, and pass again. */
TEST(what_is_not_to_be_shared_is_fetched_by_each)
{
    struct gyre_store *store = open_store();
    struct crowd crowd = {.store = store, .pass = true};
    run_crowd(&crowd);
    CHECK_EQ_INT(crowd.filled + crowd.passed, CROWD);
    CHECK_EQ_INT(crowd.followed + crowd.hit, 0);
    check_absent(store, 1);
    close_store(store);
}

/* ---- Reading along ---- */

static struct gyre_follow *expect_follow(struct gyre_store *store, uint64_t n)
{
    struct gyre_miss miss = look(store, n, LONG_MS);
    CHECK_EQ_INT(miss.kind, GYRE_MISS_FOLLOW);
    return miss.follow;
}

TEST(a_follower_sees_each_byte_as_soon_as_it_is_written)
{
    struct gyre_store *store = open_store();
    struct gyre_fill *fill = expect_fill(store, 1);
    struct gyre_key key = key_of(1);
    struct gyre_miss miss;
    uint8_t buffer[4096];
    size_t n;
    CHECK_ERR(gyre_miss_get(store, &key, 0, 0, 0, &miss), GYRE_WOULD_BLOCK);
    CHECK_ERR(gyre_miss_get(store, &key, 0, 0, 20, &miss), GYRE_TIMEOUT);
    begin(fill, GYRE_LENGTH_UNKNOWN, "m");
    struct gyre_follow *follow = expect_follow(store, 1);
    CHECK_EQ_U64(gyre_follow_info(follow)->length, GYRE_LENGTH_UNKNOWN);
    CHECK_ERR(gyre_follow_read(follow, 0, buffer, 10, 0, &n), GYRE_WOULD_BLOCK);
    CHECK_ERR(gyre_follow_read(follow, 0, buffer, 10, 20, &n), GYRE_TIMEOUT);
    uint64_t offset = 0;
    for (int i = 0; i < 900; i++) {
        size_t len = 1 + (size_t)(i * 37 % sizeof buffer);
        size_t room = len;
        void *at;
        if (i % 2 == 0) {
            write_pattern(fill, 3, offset, len);
        } else {
            CHECK_OK(gyre_fill_reserve(fill, &room, &at));
            len = room;
            pattern_fill(3, offset, at, len);
            CHECK_OK(gyre_fill_advance(fill, len));
        }
        CHECK_OK(gyre_follow_read(follow, offset, buffer, sizeof buffer, 0, &n));
        CHECK_EQ_U64(n, len);
        CHECK(pattern_is(3, offset, buffer, n));
        offset += len;
    }
    CHECK(offset > 2 * MIB / 2);
    CHECK_ERR(gyre_follow_read(follow, offset, buffer, 1, 0, &n), GYRE_WOULD_BLOCK);
    CHECK_OK(gyre_fill_commit(&fill, NULL));
    read_along(follow, 3, offset, 30000);
    CHECK_ERR(gyre_follow_read(follow, offset + 1, buffer, 1, 0, &n), GYRE_RANGE);
    CHECK_EQ_U64(gyre_follow_info(follow)->length, offset);
    gyre_follow_end(follow);
    expect_no_pins(store);
    close_store(store);
}

/* The log is written through several times over what is being followed. */
TEST(inv_E57_what_is_followed_stays_though_it_is_deleted_and_written_over)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    static const size_t lengths[] = {30000, 2000000};
    for (size_t i = 0; i < 2; i++) {
        struct gyre_fill *fill = expect_fill(store, 1);
        begin(fill, lengths[i], "m");
        write_pattern(fill, 8, 0, lengths[i]);
        struct gyre_follow *follow = expect_follow(store, 1);
        CHECK_OK(gyre_fill_commit(&fill, NULL));
        CHECK_OK(gyre_delete(store, &key, GYRE_ALWAYS, 0, 0));
        for (uint64_t n = 100; n < 180; n++)
            put_pattern(store, n, n, 1000000);
        read_along(follow, 8, lengths[i], 100000);
        gyre_follow_end(follow);
        expect_no_pins(store);
    }
    close_store(store);
}

static void count_wake(void *data)
{
    atomic_fetch_add((_Atomic uint32_t *)data, 1);
}

TEST(a_follower_is_called_once_there_is_more)
{
    struct gyre_store *store = open_store();
    struct gyre_fill *fill = expect_fill(store, 1);
    _Atomic uint32_t woken = 0, other = 0;
    begin(fill, 1000, "m");
    struct gyre_follow *follow = expect_follow(store, 1), *second = expect_follow(store, 1);
    CHECK_OK(gyre_follow_notify(follow, 99, count_wake, &woken));
    CHECK_ERR(gyre_follow_notify(follow, 99, count_wake, &woken), GYRE_STATE);
    CHECK_OK(gyre_follow_notify(second, 0, count_wake, &other));
    gyre_follow_end(second);
    write_pattern(fill, 1, 0, 99);
    CHECK_EQ_INT(woken, 0);
    write_pattern(fill, 1, 99, 1);
    CHECK_EQ_INT(woken, 1);
    CHECK_OK(gyre_follow_notify(follow, 10, count_wake, &woken));
    CHECK_EQ_INT(woken, 2);
    CHECK_OK(gyre_follow_notify(follow, 500, count_wake, &woken));
    gyre_fill_abort(&fill, GYRE_IO);
    CHECK_EQ_INT(woken, 3);
    uint8_t byte;
    size_t n;
    CHECK_ERR(gyre_follow_read(follow, 0, &byte, 1, LONG_MS, &n), GYRE_IO);
    gyre_follow_end(follow);
    CHECK_EQ_INT(other, 0);
    close_store(store);
}

TEST(a_fill_that_is_too_long_fails_its_followers)
{
    struct gyre_store *store = open_store();
    struct gyre_fill *fill = expect_fill(store, 1);
    uint8_t byte;
    size_t n;
    begin(fill, 10, "m");
    struct gyre_follow *follow = expect_follow(store, 1);
    CHECK_ERR(gyre_fill_write(fill, "more than ten bytes", 19), GYRE_LENGTH);
    CHECK_ERR(gyre_follow_read(follow, 0, &byte, 1, LONG_MS, &n), GYRE_LENGTH);
    CHECK_ERR(gyre_fill_commit(&fill, NULL), GYRE_LENGTH);
    gyre_follow_end(follow);
    close_store(store);
}

/* ---- Closing ---- */

static void *wait_on(void *data)
{
    struct crowd *crowd = data;
    struct gyre_key key = key_of(1);
    struct gyre_miss miss;
    atomic_fetch_add(&crowd->followed, 1);
    CHECK_ERR(gyre_miss_get(crowd->store, &key, 0, 0, 10 * LONG_MS, &miss), GYRE_CLOSED);
    return NULL;
}

TEST(closing_wakes_who_waits)
{
    struct crowd crowd = {.store = open_store()};
    struct gyre_fill *fill = expect_fill(crowd.store, 1);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_on, &crowd) == 0);
    CHECK_SOON(atomic_load(&crowd.followed) == 1);
    usleep(20000);
    struct gyre_store *closed = crowd.store; /* the thread may still be reading its own */
    CHECK_OK(gyre_close(&closed, LONG_MS));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_ERR(gyre_fill_commit(&fill, NULL), GYRE_STATE);
}

/* ---- Without a thread ---- */

struct answers {
    _Atomic uint32_t n, followed, hit, filled, passed, timed_out;
    struct gyre_fill *fill;
};

static void answered(void *data, gyre_err err, const struct gyre_miss *miss)
{
    struct answers *answers = data;
    if (err == GYRE_TIMEOUT || err == GYRE_WOULD_BLOCK) {
        CHECK_EQ_INT(miss->kind, GYRE_MISS_NONE);
        atomic_fetch_add(&answers->timed_out, 1);
    } else {
        CHECK_OK(err);
    }
    if (miss->kind == GYRE_MISS_FOLLOW)
        gyre_follow_end(miss->follow);
    if (miss->kind == GYRE_MISS_FILL)
        answers->fill = miss->fill;
    gyre_release(miss->handle);
    atomic_fetch_add(&answers->followed, miss->kind == GYRE_MISS_FOLLOW);
    atomic_fetch_add(&answers->filled, miss->kind == GYRE_MISS_FILL);
    atomic_fetch_add(&answers->hit, miss->kind == GYRE_MISS_HIT);
    atomic_fetch_add(&answers->passed, miss->kind == GYRE_MISS_PASS);
    atomic_fetch_add(&answers->n, 1);
}

static void ask(struct gyre_store *store, uint32_t wait_ms, struct answers *answers, unsigned times)
{
    struct gyre_key key = key_of(1);
    for (unsigned i = 0; i < times; i++)
        CHECK_OK(gyre_miss_get_async(store, &key, 0, 0, wait_ms, answered, answers));
}

TEST(many_wait_without_a_thread_each)
{
    struct gyre_store *store = open_store();
    struct answers answers = {0};
    ask(store, LONG_MS, &answers, 1);
    CHECK_SOON(answers.filled == 1);
    ask(store, LONG_MS, &answers, 500);
    ask(store, 0, &answers, 3);
    ask(store, 30, &answers, 3);
    CHECK_SOON(answers.timed_out == 6);
    CHECK_EQ_INT(answers.n, 7);
    begin(answers.fill, 100, "m");
    CHECK_SOON(answers.n == 507);
    CHECK_EQ_INT(answers.followed, 500);
    write_pattern(answers.fill, 1, 0, 100);
    CHECK_OK(gyre_fill_commit(&answers.fill, NULL));
    ask(store, LONG_MS, &answers, 10);
    CHECK_OK(gyre_drain(store, LONG_MS));
    CHECK_EQ_INT(answers.hit, 10);
    close_store(store);
}

TEST(one_of_many_that_wait_without_a_thread_takes_over)
{
    struct gyre_store *store = open_store();
    struct answers answers = {0};
    struct gyre_fill *fill = expect_fill(store, 1);
    ask(store, LONG_MS, &answers, 50);
    gyre_fill_abort(&fill, GYRE_IO);
    CHECK_SOON(answers.filled == 1);
    CHECK_EQ_INT(answers.n, 1);
    gyre_fill_pass(&answers.fill);
    for (uint32_t ended = 1; answers.n < 50;) { /* one that looked just then fetches too */
        CHECK_SOON(answers.n == 50 || answers.filled > ended);
        if (answers.filled == ended)
            continue;
        ended++;
        struct gyre_fill *again = answers.fill;
        gyre_fill_pass(&again);
    }
    CHECK_EQ_INT(answers.filled + answers.passed, 50);
    close_store(store);
}
