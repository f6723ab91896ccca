/* Who sent a request, and whether an operation is allowed to them.
 *
 * Owns:    struct srv_s3_who is plain memory and may be copied.
 * Threads: the exchange's loop; may_use and may_know on any thread.
 * Blocks:  never for long: a reload of the configuration is waited for.
 * Allocates: nothing, but for long queries.
 */
#pragma once

#include "server/s3/access.h"
#include "server/s3/acl.h"
#include "server/s3/aws_chunked.h"
#include "server/s3/facts.h"

struct srv_s3_call;

struct srv_s3_who {
    bool is_open;        /* nobody needs a signature: all below is unset */
    bool is_signed;      /* by a known user, whose name is `id` */
    bool has_bucket;     /* the call's bucket exists */
    bool is_owner;       /* of the call's bucket */
    unsigned rights;     /* in the call's bucket, by the configuration or as its owner */
    unsigned bucket_acl; /* what the bucket's list allows: enum srv_s3_permission */
    uint8_t id_len;
    char id[SRV_S3_ID_MAX];
};

/* The user's id, with a NULL base for somebody without a signature. */
static inline struct srv_str srv_s3_who_id(const struct srv_s3_who *who)
{
    return (struct srv_str){who->is_signed ? who->id : NULL, who->id_len};
}

/* Verifies the request's signature, if it has one, and decides whether its operation is allowed as
 * far as the bucket goes. False when the request was answered. */
bool srv_s3_admit(struct srv_s3_call *call);

/* What the sender of an admitted call may do in another bucket. */
void srv_s3_who_in(const struct srv_s3_call *call, struct srv_str bucket,
                   struct srv_s3_who *who_out);

/* Whether the request may have response fields changed by its query: that is for those who sign,
 * because anybody could make a link that serves an object as a web page. */
bool srv_s3_may_override(const struct srv_s3_call *call);

/* Whether a missing object is said to be missing: to others it is as one that they may not read. */
bool srv_s3_may_know(const struct srv_s3_who *who);

/* The framing of a body whose x-amz-content-sha256 is one of STREAMING-...: NONE with
 * *is_framed_out, or what to answer. The call was admitted. */
enum srv_s3_code srv_s3_framing_of(const struct srv_s3_call *call,
                                   struct srv_aws_framing *framing_out, bool *is_framed_out,
                                   const char **message_out);

/* Whether an object, of `owner` and with the encoded list `acl`, may be used in one of the ways
 * `permission`. */
bool srv_s3_may_use(const struct srv_s3_who *who, struct srv_str owner, struct srv_str acl,
                    enum srv_s3_permission permission);
