/* From method, host, path and query to the operation meant, with bucket and key decoded.
 *
 * Owns:    struct srv_s3_route holds the decoded names itself; `bucket` and `key` point into it,
 * so it is copied by srv_s3_route_copy alone.
 * Threads: any.
 * Blocks:  never.
 * Allocates: nothing.
 *
 * Unless the host names the bucket already, the first path segment does; all after its slash is the
 * key, byte for byte: "//", "..", "+" mean nothing special. A sub-resource is recognised by the
 * presence of its name in the query, with or without a value; names that S3 does not know are
 * ignored, as SDKs add their own.
 */
#pragma once

#include "server/exchange.h"
#include "server/s3/error.h"
#include "server/s3/name.h"

enum srv_s3_op {
#define X(name, method, place, sub, need, handler) SRV_S3_OP_##name,
#include "server/s3/operation.def"
#undef X
    SRV_S3_OP_REFUSED, /* answer `error` */
    SRV_S3_OP_COUNT = SRV_S3_OP_REFUSED,
};

enum srv_s3_sub {
    SRV_S3_SUB_NONE,
#define X(id, name) SRV_S3_SUB_##id,
#include "server/s3/subresource.def"
#undef X
};

/* What a request must be allowed for its operation to begin. */
enum srv_s3_need {
    SRV_S3_NEED_ANYBODY, /* no signature is looked at */
    SRV_S3_NEED_NONE,    /* it answers by who asks */
    SRV_S3_NEED_OBJECT,  /* decided by the handler, once the object is found */
    SRV_S3_NEED_WRITE,
    SRV_S3_NEED_LIST,
    SRV_S3_NEED_ADMIN,
    SRV_S3_NEED_CREATE,
    SRV_S3_NEED_READ_ACP,
    SRV_S3_NEED_WRITE_ACP,
};

enum srv_s3_place { SRV_S3_SERVICE, SRV_S3_BUCKET, SRV_S3_OBJECT };

struct srv_s3_route {
    enum srv_s3_op op;
    enum srv_s3_code error; /* NONE unless REFUSED */
    enum srv_s3_place place;
    enum srv_s3_sub sub;
    struct srv_str bucket; /* decoded; empty for the service */
    struct srv_str key;    /* decoded; empty for a bucket */
    char bucket_[SRV_S3_BUCKET_MAX];
    char key_[SRV_S3_KEY_MAX];
};

/* Reads the request's method, path and query. `host_bucket` is the bucket that the request's host
 * stands for, with a NULL base if it stands for none. Always fills *route_out; bucket and key are
 * set as far as they could be read, for the error document. */
void srv_s3_route(const struct srv_request *req, struct srv_str host_bucket,
                  struct srv_s3_route *route_out);

void srv_s3_route_copy(const struct srv_s3_route *route, struct srv_s3_route *route_out);

enum srv_s3_need srv_s3_need_of(enum srv_s3_op op);

/* "tagging" and so on; NULL for NONE. Static. */
const char *srv_s3_sub_name(enum srv_s3_sub sub);
