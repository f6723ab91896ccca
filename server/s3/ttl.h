/* How long objects of a bucket stay at most: a rule of the configuration, since S3's own clients
 * send Cache-Control for other reasons, and must not lose what they store.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/s3/meta.h"

enum srv_s3_ttl_kind {
    SRV_S3_TTL_NONE,     /* for ever */
    SRV_S3_TTL_FIXED,    /* `seconds` from when they were stored */
    SRV_S3_TTL_HEADERS,  /* Cache-Control's s-maxage or max-age, else Expires, of the object */
    SRV_S3_TTL_METADATA, /* the number of seconds in x-amz-meta-NAME */
};

enum { SRV_S3_TTL_NAME_MAX = 64 };

struct srv_s3_ttl {
    enum srv_s3_ttl_kind kind;
    uint32_t seconds;
    char name[SRV_S3_TTL_NAME_MAX]; /* lower-case, without x-amz-meta- */
};

/* Reads "none", a duration such as "1h", "headers" or "metadata:NAME". False for anything else. */
bool srv_s3_ttl_parse(const char *text, struct srv_s3_ttl *ttl_out);

/* When an object stored now expires: Unix seconds, or 0 for never. What the object says about
 * itself and cannot be read counts as if it were not there. */
uint32_t srv_s3_ttl_expires(const struct srv_s3_ttl *ttl, const struct srv_s3_meta *meta,
                            int64_t now_s);
