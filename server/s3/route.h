/* From method, path and query to the operation meant, with bucket and key decoded.
 *
 * Owns:    struct srv_s3_route holds the decoded names itself; `bucket` and `key` point into it,
 * so it must not be copied.
 * Threads: any.
 * Blocks:  never.
 * Allocates: nothing.
 *
 * The first path segment is the bucket, all after its slash is the key, byte for byte: "//", "..",
 * "+" mean nothing special. A sub-resource is recognised by the presence of its name in the query,
 * with or without a value; names that S3 does not know are ignored, as SDKs add their own.
 */
#pragma once

#include "server/exchange.h"
#include "server/s3/error.h"
#include "server/s3/name.h"

enum srv_s3_op {
    SRV_S3_OP_REFUSED, /* answer `error` */
    SRV_S3_OP_LIST_BUCKETS,
    SRV_S3_OP_CREATE_BUCKET,
    SRV_S3_OP_HEAD_BUCKET,
    SRV_S3_OP_DELETE_BUCKET,
    SRV_S3_OP_PUT_OBJECT,
    SRV_S3_OP_GET_OBJECT,
    SRV_S3_OP_HEAD_OBJECT,
    SRV_S3_OP_DELETE_OBJECT,
};

struct srv_s3_route {
    enum srv_s3_op op;
    enum srv_s3_code error;  /* NONE unless REFUSED */
    const char *subresource; /* the query name that is not offered, static; NULL if that is not the
                                reason */
    struct srv_str bucket;   /* decoded; empty for the service */
    struct srv_str key;      /* decoded; empty for a bucket */
    char bucket_[SRV_S3_BUCKET_MAX];
    char key_[SRV_S3_KEY_MAX];
};

/* Reads the request's method, path and query. Always fills *route_out; bucket and key are set as
 * far as they could be read, for the error document. */
void srv_s3_route(const struct srv_request *req, struct srv_s3_route *route_out);
