/* The buffer pool: sizes, the budget, and buffers that cross threads. */
#include "server/buf.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness/test.h"

enum { SMALL = 64 << 10, LARGE = 1 << 20 };

TEST(buffers_hold_what_was_asked_for_up_to_a_mebibyte)
{
    struct srv_buf_pool *pool = srv_buf_pool_create(8 * LARGE);
    struct srv_buf *one = srv_buf_acquire(pool, 1);
    struct srv_buf *edge = srv_buf_acquire(pool, SMALL);
    struct srv_buf *over = srv_buf_acquire(pool, SMALL + 1);
    struct srv_buf *huge = srv_buf_acquire(pool, (size_t)1 << 40);

    CHECK_EQ_U64(one->capacity, SMALL);
    CHECK_EQ_U64(edge->capacity, SMALL);
    CHECK_EQ_U64(over->capacity, LARGE);
    CHECK_EQ_U64(huge->capacity, LARGE);
    CHECK_EQ_U64(one->len, 0);
    CHECK_EQ_U64((uintptr_t)over->base % 4096, 0);
    CHECK_EQ_U64(srv_buf_pool_used_bytes(pool), 2 * SMALL + 2 * LARGE);
    memset(huge->base, 1, huge->capacity);
    srv_buf_release(one);
    srv_buf_release(edge);
    srv_buf_release(over);
    srv_buf_release(huge);
    srv_buf_release(NULL);
    CHECK_EQ_U64(srv_buf_pool_used_bytes(pool), 0);
    srv_buf_pool_destroy(pool);
}

TEST(a_spent_budget_refuses_and_a_release_helps)
{
    struct srv_buf_pool *pool = srv_buf_pool_create(2 * LARGE);
    struct srv_buf *a = srv_buf_acquire(pool, LARGE);
    struct srv_buf *b = srv_buf_acquire(pool, LARGE);

    CHECK(a != NULL && b != NULL);
    CHECK(srv_buf_acquire(pool, 1) == NULL);
    CHECK(srv_buf_acquire(pool, LARGE) == NULL);
    srv_buf_release(b);
    b = srv_buf_acquire(pool, LARGE);
    CHECK(b != NULL);
    srv_buf_release(a);
    srv_buf_release(b);
    srv_buf_pool_destroy(pool);
}

TEST(what_is_reserved_counts_against_budget_and_share_and_takes_the_room_of_free_buffers)
{
    struct srv_buf_pool *pool = srv_buf_pool_create(2 * LARGE);
    _Atomic size_t share = 0;

    srv_buf_pool_limit_share(pool, LARGE + SMALL);
    srv_buf_release(srv_buf_acquire(pool, LARGE)); /* free now, and held */
    CHECK(srv_buf_reserve(pool, &share, LARGE + 1));
    CHECK_EQ_U64(srv_buf_pool_used_bytes(pool), LARGE + 1);
    CHECK(!srv_buf_reserve(pool, &share, SMALL));
    CHECK_EQ_U64(share, LARGE + 1);
    CHECK(srv_buf_acquire(pool, LARGE) == NULL);
    CHECK(!srv_buf_reserve(pool, NULL, LARGE));
    CHECK(!srv_buf_reserve(pool, NULL, SIZE_MAX));
    CHECK(srv_buf_reserve(pool, NULL, LARGE - 1));
    srv_buf_unreserve(pool, NULL, LARGE - 1);
    srv_buf_unreserve(pool, &share, LARGE + 1);
    CHECK_EQ_U64(share, 0);
    CHECK_EQ_U64(srv_buf_pool_used_bytes(pool), 0);
    srv_buf_pool_destroy(pool);
}

TEST(free_buffers_of_one_size_make_room_for_the_other)
{
    struct srv_buf_pool *pool = srv_buf_pool_create(LARGE);
    struct srv_buf *small[LARGE / SMALL];

    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < LARGE / SMALL; i++) {
            small[i] = srv_buf_acquire(pool, SMALL);
            CHECK(small[i] != NULL);
        }
        CHECK(srv_buf_acquire(pool, LARGE) == NULL);
        for (size_t i = 0; i < LARGE / SMALL; i++)
            srv_buf_release(small[i]);
        struct srv_buf *large = srv_buf_acquire(pool, LARGE);
        CHECK(large != NULL);
        CHECK(srv_buf_acquire(pool, SMALL) == NULL);
        srv_buf_release(large);
    }
    srv_buf_pool_destroy(pool);
}

static void *churn(void *arg)
{
    struct srv_buf_pool *pool = arg;
    struct test_rng rng = {(uintptr_t)&rng};
    for (int i = 0; i < 2000; i++) {
        struct srv_buf *buf = srv_buf_acquire(pool, test_rng_below(&rng, 2) ? SMALL : LARGE);
        CHECK(buf != NULL); /* four threads, one buffer each: always within the budget */
        buf->base[0] = buf->base[buf->capacity - 1] = (uint8_t)i;
        buf->len = buf->capacity;
        srv_buf_release(buf);
    }
    return NULL;
}

static size_t resident_bytes(void)
{
    size_t size, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%zu %zu", &size, &resident) == 2);
    fclose(file);
    return resident * 4096;
}

TEST(memory_of_a_burst_goes_back_to_the_system)
{
    enum { BURST = 96 };
    if (TEST_SANITIZED)
        test_skip("a sanitizer has memory of its own for every byte ever used");
    struct srv_buf_pool *pool = srv_buf_pool_create((size_t)BURST << 20);
    struct srv_buf *bufs[BURST];
    size_t before = resident_bytes();
    for (int i = 0; i < BURST; i++) {
        bufs[i] = srv_buf_acquire(pool, 1 << 20);
        CHECK(bufs[i] != NULL);
        memset(bufs[i]->base, 1, bufs[i]->capacity);
    }
    CHECK(resident_bytes() - before >= (size_t)90 << 20);
    for (int i = 0; i < BURST; i++)
        srv_buf_release(bufs[i]);
    CHECK(resident_bytes() - before <= (size_t)40 << 20);
    srv_buf_pool_destroy(pool);
}

TEST(threads_share_a_pool)
{
    struct srv_buf_pool *pool = srv_buf_pool_create(4 * LARGE + 4 * SMALL);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, pool) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ_U64(srv_buf_pool_used_bytes(pool), 0);
    srv_buf_pool_destroy(pool);
}
