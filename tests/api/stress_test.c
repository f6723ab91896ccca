/* Everything at once against a model: threads put, stream, get, copy, populate, delete and check
 * the same few hundred keys while the log of a small store goes round many times.
 *
 * The model. Writers of a key take turns and number what they do. A body follows from (key,
 * number), and the metadata says both, so any wrong, torn or mixed byte shows. `done[key]` is the
 * number of the last finished write or delete, `begun[key]` of the last begun one. A reader that
 * saw done = d before its get may find nothing (evicted, deleted) or a number in [d, begun];
 * anything older would be an overwritten or deleted object come back.
 */
#include "tests/api/fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { KEYS = 300, THREADS = 6 };

struct note {
    uint64_t key, number, length;
};

struct model {
    struct gyre_store *store;
    pthread_mutex_t writing[KEYS];
    _Atomic uint64_t begun[KEYS], done[KEYS];
    _Atomic bool is_deleted[KEYS]; /* what `done` was */
    _Atomic uint64_t puts, gets, found, written_bytes;
    _Atomic bool stop;
};

struct worker {
    struct model *model;
    struct test_rng rng;
    uint8_t *buffer;
};

enum { BUFFER = 3 << 20 };

static uint64_t seed_of(uint64_t key, uint64_t number)
{
    return key * UINT64_C(1000003) + number * UINT64_C(7777777) + 1;
}

static size_t random_length(struct test_rng *rng)
{
    switch (test_rng_below(rng, 10)) {
    case 0: return test_rng_below(rng, 3);
    case 1:
    case 2:
    case 3: return test_rng_below(rng, 5000);
    case 4:
    case 5: return test_rng_below(rng, 60000);
    case 6: return 65536 - 2 + test_rng_below(rng, 5);
    case 7:
    case 8: return test_rng_below(rng, 400000);
    default: return test_rng_below(rng, BUFFER);
    }
}

/* Errors a put may meet in an overfull, busy store. */
static bool may_fail(gyre_err err)
{
    return err == GYRE_BUSY || err == GYRE_NO_SPACE;
}

static gyre_err stream(struct worker *worker, const struct gyre_key *key,
                       const struct gyre_put_options *options, size_t len)
{
    struct gyre_put *put;
    gyre_err err = gyre_put_begin(worker->model->store, key, options, &put);
    CHECK_OK(err);
    for (size_t offset = 0; offset < len && err == GYRE_OK;) {
        size_t n = 1 + test_rng_below(&worker->rng, 200000);
        n = n < len - offset ? n : len - offset;
        if (test_rng_below(&worker->rng, 2) == 0) {
            err = gyre_put_write(put, worker->buffer + offset, n);
        } else {
            void *at;
            err = gyre_put_reserve(put, &n, &at);
            if (err == GYRE_OK) {
                memcpy(at, worker->buffer + offset, n);
                err = gyre_put_advance(put, n);
            }
        }
        offset += n;
    }
    if (err == GYRE_OK && test_rng_below(&worker->rng, 10) > 0)
        return gyre_put_commit(&put, NULL);
    gyre_put_abort(&put);
    return err == GYRE_OK ? GYRE_BUSY : err;
}

static void write_one(struct worker *worker, uint64_t k)
{
    struct model *model = worker->model;
    struct gyre_key key = key_of(k);
    struct gyre_put_options options;
    size_t len = random_length(&worker->rng);
    pthread_mutex_lock(&model->writing[k]);
    uint64_t number = atomic_fetch_add(&model->begun[k], 1) + 1;
    gyre_err err;
    bool is_delete = test_rng_below(&worker->rng, 6) == 0;
    if (is_delete) {
        err = gyre_delete(model->store, &key, GYRE_ALWAYS, 0, 0);
        if (err == GYRE_NOT_FOUND)
            err = GYRE_OK;
    } else {
        struct note note = {k, number, len};
        pattern_fill(seed_of(k, number), 0, worker->buffer, len);
        gyre_put_options_init(&options);
        options.meta = &note;
        options.meta_len = sizeof note;
        options.length = test_rng_below(&worker->rng, 2) == 0 ? len : GYRE_LENGTH_UNKNOWN;
        err = test_rng_below(&worker->rng, 2) == 0
                  ? gyre_put(model->store, &key, &options, worker->buffer, len, NULL)
                  : stream(worker, &key, &options, len);
        atomic_fetch_add(&model->puts, err == GYRE_OK);
        atomic_fetch_add(&model->written_bytes, err == GYRE_OK ? len : 0);
    }
    CHECK_MSG(err == GYRE_OK || may_fail(err), "%s: %s", is_delete ? "delete" : "put",
              gyre_err_name(err));
    if (err == GYRE_OK) {
        atomic_store(&model->done[k], number);
        atomic_store(&model->is_deleted[k], is_delete);
    }
    pthread_mutex_unlock(&model->writing[k]);
}

/* The bytes, in one of the ways there are. */
static void check_body(struct worker *worker, struct gyre_handle *handle, uint64_t seed)
{
    uint64_t length = gyre_handle_info(handle)->length;
    if (length > 0 && test_rng_below(&worker->rng, 3) == 0) {
        uint64_t offset = test_rng_below(&worker->rng, length);
        size_t want = test_rng_below(&worker->rng, 100000), copied;
        unsigned flags = test_rng_below(&worker->rng, 2) ? GYRE_GET_NOWAIT : 0;
        gyre_err err = gyre_copy(handle, offset, worker->buffer, want, flags, &copied);
        if (err == GYRE_WOULD_BLOCK && flags != 0)
            return;
        CHECK_OK(err);
        CHECK(pattern_is(seed, offset, worker->buffer, copied));
        return;
    }
    CHECK_OK(gyre_populate(handle, 0, length));
    check_pieces(handle, seed);
}

static void read_one(struct worker *worker, uint64_t k)
{
    static const unsigned all_flags[] = {0, 0, GYRE_GET_NOWAIT, GYRE_GET_HEAD, GYRE_GET_LAZY};
    struct model *model = worker->model;
    struct gyre_key key = key_of(k);
    struct gyre_handle *handle;
    unsigned flags = all_flags[test_rng_below(&worker->rng, 5)];
    uint64_t floor = atomic_load(&model->done[k]);
    gyre_err err = gyre_get(model->store, &key, 0, flags, &handle);
    uint64_t ceiling = atomic_load(&model->begun[k]);
    atomic_fetch_add(&model->gets, 1);
    if (err == GYRE_NOT_FOUND || (err == GYRE_WOULD_BLOCK && flags == GYRE_GET_NOWAIT))
        return;
    CHECK_OK(err);
    struct note note;
    size_t meta_len;
    memcpy(&note, gyre_handle_meta(handle, &meta_len), sizeof note);
    CHECK_EQ_U64(meta_len, sizeof note);
    CHECK_EQ_U64(note.key, k);
    CHECK_EQ_U64(note.length, gyre_handle_info(handle)->length);
    CHECK_MSG(note.number >= floor && note.number <= ceiling,
              "key %llu: number %llu outside [%llu, %llu]", (unsigned long long)k,
              (unsigned long long)note.number, (unsigned long long)floor,
              (unsigned long long)ceiling);
    if (flags != GYRE_GET_HEAD)
        check_body(worker, handle, seed_of(k, note.number));
    if (flags == 0 && test_rng_below(&worker->rng, 20) == 0) {
        usleep(2000); /* held for a while, over whatever happens */
        check_pieces(handle, seed_of(k, note.number));
    }
    gyre_release(handle);
    atomic_fetch_add(&model->found, 1);
}

static void *work(void *data)
{
    struct worker *worker = data;
    while (!atomic_load(&worker->model->stop)) {
        uint64_t k = test_rng_below(&worker->rng, KEYS);
        if (test_rng_below(&worker->rng, 2) == 0)
            write_one(worker, k);
        else
            read_one(worker, k);
    }
    return NULL;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* What is left after closing is what was there, or less. */
static void check_after_reopening(struct model *model)
{
    unsigned present = 0;
    struct worker reader = {.model = model, .rng = {test_seed() + 99}, .buffer = malloc(BUFFER)};
    for (uint64_t k = 0; k < KEYS; k++) {
        struct gyre_key key = key_of(k);
        struct gyre_handle *handle;
        gyre_err err = gyre_get(model->store, &key, 0, 0, &handle);
        if (err == GYRE_NOT_FOUND)
            continue;
        CHECK_OK(err);
        struct note note;
        memcpy(&note, gyre_handle_meta(handle, NULL), sizeof note);
        CHECK(!atomic_load(&model->is_deleted[k]));
        CHECK_EQ_U64(note.number, atomic_load(&model->done[k]));
        check_pieces(handle, seed_of(k, note.number));
        gyre_release(handle);
        present++;
    }
    free(reader.buffer);
    CHECK(present > 0);
}

/* Objects whose first parts the hand has passed, but not their HEAD yet, may be there. */
static void check_sound(struct gyre_store *store, bool bodies)
{
    struct gyre_check_report report = {.struct_size = sizeof report};
    gyre_err err = gyre_check(store, bodies, NULL, NULL, &report);
    CHECK_MSG(report.violations == 0 && report.documents_bad == 0 && err == GYRE_OK,
              "check: %s, %llu violations, %llu bad, %llu incomplete", gyre_err_name(err),
              (unsigned long long)report.violations, (unsigned long long)report.documents_bad,
              (unsigned long long)report.objects_incomplete);
}

static void run_stress(double duration, uint64_t size_bytes, uint32_t stripes)
{
    static struct model model;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    struct gyre_options options = options_for("store", size_bytes);
    options.stripes = stripes;
    model.store = open_with(&options);
    for (unsigned k = 0; k < KEYS; k++)
        pthread_mutex_init(&model.writing[k], NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){&model, {test_seed() + i}, malloc(BUFFER)};
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    double end = seconds() + duration;
    while (seconds() < end) {
        usleep(300000);
        struct gyre_stats stats = {.struct_size = sizeof stats};
        CHECK_OK(gyre_stat(model.store, &stats));
        check_sound(model.store, false);
    }
    atomic_store(&model.stop, true);
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        free(workers[i].buffer);
    }
    struct gyre_stats stats = {.struct_size = sizeof stats};
    CHECK_OK(gyre_stat(model.store, &stats));
    printf("%llu puts, %llu gets, %llu found, %llu MiB, %llu laps, %llu evictions, %llu checksum "
           "failures\n",
           (unsigned long long)model.puts, (unsigned long long)model.gets,
           (unsigned long long)model.found, (unsigned long long)(model.written_bytes >> 20),
           (unsigned long long)stats.laps, (unsigned long long)stats.evictions,
           (unsigned long long)stats.checksum_failures);
    CHECK_EQ_U64(stats.checksum_failures, 0);
    CHECK_EQ_U64(stats.pins, 0);
    check_sound(model.store, true);
    close_store(model.store);
    model.store = open_with(&options);
    check_sound(model.store, true);
    check_after_reopening(&model);
    close_store(model.store);
}

TEST(no_wrong_byte_ever)
{
    run_stress(test_full() ? 60 : 4, GYRE_SIZE_MIN, 0);
}

TEST(no_wrong_byte_ever_over_several_stripes)
{
    run_stress(test_full() ? 60 : 3, 128 * MIB, 3);
}
