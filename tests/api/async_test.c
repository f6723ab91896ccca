/* The asynchronous forms: each accepted call is answered once, the queue is bounded, close waits
 * for it. */
#include "tests/api/fixture.h"

#include <pthread.h>
#include <time.h>

#include "api/async.h"

struct inbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned answers, found, absent;
    bool hold; /* callbacks wait */
    struct gyre_handle *last;
    gyre_err err;
    struct gyre_store *store;
};

#define INBOX                                                                  \
    {                                                                          \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
    }

static void note(struct inbox *inbox, gyre_err err)
{
    pthread_mutex_lock(&inbox->lock);
    inbox->answers++;
    inbox->found += err == GYRE_OK;
    inbox->absent += err == GYRE_NOT_FOUND;
    inbox->err = err;
    pthread_cond_broadcast(&inbox->changed);
    while (inbox->hold)
        pthread_cond_wait(&inbox->changed, &inbox->lock);
    pthread_mutex_unlock(&inbox->lock);
}

static void got(void *data, gyre_err err, struct gyre_handle *handle)
{
    CHECK((err == GYRE_OK) == (handle != NULL));
    gyre_release(handle);
    note(data, err);
}

static void got_kept(void *data, gyre_err err, struct gyre_handle *handle)
{
    struct inbox *inbox = data;
    inbox->last = handle;
    note(inbox, err);
}

static void populated(void *data, gyre_err err)
{
    note(data, err);
}

static void await(struct inbox *inbox, unsigned answers)
{
    pthread_mutex_lock(&inbox->lock);
    while (inbox->answers < answers)
        pthread_cond_wait(&inbox->changed, &inbox->lock);
    pthread_mutex_unlock(&inbox->lock);
}

static void hold(struct inbox *inbox, bool on)
{
    pthread_mutex_lock(&inbox->lock);
    inbox->hold = on;
    pthread_cond_broadcast(&inbox->changed);
    pthread_mutex_unlock(&inbox->lock);
}

TEST(gets_are_answered_off_the_thread)
{
    struct gyre_store *store = open_store();
    struct inbox inbox = INBOX;
    for (uint64_t n = 0; n < 100; n++)
        put_pattern(store, n, n, n % 10 == 0 ? 80000 : 500);
    for (uint64_t n = 0; n < 200; n++) {
        struct gyre_key key = key_of(n);
        CHECK_OK(gyre_get_async(store, &key, 0, n % 8, got, &inbox));
    }
    await(&inbox, 200);
    CHECK_EQ_U64(inbox.found, 100);
    CHECK_EQ_U64(inbox.absent, 100);
    close_store(store);
}

TEST(wrong_arguments_are_refused)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    CHECK_ERR(gyre_get_async(store, NULL, 0, 0, got, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_get_async(store, &key, 0, 0, NULL, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_get_async(store, &key, 0, 1u << 8, got, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_get_async(NULL, &key, 0, 0, got, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_populate_async(NULL, 0, 0, populated, NULL), GYRE_INVALID);
    close_store(store);
}

/* NOWAIT off the thread means: wait for the metadata, not for the body. */
TEST(a_lazy_async_get_leaves_the_body_to_populate)
{
    struct gyre_store *store = open_store();
    struct inbox inbox = INBOX;
    struct gyre_key key = key_of(1);
    struct gyre_piece piece;
    put_pattern(store, 1, 1, 2 * MIB);
    close_store(store);
    store = open_store();
    CHECK_OK(gyre_get_async(store, &key, 0, GYRE_GET_NOWAIT, got_kept, &inbox));
    await(&inbox, 1);
    CHECK_OK(inbox.err);
    CHECK_ERR(gyre_handle_piece(inbox.last, 0, &piece), GYRE_WOULD_BLOCK);
    CHECK_OK(gyre_populate_async(inbox.last, 0, 2 * MIB, populated, &inbox));
    await(&inbox, 2);
    CHECK_OK(inbox.err);
    CHECK(gyre_resident(inbox.last, 0, 2 * MIB));
    check_pieces(inbox.last, 1);
    CHECK_OK(gyre_populate_async(inbox.last, 2 * MIB, 1, populated, &inbox));
    await(&inbox, 3);
    CHECK_ERR(inbox.err, GYRE_RANGE);
    gyre_release(inbox.last);
    close_store(store);
    store = open_store(); /* nothing was left behind that keeps the files locked */
    close_store(store);
}

TEST(a_full_queue_is_busy_and_loses_nothing)
{
    struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
    options.async_threads = 1;
    struct gyre_store *store = open_with(&options);
    struct inbox inbox = INBOX;
    struct gyre_key key = key_of(1);
    unsigned accepted = 0;
    gyre_err err = GYRE_OK;
    hold(&inbox, true);
    while (accepted < 100000 && (err = gyre_get_async(store, &key, 0, 0, got, &inbox)) == GYRE_OK)
        accepted++;
    CHECK_ERR(err, GYRE_BUSY);
    CHECK(accepted >= API_POOL_JOBS && accepted <= API_POOL_JOBS + 1);
    hold(&inbox, false);
    await(&inbox, accepted);
    CHECK_OK(gyre_get_async(store, &key, 0, 0, got, &inbox));
    close_store(store); /* waits for it */
    CHECK_EQ_U64(inbox.answers, accepted + 1);
}

static void close_inside(void *data, gyre_err err, struct gyre_handle *handle)
{
    struct inbox *inbox = data;
    gyre_release(handle);
    CHECK_ERR(gyre_close(&inbox->store, 10), GYRE_TIMEOUT); /* it cannot wait for itself */
    note(inbox, err);
}

TEST(closing_inside_a_callback_ends_the_store_afterwards)
{
    for (int round = 0; round < 5; round++) {
        struct inbox inbox = INBOX;
        struct gyre_key key = key_of(1);
        inbox.store = open_store();
        CHECK_OK(gyre_get_async(inbox.store, &key, 0, 0, close_inside, &inbox));
        await(&inbox, 1);
        struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
        struct gyre_store *store = NULL;
        gyre_err err;
        CHECK_SOON((err = gyre_open(&options, &store, NULL, 0)) != GYRE_LOCKED);
        CHECK_OK(err);
        close_store(store);
    }
}
