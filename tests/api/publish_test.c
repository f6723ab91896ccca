/* Conditions and deletion: decided once, by the commit, whoever else is at work. */
#include "tests/api/fixture.h"

#include <pthread.h>

static gyre_err put_if(struct gyre_store *store, uint64_t n, enum gyre_condition condition,
                       uint64_t serial, uint64_t seed, size_t len, uint64_t *serial_out)
{
    struct gyre_key key = key_of(n);
    struct gyre_put_options options;
    uint8_t *bytes = pattern_new(seed, len);
    gyre_put_options_init(&options);
    options.condition = condition;
    options.if_serial = serial;
    gyre_err err = gyre_put(store, &key, &options, bytes, len, serial_out);
    free(bytes);
    return err;
}

TEST(conditions_hold_or_nothing_changes)
{
    static const size_t sizes[] = {50, 100000};
    struct gyre_store *store = open_store();
    for (uint64_t n = 0; n < 4; n++) {
        size_t first = sizes[n % 2], second = sizes[n / 2];
        uint64_t serial = 1, newer;
        CHECK_ERR(put_if(store, n, GYRE_IF_SERIAL, 5, 1, first, &serial), GYRE_NOT_FOUND);
        CHECK_EQ_U64(serial, 0);
        check_absent(store, n);
        CHECK_OK(put_if(store, n, GYRE_IF_ABSENT, 0, 1, first, &serial));
        CHECK_ERR(put_if(store, n, GYRE_IF_ABSENT, 0, 2, second, NULL), GYRE_EXISTS);
        CHECK_ERR(put_if(store, n, GYRE_IF_SERIAL, serial + 1, 2, second, NULL), GYRE_CHANGED);
        check_object(store, n, 1, first);
        CHECK_OK(put_if(store, n, GYRE_IF_SERIAL, serial, 3, second, &newer));
        CHECK(newer != serial);
        check_object(store, n, 3, second);
        CHECK_ERR(put_if(store, n, GYRE_IF_SERIAL, serial, 4, second, NULL), GYRE_CHANGED);
        CHECK_OK(put_if(store, n, GYRE_ALWAYS, 0, 5, first, NULL));
        check_object(store, n, 5, first);
    }
    struct gyre_stats stats = {.struct_size = sizeof stats};
    CHECK_OK(gyre_stat(store, &stats));
    CHECK_EQ_U64(stats.reserved_bytes < 4 * MIB,
                 true); /* nothing of the refused ones is left but slabs */
    close_store(store);
}

TEST(an_expired_object_counts_as_absent)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    struct gyre_put_options options;
    gyre_put_options_init(&options);
    options.expires = 1000;
    CHECK_OK(gyre_put(store, &key, &options, "old", 3, NULL));
    CHECK_OK(put_if(store, 1, GYRE_IF_ABSENT, 0, 7, 100, NULL));
    check_object(store, 1, 7, 100);
    close_store(store);
}

TEST(a_deleted_object_is_gone_and_stays_gone)
{
    static const size_t sizes[] = {0, 100, 100000, 5 * MIB};
    struct gyre_store *store = open_store();
    for (uint64_t n = 0; n < 4; n++) {
        struct gyre_key key = key_of(n);
        struct gyre_handle *handle;
        uint64_t serial = put_pattern(store, n, n, sizes[n]);
        CHECK_OK(gyre_get(store, &key, 0, 0, &handle));
        CHECK_ERR(gyre_delete(store, &key, GYRE_IF_SERIAL, serial + 1, 0), GYRE_CHANGED);
        check_object(store, n, n, sizes[n]);
        CHECK_OK(gyre_delete(store, &key, n % 2 == 0 ? GYRE_ALWAYS : GYRE_IF_SERIAL, serial,
                             n == 3 ? GYRE_PUT_SYNC : 0));
        check_absent(store, n);
        check_pieces(handle, n);
        gyre_release(handle);
        CHECK_ERR(gyre_delete(store, &key, GYRE_ALWAYS, 0, 0), GYRE_NOT_FOUND);
        CHECK_ERR(gyre_delete(store, &key, GYRE_IF_SERIAL, serial, 0), GYRE_NOT_FOUND);
    }
    close_store(store);
    store = open_store();
    for (uint64_t n = 0; n < 4; n++)
        check_absent(store, n);
    struct gyre_stats stats = {.struct_size = sizeof stats};
    CHECK_OK(gyre_stat(store, &stats));
    CHECK_EQ_U64(stats.documents, 0);
    close_store(store);
}

TEST(wrong_arguments_of_delete_are_refused)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    CHECK_ERR(gyre_delete(store, NULL, GYRE_ALWAYS, 0, 0), GYRE_INVALID);
    CHECK_ERR(gyre_delete(NULL, &key, GYRE_ALWAYS, 0, 0), GYRE_INVALID);
    CHECK_ERR(gyre_delete(store, &key, GYRE_IF_ABSENT, 0, 0), GYRE_INVALID);
    CHECK_ERR(gyre_delete(store, &key, (enum gyre_condition)9, 0, 0), GYRE_INVALID);
    CHECK_ERR(gyre_delete(store, &key, GYRE_ALWAYS, 0, 2), GYRE_INVALID);
    close_store(store);
}

enum { RACERS = 4, ROUNDS = 60 };

struct racer {
    struct gyre_store *store;
    pthread_barrier_t *start;
    unsigned index;
    unsigned won, lost;
    uint64_t added;
};

static void *race_to_create(void *data)
{
    struct racer *racer = data;
    for (uint64_t n = 0; n < ROUNDS; n++) {
        pthread_barrier_wait(racer->start);
        gyre_err err = put_if(racer->store, n, GYRE_IF_ABSENT, 0, racer->index,
                              n % 3 == 0 ? 70000 : 100, NULL);
        racer->won += err == GYRE_OK;
        racer->lost += err == GYRE_EXISTS;
    }
    return NULL;
}

static void run_racers(struct gyre_store *store, struct racer *racers, void *(*run)(void *))
{
    pthread_barrier_t start;
    pthread_t threads[RACERS];
    pthread_barrier_init(&start, NULL, RACERS);
    for (unsigned i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){.store = store, .start = &start, .index = i};
        CHECK(pthread_create(&threads[i], NULL, run, &racers[i]) == 0);
    }
    for (unsigned i = 0; i < RACERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    pthread_barrier_destroy(&start);
}

TEST(of_many_creators_exactly_one_wins)
{
    struct gyre_store *store = open_store();
    struct racer racers[RACERS];
    unsigned won = 0, lost = 0;
    run_racers(store, racers, race_to_create);
    for (unsigned i = 0; i < RACERS; i++) {
        won += racers[i].won;
        lost += racers[i].lost;
    }
    CHECK_EQ_U64(won, ROUNDS);
    CHECK_EQ_U64(lost, ROUNDS * (RACERS - 1));
    close_store(store);
}

/* Adds to a counter by compare and swap. */
static void *race_to_add(void *data)
{
    struct racer *racer = data;
    struct gyre_key key = key_of(999);
    pthread_barrier_wait(racer->start);
    while (racer->added < 500) {
        struct gyre_handle *handle;
        struct gyre_put_options options;
        uint64_t value;
        size_t copied;
        CHECK_OK(gyre_get(racer->store, &key, 0, 0, &handle));
        gyre_put_options_init(&options);
        options.condition = GYRE_IF_SERIAL;
        options.if_serial = gyre_handle_info(handle)->serial;
        CHECK_OK(gyre_copy(handle, 0, &value, sizeof value, 0, &copied));
        gyre_release(handle);
        value++;
        gyre_err err = gyre_put(racer->store, &key, &options, &value, sizeof value, NULL);
        racer->added += err == GYRE_OK;
        CHECK(err == GYRE_OK || err == GYRE_CHANGED);
    }
    return NULL;
}

TEST(no_update_by_serial_is_lost)
{
    struct gyre_store *store = open_store();
    struct racer racers[RACERS];
    struct gyre_key key = key_of(999);
    struct gyre_handle *handle;
    uint64_t value = 0;
    size_t copied;
    CHECK_OK(gyre_put(store, &key, NULL, &value, sizeof value, NULL));
    run_racers(store, racers, race_to_add);
    CHECK_OK(gyre_get(store, &key, 0, 0, &handle));
    CHECK_OK(gyre_copy(handle, 0, &value, sizeof value, 0, &copied));
    CHECK_EQ_U64(value, RACERS * 500);
    gyre_release(handle);
    close_store(store);
}
