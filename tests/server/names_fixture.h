/* What the tests of the index of names share: a store with objects of S3 in it, changed with or
 * without the index being told.
 */
#pragma once

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/harness/test.h"

#include "server/s3/names.h"
#include "server/s3/names_scan.h"

static inline struct srv_str str_of(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

static inline struct gyre_store *names_open_store(void)
{
    struct gyre_data_dir dir = {.path = test_path("store")};
    struct gyre_options options;
    struct gyre_store *store;
    char message[512];
    gyre_options_init(&options);
    options.dirs = &dir;
    options.n_dirs = 1;
    options.size_bytes = GYRE_SIZE_MIN;
    gyre_err err = gyre_open(&options, &store, message, sizeof message);
    CHECK_MSG(err == GYRE_OK, "%s", message);
    return store;
}

static inline struct srv_names *names_open_without(struct gyre_store *store, const char *unlisted)
{
    struct srv_names_config config = {.store = store, .unlisted = unlisted};
    struct srv_names *names;
    CHECK_OK(srv_names_create(&config, &names));
    return names;
}

static inline struct srv_names *names_open(struct gyre_store *store)
{
    return names_open_without(store, NULL);
}

/* Stores an object of `len` bytes; its ETag tells `version`. */
static inline void store_object(struct gyre_store *store, const char *bucket, const char *key,
                                unsigned version, size_t len, uint32_t expires)
{
    static uint8_t body[1 << 20];
    uint8_t record[SRV_S3_META_RECORD_MAX];
    char etag[33];
    struct gyre_put_options options;
    snprintf(etag, sizeof etag, "%032x", version);
    struct srv_s3_meta meta = {.bucket = str_of(bucket),
                               .key = str_of(key),
                               .etag = str_of(etag),
                               .modified_ms = 1000 * (int64_t)version};
    gyre_put_options_init(&options);
    options.meta = record;
    options.expires = expires;
    CHECK(srv_s3_meta_encode(&meta, record, sizeof record, &options.meta_len));
    struct gyre_key digest = srv_name_key(str_of(bucket), str_of(key));
    CHECK(len <= sizeof body);
    CHECK_OK(gyre_put(store, &digest, &options, body, len, NULL));
}

static inline void remove_object(struct gyre_store *store, const char *bucket, const char *key)
{
    struct gyre_key digest = srv_name_key(str_of(bucket), str_of(key));
    CHECK_OK(gyre_delete(store, &digest, GYRE_ALWAYS, 0, 0));
}

/* Tells of a change and waits until it is written. */
static inline void note_and_wait(struct srv_names *names, unsigned turn, const char *bucket,
                                 const char *key)
{
    srv_names_changed(names, turn, str_of(bucket), str_of(key));
    srv_names_settle(names);
}

static inline void put_object(struct gyre_store *store, struct srv_names *names, const char *bucket,
                              const char *key, unsigned version)
{
    unsigned turn = srv_names_enter(names);
    store_object(store, bucket, key, version, 100, 0);
    note_and_wait(names, turn, bucket, key);
}

static inline void delete_object(struct gyre_store *store, struct srv_names *names,
                                 const char *bucket, const char *key)
{
    unsigned turn = srv_names_enter(names);
    remove_object(store, bucket, key);
    note_and_wait(names, turn, bucket, key);
}

static inline void await_ready(struct srv_names *names)
{
    for (int i = 0; i < 60000 && !srv_names_is_ready(names); i++)
        usleep(1000);
    CHECK(srv_names_is_ready(names));
}

/* "key=version key=version ..." of a bucket, in order; NULL while it cannot be told. */
static inline char *try_list(struct srv_names *names, const char *bucket)
{
    struct srv_names_scan scan;
    struct srv_name_row row;
    size_t len = 0, capacity = 1 << 20;
    enum srv_names_found found;
    if (srv_names_scan_begin(names, str_of(bucket), (uint32_t)time(NULL), SIZE_MAX, &scan) !=
        SRV_NAMES_FOUND)
        return NULL;
    char *text = calloc(1, capacity);
    found = srv_names_scan_seek(&scan, (struct srv_str){"", 0}, false);
    while (found == SRV_NAMES_FOUND &&
           (found = srv_names_scan_next(&scan, &row)) == SRV_NAMES_FOUND) {
        struct srv_str key = srv_names_scan_key(&scan, &row);
        CHECK_EQ_U64(row.etag_len, 32);
        CHECK(len + key.len + 40 < capacity);
        len += (size_t)snprintf(text + len, capacity - len, "%s%.*s=%llu", len > 0 ? " " : "",
                                (int)key.len, key.base, (unsigned long long)row.modified_ms / 1000);
    }
    srv_names_scan_end(&scan);
    if (found == SRV_NAMES_END)
        return text;
    free(text);
    return NULL;
}

/* What lists say once the index can tell. */
static inline char *list(struct srv_names *names, const char *bucket)
{
    char *text = try_list(names, bucket);
    for (int i = 0; i < 60000 && text == NULL; i++) {
        usleep(1000);
        text = try_list(names, bucket);
    }
    CHECK(text != NULL);
    return text;
}

static inline void check_list(struct srv_names *names, const char *bucket, const char *expected)
{
    char *text = list(names, bucket);
    CHECK_EQ_STR(text, expected);
    free(text);
}

static inline void names_close_store(struct gyre_store *store)
{
    CHECK_OK(gyre_close(&store, 10000));
}
