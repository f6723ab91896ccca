/* What the tests of libgyre share: a small store in the test's own directory, keys, and bytes that
 * can be told from any others.
 *
 * A body is made from a seed: byte i depends on the seed and on i, so that a wrong, shifted or
 * stale byte is seen at once.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/test.h"

#include "api/gyre.h"

#define MIB (UINT64_C(1) << 20)

static inline uint64_t pattern_word(uint64_t seed, uint64_t index)
{
    uint64_t x = seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Writes bytes [offset, offset + len) of the body of a seed. */
static inline void pattern_fill(uint64_t seed, uint64_t offset, void *bytes, size_t len)
{
    uint8_t *at = bytes;
    while (len > 0) {
        uint64_t word = pattern_word(seed, offset / 8);
        size_t skip = offset % 8;
        size_t n = 8 - skip < len ? 8 - skip : len;
        memcpy(at, (const uint8_t *)&word + skip, n);
        at += n;
        offset += n;
        len -= n;
    }
}

static inline bool pattern_is(uint64_t seed, uint64_t offset, const void *bytes, size_t len)
{
    uint8_t expected[512];
    const uint8_t *at = bytes;
    while (len > 0) {
        size_t n = len < sizeof expected ? len : sizeof expected;
        pattern_fill(seed, offset, expected, n);
        if (memcmp(at, expected, n) != 0)
            return false;
        at += n;
        offset += n;
        len -= n;
    }
    return true;
}

static inline uint8_t *pattern_new(uint64_t seed, size_t len)
{
    uint8_t *bytes = malloc(len > 0 ? len : 1);
    CHECK(bytes != NULL);
    pattern_fill(seed, 0, bytes, len);
    return bytes;
}

static inline struct gyre_key key_of(uint64_t n)
{
    return gyre_key_of_bytes(&n, sizeof n);
}

/* Options for a store of `size` bytes in directory `name` below the test's own; the directory row
 * is static. */
static inline struct gyre_options options_for(const char *name, uint64_t size)
{
    static struct gyre_data_dir dir;
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", test_tmpdir(), name);
    dir = (struct gyre_data_dir){.path = path};
    struct gyre_options options;
    gyre_options_init(&options);
    options.dirs = &dir;
    options.n_dirs = 1;
    options.size_bytes = size;
    return options;
}

static inline struct gyre_store *open_with(const struct gyre_options *options)
{
    struct gyre_store *store = NULL;
    char message[512];
    gyre_err err = gyre_open(options, &store, message, sizeof message);
    CHECK_MSG(err == GYRE_OK, "gyre_open: %s: %s", gyre_err_name(err), message);
    CHECK(store != NULL);
    CHECK_EQ_STR(message, "");
    return store;
}

/* The usual store: the smallest there is. */
static inline struct gyre_store *open_store(void)
{
    struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
    return open_with(&options);
}

static inline void close_store(struct gyre_store *store)
{
    CHECK_OK(gyre_close(&store, 10000));
    CHECK(store == NULL);
}

/* Puts `len` bytes of the seed's body under key_of(n). */
static inline uint64_t put_pattern(struct gyre_store *store, uint64_t n, uint64_t seed, size_t len)
{
    struct gyre_key key = key_of(n);
    uint8_t *bytes = pattern_new(seed, len);
    uint64_t serial = 0;
    CHECK_OK(gyre_put(store, &key, NULL, bytes, len, &serial));
    CHECK(serial != 0);
    free(bytes);
    return serial;
}

/* Every byte of an open handle, by its pieces. */
static inline void check_pieces(struct gyre_handle *handle, uint64_t seed)
{
    uint64_t length = gyre_handle_info(handle)->length;
    struct gyre_piece piece;
    for (uint64_t offset = 0; offset < length; offset += piece.len) {
        CHECK_OK(gyre_handle_piece(handle, offset, &piece));
        CHECK(piece.len > 0 && piece.len <= length - offset);
        CHECK_MSG(pattern_is(seed, offset, piece.base, piece.len), "wrong bytes from %llu on",
                  (unsigned long long)offset);
    }
    CHECK_ERR(gyre_handle_piece(handle, length, &piece), GYRE_RANGE);
}

/* Gets key_of(n) and compares all of it. */
static inline void check_object(struct gyre_store *store, uint64_t n, uint64_t seed, size_t len)
{
    struct gyre_key key = key_of(n);
    struct gyre_handle *handle;
    CHECK_OK(gyre_get(store, &key, 0, 0, &handle));
    CHECK_EQ_U64(gyre_handle_info(handle)->length, len);
    check_pieces(handle, seed);
    gyre_release(handle);
}

static inline void check_absent(struct gyre_store *store, uint64_t n)
{
    struct gyre_key key = key_of(n);
    struct gyre_handle *handle = (struct gyre_handle *)&key;
    CHECK_ERR(gyre_get(store, &key, 0, 0, &handle), GYRE_NOT_FOUND);
    CHECK(handle == NULL);
    CHECK_ERR(gyre_get(store, &key, 0, GYRE_GET_HEAD, &handle), GYRE_NOT_FOUND);
    CHECK_ERR(gyre_exists(store, &key, 0, GYRE_STRICT), GYRE_NOT_FOUND);
}
