/* The table of buckets from inside: for buckets*.c. States are drawn in server/s3/buckets.h.
 *
 * What an entry says is right as of the change of the meta pool numbered `seen`, and everything in
 * the table, with what is missing from it, as of the one numbered `settled`.
 *
 * Threads: as the fields say.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "server/s3/bucket_doc.h"
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
    _Atomic uint64_t seen;          /* [a] written under the lock, held in either way */
    uint64_t pass;                  /* [w] the last look at all documents that met this one's */
    struct srv_s3_bucket_rule rule; /* [w] without its name */
    uint64_t serial;                /* [w] of the document; 0 while SRV_S3_BUCKET_CREATING */
    bool is_closing;                /* [w] somebody else looks whether it is empty */
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
    pthread_mutex_t pass_lock;                   /* one look at all documents at a time */
    uint64_t pass;                               /* under pass_lock */
    _Atomic uint64_t settled;                    /* [a] */
    _Atomic bool have_rules;                     /* [a] raised once, never lowered */
    struct gyre_store *store;                    /* [c] */
    struct srv_names *names;                     /* [c] */
    enum srv_s3_etag etag;                       /* [w] */
    const struct srv_s3_bucket_rule *rules;      /* [w] lent */
    size_t n_rules;                              /* [w] */
    size_t n;                                    /* [w] in the chains */
    uint16_t users[GYRE_TENANTS_MAX];            /* [w] buckets in the chains by tenant */
    struct srv_s3_bucket *chains[SRV_S3_CHAINS]; /* [w] */
};

static inline bool srv_s3_bucket_is_seen(const struct srv_s3_bucket *bucket)
{
    return bucket != NULL &&
           (bucket->state == SRV_S3_BUCKET_LIVE || bucket->state == SRV_S3_BUCKET_CLOSING);
}

static inline struct srv_str srv_s3_bucket_name(const struct srv_s3_bucket *bucket)
{
    return (struct srv_str){bucket->name, bucket->name_len};
}

struct srv_s3_bucket *srv_s3_bucket_find_locked(struct srv_s3_buckets *buckets,
                                                struct srv_str name);
/* Takes `doc->facts` unless it returns NULL: there is no memory. */
struct srv_s3_bucket *srv_s3_bucket_insert_locked(struct srv_s3_buckets *buckets,
                                                  struct srv_str name,
                                                  enum srv_s3_bucket_state state,
                                                  const struct srv_s3_bucket_doc *doc);
/* The table's own reference goes with it. */
void srv_s3_bucket_remove_locked(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket);

/* Has the bucket be as a document says that is newer than what is known. */
void srv_s3_bucket_take(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                        const struct srv_s3_bucket_doc *doc);
void srv_s3_bucket_take_locked(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                               const struct srv_s3_bucket_doc *doc);

/* ---- bucket_tenant.c ---- */

/* Counts a bucket in or out under its tenant, and has the store go by its quota. */
void srv_s3_bucket_count_locked(struct srv_s3_buckets *buckets, const struct srv_s3_bucket *bucket,
                                int by);
void srv_s3_bucket_bound_locked(const struct srv_s3_buckets *buckets,
                                const struct srv_s3_bucket *bucket);
/* The facts with a tenant that no bucket in the table has; `salt` says where the search begins. The
 * same facts if all are taken; NULL without memory. To be released. */
struct srv_s3_facts *srv_s3_bucket_number_locked(const struct srv_s3_buckets *buckets,
                                                 struct srv_s3_facts *facts, uint32_t salt);
