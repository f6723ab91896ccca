#include "server/s3/put_head.h"

#include <string.h>

#include "server/s3/object_head.h"
#include "server/target.h"

static const struct {
    enum srv_s3_code code;
    const char *message;
} faults[] = {
    [SRV_DIGEST_FINE] = {SRV_S3_NONE, NULL},
    [SRV_DIGEST_BAD_MD5] = {SRV_S3_INVALID_DIGEST, NULL},
    [SRV_DIGEST_BAD_PAYLOAD_HASH] =
        {SRV_S3_INVALID_ARGUMENT, "x-amz-content-sha256 must be UNSIGNED-PAYLOAD or a SHA-256 in "
                                  "64 hex digits."},
    [SRV_DIGEST_BAD_CHECKSUM] = {SRV_S3_INVALID_REQUEST,
                                 "Value for x-amz-checksum header is invalid."},
    [SRV_DIGEST_MANY_CHECKSUMS] = {SRV_S3_INVALID_REQUEST,
                                   "Expecting a single x-amz-checksum- header."},
    [SRV_DIGEST_CHECKSUM_MISSING] = {SRV_S3_INVALID_REQUEST,
                                     "x-amz-sdk-checksum-algorithm specified, but no corresponding "
                                     "x-amz-checksum-* or x-amz-trailer headers were found."},
    [SRV_DIGEST_CHECKSUM_UNKNOWN] = {SRV_S3_NOT_IMPLEMENTED,
                                     "Checksums of this algorithm are not offered here: use CRC32, "
                                     "CRC32C, CRC64NVME, SHA1 or SHA256."},
    [SRV_DIGEST_STREAMING] = {SRV_S3_NOT_IMPLEMENTED,
                              "Bodies framed as aws-chunked (x-amz-content-sha256: STREAMING-..., "
                              "x-amz-trailer) are not offered here: send the plain body."},
    [SRV_DIGEST_MD5_DIFFERS] = {SRV_S3_BAD_DIGEST,
                                "The Content-MD5 you specified did not match what we received."},
    [SRV_DIGEST_PAYLOAD_DIFFERS] = {SRV_S3_CONTENT_SHA256_MISMATCH, NULL},
    [SRV_DIGEST_CHECKSUM_DIFFERS] = {SRV_S3_BAD_DIGEST,
                                     "The x-amz-checksum you specified did not match the "
                                     "calculated checksum."},
    [SRV_DIGEST_NO_MEMORY] = {SRV_S3_SLOW_DOWN, NULL},
};

enum srv_s3_code srv_s3_put_head_fault(enum srv_digest_fault fault, const char **message_out)
{
    *message_out = faults[fault].message;
    return faults[fault].code;
}

/* Fields that ask for something else than an object just as sent. To ignore them would be to
 * promise what is not done. */
static const struct {
    const char *prefix;
    const char *message;
} refused[] = {
    {"x-amz-copy-source", "Copying objects is not offered here."},
    {"x-amz-server-side-encryption", "Server-side encryption is not offered here."},
    {"x-amz-tagging", "Tags are not offered here."},
    {"x-amz-object-lock-", "Object lock is not offered here."},
    {"x-amz-write-offset-bytes", "Appending to objects is not offered here."},
};

static bool begins(struct srv_str text, const char *prefix)
{
    size_t len = strlen(prefix);
    return text.len >= len && memcmp(text.base, prefix, len) == 0;
}

static const char *find_refused(const struct srv_request *req)
{
    for (size_t i = 0; i < req->n_fields; i++) {
        for (size_t k = 0; k < sizeof refused / sizeof refused[0]; k++) {
            if (begins(req->fields[i].name, refused[k].prefix))
                return refused[k].message;
        }
    }
    return NULL;
}

/* Whether Content-Encoding lists aws-chunked, a framing rather than an encoding. */
static bool is_aws_chunked(const struct srv_request *req)
{
    static const char word[] = "aws-chunked";

    for (size_t i = 0; i < req->n_fields; i++) {
        struct srv_str value = req->fields[i].value;
        if (!srv_str_equal_nocase(req->fields[i].name, srv_s3_str("content-encoding")))
            continue;
        for (size_t at = 0; at + sizeof word - 1 <= value.len; at++) {
            struct srv_str part = {value.base + at, sizeof word - 1};
            if (srv_str_equal_nocase(part, srv_s3_str(word)))
                return true;
        }
    }
    return false;
}

static bool has_length(const struct srv_request *req)
{
    return req->has_body || req->version >= 20 ||
           srv_request_field(req, "content-length", NULL) != NULL;
}

enum srv_s3_code srv_s3_put_head_check(const struct srv_s3_call *call, bool wants_md5,
                                       struct srv_digest_plan *plan_out, const char **message_out)
{
    const struct srv_request *req = call->req;

    *message_out = find_refused(req);
    if (*message_out != NULL)
        return SRV_S3_NOT_IMPLEMENTED;
    if (is_aws_chunked(req))
        return srv_s3_put_head_fault(SRV_DIGEST_STREAMING, message_out);
    if (!has_length(req))
        return SRV_S3_MISSING_CONTENT_LENGTH;
    if (req->content_length != SRV_LENGTH_UNKNOWN &&
        req->content_length > gyre_object_max_bytes(call->s3->store))
        return SRV_S3_ENTITY_TOO_LARGE;
    return srv_s3_put_head_fault(srv_digest_plan(req, wants_md5, plan_out), message_out);
}

static struct srv_str field_or_none(const struct srv_request *req, const char *name)
{
    const struct srv_str *value = srv_request_field(req, name, NULL);
    return value != NULL ? *value : (struct srv_str){NULL, 0};
}

/* False when there are too many. */
static bool collect_user(const struct srv_request *req, struct srv_s3_meta *meta)
{
    meta->n_user = 0;
    for (size_t i = 0; i < req->n_fields; i++) {
        struct srv_str name = req->fields[i].name;
        if (!begins(name, SRV_S3_USER_PREFIX) || name.len == SRV_S3_USER_PREFIX_LEN)
            continue;
        if (meta->n_user == SRV_S3_META_USER_MAX)
            return false;
        meta->user[meta->n_user].name =
            (struct srv_str){name.base + SRV_S3_USER_PREFIX_LEN, name.len - SRV_S3_USER_PREFIX_LEN};
        meta->user[meta->n_user++].value = req->fields[i].value;
    }
    return true;
}

enum srv_s3_code srv_s3_put_head_record(const struct srv_s3_call *call,
                                        uint8_t record_out[SRV_S3_META_RECORD_MAX], size_t *len_out)
{
    const struct srv_request *req = call->req;
    struct srv_s3_meta meta;

    *len_out = 0;
    meta.bucket = call->route.bucket;
    meta.key = call->route.key;
    meta.etag = srv_s3_str("00000000000000000000000000000000");
    meta.modified_ms = 0;
    meta.content_type = field_or_none(req, "content-type");
    meta.content_encoding = field_or_none(req, "content-encoding");
    meta.content_disposition = field_or_none(req, "content-disposition");
    meta.content_language = field_or_none(req, "content-language");
    meta.cache_control = field_or_none(req, "cache-control");
    meta.expires = field_or_none(req, "expires");
    if (!collect_user(req, &meta) ||
        !srv_s3_meta_encode(&meta, record_out, SRV_S3_META_RECORD_MAX, len_out))
        return SRV_S3_METADATA_TOO_LARGE;
    return SRV_S3_NONE;
}
