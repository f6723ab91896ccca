/* Tables of parts that came from a disk nobody can trust: whatever they say, the object is a miss
 * and nothing breaks. */
#include "tests/api/fixture.h"

#include "engine/writer.h"

#include "api/store.h"

/* Publishes a HEAD with any table, correctly sealed. */
static void put_head(struct gyre_store *store, uint64_t n, const void *rows, size_t len,
                     uint64_t total, uint32_t parts, uint64_t object_serial)
{
    struct gyre_key key = key_of(n);
    struct eng_commit commit = {
        .spec = {.key = key.bytes,
                 .type = ENG_HEAD,
                 .total_len = total,
                 .parts = parts,
                 .object_serial = object_serial},
        .body = rows,
        .body_len = len,
    };
    uint64_t serial;
    CHECK_OK(eng_commit(store->engine, &commit, &serial));
}

/* It is no object for anybody, and gives way to a new one. */
static void check_unusable(struct gyre_store *store, uint64_t n)
{
    struct gyre_key key = key_of(n);
    struct gyre_handle *handle;
    static const unsigned flags[] = {GYRE_GET_NOWAIT, GYRE_GET_HEAD, GYRE_GET_LAZY, 0};
    for (size_t i = 0; i < 4; i++) {
        CHECK_ERR(gyre_get(store, &key, 0, flags[i], &handle), GYRE_NOT_FOUND);
        CHECK(handle == NULL);
    }
    put_pattern(store, n, n, 100000);
    check_object(store, n, n, 100000);
}

TEST(tables_that_do_not_add_up_are_misses)
{
    struct gyre_store *store = open_store();
    struct eng_part_row rows[3] = {{.length = 65536, .part_no = 1},
                                   {.length = 65536, .part_no = 2}};
    put_head(store, 1, rows, 0, 65536, 0, 5);    /* empty */
    put_head(store, 2, rows, 39, 65536, 1, 5);   /* not a row */
    put_head(store, 3, rows, 81, 131072, 2, 5);  /* a row and a bit */
    put_head(store, 4, rows, 80, 131072, 1, 5);  /* another count in the header */
    put_head(store, 5, rows, 80, 131071, 2, 5);  /* another sum */
    put_head(store, 6, rows, 120, 131072, 3, 5); /* a part of no bytes */
    rows[0].length = UINT64_MAX - 65535;
    put_head(store, 7, rows, 80, 0, 2, 5); /* the sum goes round */
    rows[0].length = eng_part_max_bytes(store->engine) + 1;
    put_head(store, 8, rows, 40, rows[0].length, 1, 5); /* longer than any part */
    for (uint64_t n = 1; n <= 8; n++)
        check_unusable(store, n);
    close_store(store);
}

TEST(a_part_that_is_missing_makes_a_miss_and_the_head_goes)
{
    struct gyre_store *store = open_store();
    struct eng_part_row row = {.length = 65536, .part_no = 1};
    struct gyre_key key = key_of(1);
    struct gyre_handle *handle;
    struct gyre_check_report report = {.struct_size = sizeof report};
    put_head(store, 1, &row, sizeof row, 65536, 1, 5);
    CHECK_OK(gyre_check(store, true, NULL, NULL, &report)); /* as eviction leaves them */
    CHECK_EQ_U64(report.objects_incomplete, 1);
    CHECK_ERR(gyre_get(store, &key, 0, 0, &handle), GYRE_NOT_FOUND);
    CHECK_ERR(gyre_exists(store, &key, 0, GYRE_PROBABLE), GYRE_NOT_FOUND); /* dropped */
    close_store(store);
}

TEST(a_head_without_its_parts_does_not_count_as_there)
{
    struct gyre_store *store = open_store();
    struct eng_part_row row = {.length = 65536, .part_no = 1};
    struct gyre_key key = key_of(1);
    struct gyre_put_options options;
    gyre_put_options_init(&options);
    options.condition = GYRE_IF_ABSENT;
    put_head(store, 1, &row, sizeof row, 65536, 1, 5);
    CHECK_OK(gyre_put(store, &key, &options, "new", 3, NULL));
    CHECK_ERR(gyre_put(store, &key, &options, "new", 3, NULL), GYRE_EXISTS);
    close_store(store);
}

/* Real parts of the lengths given, published with a HEAD whose rows say something else. */
static void put_parts(struct gyre_store *store, uint64_t n, const size_t lengths[2],
                      const uint64_t said[2], uint64_t total)
{
    struct gyre_key key = key_of(n);
    struct eng_part parts[2];
    struct eng_part_row rows[2] = {{.length = said[0], .part_no = 1},
                                   {.length = said[1], .part_no = 2}};
    struct eng_commit commit = {
        .spec = {.key = key.bytes, .type = ENG_HEAD, .total_len = total, .parts = 2},
        .body = rows,
        .body_len = sizeof rows,
        .parts = parts,
        .n_parts = 2,
    };
    uint64_t serial;
    commit.spec.object_serial = eng_object_serial(store->engine, 0, key.bytes);
    for (uint32_t i = 0; i < 2; i++) {
        uint8_t *bytes = pattern_new(n, lengths[i]);
        CHECK_OK(eng_part_begin(store->engine, &commit.spec, i + 1, 0, 0, lengths[i], &parts[i]));
        CHECK_OK(eng_part_write(&parts[i], bytes, lengths[i]));
        CHECK_OK(eng_part_finish(&parts[i], &commit.spec));
        free(bytes);
    }
    CHECK_OK(eng_commit(store->engine, &commit, &serial));
}

TEST(rows_must_say_what_the_parts_are)
{
    struct gyre_store *store = open_store();
    static const size_t lengths[2] = {65536, 65536};
    struct gyre_key key = key_of(1);
    struct gyre_handle *handle;
    put_parts(store, 1, lengths, (const uint64_t[2]){65536, 65536}, 131072); /* the truth */
    CHECK_OK(gyre_get(store, &key, 0, 0, &handle));
    CHECK_EQ_U64(gyre_handle_info(handle)->length, 131072);
    gyre_release(handle);
    key = key_of(2);
    put_parts(store, 2, lengths, (const uint64_t[2]){65535, 65537}, 131072);
    CHECK_ERR(gyre_get(store, &key, 0, GYRE_GET_LAZY, &handle), GYRE_NOT_FOUND);
    CHECK_ERR(gyre_exists(store, &key, 0, GYRE_PROBABLE), GYRE_NOT_FOUND);
    put_parts(store, 3, lengths, (const uint64_t[2]){65536, 65536}, 131073);
    put_parts(store, 4, lengths, (const uint64_t[2]){65536, 65536}, 65536);
    put_parts(store, 5, lengths, (const uint64_t[2]){0, 131072}, 131072);
    for (uint64_t n = 3; n <= 5; n++)
        check_unusable(store, n);
    close_store(store);
}

/* Takes a real object's HEAD apart and publishes it with a row changed. */
TEST(a_part_of_another_length_than_its_row_is_a_miss)
{
    struct gyre_store *store = open_store();
    struct eng_part_row rows[8];
    struct gyre_key key = key_of(1);
    struct eng_want want = {.key = key.bytes, .pool = ENG_POOL_MAIN};
    struct eng_ref head;
    put_pattern(store, 1, 1, 500000);
    CHECK_OK(eng_find(store->engine, &want, 0, 0, &head));
    CHECK_EQ_U64(head.doc->type, ENG_HEAD);
    size_t n = head.doc->body_len / sizeof *rows;
    CHECK(n >= 2 && n <= 8);
    memcpy(rows, head.body, n * sizeof *rows);
    eng_ref_release(&head);
    uint64_t length = rows[0].length;
    rows[0].length = rows[1].length;
    rows[1].length = length;
    if (rows[0].length != rows[1].length) {
        put_head(store, 1, rows, n * sizeof *rows, 500000, (uint32_t)n, 5);
        check_unusable(store, 1);
    }
    close_store(store);
}

TEST(vectors_and_parts_are_no_objects)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    struct eng_commit commit = {.spec = {.key = key.bytes, .type = ENG_VECTOR, .total_len = 64},
                                .body = &key,
                                .body_len = 32};
    struct gyre_handle *handle;
    uint64_t serial;
    if (eng_commit(store->engine, &commit, &serial) == GYRE_OK)
        CHECK_ERR(gyre_get(store, &key, 0, 0, &handle), GYRE_NOT_FOUND);
    close_store(store);
}
