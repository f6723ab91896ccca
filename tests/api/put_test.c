/* Puts: every size and way of handing bytes over, limits, failures, and that nothing shows before
 * commit. */
#include "tests/api/fixture.h"

#include "engine/writer.h"

#include "api/put.h"
#include "api/store.h"

static struct gyre_put *begin(struct gyre_store *store, uint64_t n, uint64_t length)
{
    struct gyre_key key = key_of(n);
    struct gyre_put_options options;
    struct gyre_put *put;
    gyre_put_options_init(&options);
    options.length = length;
    CHECK_OK(gyre_put_begin(store, &key, &options, &put));
    return put;
}

/* Writes the seed's body in steps of up to `step` bytes; every third step in place when `in_place`.
 */
static void stream(struct gyre_put *put, uint64_t seed, size_t len, size_t step, bool in_place)
{
    uint8_t *bytes = malloc(step);
    uint64_t offset = 0;
    for (unsigned i = 0; offset < len; i++) {
        size_t n = len - offset < step ? len - (size_t)offset : step;
        if (in_place && i % 3 != 0) {
            void *buffer;
            size_t asked = n;
            CHECK_OK(gyre_put_reserve(put, &n, &buffer));
            CHECK(n > 0 && n <= asked);
            pattern_fill(seed, offset, buffer, n);
            CHECK_OK(gyre_put_advance(put, n));
        } else {
            pattern_fill(seed, offset, bytes, n);
            CHECK_OK(gyre_put_write(put, bytes, n));
        }
        offset += n;
    }
    free(bytes);
}

static uint64_t stat_of_reserved(struct gyre_store *store)
{
    struct gyre_stats stats = {.struct_size = sizeof stats};
    CHECK_OK(gyre_stat(store, &stats));
    return stats.reserved_bytes;
}

TEST(whole_puts_of_every_size_come_back)
{
    struct gyre_store *store = open_store();
    uint64_t segment = store->engine->super.segment_bytes;
    const size_t sizes[] = {0,
                            1,
                            127,
                            4095,
                            4096,
                            4097,
                            65535,
                            65536,
                            65537,
                            262144,
                            262145,
                            MIB,
                            MIB + 1,
                            8 * MIB,
                            8 * MIB + 1,
                            3 * segment,
                            eng_part_max_bytes(store->engine),
                            eng_part_max_bytes(store->engine) + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        put_pattern(store, i, i, sizes[i]);
        check_object(store, i, i, sizes[i]);
    }
    close_store(store);
}

TEST(streams_of_every_size_and_step_come_back)
{
    static const size_t sizes[] = {0,     1,       4096, 65535,   65536,
                                   65537, MIB - 1, MIB,  MIB + 1, 5 * MIB + 77};
    static const size_t steps[] = {1000, 4096, 65536, 300000, 2 * MIB + 1};
    struct gyre_store *store = open_store();
    uint64_t n = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (size_t t = 0; t < sizeof steps / sizeof *steps; t++) {
            for (unsigned way = 0; way < 4; way++, n++) {
                uint64_t serial;
                struct gyre_put *put = begin(store, n, way & 1 ? GYRE_LENGTH_UNKNOWN : sizes[s]);
                stream(put, n, sizes[s], steps[t], way & 2);
                check_absent(store, n);
                CHECK_OK(gyre_put_commit(&put, &serial));
                CHECK(put == NULL && serial != 0);
                check_object(store, n, n, sizes[s]);
            }
        }
    }
    CHECK_EQ_U64(gyre_object_max_bytes(store), store->object_max_bytes);
    close_store(store);
}

TEST(single_bytes_add_up)
{
    struct gyre_store *store = open_store();
    struct gyre_put *put = begin(store, 1, GYRE_LENGTH_UNKNOWN);
    stream(put, 1, 70000, 1, false);
    CHECK_OK(gyre_put_write(put, NULL, 0));
    CHECK_OK(gyre_put_commit(&put, NULL));
    check_object(store, 1, 1, 70000);
    close_store(store);
}

TEST(what_was_there_stays_until_commit)
{
    struct gyre_store *store = open_store();
    put_pattern(store, 1, 1, 100000);
    struct gyre_put *put = begin(store, 1, GYRE_LENGTH_UNKNOWN);
    stream(put, 2, 3 * MIB, 100000, false);
    check_object(store, 1, 1, 100000);
    CHECK_OK(gyre_put_commit(&put, NULL));
    check_object(store, 1, 2, 3 * MIB);
    put_pattern(store, 1, 3, 10);
    check_object(store, 1, 3, 10);
    put_pattern(store, 1, 4, 100000);
    check_object(store, 1, 4, 100000);
    close_store(store);
}

TEST(aborted_puts_leave_nothing)
{
    struct gyre_store *store = open_store();
    uint64_t reserved = stat_of_reserved(store);
    static const size_t sizes[] = {0, 10, 100000, 3 * MIB};
    for (size_t i = 0; i < 4; i++) {
        struct gyre_put *put = begin(store, i, GYRE_LENGTH_UNKNOWN);
        stream(put, i, sizes[i], 50000, false);
        gyre_put_abort(&put);
        CHECK(put == NULL);
        check_absent(store, i);
    }
    CHECK_EQ_U64(stat_of_reserved(store), reserved);
    struct gyre_put *none = NULL;
    gyre_put_abort(&none);
    gyre_put_abort(NULL);
    close_store(store);
}

TEST(the_longest_object_fits_and_one_byte_more_does_not)
{
    struct gyre_store *store = open_store();
    uint64_t longest = gyre_object_max_bytes(store);
    CHECK(longest >= 16 * MIB && longest < GYRE_SIZE_MIN);
    struct gyre_key key = key_of(1);
    struct gyre_put_options options;
    struct gyre_put *put = (struct gyre_put *)&key;
    gyre_put_options_init(&options);
    options.length = longest + 1;
    CHECK_ERR(gyre_put_begin(store, &key, &options, &put), GYRE_TOO_LARGE);
    CHECK(put == NULL);
    options.length = GYRE_LENGTH_UNKNOWN - 1;
    CHECK_ERR(gyre_put_begin(store, &key, &options, &put), GYRE_TOO_LARGE);
    put = begin(store, 1, longest);
    stream(put, 1, longest, MIB, false);
    CHECK_OK(gyre_put_commit(&put, NULL));
    check_object(store, 1, 1, longest);
    close_store(store);
}

TEST(an_unknown_length_may_grow_too_large)
{
    struct gyre_store *store = open_store();
    uint8_t *bytes = pattern_new(1, MIB);
    struct gyre_put *put = begin(store, 1, GYRE_LENGTH_UNKNOWN);
    gyre_err err = GYRE_OK;
    for (unsigned i = 0; i < 64 && err == GYRE_OK; i++)
        err = gyre_put_write(put, bytes, MIB);
    CHECK_ERR(err, GYRE_TOO_LARGE);
    CHECK_ERR(gyre_put_write(put, bytes, 1), GYRE_STATE);
    CHECK_ERR(gyre_put_set_meta(put, "x", 1, 0, 0), GYRE_STATE);
    CHECK_ERR(gyre_put_commit(&put, NULL), GYRE_TOO_LARGE);
    CHECK(put == NULL);
    check_absent(store, 1);
    put_pattern(store, 1, 1, 10 * MIB); /* the room is free again */
    check_object(store, 1, 1, 10 * MIB);
    free(bytes);
    close_store(store);
}

TEST(lengths_must_be_as_announced)
{
    struct gyre_store *store = open_store();
    static const size_t lengths[] = {0, 10, 65536, 2 * MIB};
    uint8_t *bytes = pattern_new(1, 2 * MIB + 1);
    for (size_t i = 0; i < 4; i++) {
        struct gyre_put *put = begin(store, 1, lengths[i]);
        CHECK_ERR(gyre_put_write(put, bytes, lengths[i] + 1), GYRE_LENGTH);
        CHECK_ERR(gyre_put_commit(&put, NULL), GYRE_LENGTH);
        if (lengths[i] > 0) {
            put = begin(store, 1, lengths[i]);
            CHECK_OK(gyre_put_write(put, bytes, lengths[i] - 1));
            CHECK_ERR(gyre_put_commit(&put, NULL), GYRE_LENGTH);
        }
        put = begin(store, 1, lengths[i]);
        void *buffer;
        size_t room = lengths[i] + 1;
        stream(put, 1, lengths[i], 100000, true);
        CHECK_OK(gyre_put_reserve(put, &room, &buffer));
        CHECK_ERR(gyre_put_advance(put, 1), GYRE_LENGTH);
        CHECK_ERR(gyre_put_commit(&put, NULL), GYRE_LENGTH);
        check_absent(store, 1);
    }
    struct gyre_put_options options;
    struct gyre_key key = key_of(1);
    gyre_put_options_init(&options);
    options.length = 5;
    CHECK_ERR(gyre_put(store, &key, &options, bytes, 6, NULL), GYRE_LENGTH);
    CHECK_OK(gyre_put(store, &key, &options, bytes, 5, NULL));
    free(bytes);
    close_store(store);
}

TEST(advance_takes_no_more_than_was_lent)
{
    struct gyre_store *store = open_store();
    struct gyre_put *put = begin(store, 1, GYRE_LENGTH_UNKNOWN);
    void *buffer = put;
    size_t len = 0;
    CHECK_ERR(gyre_put_reserve(put, &len, &buffer), GYRE_INVALID);
    CHECK(buffer == NULL);
    len = 100;
    CHECK_OK(gyre_put_reserve(put, &len, &buffer));
    CHECK_EQ_U64(len, 100);
    memset(buffer, 0, 100);
    CHECK_ERR(gyre_put_advance(put, 101), GYRE_STATE);
    gyre_put_abort(&put);
    put = begin(store, 1, GYRE_LENGTH_UNKNOWN);
    CHECK_ERR(gyre_put_advance(put, 1), GYRE_STATE);
    gyre_put_abort(&put);
    put = begin(store, 1, GYRE_LENGTH_UNKNOWN);
    len = SIZE_MAX;
    CHECK_OK(gyre_put_reserve(put, &len, &buffer));
    CHECK(len >= 1 && len <= MIB);
    CHECK_OK(gyre_put_advance(put, 0));
    CHECK_OK(gyre_put_commit(&put, NULL));
    check_object(store, 1, 1, 0);
    close_store(store);
}

TEST(metadata_is_copied_replaced_and_bounded)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    struct gyre_put_options options;
    struct gyre_put *put;
    struct gyre_handle *handle;
    char meta[] = "first";
    char *huge = calloc(1, GYRE_META_MAX + 1);
    gyre_put_options_init(&options);
    options.meta = meta;
    options.meta_len = 5;
    CHECK_OK(gyre_put_begin(store, &key, &options, &put));
    memcpy(meta, "wrong", 5);
    CHECK_OK(gyre_put_write(put, "abc", 3));
    CHECK_OK(gyre_put_commit(&put, NULL));
    CHECK_OK(gyre_get(store, &key, 0, 0, &handle));
    CHECK_EQ_MEM(gyre_handle_meta(handle, NULL), "first", 5);
    gyre_release(handle);

    CHECK_OK(gyre_put_begin(store, &key, &options, &put));
    uint8_t *bytes = pattern_new(1, 100000);
    CHECK_OK(gyre_put_write(put, bytes, 100000));
    free(bytes);
    CHECK_ERR(gyre_put_set_meta(put, huge, GYRE_META_MAX + 1, 0, 0), GYRE_META_TOO_LARGE);
    CHECK_ERR(gyre_put_set_meta(put, NULL, 1, 0, 0), GYRE_INVALID);
    CHECK_OK(gyre_put_set_meta(put, "second", 6, 42, 4000000000u));
    CHECK_OK(gyre_put_commit(&put, NULL));
    CHECK_OK(gyre_get(store, &key, 0, 0, &handle));
    CHECK_EQ_MEM(gyre_handle_meta(handle, NULL), "second", 6);
    CHECK_EQ_U64(gyre_handle_info(handle)->etag_hash, 42);
    CHECK_EQ_U64(gyre_handle_info(handle)->expires, 4000000000u);
    gyre_release(handle);

    options.meta = huge;
    options.meta_len = GYRE_META_MAX + 1;
    CHECK_ERR(gyre_put_begin(store, &key, &options, &put), GYRE_META_TOO_LARGE);
    CHECK_ERR(gyre_put(store, &key, &options, "a", 1, NULL), GYRE_META_TOO_LARGE);
    free(huge);
    close_store(store);
}

TEST(long_metadata_fits_up_to_what_the_store_allows)
{
    struct gyre_options open_options = options_for("big", 1024 * MIB);
    open_options.segment_bytes = 16 * MIB;
    struct gyre_store *store = open_with(&open_options);
    struct gyre_put_options options;
    char *meta = calloc(1, GYRE_META_MAX);
    gyre_put_options_init(&options);
    options.meta = meta;
    options.meta_len = GYRE_META_MAX;
    memset(meta, 'm', GYRE_META_MAX);
    for (uint64_t n = 0; n < 2; n++) {
        struct gyre_key key = key_of(n);
        struct gyre_handle *handle;
        size_t len = n == 0 ? 1000 : 5 * MIB, meta_len;
        uint8_t *bytes = pattern_new(n, len);
        CHECK_OK(gyre_put(store, &key, &options, bytes, len, NULL));
        free(bytes);
        CHECK_OK(gyre_get(store, &key, 0, 0, &handle));
        CHECK_EQ_MEM(gyre_handle_meta(handle, &meta_len), meta, GYRE_META_MAX);
        CHECK_EQ_U64(meta_len, GYRE_META_MAX);
        check_pieces(handle, n);
        gyre_release(handle);
    }
    free(meta);
    close_store(store);
}

TEST(absurd_options_are_refused)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    struct gyre_put_options good, bad;
    struct gyre_put *put;
    gyre_put_options_init(&good);
    CHECK_ERR(gyre_put_begin(store, NULL, &good, &put), GYRE_INVALID);
    CHECK_ERR(gyre_put_begin(store, &key, NULL, &put), GYRE_INVALID);
    CHECK_ERR(gyre_put_begin(store, &key, &good, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_put_begin(NULL, &key, &good, &put), GYRE_INVALID);
    CHECK_ERR(gyre_put(store, NULL, &good, "", 0, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_put(store, &key, &good, NULL, 1, NULL), GYRE_INVALID);
#define BAD(field, value)                                                   \
    do {                                                                    \
        bad = good;                                                         \
        bad.field = (value);                                                \
        CHECK_ERR(gyre_put_begin(store, &key, &bad, &put), GYRE_INVALID);   \
        CHECK(put == NULL);                                                 \
        CHECK_ERR(gyre_put(store, &key, &bad, "a", 1, NULL), GYRE_INVALID); \
    } while (0)
    BAD(struct_size, 0);
    BAD(struct_size, sizeof good + 8);
    BAD(meta_len, 1);
    BAD(pool, 2);
    BAD(pool, 255);
    BAD(condition, (enum gyre_condition)3);
    BAD(flags, 2);
#undef BAD
    CHECK_ERR(gyre_put_write(NULL, "", 0), GYRE_INVALID);
    CHECK_ERR(gyre_put_advance(NULL, 0), GYRE_INVALID);
    CHECK_ERR(gyre_put_set_meta(NULL, "", 0, 0, 0), GYRE_INVALID);
    CHECK_ERR(gyre_put_commit(NULL, NULL), GYRE_INVALID);
    put = NULL;
    CHECK_ERR(gyre_put_commit(&put, NULL), GYRE_INVALID);
    CHECK_OK(gyre_put_begin(store, &key, &good, &put));
    CHECK_ERR(gyre_put_write(put, NULL, 1), GYRE_INVALID);
    CHECK_ERR(gyre_put_reserve(put, NULL, NULL), GYRE_INVALID);
    CHECK_OK(gyre_put_commit(&put, NULL)); /* those were the caller's mistakes, not the put's */
    check_absent(store, 2);
    close_store(store);
}

TEST(a_synced_put_is_there)
{
    struct gyre_store *store = open_store();
    struct gyre_put_options options;
    gyre_put_options_init(&options);
    options.flags = GYRE_PUT_SYNC;
    for (uint64_t n = 0; n < 2; n++) {
        struct gyre_key key = key_of(n);
        uint8_t *bytes = pattern_new(n, 100 + n * 100000);
        CHECK_OK(gyre_put(store, &key, &options, bytes, 100 + n * 100000, NULL));
        free(bytes);
        check_object(store, n, n, 100 + n * 100000);
    }
    close_store(store);
}

/* More streams at once than there are big staging buffers. */
TEST(many_slow_uploads_share_the_staging_memory)
{
    enum { PUTS = 3 * API_STAGE_BIG_MAX };
    struct gyre_options open_options = options_for("big", 1024 * MIB);
    struct gyre_store *store = open_with(&open_options);
    struct gyre_put *puts[PUTS];
    uint8_t *bytes = malloc(PUTS * 1000 + 200000);
    for (unsigned i = 0; i < PUTS; i++)
        puts[i] = begin(store, i, i % 2 == 0 ? GYRE_LENGTH_UNKNOWN : i * 1000 + 200000);
    for (unsigned step = 0; step < 4; step++) {
        for (unsigned i = 0; i < PUTS; i++) {
            size_t len = i * 1000 + 200000, from = len / 4 * step,
                   n = step == 3 ? len - from : len / 4;
            pattern_fill(i, from, bytes, n);
            gyre_err err = gyre_put_write(puts[i], bytes, n);
            CHECK_MSG(err == GYRE_OK, "put %u step %u: %s", i, step, gyre_err_name(err));
        }
    }
    for (unsigned i = 0; i < PUTS; i++) {
        CHECK_OK(gyre_put_commit(&puts[i], NULL));
        check_object(store, i, i, i * 1000 + 200000);
    }
    free(bytes);
    close_store(store);
}

TEST(an_unknown_length_reserves_in_proportion)
{
    struct gyre_options options = options_for("wide", 1024 * MIB);
    options.segment_bytes = 64 * MIB;
    struct gyre_store *store = open_with(&options);
    uint64_t before = stat_of_reserved(store);
    struct gyre_put *put = begin(store, 1, GYRE_LENGTH_UNKNOWN);
    stream(put, 1, MIB - 1, 100000, false);
    CHECK_EQ_U64(stat_of_reserved(store), before);
    gyre_put_abort(&put);
    put = begin(store, 1, GYRE_LENGTH_UNKNOWN);
    stream(put, 1, MIB + 300000, 100000, false);
    CHECK(stat_of_reserved(store) - before <= 5 * MIB + 8192);
    gyre_put_abort(&put);
    put = begin(store, 1, GYRE_LENGTH_UNKNOWN);
    stream(put, 1, 50 * MIB, 5 * MIB, true);
    CHECK_OK(gyre_put_commit(&put, NULL));
    struct gyre_key key = key_of(1);
    struct gyre_handle *handle;
    CHECK_OK(gyre_get(store, &key, 0, 0, &handle));
    CHECK_EQ_U64(gyre_handle_info(handle)->parts, 5); /* 1, 4, and three of nearly 16 MiB */
    check_pieces(handle, 1);
    gyre_release(handle);
    close_store(store);
}

/* Streams never leave more reserved behind than they hold. */
TEST(an_unknown_length_wastes_no_log)
{
    struct gyre_store *store = open_store();
    struct gyre_stats before = {.struct_size = sizeof before}, after = before;
    struct gyre_put *put = begin(store, 1, GYRE_LENGTH_UNKNOWN);
    CHECK_OK(gyre_stat(store, &before));
    stream(put, 1, MIB + 100000, 100000, false);
    CHECK_OK(gyre_put_commit(&put, NULL));
    CHECK_OK(gyre_stat(store, &after));
    CHECK(after.live_bytes - before.live_bytes < MIB + 100000 + 20 * 8192);
    close_store(store);
}
