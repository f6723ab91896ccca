#include "server/s3/digest.h"

#include <string.h>

#include "server/chars.h"
#include "server/s3/base64.h"
#include "server/uri.h"

struct checksum_row {
    const char *field;
    size_t size;
};

static const struct checksum_row rows[] = {
    [SRV_CHECKSUM_NONE] = {NULL, 0},
    [SRV_CHECKSUM_CRC32] = {"x-amz-checksum-crc32", 4},
    [SRV_CHECKSUM_CRC32C] = {"x-amz-checksum-crc32c", 4},
    [SRV_CHECKSUM_CRC64NVME] = {"x-amz-checksum-crc64nvme", 8},
    [SRV_CHECKSUM_SHA1] = {"x-amz-checksum-sha1", 20},
    [SRV_CHECKSUM_SHA256] = {"x-amz-checksum-sha256", 32},
};

#define N_ROWS (sizeof rows / sizeof rows[0])

const char *srv_checksum_field(enum srv_checksum checksum)
{
    return rows[checksum].field;
}

size_t srv_checksum_size(enum srv_checksum checksum)
{
    return rows[checksum].size;
}

static bool equals(struct srv_str text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.base, word, text.len) == 0;
}

static bool begins(struct srv_str text, const char *prefix)
{
    size_t len = strlen(prefix);
    return text.len >= len && memcmp(text.base, prefix, len) == 0;
}

static enum srv_checksum checksum_of_field(struct srv_str name)
{
    for (size_t i = 1; i < N_ROWS; i++) {
        if (equals(name, rows[i].field))
            return (enum srv_checksum)i;
    }
    return SRV_CHECKSUM_NONE;
}

/* Fields that share the prefix but carry no value of a body. */
static bool is_checksum_value(struct srv_str name)
{
    return begins(name, "x-amz-checksum-") && !equals(name, "x-amz-checksum-algorithm") &&
           !equals(name, "x-amz-checksum-type") && !equals(name, "x-amz-checksum-mode");
}

static enum srv_digest_fault take_checksum(struct srv_str name, struct srv_str value,
                                           struct srv_digest_plan *plan)
{
    if (plan->checksum != SRV_CHECKSUM_NONE)
        return SRV_DIGEST_MANY_CHECKSUMS;
    plan->checksum = checksum_of_field(name);
    if (plan->checksum == SRV_CHECKSUM_NONE)
        return SRV_DIGEST_CHECKSUM_UNKNOWN;
    if (!srv_base64_decode(value, plan->value, rows[plan->checksum].size))
        return SRV_DIGEST_BAD_CHECKSUM;
    plan->has_value = true;
    return SRV_DIGEST_FINE;
}

/* A presigned request may have in its query what is a field elsewhere. */
static enum srv_digest_fault plan_query_checksum(struct srv_str query, struct srv_digest_plan *plan)
{
    enum srv_digest_fault fault = SRV_DIGEST_FINE;
    struct srv_str name, value;
    char decoded[64];

    while (fault == SRV_DIGEST_FINE && srv_query_next(&query, &name, &value)) {
        struct srv_str text = {decoded, 0};
        if (!is_checksum_value(name))
            continue;
        if (!srv_uri_decode(value, true, decoded, sizeof decoded, &text.len))
            return SRV_DIGEST_BAD_CHECKSUM;
        fault = take_checksum(name, text, plan);
    }
    return fault;
}

static enum srv_digest_fault plan_checksum(const struct srv_request *req,
                                           struct srv_digest_plan *plan)
{
    enum srv_digest_fault fault = plan_query_checksum(req->query, plan);

    for (size_t i = 0; fault == SRV_DIGEST_FINE && i < req->n_fields; i++) {
        if (is_checksum_value(req->fields[i].name))
            fault = take_checksum(req->fields[i].name, req->fields[i].value, plan);
    }
    if (fault != SRV_DIGEST_FINE)
        return fault;
    if (plan->checksum == SRV_CHECKSUM_NONE &&
        srv_request_field(req, "x-amz-sdk-checksum-algorithm", NULL) != NULL)
        return SRV_DIGEST_CHECKSUM_MISSING;
    return SRV_DIGEST_FINE;
}

static enum srv_digest_fault plan_payload(const struct srv_request *req,
                                          struct srv_digest_plan *plan)
{
    const struct srv_str *field = srv_request_field(req, "x-amz-content-sha256", NULL);
    struct srv_str value;

    if (field != NULL)
        value = *field;
    else if (!srv_query_find(req->query, "X-Amz-Content-Sha256", &value))
        return SRV_DIGEST_FINE;
    if (equals(value, "UNSIGNED-PAYLOAD"))
        return SRV_DIGEST_FINE;
    plan->has_payload = srv_hex_decode(value, plan->payload, sizeof plan->payload);
    return plan->has_payload ? SRV_DIGEST_FINE : SRV_DIGEST_BAD_PAYLOAD_HASH;
}

/* x-amz-trailer: the name of a checksum's field. */
static enum srv_digest_fault plan_trailer(const struct srv_str *trailer,
                                          struct srv_digest_plan *plan)
{
    if (plan->checksum != SRV_CHECKSUM_NONE)
        return SRV_DIGEST_TRAILER_AND_VALUE;
    struct srv_str name = *trailer;
    char lower[64];
    if (name.len > sizeof lower)
        return SRV_DIGEST_TRAILER_UNKNOWN;
    srv_lower(lower, name.base, name.len);
    plan->checksum = checksum_of_field((struct srv_str){lower, name.len});
    plan->is_trailing = true;
    return plan->checksum != SRV_CHECKSUM_NONE ? SRV_DIGEST_FINE : SRV_DIGEST_TRAILER_UNKNOWN;
}

enum srv_digest_fault srv_digest_plan(const struct srv_request *req, bool wants_md5, bool is_framed,
                                      struct srv_digest_plan *plan_out)
{
    size_t n_md5;
    const struct srv_str *md5 = srv_request_field(req, "content-md5", &n_md5);

    *plan_out = (struct srv_digest_plan){.wants_md5 = wants_md5};
    if (md5 != NULL) {
        if (n_md5 > 1 || !srv_base64_decode(*md5, plan_out->md5, sizeof plan_out->md5))
            return SRV_DIGEST_BAD_MD5;
        plan_out->has_md5 = true;
    }
    enum srv_digest_fault fault = is_framed ? SRV_DIGEST_FINE : plan_payload(req, plan_out);
    if (fault != SRV_DIGEST_FINE)
        return fault;
    const struct srv_str *trailer = srv_request_field(req, "x-amz-trailer", NULL);
    fault = plan_checksum(req, plan_out);
    /* An algorithm that is named without a value has its value in the trailer. */
    if (trailer != NULL && (fault == SRV_DIGEST_FINE || fault == SRV_DIGEST_CHECKSUM_MISSING))
        fault = is_framed ? plan_trailer(trailer, plan_out) : SRV_DIGEST_TRAILER_UNKNOWN;
    return fault;
}

static bool start(EVP_MD_CTX **ctx, const EVP_MD *type)
{
    *ctx = EVP_MD_CTX_new();
    return *ctx != NULL && EVP_DigestInit_ex(*ctx, type, NULL) == 1;
}

enum srv_digest_fault srv_digest_init(struct srv_digest *digest, const struct srv_digest_plan *plan)
{
    bool ok = true;

    *digest = (struct srv_digest){.plan = *plan};
    if (plan->wants_md5 || plan->has_md5)
        ok = start(&digest->md5_, EVP_md5());
    if (ok && (plan->has_payload || plan->checksum == SRV_CHECKSUM_SHA256))
        ok = start(&digest->sha256_, EVP_sha256());
    if (ok && plan->checksum == SRV_CHECKSUM_SHA1)
        ok = start(&digest->sha1_, EVP_sha1());
    if (!ok)
        srv_digest_fini(digest);
    return ok ? SRV_DIGEST_FINE : SRV_DIGEST_NO_MEMORY;
}

void srv_digest_fini(struct srv_digest *digest)
{
    EVP_MD_CTX_free(digest->md5_);
    EVP_MD_CTX_free(digest->sha256_);
    EVP_MD_CTX_free(digest->sha1_);
    digest->md5_ = digest->sha256_ = digest->sha1_ = NULL;
}

static void update_crc(struct srv_digest *digest, const void *bytes, size_t len)
{
    switch (digest->plan.checksum) {
    case SRV_CHECKSUM_CRC32:
        digest->crc_ = srv_crc_update(SRV_CRC32, digest->crc_, bytes, len);
        break;
    case SRV_CHECKSUM_CRC32C:
        digest->crc_ = srv_crc_update(SRV_CRC32C, digest->crc_, bytes, len);
        break;
    case SRV_CHECKSUM_CRC64NVME:
        digest->crc_ = srv_crc_update(SRV_CRC64NVME, digest->crc_, bytes, len);
        break;
    case SRV_CHECKSUM_NONE:
    case SRV_CHECKSUM_SHA1:
    case SRV_CHECKSUM_SHA256: break;
    }
}

enum srv_digest_fault srv_digest_update(struct srv_digest *digest, const void *bytes, size_t len)
{
    bool ok = true;

    if (digest->md5_ != NULL)
        ok = EVP_DigestUpdate(digest->md5_, bytes, len) == 1;
    if (ok && digest->sha256_ != NULL)
        ok = EVP_DigestUpdate(digest->sha256_, bytes, len) == 1;
    if (ok && digest->sha1_ != NULL)
        ok = EVP_DigestUpdate(digest->sha1_, bytes, len) == 1;
    update_crc(digest, bytes, len);
    return ok ? SRV_DIGEST_FINE : SRV_DIGEST_NO_MEMORY;
}

/* Big-endian, as it is sent. */
static void crc_bytes(uint64_t crc, size_t size, uint8_t *out)
{
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)(crc >> (8 * (size - 1 - i)));
}

enum srv_digest_fault srv_digest_finish(struct srv_digest *digest, uint8_t md5_out[16])
{
    const struct srv_digest_plan *plan = &digest->plan;
    size_t size = rows[plan->checksum].size;
    uint8_t sha256[32], *value = digest->value;
    bool ok = true;

    memset(md5_out, 0, 16);
    if (digest->md5_ != NULL)
        ok = EVP_DigestFinal_ex(digest->md5_, md5_out, NULL) == 1;
    if (ok && digest->sha256_ != NULL)
        ok = EVP_DigestFinal_ex(digest->sha256_, sha256, NULL) == 1;
    if (ok && digest->sha1_ != NULL)
        ok = EVP_DigestFinal_ex(digest->sha1_, value, NULL) == 1;
    if (!ok)
        return SRV_DIGEST_NO_MEMORY;

    if (plan->checksum == SRV_CHECKSUM_SHA256)
        memcpy(value, sha256, sizeof sha256);
    else if (plan->checksum != SRV_CHECKSUM_SHA1)
        crc_bytes(digest->crc_, size, value);
    if (plan->has_md5 && memcmp(md5_out, plan->md5, 16) != 0)
        return SRV_DIGEST_MD5_DIFFERS;
    if (plan->has_payload && memcmp(sha256, plan->payload, sizeof sha256) != 0)
        return SRV_DIGEST_PAYLOAD_DIFFERS;
    if (plan->has_value && memcmp(value, plan->value, size) != 0)
        return SRV_DIGEST_CHECKSUM_DIFFERS;
    return SRV_DIGEST_FINE;
}

bool srv_digest_set_value(struct srv_digest *digest, struct srv_str text)
{
    struct srv_digest_plan *plan = &digest->plan;

    plan->has_value = srv_base64_decode(text, plan->value, rows[plan->checksum].size);
    return plan->has_value;
}

bool srv_checksum_of_bytes(enum srv_checksum checksum, const void *bytes, size_t len,
                           uint8_t value_out[SRV_CHECKSUM_BYTES_MAX])
{
    const struct srv_digest_plan plan = {.checksum = checksum};
    struct srv_digest digest;
    uint8_t md5[16];

    bool ok = srv_digest_init(&digest, &plan) == SRV_DIGEST_FINE &&
              srv_digest_update(&digest, bytes, len) == SRV_DIGEST_FINE &&
              srv_digest_finish(&digest, md5) == SRV_DIGEST_FINE;
    memcpy(value_out, digest.value, SRV_CHECKSUM_BYTES_MAX);
    srv_digest_fini(&digest);
    return ok;
}
