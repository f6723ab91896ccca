/* The table of buckets from inside: for buckets.c and what goes through it. States are drawn in
 * server/s3/buckets.h.
 *
 * Threads: as the fields say.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "server/s3/buckets.h"
#include "server/s3/name.h"

enum { SRV_S3_CHAINS = 1024 };

enum srv_s3_bucket_state {
    SRV_S3_BUCKET_CREATING,
    SRV_S3_BUCKET_LIVE,
    SRV_S3_BUCKET_CLOSING,
    SRV_S3_BUCKET_GONE
};

/* [c] const once in the table  [w] under the table's lock, held for writing  [k] under key_lock
 * [a] atomic */
struct srv_s3_bucket {
    struct srv_s3_bucket *next;     /* [w] */
    enum srv_s3_bucket_state state; /* [w] */
    _Atomic uint32_t refs;          /* [a] the table's and one for each acquire */
    _Atomic uint32_t
        committing; /* [a] raised under the lock while SRV_S3_BUCKET_LIVE, lowered anywhere */
    bool was_empty; /* [c] made by this process, hence without objects at first */
    struct srv_s3_bucket_rule rule; /* [w] without its name */
    int64_t created_ms;             /* [w] */
    struct srv_s3_facts *facts;     /* [w] never NULL */
    pthread_mutex_t
        change_lock; /* held while a new document is stored: changes follow each other */
    pthread_mutex_t key_lock;
    uint64_t commits;             /* [k] objects stored by this process */
    struct gyre_key last_key;     /* [k] of the latest of them, which is likely to be there still */
    size_t name_len;              /* [c] */
    char name[SRV_S3_BUCKET_MAX]; /* [c] */
};

struct srv_s3_buckets {
    pthread_rwlock_t lock;
    _Atomic bool have_rules;                     /* [a] raised once, never lowered */
    struct gyre_store *store;                    /* [c] */
    struct srv_names *names;                     /* [c] */
    enum srv_s3_etag etag;                       /* [w] */
    const struct srv_s3_bucket_rule *rules;      /* [w] lent */
    size_t n_rules;                              /* [w] */
    size_t n;                                    /* [w] in the chains */
    struct srv_s3_bucket *chains[SRV_S3_CHAINS]; /* [w] */
};

static inline bool srv_s3_bucket_is_seen(const struct srv_s3_bucket *bucket)
{
    return bucket != NULL &&
           (bucket->state == SRV_S3_BUCKET_LIVE || bucket->state == SRV_S3_BUCKET_CLOSING);
}
