/* Verification: bytes are lent only once they are proved, damage is found and never lent. */
#include "tests/api/fixture.h"

#include <fcntl.h>
#include <unistd.h>

/* Where byte `offset` of key_of(n) lies. */
struct place {
    char path[600];
    uint64_t file_offset;
};

static struct place find_byte(struct gyre_store *store, uint64_t n, uint64_t offset)
{
    struct gyre_key key = key_of(n);
    struct gyre_handle *handle;
    struct gyre_piece piece;
    struct gyre_file file;
    struct place place = {.path = ""};
    CHECK_OK(gyre_get(store, &key, 0, 0, &handle));
    CHECK_OK(gyre_handle_piece(handle, offset, &piece));
    for (size_t i = 1; gyre_file_at(store, i, &file) == GYRE_OK; i++) {
        if (file.fd == piece.fd)
            snprintf(place.path, sizeof place.path, "%s", file.path);
    }
    place.file_offset = piece.file_offset;
    gyre_release(handle);
    CHECK(place.path[0] != '\0');
    return place;
}

static void flip(const struct place *place)
{
    int fd = open(place->path, O_RDWR);
    uint8_t byte;
    CHECK(fd >= 0);
    CHECK(pread(fd, &byte, 1, (off_t)place->file_offset) == 1);
    byte ^= 0x20;
    CHECK(pwrite(fd, &byte, 1, (off_t)place->file_offset) == 1);
    close(fd);
}

static struct gyre_handle *get(struct gyre_store *store, uint64_t n, unsigned flags)
{
    struct gyre_key key = key_of(n);
    struct gyre_handle *handle;
    CHECK_OK(gyre_get(store, &key, 0, flags, &handle));
    return handle;
}

/* A store that has been closed and opened again, so that nothing in it counts as verified. */
static struct gyre_store *reopen(struct gyre_store *store)
{
    close_store(store);
    return open_store();
}

/* Segments long enough for parts of many chunks. */
static struct gyre_store *open_wide(void)
{
    struct gyre_options options = options_for("wide", 512 * MIB);
    options.segment_bytes = 16 * MIB;
    return open_with(&options);
}

TEST(lazy_handles_lend_nothing_unverified)
{
    struct gyre_store *store = open_wide();
    put_pattern(store, 1, 1, 2 * MIB);
    close_store(store);
    store = open_wide();
    struct gyre_handle *handle = get(store, 1, GYRE_GET_LAZY);
    struct gyre_piece piece;
    uint8_t buffer[64];
    size_t copied;
    CHECK_ERR(gyre_handle_piece(handle, 0, &piece), GYRE_WOULD_BLOCK);
    CHECK(!gyre_resident(handle, 0, 1));
    CHECK_ERR(gyre_copy(handle, 0, buffer, sizeof buffer, GYRE_GET_NOWAIT, &copied),
              GYRE_WOULD_BLOCK);
    CHECK_OK(gyre_populate(handle, 300000, 1));
    CHECK_OK(gyre_handle_piece(handle, 300000, &piece));
    CHECK(pattern_is(1, 300000, piece.base, piece.len));
    CHECK_EQ_U64(piece.len, 2 * 262144 - 300000); /* to the end of its chunk */
    CHECK(gyre_resident(handle, 300000, piece.len));
    CHECK(!gyre_resident(handle, 0, 2 * MIB));
    CHECK_ERR(gyre_handle_piece(handle, 300000 + MIB, &piece), GYRE_WOULD_BLOCK);
    CHECK_OK(
        gyre_copy(handle, MIB + 5, buffer, sizeof buffer, 0, &copied)); /* verifies what it needs */
    CHECK(copied == sizeof buffer && pattern_is(1, MIB + 5, buffer, copied));
    CHECK_OK(gyre_populate(handle, 0, 2 * MIB));
    CHECK(gyre_resident(handle, 0, 2 * MIB));
    check_pieces(handle, 1);
    gyre_release(handle);
    close_store(store);
}

TEST(what_one_handle_verified_whole_the_next_finds_done)
{
    struct gyre_store *store = open_wide();
    const size_t len = 3 * MIB + 1;
    put_pattern(store, 1, 1, len);
    close_store(store);
    store = open_wide();
    struct gyre_handle *first = get(store, 1, GYRE_GET_LAZY);
    for (uint64_t end = len; end > 0; end -= end < 100000 ? end : 100000) { /* from behind */
        uint64_t offset = end < 100000 ? 0 : end - 100000;
        CHECK_OK(gyre_populate(first, offset, end - offset));
    }
    gyre_release(first);
    struct gyre_handle *next = get(store, 1, GYRE_GET_NOWAIT);
    CHECK(gyre_resident(next, 0, len));
    check_pieces(next, 1);
    gyre_release(next);
    close_store(store);
}

/* Small documents that are in memory are verified on the spot, so only large bodies may have to
 * wait. */
TEST(nowait_never_lends_what_is_not_verified)
{
    struct gyre_store *store = open_store();
    put_pattern(store, 1, 1, 100);
    put_pattern(store, 2, 2, 100000);
    store = reopen(store);
    for (uint64_t n = 1; n <= 2; n++) {
        struct gyre_key key = key_of(n);
        struct gyre_handle *handle;
        gyre_err err = gyre_get(store, &key, 0, GYRE_GET_NOWAIT, &handle);
        CHECK(err == GYRE_OK || err == GYRE_WOULD_BLOCK);
        CHECK((err == GYRE_OK) == (handle != NULL));
        if (err == GYRE_OK && n == 1)
            check_pieces(handle, n);
        if (err == GYRE_OK && n == 2)
            CHECK_ERR(gyre_handle_piece(handle, 0, &(struct gyre_piece){0}), GYRE_WOULD_BLOCK);
        gyre_release(handle);
        gyre_release(get(store, n, 0));
        handle = get(store, n, GYRE_GET_NOWAIT);
        check_pieces(handle, n);
        gyre_release(handle);
    }
    close_store(store);
}

TEST(a_damaged_body_is_a_miss)
{
    static const size_t sizes[] = {1, 5000, 65535, 65536, 1000000, 5 * MIB};
    for (size_t i = 0; i < 6; i++) {
        for (int at = 0; at < 3; at++) {
            struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
            options.mode = GYRE_OPEN_RESET;
            struct gyre_store *store = open_with(&options);
            uint64_t offset = at == 0 ? 0 : at == 1 ? sizes[i] / 2 : sizes[i] - 1;
            put_pattern(store, 1, 1, sizes[i]);
            put_pattern(store, 2, 2, sizes[i]);
            struct place place = find_byte(store, 1, offset);
            close_store(store);
            flip(&place);
            store = open_store();
            check_object(store, 2, 2, sizes[i]);
            struct gyre_key key = key_of(1);
            struct gyre_handle *handle;
            CHECK_ERR(gyre_get(store, &key, 0, 0, &handle), GYRE_NOT_FOUND);
            CHECK(handle == NULL);
            struct gyre_stats stats = {.struct_size = sizeof stats};
            CHECK_OK(gyre_stat(store, &stats));
            CHECK_EQ_U64(stats.checksum_failures, 1);
            check_absent(store, 1);
            put_pattern(store, 1, 3, sizes[i]);
            check_object(store, 1, 3, sizes[i]);
            close_store(store);
        }
    }
}

TEST(damage_found_by_populate_drops_the_object)
{
    struct gyre_store *store = open_wide();
    put_pattern(store, 1, 1, 2 * MIB);
    struct place place = find_byte(store, 1, MIB);
    close_store(store);
    flip(&place);
    store = open_wide();
    struct gyre_handle *handle = get(store, 1, GYRE_GET_LAZY);
    struct gyre_piece piece;
    uint8_t buffer[64];
    size_t copied = 1;
    CHECK_OK(gyre_populate(handle, 0, 1000)); /* the damage is elsewhere */
    CHECK_OK(gyre_handle_piece(handle, 0, &piece));
    CHECK_ERR(gyre_copy(handle, MIB - 10, buffer, sizeof buffer, 0, &copied), GYRE_DAMAGED);
    CHECK_EQ_U64(copied, 0);
    CHECK_ERR(gyre_populate(handle, 0, 2 * MIB), GYRE_DAMAGED);
    CHECK_ERR(gyre_handle_piece(handle, MIB, &piece), GYRE_WOULD_BLOCK);
    gyre_release(handle);
    check_absent(store, 1);
    close_store(store);
}
