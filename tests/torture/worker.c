/* One process of a torture: two writers, two readers, a holder of views and a counter. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/step.h"
#include "engine/base/sys.h"
#include "tests/api/fixture.h"
#include "tests/torture/board.h"

struct actor {
    struct board *board;
    struct gyre_store *store;
    struct beat *beat;
    unsigned slot; /* a writer's */
    struct test_rng rng;
    void (*run)(struct actor *actor);
    pthread_t thread;
};

void board_fail(struct board *board, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (atomic_fetch_add(&board->failed, 1) == 0) {
        char text[sizeof board->failure];
        vsnprintf(text, sizeof text, format, args);
        memcpy(board->failure, text, sizeof text);
        atomic_store(&board->failed, 1000);
    }
    va_end(args);
    _exit(3);
}

static bool stopped(const struct actor *actor)
{
    return atomic_load_explicit(&actor->board->stop, memory_order_relaxed) != 0;
}

static void begin_call(struct actor *actor)
{
    atomic_store_explicit(&actor->beat->since_ns, eng_clock_mono_ns(), memory_order_relaxed);
}

static void end_call(struct actor *actor)
{
    atomic_store_explicit(&actor->beat->since_ns, 0, memory_order_relaxed);
}

static void raise_to(_Atomic uint64_t *at, uint64_t value)
{
    uint64_t now = atomic_load(at);
    while (now < value && !atomic_compare_exchange_weak(at, &now, value)) {
    }
}

static uint64_t seed_of(uint64_t n, uint64_t version)
{
    return n << 40 ^ version;
}

/* Metadata: what the object says it is. */
struct label {
    uint64_t n, version, length;
};

/* ---- Writing ---- */

static bool may_be_refused(gyre_err err)
{
    return err == GYRE_BUSY || err == GYRE_NO_SPACE;
}

static size_t length_of(struct test_rng *rng)
{
    switch (test_rng_below(rng, 8)) {
    case 0: return test_rng_below(rng, 200);
    case 1: return 65536 + test_rng_below(rng, 600000);
    case 2: return 16384 + test_rng_below(rng, 49152);
    default: return test_rng_below(rng, 16384);
    }
}

static gyre_err put_streamed(struct actor *actor, const struct gyre_key *key,
                             const struct gyre_put_options *options, const uint8_t *body,
                             size_t len)
{
    struct gyre_put *put;
    gyre_err err = gyre_put_begin(actor->store, key, options, &put);
    for (size_t at = 0; at < len && err == GYRE_OK; at += 50000)
        err = gyre_put_write(put, body + at, len - at < 50000 ? len - at : 50000);
    if (err == GYRE_OK && test_rng_below(&actor->rng, 16) != 0)
        return gyre_put_commit(&put, NULL);
    gyre_put_abort(&put);
    return err == GYRE_OK ? GYRE_BUSY : err; /* given up: as if refused */
}

static void put_one(struct actor *actor, uint64_t n)
{
    struct board *board = actor->board;
    struct label label = {n, atomic_fetch_add(&board->version[n], 1) + 1, length_of(&actor->rng)};
    uint8_t *body = pattern_new(seed_of(n, label.version), label.length);
    struct gyre_key key = gyre_key_of_bytes(&n, sizeof n);
    struct gyre_put_options options;
    gyre_put_options_init(&options);
    options.meta = &label;
    options.meta_len = sizeof label;
    bool streamed = test_rng_below(&actor->rng, 4) == 0;
    options.length = streamed ? GYRE_LENGTH_UNKNOWN : label.length;
    begin_call(actor);
    gyre_err err = streamed ? put_streamed(actor, &key, &options, body, label.length)
                            : gyre_put(actor->store, &key, &options, body, label.length, NULL);
    end_call(actor);
    free(body);
    if (err == GYRE_OK) {
        raise_to(&board->seen[n], label.version);
        atomic_fetch_add(&board->puts, 1);
        atomic_fetch_add(&board->put_bytes, label.length);
    } else if (may_be_refused(err)) {
        atomic_fetch_add(&board->refused, 1);
    } else {
        board_fail(board, "put of key %ju: %s", (uintmax_t)n, gyre_err_name(err));
    }
}

static void delete_one(struct actor *actor, uint64_t n)
{
    struct board *board = actor->board;
    uint64_t version = atomic_fetch_add(&board->version[n], 1) + 1;
    struct gyre_key key = gyre_key_of_bytes(&n, sizeof n);
    begin_call(actor);
    gyre_err err = gyre_delete(actor->store, &key, GYRE_ALWAYS, 0, 0);
    end_call(actor);
    if (err == GYRE_OK || err == GYRE_NOT_FOUND) {
        raise_to(&board->seen[n], version); /* nothing older may come back */
        atomic_fetch_add(&board->deletes, err == GYRE_OK);
    } else if (!may_be_refused(err)) {
        board_fail(board, "delete of key %ju: %s", (uintmax_t)n, gyre_err_name(err));
    }
}

static void write_on(struct actor *actor)
{
    while (!stopped(actor)) {
        uint64_t n = test_rng_below(&actor->rng, KEYS / SLOTS) * SLOTS + actor->slot;
        if (test_rng_below(&actor->rng, 8) == 0)
            delete_one(actor, n);
        else
            put_one(actor, n);
    }
}

/* ---- Reading ---- */

static void expect_bytes(struct actor *actor, struct gyre_handle *handle, const struct label *label,
                         const char *when)
{
    gyre_err err = gyre_populate(handle, 0, label->length);
    if (err != GYRE_OK)
        board_fail(actor->board, "key %ju version %ju, %s: torn, populate: %s", (uintmax_t)label->n,
                   (uintmax_t)label->version, when, gyre_err_name(err));
    for (uint64_t off = 0; off < label->length;) {
        struct gyre_piece piece;
        err = gyre_handle_piece(handle, off, &piece);
        if (err != GYRE_OK ||
            !pattern_is(seed_of(label->n, label->version), off, piece.base, piece.len))
            board_fail(actor->board, "key %ju version %ju, %s: torn in %zu bytes at %ju (%s)",
                       (uintmax_t)label->n, (uintmax_t)label->version, when, piece.len,
                       (uintmax_t)off, gyre_err_name(err));
        off += piece.len;
    }
}

/* Gets an object and judges what it says it is; NULL: it is not there. */
static struct gyre_handle *get_one(struct actor *actor, uint64_t n, struct label *label_out)
{
    struct board *board = actor->board;
    struct gyre_key key = gyre_key_of_bytes(&n, sizeof n);
    struct gyre_handle *handle;
    uint64_t floor = atomic_load(&board->seen[n]);
    unsigned flags = test_rng_below(&actor->rng, 2) == 0 ? GYRE_GET_LAZY : 0;
    begin_call(actor);
    gyre_err err = gyre_get(actor->store, &key, 0, flags, &handle);
    end_call(actor);
    atomic_fetch_add(&board->gets, 1);
    if (err != GYRE_OK) {
        if (err != GYRE_NOT_FOUND && err != GYRE_BUSY)
            board_fail(board, "get of key %ju: %s", (uintmax_t)n, gyre_err_name(err));
        return NULL;
    }
    size_t len;
    const void *meta = gyre_handle_meta(handle, &len);
    if (len != sizeof *label_out)
        board_fail(board, "key %ju: metadata of %zu bytes", (uintmax_t)n, len);
    memcpy(label_out, meta, len);
    if (label_out->n != n)
        board_fail(board, "key %ju: foreign, it is key %ju", (uintmax_t)n, (uintmax_t)label_out->n);
    if (label_out->version < floor || label_out->version > atomic_load(&board->version[n]))
        board_fail(board, "key %ju: stale, version %ju and not %ju or later", (uintmax_t)n,
                   (uintmax_t)label_out->version, (uintmax_t)floor);
    if (gyre_handle_info(handle)->length != label_out->length)
        board_fail(board, "key %ju: %ju bytes", (uintmax_t)n,
                   (uintmax_t)gyre_handle_info(handle)->length);
    raise_to(&board->seen[n], label_out->version);
    atomic_fetch_add(&board->found, 1);
    return handle;
}

/* Now and then one of a key's two buckets has another's tag in it. */
static void expect_absent(struct actor *actor)
{
    for (int i = 0; i < 64; i++) {
        uint64_t n = KEYS + test_rng_next(&actor->rng) / 2;
        struct gyre_key key = gyre_key_of_bytes(&n, sizeof n);
        struct gyre_handle *handle;
        if (gyre_get(actor->store, &key, 0, 0, &handle) == GYRE_OK)
            board_fail(actor->board, "foreign: a key that was never put is there");
    }
}

static void read_on(struct actor *actor)
{
    while (!stopped(actor)) {
        struct label label;
        struct gyre_handle *handle = get_one(actor, test_rng_below(&actor->rng, KEYS), &label);
        if (handle == NULL) {
            expect_absent(actor);
            continue;
        }
        expect_bytes(actor, handle, &label, "at once");
        gyre_release(handle);
    }
}

/* Views held for a while, many at a time. */
static void hold_on(struct actor *actor)
{
    enum { HELD = 32 };
    struct gyre_handle *handles[HELD];
    struct label labels[HELD];
    while (!stopped(actor)) {
        for (int i = 0; i < HELD; i++) {
            handles[i] = get_one(actor, test_rng_below(&actor->rng, KEYS), &labels[i]);
            if (handles[i] != NULL)
                expect_bytes(actor, handles[i], &labels[i], "at first");
        }
        usleep((useconds_t)test_rng_below(&actor->rng,
                                          actor->board->torture.hold_ms * UINT64_C(1000)));
        for (int i = 0; i < HELD; i++) {
            if (handles[i] == NULL)
                continue;
            expect_bytes(actor, handles[i], &labels[i], "after a while");
            gyre_release(handles[i]);
            atomic_fetch_add(&actor->board->held, 1);
        }
    }
}

/* ---- Counting ---- */

/* One more, if nobody else has counted meanwhile. A put that was killed may have counted without
 * being acknowledged, so the number lies between what was acknowledged and what was tried. */
static void count_once(struct actor *actor, unsigned counter)
{
    struct board *board = actor->board;
    uint64_t id = 1000000 + counter;
    struct gyre_key key = gyre_key_of_bytes(&id, sizeof id);
    struct gyre_put_options options;
    struct gyre_handle *handle;
    uint64_t value = 0;
    uint64_t floor = atomic_load(&board->acknowledged[counter]);
    gyre_put_options_init(&options);
    options.pool = GYRE_POOL_META;
    options.condition = GYRE_IF_ABSENT;
    begin_call(actor);
    gyre_err err = gyre_get(actor->store, &key, 0, 0, &handle);
    if (err == GYRE_OK) {
        memcpy(&value, gyre_handle_meta(handle, NULL), sizeof value);
        options.condition = GYRE_IF_SERIAL;
        options.if_serial = gyre_handle_info(handle)->serial;
        gyre_release(handle);
    }
    if (err != GYRE_BUSY && (value < floor || value > atomic_load(&board->tried[counter])))
        board_fail(board, "counter %u is %ju (%s), at least %ju were counted", counter,
                   (uintmax_t)value, gyre_err_name(err), (uintmax_t)floor);
    value++;
    options.meta = &value;
    options.meta_len = sizeof value;
    atomic_fetch_add(&board->tried[counter], 1);
    if (err == GYRE_OK || err == GYRE_NOT_FOUND)
        err = gyre_put(actor->store, &key, &options, NULL, 0, NULL);
    end_call(actor);
    if (err == GYRE_OK)
        atomic_fetch_add(&board->acknowledged[counter], 1);
    else if (err != GYRE_CHANGED && err != GYRE_EXISTS && !may_be_refused(err))
        board_fail(board, "counter %u: %s", counter, gyre_err_name(err));
    atomic_fetch_add(&board->counted, err == GYRE_OK);
}

/* Nobody damages the files here, so a checksum that does not hold tells of bytes that were reused
 * under a reader. */
static void expect_no_damage(struct actor *actor)
{
    struct gyre_stats stats = {.struct_size = sizeof stats};
    gyre_err err = gyre_stat(actor->store, &stats);
    if (err != GYRE_OK || stats.checksum_failures != 0)
        board_fail(actor->board, "torn: %ju documents did not match their checksums (%s)",
                   (uintmax_t)stats.checksum_failures, gyre_err_name(err));
}

static void count_on(struct actor *actor)
{
    while (!stopped(actor)) {
        count_once(actor, (unsigned)test_rng_below(&actor->rng, COUNTERS));
        if (test_rng_below(&actor->rng, 32) == 0)
            expect_no_damage(actor);
        usleep(1000);
    }
}

/* ---- A worker ---- */

/* Once in a while a thread loses its processor where it hurts most. */
static gyre_err fall_asleep(void *data, const char *name, bool can_fail)
{
    _Atomic uint64_t *turn = data;
    uint64_t seldom =
        strncmp(name, "cleaner.step.", 13) == 0 ? 4 : 512; /* once in many documents */
    (void)can_fail;
    uint64_t now = atomic_fetch_add_explicit(turn, 1, memory_order_relaxed);
    if (pattern_word(now, 1) % seldom == 0)
        usleep((useconds_t)(pattern_word(now, 2) % 200000));
    return GYRE_OK;
}

static void *act(void *data)
{
    struct actor *actor = data;
    actor->run(actor);
    return NULL;
}

void worker_run(struct board *board, unsigned index, uint64_t seed)
{
    static void (*const roles[THREADS])(struct actor *) = {write_on, write_on, read_on,
                                                           read_on,  hold_on,  count_on};
    static _Atomic uint64_t turn;
    static const struct eng_step_hook hook = {fall_asleep, &turn};
    struct actor actors[THREADS];
    struct gyre_data_dir dir = {board->torture.dir, 0};
    struct gyre_options options;
    struct gyre_store *store;
    char message[512];
    gyre_options_init(&options);
    options.dirs = &dir;
    options.n_dirs = 1;
    options.size_bytes = GYRE_SIZE_MIN;
    options.sync_interval_ms = 700;
    atomic_store(&turn, seed);
    if (board->torture.delays)
        eng_step_install(&hook);
    gyre_err err = gyre_open(&options, &store, message, sizeof message);
    if (err != GYRE_OK)
        board_fail(board, "open: %s", message);
    board->capacity_bytes = gyre_capacity_bytes(store);
    atomic_fetch_add(&board->opened, 1);
    for (unsigned i = 0; i < THREADS; i++) {
        actors[i] = (struct actor){.board = board,
                                   .store = store,
                                   .beat = &board->beats[index][i],
                                   .slot = index * WRITERS + i,
                                   .rng = {seed + i},
                                   .run = roles[i]};
        if (pthread_create(&actors[i].thread, NULL, act, &actors[i]) != 0)
            board_fail(board, "no thread");
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(actors[i].thread, NULL);
    err = gyre_close(&store, 60000);
    if (err != GYRE_OK)
        board_fail(board, "close: %s", gyre_err_name(err));
}
