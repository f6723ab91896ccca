/* The fields that describe a stored object in an answer.
 *
 * Lends:   fields point into the metadata and into the struct itself, which must not be moved.
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/http_date.h"
#include "server/range.h"
#include "server/s3/call.h"
#include "server/s3/checksum.h"
#include "server/s3/expiration.h"

#define SRV_S3_USER_PREFIX "x-amz-meta-"
#define SRV_S3_HIT_TTL "gyre; hit; ttl="

enum {
    SRV_S3_DECIMAL_MAX = 12, /* longest number of seconds */
    SRV_S3_USER_PREFIX_LEN = sizeof SRV_S3_USER_PREFIX - 1,
    SRV_S3_USER_NAMES_MAX =
        SRV_S3_META_USER_BYTES_MAX + SRV_S3_META_USER_MAX * SRV_S3_USER_PREFIX_LEN,
};

struct srv_s3_object_head {
    struct srv_s3_head head;
    char etag[SRV_S3_ETAG_LEN_MAX + 2];
    char modified[SRV_HTTP_DATE_LEN + 1];
    char range[SRV_CONTENT_RANGE_MAX];
    char checksum[SRV_S3_CHECKSUM_TEXT_MAX];
    char expiration[SRV_S3_EXPIRATION_MAX];
    char n_tags[24];
    char n_parts[24];
    char age[SRV_S3_DECIMAL_MAX];
    char cache_status[sizeof SRV_S3_HIT_TTL + SRV_S3_DECIMAL_MAX];
    char user_names[SRV_S3_USER_NAMES_MAX];
};

/* Begins an answer with the validators and what governs caching: all that a 304 may carry. */
void srv_s3_object_head_init(struct srv_s3_object_head *object, const struct srv_s3_call *call,
                             const struct srv_s3_meta *meta);

/* Adds Age and Cache-Status (RFC 9211) of what was found. */
void srv_s3_object_head_hit(struct srv_s3_object_head *object, const struct gyre_info *info,
                            int64_t now_s);

/* Adds what describes the body: type, encoding, user metadata and so on. */
void srv_s3_object_head_describe(struct srv_s3_object_head *object, const struct srv_s3_meta *meta);

/* Adds Content-Range. */
void srv_s3_object_head_range(struct srv_s3_object_head *object, const struct srv_range *range,
                              uint64_t length);

/* Adds x-amz-checksum-... and its type, if there is a checksum; `type` is static, and of a part the
 * whole object's; NULL adds none. `text` is memory for the value. */
void srv_s3_head_add_checksum(struct srv_s3_head *head, const struct srv_s3_checksum *checksum,
                              const char *type, char text[SRV_S3_CHECKSUM_TEXT_MAX]);

/* Writes `etag` in quotes; the result lies in `quoted`. */
struct srv_str srv_s3_quote_etag(struct srv_str etag, char quoted[SRV_S3_ETAG_LEN_MAX + 2]);
