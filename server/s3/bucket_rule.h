/* What the configuration says about a bucket, whether there is such a bucket or not.
 *
 * Threads: any; const once it is in use.
 */
#pragma once

#include "server/s3/ttl.h"

#include "api/gyre.h"

/* What an object's ETag is made of. */
enum srv_s3_etag {
    SRV_S3_ETAG_MD5,    /* of the body: what S3 clients compare with */
    SRV_S3_ETAG_OPAQUE, /* a random 128-bit value: strong, and costs no hashing */
};

/* All zeros: nothing special. */
struct srv_s3_bucket_rule {
    const char *bucket; /* NULL in the rule for all others */
    enum srv_s3_etag etag;
    bool is_unlisted; /* it has no index of names */
    struct srv_s3_ttl ttl;
    bool never_evicts;    /* objects stay, and survive a power loss, before they are acknowledged */
    uint64_t quota_bytes; /* what its objects and parts may take; 0: no bound */
    uint16_t tenant;      /* not of the configuration: what the store counts them for */
};

/* Sets whom an object counts for, and what it is stored with in a bucket that never evicts. */
static inline void srv_s3_keep_options(const struct srv_s3_bucket_rule *rule,
                                       struct gyre_put_options *options)
{
    options->tenant = rule->tenant;
    if (!rule->never_evicts)
        return;
    options->pin_until = UINT32_MAX;
    options->flags |= GYRE_PUT_SYNC;
}
