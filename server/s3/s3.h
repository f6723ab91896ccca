/* The S3 role of a listener: buckets and objects over HTTP, on top of one store.
 *
 * Owns:    struct srv_s3 owns the table of buckets; the store and the pools are lent by the
 * program and outlive it.
 * Threads: srv_s3_start on every loop thread at once; create and destroy on one thread, outside of
 * traffic.
 * Blocks:  create reads the bucket documents; srv_s3_start never.
 */
#pragma once

#include "server/exchange.h"
#include "server/s3/access.h"
#include "server/s3/bucket_rule.h"
#include "server/s3/hosts.h"

#include "api/gyre.h"

struct srv_pool;
struct srv_s3;

enum { SRV_S3_REGION_MAX = 64 }; /* longest name with its terminator */

struct srv_s3_config {
    struct gyre_store *store;
    struct srv_pool *pool;    /* for hashing, writing and cold reads */
    uint32_t lifecycle_day_s; /* how long lifecycle rules take a day for; 0: a day */
    /* What may change while it runs; lent until the next change, or destroy. */
    const char *region;                 /* named in x-amz-bucket-region; NULL: us-east-1. Copied */
    const struct srv_s3_access *access; /* NULL: everything is allowed to everybody */
    struct srv_s3_hosts hosts;          /* which of them stand for buckets */
    enum srv_s3_etag etag;              /* of buckets without a rule */
    const struct srv_s3_bucket_rule *bucket_rules;
    size_t n_bucket_rules;
};

/* Loads the bucket documents and makes a handler's data. On failure *s3_out is NULL. IO, CLOSED,
 * NO_MEMORY, and what gyre_each_meta gives. */
GYRE_MUST_USE gyre_err srv_s3_create(const struct srv_s3_config *config, struct srv_s3 **s3_out);

/* All exchanges must be gone and the pool's jobs done. NULL is allowed. */
void srv_s3_destroy(struct srv_s3 *s3);

/* The operations that metrics and log tell apart. */
extern const struct srv_role srv_s3_role;

/* Another configuration, ready to be gone by. */
struct srv_s3_next;

/* Makes ready; store, pool and lifecycle_day_s are not looked at. NULL with a line in `error_out`.
 */
struct srv_s3_next *srv_s3_prepare(const struct srv_s3_config *config, char *error_out,
                                   size_t error_size);
/* Goes by it from now on, and takes it. No request is looked at by the former one when it returns;
 * a bucket that gets an index is not listed until that is made. One thread at a time. */
void srv_s3_commit(struct srv_s3 *s3, struct srv_s3_next *next);
void srv_s3_abandon(struct srv_s3_next *next);

/* Handles one request; `data` is the struct srv_s3 (the `start` of a struct srv_handler). */
void srv_s3_start(void *data, struct srv_exchange *ex);
