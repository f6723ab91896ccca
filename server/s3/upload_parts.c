#include "server/s3/upload_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/s3/base64.h"
#include "server/s3/numbers.h"
#include "server/target.h"
#include "server/xml_read.h"

/* ---- Collecting ---- */

struct collector {
    struct srv_s3_upload_parts *parts;
    size_t max;
    bool is_short; /* of memory */
};

static bool grow(struct srv_s3_upload_parts *parts)
{
    if (parts->n < parts->capacity_)
        return true;
    size_t capacity = parts->capacity_ == 0 ? 64 : 2 * parts->capacity_;
    struct srv_s3_upload_part *grown = realloc(parts->at, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    parts->at = grown;
    parts->capacity_ = capacity;
    return true;
}

static bool collect_one(void *data, const struct gyre_part *part)
{
    struct collector *c = data;

    if (c->parts->n == c->max)
        return false;
    if (!grow(c->parts)) {
        c->is_short = true;
        return false;
    }
    struct srv_s3_upload_part *to = &c->parts->at[c->parts->n++];
    *to = (struct srv_s3_upload_part){.number = part->number,
                                      .created = part->created,
                                      .length = part->length,
                                      .serial = part->serial};
    memcpy(to->md5, part->md5, sizeof to->md5);
    (void)srv_s3_checksum_decode((struct srv_str){part->meta, part->meta_len}, &to->checksum);
    return true;
}

enum srv_s3_code srv_s3_upload_parts_collect(struct gyre_store *store, const struct gyre_key *key,
                                             const struct gyre_upload_id *id, uint32_t after,
                                             size_t max, struct srv_s3_upload_parts *parts_out)
{
    struct collector collector = {parts_out, max, false};

    *parts_out = (struct srv_s3_upload_parts){NULL, 0, 0};
    gyre_err err = gyre_upload_each_part(store, key, id, after, collect_one, &collector);
    if (err == GYRE_NOT_FOUND)
        return SRV_S3_NO_SUCH_UPLOAD;
    if (err != GYRE_OK)
        return srv_s3_code_of(err);
    return collector.is_short ? SRV_S3_SLOW_DOWN : SRV_S3_NONE;
}

void srv_s3_upload_parts_fini(struct srv_s3_upload_parts *parts)
{
    free(parts->at);
    *parts = (struct srv_s3_upload_parts){NULL, 0, 0};
}

/* ---- Choosing ---- */

static struct srv_str unquote(struct srv_str etag)
{
    if (etag.len >= 2 && etag.base[0] == '"' && etag.base[etag.len - 1] == '"')
        etag = (struct srv_str){etag.base + 1, etag.len - 2};
    return etag;
}

/* Whether what the client says of the part is true of it. */
static bool is_meant(const struct srv_s3_upload_part *part, const struct srv_xml_node *node)
{
    char hex[33], text[SRV_S3_CHECKSUM_TEXT_MAX];
    struct srv_str etag = srv_xml_child_text(node, "ETag");

    if (etag.base != NULL) {
        srv_hex_encode(part->md5, sizeof part->md5, hex);
        if (!srv_str_equal_nocase(unquote(etag), (struct srv_str){hex, 32}))
            return false;
    }
    if (part->checksum.algorithm == SRV_CHECKSUM_NONE)
        return true;
    struct srv_str listed =
        srv_xml_child_text(node, srv_checksum_element(part->checksum.algorithm));
    struct srv_str have = srv_s3_checksum_text(&part->checksum, text);
    return listed.base == NULL ||
           (listed.len == have.len && memcmp(listed.base, have.base, have.len) == 0);
}

static enum srv_s3_code read_number(const struct srv_xml_node *node, uint64_t *number_out)
{
    struct srv_str text = srv_xml_child_text(node, "PartNumber");

    *number_out = 0;
    if (!srv_xml_is(node, "Part") || text.base == NULL || !srv_s3_parse_u64(text, number_out))
        return SRV_S3_MALFORMED_XML;
    return *number_out >= 1 && *number_out <= GYRE_UPLOAD_PARTS_MAX ? SRV_S3_NONE
                                                                    : SRV_S3_INVALID_ARGUMENT;
}

/* The order is judged before anything is looked for: a list out of order is wrong as such. */
static enum srv_s3_code check_order(const struct srv_xml_node *root)
{
    uint64_t before = 0, number;

    if (!srv_xml_is(root, "CompleteMultipartUpload") || root->child == NULL)
        return SRV_S3_MALFORMED_XML;
    for (const struct srv_xml_node *node = root->child; node != NULL; node = node->next) {
        enum srv_s3_code code = read_number(node, &number);
        if (code != SRV_S3_NONE)
            return code;
        if (number < before)
            return SRV_S3_INVALID_PART_ORDER;
        before = number;
    }
    return SRV_S3_NONE;
}

enum srv_s3_code srv_s3_upload_parts_choose(struct srv_s3_upload_parts *parts,
                                            const struct srv_xml_node *root)
{
    enum srv_s3_code code = check_order(root);
    size_t from = 0, n = 0;
    uint64_t number, next;

    if (code != SRV_S3_NONE)
        return code;
    for (const struct srv_xml_node *node = root->child; node != NULL; node = node->next) {
        (void)read_number(node, &number);
        if (node->next != NULL && read_number(node->next, &next) == SRV_S3_NONE && next == number)
            continue;
        while (from < parts->n && parts->at[from].number < number)
            from++;
        if (from == parts->n || parts->at[from].number != number ||
            !is_meant(&parts->at[from], node))
            return SRV_S3_INVALID_PART;
        parts->at[n++] = parts->at[from++];
    }
    parts->n = n;
    for (size_t i = 0; i + 1 < n; i++) {
        if (parts->at[i].length < SRV_S3_PART_MIN_BYTES)
            return SRV_S3_ENTITY_TOO_SMALL;
    }
    return SRV_S3_NONE;
}

/* ---- Summing up ---- */

uint64_t srv_s3_upload_parts_length(const struct srv_s3_upload_parts *parts)
{
    uint64_t length = 0;

    for (size_t i = 0; i < parts->n; i++)
        length += parts->at[i].length;
    return length;
}

bool srv_s3_upload_parts_etag(const struct srv_s3_upload_parts *parts,
                              char etag_out[SRV_S3_PARTS_ETAG_MAX])
{
    const struct srv_digest_plan plan = {.wants_md5 = true};
    struct srv_digest digest;
    uint8_t md5[16];

    bool ok = srv_digest_init(&digest, &plan) == SRV_DIGEST_FINE;
    for (size_t i = 0; ok && i < parts->n; i++)
        ok = srv_digest_update(&digest, parts->at[i].md5, 16) == SRV_DIGEST_FINE;
    ok = ok && srv_digest_finish(&digest, md5) == SRV_DIGEST_FINE;
    srv_digest_fini(&digest);
    if (!ok)
        return false;
    srv_hex_encode(md5, sizeof md5, etag_out);
    snprintf(etag_out + 32, SRV_S3_PARTS_ETAG_MAX - 32, "-%zu", parts->n);
    return true;
}

static bool has_all(const struct srv_s3_upload_parts *parts, enum srv_checksum algorithm)
{
    for (size_t i = 0; i < parts->n; i++) {
        if (parts->at[i].checksum.algorithm != algorithm)
            return false;
    }
    return true;
}

/* A checksum over the checksums. */
static bool compose(const struct srv_s3_upload_parts *parts, struct srv_s3_checksum *checksum)
{
    size_t size = srv_checksum_size(checksum->algorithm);
    uint8_t *values = malloc(parts->n * size + 1);

    if (values == NULL)
        return false;
    for (size_t i = 0; i < parts->n; i++)
        memcpy(values + i * size, parts->at[i].checksum.value, size);
    bool ok = srv_checksum_of_bytes(checksum->algorithm, values, parts->n * size, checksum->value);
    free(values);
    return ok;
}

static enum srv_crc_kind kind_of(enum srv_checksum algorithm)
{
    return algorithm == SRV_CHECKSUM_CRC32    ? SRV_CRC32
           : algorithm == SRV_CHECKSUM_CRC32C ? SRV_CRC32C
                                              : SRV_CRC64NVME;
}

/* CRCs of pieces give that of the whole without their bytes. */
static void combine(const struct srv_s3_upload_parts *parts, struct srv_s3_checksum *checksum)
{
    enum srv_crc_kind kind = kind_of(checksum->algorithm);
    size_t size = srv_checksum_size(checksum->algorithm);
    uint64_t whole = 0;

    for (size_t i = 0; i < parts->n; i++) {
        uint64_t crc = 0;
        for (size_t k = 0; k < size; k++)
            crc = crc << 8 | parts->at[i].checksum.value[k];
        whole = srv_crc_combine(kind, whole, crc, parts->at[i].length);
    }
    for (size_t k = 0; k < size; k++)
        checksum->value[k] = (uint8_t)(whole >> (8 * (size - 1 - k)));
}

bool srv_s3_upload_parts_checksum(const struct srv_s3_upload_parts *parts,
                                  enum srv_checksum algorithm, bool is_composite,
                                  struct srv_s3_checksum *checksum_out)
{
    *checksum_out = (struct srv_s3_checksum){
        .algorithm = algorithm, .is_composite = is_composite, .n_parts = (uint32_t)parts->n};
    if (algorithm == SRV_CHECKSUM_NONE)
        return true;
    if (!has_all(parts, algorithm))
        return false;
    if (is_composite)
        return compose(parts, checksum_out);
    combine(parts, checksum_out);
    return true;
}
