#include "server/s3/meta.h"

#include <stddef.h>
#include <string.h>

enum { VERSION = 1, HEADER_LEN = 2, ITEM_HEADER_LEN = 3, TAG_OPTIONAL = 0x80 };

enum tag {
    TAG_ETAG = 1,
    TAG_MODIFIED = 2,
    TAG_BUCKET = 3,
    TAG_KEY = 4,
    TAG_CONTENT_TYPE = 5,
    TAG_CONTENT_ENCODING = 6,
    TAG_CONTENT_DISPOSITION = 7,
    TAG_CONTENT_LANGUAGE = 8,
    TAG_CACHE_CONTROL = 9,
    TAG_EXPIRES = 10,
    TAG_USER = 11,
    TAG_OWNER = 12,
    TAG_ACL = 13,
    TAG_TAGS = 14,
    TAG_CHECKSUM = 15,
    TAG_PART_SUMS = 16,
    TAG_STORAGE_CLASS = 17,
    TAG_REDIRECT = 18,
    TAG_UPLOAD = 19,
    TAG_CACHE_TAGS = 20,
    TAG_COUNT
};

/* Where each plain string lives; 0 for what is none. */
#define AT(field) (1 + offsetof(struct srv_s3_meta, field))
static const uint16_t place_of[TAG_COUNT] = {
    [TAG_ETAG] = AT(etag),
    [TAG_BUCKET] = AT(bucket),
    [TAG_KEY] = AT(key),
    [TAG_CONTENT_TYPE] = AT(content_type),
    [TAG_CONTENT_ENCODING] = AT(content_encoding),
    [TAG_CONTENT_DISPOSITION] = AT(content_disposition),
    [TAG_CONTENT_LANGUAGE] = AT(content_language),
    [TAG_CACHE_CONTROL] = AT(cache_control),
    [TAG_EXPIRES] = AT(expires),
    [TAG_OWNER] = AT(owner),
    [TAG_ACL] = AT(acl),
    [TAG_TAGS] = AT(tags),
    [TAG_CHECKSUM] = AT(checksum),
    [TAG_PART_SUMS] = AT(part_sums),
    [TAG_STORAGE_CLASS] = AT(storage_class),
    [TAG_REDIRECT] = AT(redirect),
    [TAG_UPLOAD] = AT(upload),
    [TAG_CACHE_TAGS] = AT(cache_tags),
};

/* What every record must fulfil, on its way in and out. */
static bool is_valid(const struct srv_s3_meta *meta)
{
    size_t user_bytes = 0;
    if (meta->etag.len == 0 || meta->etag.len > SRV_S3_ETAG_LEN_MAX || meta->modified_ms < 0 ||
        meta->bucket.len == 0 || meta->key.len == 0 || meta->n_user > SRV_S3_META_USER_MAX)
        return false;
    for (size_t i = 0; i < meta->n_user; i++) {
        if (meta->user[i].name.len == 0 || meta->user[i].name.len > UINT8_MAX)
            return false;
        user_bytes += meta->user[i].name.len + meta->user[i].value.len;
    }
    return user_bytes <= SRV_S3_META_USER_BYTES_MAX;
}

/* ---- Writing ---- */

struct out {
    uint8_t *bytes;
    size_t capacity;
    size_t len;
    bool full;
};

static void put_bytes(struct out *out, const void *bytes, size_t len)
{
    if (out->full || len > out->capacity - out->len) {
        out->full = true;
        return;
    }
    if (len != 0)
        memcpy(out->bytes + out->len, bytes, len);
    out->len += len;
}

static void put_header(struct out *out, enum tag tag, size_t len)
{
    if (len > UINT16_MAX) {
        out->full = true;
        return;
    }
    const uint8_t header[ITEM_HEADER_LEN] = {(uint8_t)tag, (uint8_t)len, (uint8_t)(len >> 8)};
    put_bytes(out, header, sizeof(header));
}

bool srv_s3_meta_encode(const struct srv_s3_meta *meta, uint8_t *bytes_out, size_t capacity,
                        size_t *len_out)
{
    *len_out = 0;
    if (!is_valid(meta))
        return false;
    size_t limit = capacity < SRV_S3_META_RECORD_MAX ? capacity : SRV_S3_META_RECORD_MAX;
    struct out out = {bytes_out, limit, 0, false};
    put_bytes(&out, (const uint8_t[HEADER_LEN]){VERSION, 0}, HEADER_LEN);
    for (unsigned tag = 0; tag < TAG_COUNT; tag++) {
        if (place_of[tag] == 0)
            continue;
        const struct srv_str *value = (const void *)((const char *)meta + place_of[tag] - 1);
        if (value->base == NULL)
            continue;
        put_header(&out, (enum tag)tag, value->len);
        put_bytes(&out, value->base, value->len);
    }
    uint8_t modified[8];
    for (int i = 0; i < 8; i++)
        modified[i] = (uint8_t)((uint64_t)meta->modified_ms >> (8 * i));
    put_header(&out, TAG_MODIFIED, sizeof(modified));
    put_bytes(&out, modified, sizeof(modified));
    for (size_t i = 0; i < meta->n_user; i++) {
        const struct srv_field *field = &meta->user[i];
        const uint8_t name_len = (uint8_t)field->name.len;
        put_header(&out, TAG_USER, 1 + field->name.len + field->value.len);
        put_bytes(&out, &name_len, 1);
        put_bytes(&out, field->name.base, field->name.len);
        put_bytes(&out, field->value.base, field->value.len);
    }
    if (out.full)
        return false;
    *len_out = out.len;
    return true;
}

/* ---- Reading ---- */

static bool take_modified(struct srv_s3_meta *meta, const uint8_t *bytes, size_t len)
{
    uint64_t value = 0;
    if (len != 8 || meta->modified_ms >= 0)
        return false;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    if (value > INT64_MAX)
        return false;
    meta->modified_ms = (int64_t)value;
    return true;
}

static bool take_user(struct srv_s3_meta *meta, const uint8_t *bytes, size_t len)
{
    if (len < 1 || bytes[0] == 0 || bytes[0] > len - 1 || meta->n_user == SRV_S3_META_USER_MAX)
        return false;
    struct srv_field *field = &meta->user[meta->n_user++];
    const char *name = (const char *)bytes + 1;
    field->name = (struct srv_str){name, bytes[0]};
    field->value = (struct srv_str){name + bytes[0], len - 1 - bytes[0]};
    return true;
}

static bool take_item(struct srv_s3_meta *meta, unsigned tag, const uint8_t *bytes, size_t len)
{
    if (tag == TAG_MODIFIED)
        return take_modified(meta, bytes, len);
    if (tag == TAG_USER)
        return take_user(meta, bytes, len);
    if (tag >= TAG_COUNT || place_of[tag] == 0)
        return tag >= TAG_OPTIONAL;
    struct srv_str *value = (void *)((char *)meta + place_of[tag] - 1);
    if (value->base != NULL)
        return false;
    *value = (struct srv_str){(const char *)bytes, len};
    return true;
}

bool srv_s3_meta_decode(const void *bytes, size_t len, struct srv_s3_meta *meta_out)
{
    const uint8_t *at = bytes;
    /* The array of user fields stays as it is: n_user says how much of it counts. */
    memset(meta_out, 0, offsetof(struct srv_s3_meta, user));
    meta_out->modified_ms = -1;
    if (len < HEADER_LEN || len > SRV_S3_META_RECORD_MAX || at[0] != VERSION || at[1] != 0)
        return false;
    const uint8_t *end = at + len;
    at += HEADER_LEN;
    while (at < end) {
        if (end - at < ITEM_HEADER_LEN)
            return false;
        size_t item_len = (size_t)at[1] | (size_t)at[2] << 8;
        unsigned tag = at[0];
        at += ITEM_HEADER_LEN;
        if (item_len > (size_t)(end - at) || !take_item(meta_out, tag, at, item_len))
            return false;
        at += item_len;
    }
    return is_valid(meta_out);
}
