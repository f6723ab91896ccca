/* Handles: what they show, what they keep, and what a get refuses. */
#include "tests/api/fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static struct gyre_handle *get(struct gyre_store *store, uint64_t n, unsigned flags)
{
    struct gyre_key key = key_of(n);
    struct gyre_handle *handle;
    CHECK_OK(gyre_get(store, &key, 0, flags, &handle));
    return handle;
}

TEST(wrong_arguments_are_refused)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    struct gyre_handle *handle = (struct gyre_handle *)&key;
    CHECK_ERR(gyre_get(NULL, &key, 0, 0, &handle), GYRE_INVALID);
    CHECK(handle == NULL);
    CHECK_ERR(gyre_get(store, NULL, 0, 0, &handle), GYRE_INVALID);
    CHECK_ERR(gyre_get(store, &key, 0, 0, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_get(store, &key, 0, 1u << 8, &handle), GYRE_INVALID);
    CHECK_ERR(gyre_get(store, &key, 0, 1u << 31, &handle), GYRE_INVALID);
    CHECK_ERR(gyre_exists(store, NULL, 0, GYRE_STRICT), GYRE_INVALID);
    CHECK_ERR(gyre_exists(store, &key, 0, (enum gyre_certainty)5), GYRE_INVALID);
    gyre_release(NULL);
    close_store(store);
}

TEST(a_handle_tells_what_was_put)
{
    struct gyre_store *store = open_store();
    static const size_t sizes[] = {0, 10, 65535, 65536, 1000000};
    for (uint64_t i = 0; i < 5; i++) {
        struct gyre_put_options options;
        struct gyre_key key = key_of(i);
        uint8_t *bytes = pattern_new(i, sizes[i]);
        char meta[100];
        uint64_t serial;
        pattern_fill(900 + i, 0, meta, sizeof meta);
        gyre_put_options_init(&options);
        options.meta = meta;
        options.meta_len = sizeof meta;
        options.created = 1111;
        options.expires = 4000000000u;
        options.etag_hash = 0x1234567890abcdefu;
        options.tenant = 4711;
        options.retention = 9;
        CHECK_OK(gyre_put(store, &key, &options, bytes, sizes[i], &serial));
        free(bytes);
        for (unsigned flags = 0; flags < 8; flags++) {
            struct gyre_handle *handle = get(store, i, flags);
            const struct gyre_info *info = gyre_handle_info(handle);
            size_t meta_len;
            CHECK_EQ_U64(info->length, sizes[i]);
            CHECK_EQ_U64(info->serial, serial);
            CHECK_EQ_U64(info->created, 1111);
            CHECK_EQ_U64(info->expires, 4000000000u);
            CHECK_EQ_U64(info->etag_hash, 0x1234567890abcdefu);
            CHECK_EQ_U64(info->tenant, 4711);
            CHECK_EQ_U64(info->pool, GYRE_POOL_MAIN);
            CHECK_EQ_U64(info->retention, 9);
            CHECK_EQ_U64(info->meta_len, sizeof meta);
            CHECK((info->parts == 0) == (sizes[i] < 65536));
            CHECK_EQ_MEM(gyre_handle_meta(handle, &meta_len), meta, sizeof meta);
            CHECK_EQ_U64(meta_len, sizeof meta);
            gyre_release(handle);
        }
    }
    close_store(store);
}

TEST(a_head_handle_lends_no_bytes)
{
    struct gyre_store *store = open_store();
    put_pattern(store, 1, 1, 100);
    put_pattern(store, 2, 2, 100000);
    for (uint64_t n = 1; n <= 2; n++) {
        struct gyre_handle *handle = get(store, n, GYRE_GET_HEAD);
        struct gyre_piece piece;
        uint8_t byte;
        size_t copied = 7;
        CHECK_ERR(gyre_handle_piece(handle, 0, &piece), GYRE_STATE);
        CHECK_ERR(gyre_populate(handle, 0, 1), GYRE_STATE);
        CHECK_ERR(gyre_copy(handle, 0, &byte, 1, 0, &copied), GYRE_STATE);
        CHECK_EQ_U64(copied, 0);
        CHECK(!gyre_resident(handle, 0, 1));
        gyre_release(handle);
    }
    close_store(store);
}

TEST(spans_past_the_end_are_refused)
{
    struct gyre_store *store = open_store();
    static const size_t sizes[] = {0, 100, 100000};
    for (uint64_t i = 0; i < 3; i++) {
        size_t len = sizes[i];
        put_pattern(store, i, i, len);
        struct gyre_handle *handle = get(store, i, 0);
        struct gyre_piece piece = {.len = 1};
        uint8_t buffer[16];
        size_t copied;
        CHECK_ERR(gyre_handle_piece(handle, len, &piece), GYRE_RANGE);
        CHECK(piece.base == NULL && piece.len == 0 && piece.fd == -1);
        CHECK_ERR(gyre_handle_piece(handle, UINT64_MAX, &piece), GYRE_RANGE);
        CHECK_ERR(gyre_populate(handle, len + 1, 0), GYRE_RANGE);
        CHECK_ERR(gyre_populate(handle, len, 1), GYRE_RANGE);
        CHECK_ERR(gyre_populate(handle, 1, UINT64_MAX), GYRE_RANGE);
        CHECK_OK(gyre_populate(handle, len, 0));
        CHECK(!gyre_resident(handle, len, 1));
        CHECK(!gyre_resident(handle, 1, UINT64_MAX));
        CHECK(gyre_resident(handle, len, 0));
        CHECK_ERR(gyre_copy(handle, len + 1, buffer, 1, 0, &copied), GYRE_RANGE);
        CHECK_OK(gyre_copy(handle, len, buffer, sizeof buffer, 0, &copied));
        CHECK_EQ_U64(copied, 0);
        CHECK_ERR(gyre_copy(handle, 0, NULL, 1, 0, &copied), GYRE_INVALID);
        CHECK_ERR(gyre_copy(handle, 0, buffer, 1, GYRE_GET_HEAD, &copied), GYRE_INVALID);
        CHECK_ERR(gyre_copy(handle, 0, buffer, 1, 0, NULL), GYRE_INVALID);
        CHECK_ERR(gyre_copy(NULL, 0, buffer, 1, 0, &copied), GYRE_INVALID);
        CHECK_ERR(gyre_populate(NULL, 0, 0), GYRE_INVALID);
        CHECK_ERR(gyre_handle_piece(NULL, 0, &piece), GYRE_INVALID);
        CHECK_ERR(gyre_handle_piece(handle, 0, NULL), GYRE_INVALID);
        gyre_release(handle);
    }
    close_store(store);
}

/* Pieces say where the bytes lie in the file, too. */
TEST(pieces_in_memory_and_in_the_file_are_the_same)
{
    struct gyre_store *store = open_store();
    put_pattern(store, 1, 1, 700001);
    struct gyre_handle *handle = get(store, 1, 0);
    uint8_t *from_file = malloc(700001);
    struct gyre_piece piece;
    for (uint64_t offset = 0; offset < 700001; offset += piece.len) {
        CHECK_OK(gyre_handle_piece(handle, offset, &piece));
        CHECK(pread(piece.fd, from_file, piece.len, (off_t)piece.file_offset) ==
              (ssize_t)piece.len);
        CHECK(pattern_is(1, offset, from_file, piece.len));
    }
    free(from_file);
    gyre_release(handle);
    close_store(store);
}

TEST(pieces_begin_where_they_are_asked_for)
{
    struct gyre_store *store = open_store();
    const size_t len = 2 * MIB + 123;
    struct test_rng rng = {test_seed()};
    put_pattern(store, 1, 1, len);
    struct gyre_handle *handle = get(store, 1, 0);
    for (int i = 0; i < 2000; i++) {
        uint64_t offset = test_rng_below(&rng, len);
        struct gyre_piece piece;
        CHECK_OK(gyre_handle_piece(handle, offset, &piece));
        CHECK(piece.len > 0 && piece.len <= len - offset);
        CHECK(pattern_is(1, offset, piece.base, piece.len < 64 ? piece.len : 64));
        CHECK(pattern_is(1, offset + piece.len - 1, piece.base + piece.len - 1, 1));
    }
    gyre_release(handle);
    close_store(store);
}

TEST(copies_are_whole_and_cut_at_the_end)
{
    struct gyre_store *store = open_store();
    const size_t len = 2 * MIB + 123;
    struct test_rng rng = {test_seed()};
    uint8_t *buffer = malloc(len + 100);
    put_pattern(store, 1, 1, len);
    put_pattern(store, 2, 2, 3000);
    for (unsigned flags = 0; flags <= GYRE_GET_NOWAIT; flags += GYRE_GET_NOWAIT) {
        struct gyre_handle *handle = get(store, 1, 0), *small = get(store, 2, 0);
        size_t copied;
        CHECK_OK(gyre_copy(handle, 0, buffer, len + 100, 0, &copied));
        CHECK_EQ_U64(copied, len);
        CHECK(pattern_is(1, 0, buffer, len));
        for (int i = 0; i < 200; i++) {
            uint64_t offset = test_rng_below(&rng, len);
            size_t want = test_rng_below(&rng, 600000),
                   expected = want < len - offset ? want : len - offset;
            CHECK_OK(gyre_copy(handle, offset, buffer, want, flags, &copied));
            CHECK_EQ_U64(copied, expected);
            CHECK(pattern_is(1, offset, buffer, copied));
        }
        CHECK_OK(gyre_copy(small, 100, buffer, 10000, flags, &copied));
        CHECK_EQ_U64(copied, 2900);
        CHECK(pattern_is(2, 100, buffer, 2900));
        gyre_release(handle);
        gyre_release(small);
    }
    free(buffer);
    close_store(store);
}

TEST(expiry_is_judged_by_the_time_given)
{
    struct gyre_store *store = open_store();
    struct gyre_put_options options;
    gyre_put_options_init(&options);
    options.expires = 1000;
    for (uint64_t n = 1; n <= 2; n++) {
        struct gyre_key key = key_of(n);
        struct gyre_handle *handle;
        uint8_t *bytes = pattern_new(n, n * 50000);
        CHECK_OK(gyre_put(store, &key, &options, bytes, n * 50000, NULL));
        free(bytes);
        CHECK_OK(gyre_get(store, &key, 999, 0, &handle));
        check_pieces(handle, n);
        gyre_release(handle);
        CHECK_OK(gyre_exists(store, &key, 999, GYRE_STRICT));
        CHECK_ERR(gyre_get(store, &key, 1000, 0, &handle), GYRE_EXPIRED);
        CHECK(handle == NULL);
        CHECK_ERR(gyre_get(store, &key, UINT32_MAX, GYRE_GET_HEAD, &handle), GYRE_EXPIRED);
        CHECK_ERR(gyre_exists(store, &key, 1000, GYRE_STRICT), GYRE_EXPIRED);
        CHECK_OK(gyre_exists(store, &key, 1000, GYRE_PROBABLE));
    }
    close_store(store);
}

TEST(probable_never_says_a_wrong_no)
{
    struct gyre_store *store = open_store();
    unsigned wrong_yes = 0;
    for (uint64_t n = 0; n < 2000; n++)
        put_pattern(store, n, n, n % 50 == 0 ? 70000 : 100);
    for (uint64_t n = 0; n < 2000; n++) {
        struct gyre_key key = key_of(n), absent = key_of(1000000 + n);
        CHECK_OK(gyre_exists(store, &key, 0, GYRE_PROBABLE));
        CHECK_OK(gyre_exists(store, &key, 0, GYRE_STRICT));
        CHECK_ERR(gyre_exists(store, &absent, 0, GYRE_STRICT), GYRE_NOT_FOUND);
        wrong_yes += gyre_exists(store, &absent, 0, GYRE_PROBABLE) == GYRE_OK;
    }
    CHECK_MSG(wrong_yes <= 10, "%u of 2000", wrong_yes);
    close_store(store);
}

/* The bytes of an open handle stay, whatever is written behind its back, until the log has gone
 * round several times. */
TEST(open_handles_keep_their_bytes_for_laps)
{
    static const size_t sizes[] = {1, 5000, 65535, 65536, 9 * MIB + 5};
    struct gyre_store *store = open_store();
    struct gyre_handle *handles[5];
    for (uint64_t i = 0; i < 5; i++) {
        put_pattern(store, i, i, sizes[i]);
        handles[i] = get(store, i, 0);
    }
    put_pattern(store, 0, 50, 77); /* overwritten */
    struct gyre_key one = key_of(1);
    CHECK_OK(gyre_delete(store, &one, GYRE_ALWAYS, 0, 0));
    uint64_t written = 0, n = 100;
    while (written < 3 * GYRE_SIZE_MIN) {
        size_t len = n % 3 == 0 ? 900000 : 30000;
        put_pattern(store, n, n, len);
        check_object(store, n, n, len);
        written += len;
        n++;
    }
    for (uint64_t i = 0; i < 5; i++) {
        check_pieces(handles[i], i);
        gyre_release(handles[i]);
    }
    close_store(store);
}

struct replacer {
    struct gyre_store *store;
    _Atomic bool stop;
    _Atomic unsigned replaced;
};

/* An object of several parts whose metadata names the seed of its bytes. */
static void put_marked(struct gyre_store *store, uint64_t seed)
{
    struct gyre_key key = key_of(1);
    struct gyre_put_options put;
    uint8_t *bytes = pattern_new(seed, 1000000);
    gyre_put_options_init(&put);
    put.meta = &seed;
    put.meta_len = sizeof seed;
    CHECK_OK(gyre_put(store, &key, &put, bytes, 1000000, NULL));
    free(bytes);
}

static void *replace_until_told(void *data)
{
    struct replacer *replacer = data;
    for (uint64_t seed = 2; !atomic_load(&replacer->stop); seed++) {
        put_marked(replacer->store, seed);
        atomic_fetch_add(&replacer->replaced, 1);
    }
    return NULL;
}

/* The parts of an old HEAD may be gone by the time they are looked for; then the new one is the
 * answer. */
TEST(an_object_being_replaced_is_never_missed)
{
    static const unsigned all_flags[] = {0, GYRE_GET_HEAD, GYRE_GET_LAZY};
    struct gyre_options options = options_for("roomy", 512 * MIB);
    options.segment_bytes = MIB; /* many parts */
    struct replacer replacer = {.store = open_with(&options)};
    struct gyre_key key = key_of(1);
    pthread_t thread;
    put_marked(replacer.store, 1);
    CHECK(pthread_create(&thread, NULL, replace_until_told, &replacer) == 0);
    for (unsigned i = 0; i < 600 || atomic_load(&replacer.replaced) < 30; i++) {
        struct gyre_handle *handle;
        uint64_t seed;
        CHECK_OK(gyre_get(replacer.store, &key, 0, all_flags[i % 3], &handle));
        memcpy(&seed, gyre_handle_meta(handle, NULL), sizeof seed);
        if (all_flags[i % 3] == 0)
            check_pieces(handle, seed);
        gyre_release(handle);
        CHECK_OK(gyre_exists(replacer.store, &key, 0, GYRE_STRICT));
    }
    atomic_store(&replacer.stop, true);
    CHECK(pthread_join(thread, NULL) == 0);
    close_store(replacer.store);
}

TEST(a_released_handle_is_caught)
{
    struct gyre_store *store = open_store();
    put_pattern(store, 1, 1, 10);
    struct gyre_handle *handle = get(store, 1, 0);
    gyre_release(handle);
    CHECK_ABORTS(gyre_release(handle));
    close_store(store);
}

struct passed_on {
    struct gyre_handle *handles[300];
    unsigned n;
};

static void *release_all(void *data)
{
    struct passed_on *passed = data;
    for (unsigned i = 0; i < passed->n; i++)
        gyre_release(passed->handles[i]);
    return NULL;
}

TEST(handles_may_be_released_on_another_thread)
{
    struct gyre_store *store = open_store();
    struct passed_on passed = {.n = 300};
    pthread_t thread;
    put_pattern(store, 1, 1, 10);
    for (int round = 0; round < 3; round++) {
        for (unsigned i = 0; i < passed.n; i++)
            passed.handles[i] = get(store, 1, 0);
        CHECK(pthread_create(&thread, NULL, release_all, &passed) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    struct gyre_stats stats = {.struct_size = sizeof stats};
    CHECK_OK(gyre_stat(store, &stats));
    CHECK_EQ_U64(stats.pins, 0);
    close_store(store);
}

/* One handle of 40 pieces takes 41 pins, so the table is used up after some 800. */
TEST(busy_when_no_pin_is_left)
{
    struct gyre_store *store = open_store();
    static struct gyre_handle *handles[40000];
    struct gyre_key key = key_of(1);
    unsigned n = 0;
    put_pattern(store, 1, 1, 9 * MIB);
    put_pattern(store, 2, 2, 9);
    gyre_err err = GYRE_OK;
    while (n < 40000 && (err = gyre_get(store, &key, 0, GYRE_GET_LAZY, &handles[n])) == GYRE_OK)
        n++;
    CHECK_ERR(err, GYRE_BUSY);
    CHECK(handles[n] == NULL);
    CHECK(n > 500);
    while (n > 0)
        gyre_release(handles[--n]);
    check_object(store, 1, 1, 9 * MIB);
    check_object(store, 2, 2, 9);
    close_store(store);
}
