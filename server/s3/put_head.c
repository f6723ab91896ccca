#include "server/s3/put_head.h"

#include <stddef.h>
#include <string.h>

#include "server/s3/acl_of_call.h"
#include "server/s3/labels.h"
#include "server/s3/object_head.h"
#include "server/s3/tagset.h"
#include "server/target.h"

enum { ENCODING_MAX = 512 };

static const struct {
    enum srv_s3_code code;
    const char *message;
} faults[] = {
    [SRV_DIGEST_FINE] = {SRV_S3_NONE, NULL},
    [SRV_DIGEST_BAD_MD5] = {SRV_S3_INVALID_DIGEST, NULL},
    [SRV_DIGEST_BAD_PAYLOAD_HASH] =
        {SRV_S3_INVALID_ARGUMENT, "x-amz-content-sha256 must be UNSIGNED-PAYLOAD or a SHA-256 in "
                                  "64 hex digits."},
    [SRV_DIGEST_BAD_CHECKSUM] = {SRV_S3_BAD_DIGEST, "Value for x-amz-checksum header is invalid."},
    [SRV_DIGEST_MANY_CHECKSUMS] = {SRV_S3_INVALID_REQUEST,
                                   "Expecting a single x-amz-checksum- header."},
    [SRV_DIGEST_CHECKSUM_MISSING] = {SRV_S3_INVALID_REQUEST,
                                     "x-amz-sdk-checksum-algorithm specified, but no corresponding "
                                     "x-amz-checksum-* or x-amz-trailer headers were found."},
    [SRV_DIGEST_CHECKSUM_UNKNOWN] = {SRV_S3_NOT_IMPLEMENTED,
                                     "Checksums of this algorithm are not offered here: use CRC32, "
                                     "CRC32C, CRC64NVME, SHA1 or SHA256."},
    [SRV_DIGEST_TRAILER_AND_VALUE] = {SRV_S3_INVALID_REQUEST,
                                      "Expecting a single x-amz-checksum- header."},
    [SRV_DIGEST_TRAILER_UNKNOWN] = {SRV_S3_INVALID_REQUEST,
                                    "x-amz-trailer must name one x-amz-checksum- field, of a body "
                                    "that is framed as aws-chunked."},
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
    {"x-amz-server-side-encryption", "Server-side encryption is not offered here."},
    {"x-amz-object-lock-", "Object lock is not offered here."},
    {"x-amz-write-offset-bytes", "Appending to objects is not offered here."},
};

static bool begins(struct srv_str text, const char *prefix)
{
    size_t len = strlen(prefix);
    return text.len >= len && memcmp(text.base, prefix, len) == 0;
}

const char *srv_s3_put_head_refused(const struct srv_request *req)
{
    for (size_t i = 0; i < req->n_fields; i++) {
        for (size_t k = 0; k < sizeof refused / sizeof refused[0]; k++) {
            if (begins(req->fields[i].name, refused[k].prefix))
                return refused[k].message;
        }
    }
    return NULL;
}

static bool has_length(const struct srv_request *req)
{
    return req->has_body || req->version >= 20 ||
           srv_request_field(req, "content-length", NULL) != NULL;
}

enum srv_s3_code srv_s3_put_head_check(const struct srv_s3_call *call, bool wants_md5,
                                       const struct srv_aws_framing *framing,
                                       struct srv_digest_plan *plan_out, uint64_t *length_out,
                                       const char **message_out)
{
    const struct srv_request *req = call->req;

    *length_out = framing != NULL ? framing->length : req->content_length;
    *message_out = srv_s3_put_head_refused(req);
    if (*message_out != NULL)
        return SRV_S3_NOT_IMPLEMENTED;
    if (!has_length(req))
        return SRV_S3_MISSING_CONTENT_LENGTH;
    if (*length_out != SRV_LENGTH_UNKNOWN && *length_out > gyre_object_max_bytes(call->s3->store))
        return SRV_S3_ENTITY_TOO_LARGE;
    return srv_s3_put_head_fault(srv_digest_plan(req, wants_md5, framing != NULL, plan_out),
                                 message_out);
}

static struct srv_str trim(struct srv_str text)
{
    while (text.len > 0 && (text.base[0] == ' ' || text.base[0] == '\t'))
        text = (struct srv_str){text.base + 1, text.len - 1};
    while (text.len > 0 && (text.base[text.len - 1] == ' ' || text.base[text.len - 1] == '\t'))
        text.len--;
    return text;
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

/* ---- What is kept ---- */

/* The longest parts of a record that are made here rather than lent by the request. */
struct scratch {
    char encoding[ENCODING_MAX];
    uint8_t acl[SRV_S3_ACL_BYTES_MAX];
    struct srv_s3_tagset tags;
    char cache_tags[SRV_S3_CACHE_TAGS_BYTES];
};

static enum srv_s3_code take_tags(const struct srv_request *req, struct scratch *scratch,
                                  struct srv_s3_meta *meta)
{
    const struct srv_str *field = srv_request_field(req, "x-amz-tagging", NULL);

    if (field == NULL || field->len == 0)
        return SRV_S3_NONE;
    srv_s3_tagset_init(&scratch->tags, SRV_S3_TAGS_OBJECT_MAX);
    enum srv_s3_code code = srv_s3_tagset_add_field(&scratch->tags, *field);
    if (scratch->tags.len > 0)
        meta->tags = (struct srv_str){(const char *)scratch->tags.bytes, scratch->tags.len};
    return code;
}

static bool take_cache_tags(const struct srv_request *req, struct scratch *scratch,
                            struct srv_s3_meta *meta)
{
    size_t len = 0;
    bool ok = srv_s3_cache_tags_read(req, scratch->cache_tags, &len);

    if (len > 0)
        meta->cache_tags = (struct srv_str){scratch->cache_tags, len};
    return ok;
}

/* Content-Encoding without aws-chunked, which is how the body came and not what it is. */
static bool take_encoding(const struct srv_request *req, struct scratch *scratch,
                          struct srv_s3_meta *meta)
{
    static const struct srv_str word = {"aws-chunked", 11};
    const struct srv_str *field = srv_request_field(req, "content-encoding", NULL);
    struct srv_str rest = field != NULL ? *field : (struct srv_str){NULL, 0};
    size_t len = 0;

    while (rest.len > 0) {
        const char *comma = memchr(rest.base, ',', rest.len);
        size_t n = comma == NULL ? rest.len : (size_t)(comma - rest.base);
        size_t step = comma == NULL ? n : n + 1;
        struct srv_str item = trim((struct srv_str){rest.base, n});
        rest = (struct srv_str){rest.base + step, rest.len - step};
        if (item.len == 0 || srv_str_equal_nocase(item, word))
            continue;
        if (item.len + 2 > sizeof scratch->encoding - len)
            return false;
        if (len > 0) {
            memcpy(scratch->encoding + len, ", ", 2);
            len += 2;
        }
        memcpy(scratch->encoding + len, item.base, item.len);
        len += item.len;
    }
    if (len > 0)
        meta->content_encoding = (struct srv_str){scratch->encoding, len};
    return true;
}

static enum srv_s3_code take_access(const struct srv_s3_call *call, struct scratch *scratch,
                                    struct srv_s3_meta *meta)
{
    struct srv_str owner = srv_s3_who_id(&call->who);
    size_t len;

    enum srv_s3_code code =
        srv_s3_acl_of_call(call, owner, SRV_S3_ACL_OF_OBJECT, scratch->acl, &len);
    if (len > 0)
        meta->acl = (struct srv_str){(const char *)scratch->acl, len};
    if (owner.base != NULL)
        meta->owner = owner;
    return code;
}

/* Fields that are stored as they are, under their place in the record. */
static void take_fields(const struct srv_request *req, struct srv_s3_meta *meta)
{
    static const struct srv_str standard = {"STANDARD", 8};

    meta->content_type = field_or_none(req, "content-type");
    meta->content_disposition = field_or_none(req, "content-disposition");
    meta->content_language = field_or_none(req, "content-language");
    meta->cache_control = field_or_none(req, "cache-control");
    meta->expires = field_or_none(req, "expires");
    meta->redirect = field_or_none(req, "x-amz-website-redirect-location");
    meta->storage_class = field_or_none(req, "x-amz-storage-class");
    if (srv_str_equal_nocase(meta->storage_class, standard))
        meta->storage_class = (struct srv_str){NULL, 0};
}

enum srv_s3_code srv_s3_put_head_record(const struct srv_s3_call *call,
                                        uint8_t record_out[SRV_S3_META_RECORD_MAX], size_t *len_out)
{
    const struct srv_request *req = call->req;
    struct srv_s3_meta meta;
    struct scratch scratch;

    *len_out = 0;
    memset(&meta, 0, offsetof(struct srv_s3_meta, user));
    meta.bucket = call->route.bucket;
    meta.key = call->route.key;
    meta.etag = srv_s3_str("00000000000000000000000000000000");
    take_fields(req, &meta);
    if (!take_encoding(req, &scratch, &meta))
        return SRV_S3_METADATA_TOO_LARGE;
    enum srv_s3_code code = take_tags(req, &scratch, &meta);
    if (code == SRV_S3_NONE)
        code = take_access(call, &scratch, &meta);
    if (code == SRV_S3_NONE && !take_cache_tags(req, &scratch, &meta))
        code = SRV_S3_METADATA_TOO_LARGE;
    if (code != SRV_S3_NONE)
        return code;
    if (!collect_user(req, &meta) ||
        !srv_s3_meta_encode(&meta, record_out, SRV_S3_META_RECORD_MAX, len_out))
        return SRV_S3_METADATA_TOO_LARGE;
    return SRV_S3_NONE;
}
