/* A store, workers and the S3 role behind a fake front, for tests of its semantics.
 *
 * Threads: the test's.
 */
#pragma once

#include <stdio.h>

#include "api/gyre.h"
#include "server/s3/s3.h"
#include "tests/server/fake_seam.h"

struct fixture {
    struct gyre_store *store;
    struct srv_pool *pool;
    struct srv_s3 *s3;
    struct srv_loop loop;
    size_t max_queued;
};

static inline void fixture_open(struct fixture *f)
{
    static const struct srv_s3_bucket_rule rules[] = {
        {.bucket = "opaque", .etag = SRV_S3_ETAG_OPAQUE},
        {.bucket = "dark", .is_unlisted = true},
        {.bucket = "brief", .ttl = {.kind = SRV_S3_TTL_METADATA, .name = "ttl"}},
    };
    struct gyre_data_dir dir = {.path = test_path("data"), .size_bytes = GYRE_SIZE_MIN * 2};
    struct gyre_options options;
    char message[256];

    gyre_options_init(&options);
    options.dirs = &dir;
    options.n_dirs = 1;
    options.sync_interval_ms = 0;
    gyre_err err = gyre_open(&options, &f->store, message, sizeof message);
    CHECK_MSG(err == GYRE_OK, "%s", message);
    fake_loop_init(&f->loop, 64 << 20);
    f->pool = srv_pool_create(3, f->max_queued);
    CHECK(f->pool != NULL);
    struct srv_s3_config config = {.store = f->store,
                                   .pool = f->pool,
                                   .bucket_rules = rules,
                                   .n_bucket_rules = sizeof rules / sizeof rules[0]};
    CHECK_OK(srv_s3_create(&config, &f->s3));
}

static inline void fixture_close(struct fixture *f)
{
    srv_pool_destroy(f->pool);
    while (fake_has_work(&f->loop))
        fake_turn(&f->loop);
    srv_s3_destroy(f->s3);
    CHECK_OK(gyre_close(&f->store, 10000));
    fake_loop_fini(&f->loop);
}

static inline void fixture_init(struct fixture *f)
{
    f->max_queued = 64;
    fixture_open(f);
}

/* Starts and, unless `stays`, finishes the request. */
static inline void run(struct fixture *f, struct srv_exchange *ex)
{
    srv_s3_start(f->s3, ex);
    if (!ex->stays)
        fake_finish(ex);
}

/* A request without a body, `fields` being name, value, ..., NULL; returns the status. */
static inline int ask(struct fixture *f, struct srv_exchange *ex, enum srv_method method,
                      const char *target, const char *const *fields)
{
    fake_init(ex, &f->loop, method, target);
    for (size_t i = 0; fields != NULL && fields[i] != NULL; i += 2)
        fake_field(ex, fields[i], fields[i + 1]);
    run(f, ex);
    return ex->status;
}

/* The same for its status alone. */
static inline int ask_status(struct fixture *f, enum srv_method method, const char *target,
                             const char *const *fields)
{
    struct srv_exchange ex;
    int status = ask(f, &ex, method, target, fields);
    fake_fini(&ex);
    return status;
}

/* PutObject. */
static inline int put(struct fixture *f, struct srv_exchange *ex, const char *target,
                      const void *bytes, size_t len, const char *const *fields)
{
    fake_init(ex, &f->loop, SRV_PUT, target);
    fake_body(ex, bytes, len);
    for (size_t i = 0; fields != NULL && fields[i] != NULL; i += 2)
        fake_field(ex, fields[i], fields[i + 1]);
    run(f, ex);
    return ex->status;
}

static inline int put_status(struct fixture *f, const char *target, const void *bytes, size_t len,
                             const char *const *fields)
{
    struct srv_exchange ex;
    int status = put(f, &ex, target, bytes, len, fields);
    fake_fini(&ex);
    return status;
}

static inline void make_bucket(struct fixture *f, const char *target)
{
    CHECK_EQ_INT(ask_status(f, SRV_PUT, target, NULL), 200);
}

/* Whether the error document names that code. */
static inline bool has_code(const struct srv_exchange *ex, const char *code)
{
    char element[80];

    snprintf(element, sizeof element, "<Code>%s</Code>", code);
    return ex->out != NULL && strstr((const char *)ex->out, element) != NULL;
}

#define FIELDS(...) ((const char *const[]){__VA_ARGS__, NULL})
