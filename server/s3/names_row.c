#include "server/s3/names_row.h"

#include <stdio.h>
#include <string.h>

#include "server/check.h"

enum { HASH_BYTES = 16, HEX_LEN = 32 };
enum kind { TEXT, HASH, HASH_OF_PARTS };

size_t srv_name_write(struct srv_str bucket, struct srv_str key, char name_out[SRV_NAME_MAX])
{
    if (bucket.len > SRV_S3_BUCKET_MAX || key.len > SRV_S3_KEY_MAX)
        return 0;
    memcpy(name_out, bucket.base, bucket.len);
    name_out[bucket.len] = 0;
    if (key.len > 0)
        memcpy(name_out + bucket.len + 1, key.base, key.len);
    return bucket.len + 1 + key.len;
}

bool srv_name_split(struct srv_str name, struct srv_str *bucket_out, struct srv_str *key_out)
{
    const char *zero = name.len > 0 ? memchr(name.base, 0, name.len) : NULL;

    *bucket_out = *key_out = (struct srv_str){NULL, 0};
    if (zero == NULL)
        return false;
    size_t bucket_len = (size_t)(zero - name.base);
    *bucket_out = (struct srv_str){name.base, bucket_len};
    *key_out = (struct srv_str){zero + 1, name.len - bucket_len - 1};
    return bucket_len > 0 && bucket_len <= SRV_S3_BUCKET_MAX && key_out->len > 0 &&
           key_out->len <= SRV_S3_KEY_MAX;
}

struct gyre_key srv_name_key(struct srv_str bucket, struct srv_str key)
{
    struct iovec parts[2] = {{(void *)bucket.base, bucket.len}, {(void *)key.base, key.len}};
    struct gyre_key digest;

    /* A bucket's name holds no zero byte, and the last part may. */
    SRV_CHECK(gyre_key_of_parts(GYRE_DOMAIN_S3, parts, 2, &digest) == GYRE_OK);
    return digest;
}

static bool same(struct srv_str a, struct srv_str b)
{
    return a.len == b.len && memcmp(a.base, b.base, a.len) == 0;
}

/* False if the metadata is not that of this object. */
static bool fill(const struct gyre_handle *handle, struct srv_str bucket, struct srv_str key,
                 struct srv_name_row *row)
{
    const struct gyre_info *info = gyre_handle_info(handle);
    struct srv_s3_meta meta;
    size_t len;
    const void *bytes = gyre_handle_meta(handle, &len);

    if (!srv_s3_meta_decode(bytes, len, &meta) || !same(meta.bucket, bucket) ||
        !same(meta.key, key))
        return false;
    row->place = info->place;
    row->is_in_parts = info->parts > 0;
    row->expires = info->expires;
    row->size = info->length;
    row->modified_ms = meta.modified_ms;
    row->etag_len = meta.etag.len;
    memcpy(row->etag, meta.etag.base, meta.etag.len);
    row->owner_len = meta.owner.len <= sizeof row->owner ? meta.owner.len : 0;
    if (row->owner_len > 0)
        memcpy(row->owner, meta.owner.base, row->owner_len);
    return true;
}

gyre_err srv_name_look(struct gyre_store *store, struct srv_str name, uint32_t now,
                       struct srv_name_row *row_out)
{
    struct srv_str bucket, key;
    struct gyre_handle *handle;

    row_out->name_len = 0;
    if (!srv_name_split(name, &bucket, &key))
        return GYRE_NOT_FOUND;
    struct gyre_key digest = srv_name_key(bucket, key);
    gyre_err err = gyre_get(store, &digest, now, GYRE_GET_HEAD | GYRE_GET_NO_COUNT, &handle);
    if (err != GYRE_OK)
        return err == GYRE_EXPIRED ? GYRE_NOT_FOUND : err;
    if (fill(handle, bucket, key, row_out)) {
        memmove(row_out->name, name.base, name.len); /* may be the row's own */
        row_out->name_len = name.len;
    } else {
        err = GYRE_NOT_FOUND;
    }
    gyre_release(handle);
    return err;
}

/* ---- ETags ---- */

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool pack_hash(const char *hex, uint8_t *bytes)
{
    for (size_t i = 0; i < HASH_BYTES; i++) {
        int high = digit_of(hex[2 * i]), low = digit_of(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* The N of "-N" from 1 to 65535 without leading zeros; 0 for anything else. */
static unsigned parts_of(const char *text, size_t len)
{
    unsigned n = 0;

    if (len < 2 || len > 6 || text[0] != '-' || text[1] == '0')
        return 0;
    for (size_t i = 1; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        n = n * 10 + (unsigned)(text[i] - '0');
    }
    return n <= UINT16_MAX ? n : 0;
}

size_t srv_name_etag_pack(const char *etag, size_t len, uint8_t packed_out[SRV_NAME_PACKED_MAX])
{
    if (len >= HEX_LEN && pack_hash(etag, packed_out + 1)) {
        unsigned parts = parts_of(etag + HEX_LEN, len - HEX_LEN);
        packed_out[0] = len == HEX_LEN ? HASH : HASH_OF_PARTS;
        if (len == HEX_LEN)
            return 1 + HASH_BYTES;
        packed_out[1 + HASH_BYTES] = (uint8_t)parts;
        packed_out[2 + HASH_BYTES] = (uint8_t)(parts >> 8);
        if (parts > 0)
            return 1 + HASH_BYTES + 2;
    }
    packed_out[0] = TEXT;
    memcpy(packed_out + 1, etag, len);
    return 1 + len;
}

static size_t write_hex(const uint8_t *bytes, char *hex_out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < HASH_BYTES; i++) {
        hex_out[2 * i] = digits[bytes[i] >> 4];
        hex_out[2 * i + 1] = digits[bytes[i] & 15];
    }
    return HEX_LEN;
}

bool srv_name_etag_unpack(const uint8_t *packed, size_t len, char etag_out[SRV_S3_ETAG_LEN_MAX],
                          size_t *len_out)
{
    char number[8];

    *len_out = 0;
    if (len < 2 || len > SRV_NAME_PACKED_MAX)
        return false;
    switch (packed[0]) {
    case TEXT: memcpy(etag_out, packed + 1, *len_out = len - 1); return true;
    case HASH:
        if (len != 1 + HASH_BYTES)
            return false;
        *len_out = write_hex(packed + 1, etag_out);
        return true;
    case HASH_OF_PARTS:
        if (len != 1 + HASH_BYTES + 2)
            return false;
        *len_out = write_hex(packed + 1, etag_out);
        int n = snprintf(number, sizeof number, "-%u",
                         (unsigned)packed[1 + HASH_BYTES] | (unsigned)packed[2 + HASH_BYTES] << 8);
        memcpy(etag_out + *len_out, number, (size_t)n);
        *len_out += (size_t)n;
        return true;
    default: return false;
    }
}
