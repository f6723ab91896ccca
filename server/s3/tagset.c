#include "server/s3/tagset.h"

#include <string.h>

#include "server/uri.h"
#include "server/utf8.h"

enum { HEADER_LEN = 3 };

void srv_s3_tagset_init(struct srv_s3_tagset *set, size_t max)
{
    set->n = 0;
    set->max = max;
    set->len = 0;
}

/* Characters of UTF-8, or SIZE_MAX when it is none. */
static size_t count_characters(struct srv_str text)
{
    size_t n = 0;

    if (!srv_utf8_valid(text))
        return SIZE_MAX;
    for (size_t i = 0; i < text.len; i++)
        n += ((unsigned char)text.base[i] & 0xc0) != 0x80;
    return n;
}

static bool has_key(const struct srv_s3_tagset *set, struct srv_str key)
{
    struct srv_str rest = {(const char *)set->bytes, set->len};
    struct srv_s3_tag tag;

    while (srv_s3_tags_next(&rest, &tag)) {
        if (tag.key.len == key.len && memcmp(tag.key.base, key.base, key.len) == 0)
            return true;
    }
    return false;
}

enum srv_s3_code srv_s3_tagset_add(struct srv_s3_tagset *set, struct srv_str key,
                                   struct srv_str value)
{
    if (key.len == 0 || key.len > UINT8_MAX || count_characters(key) > SRV_S3_TAG_KEY_MAX ||
        count_characters(value) > SRV_S3_TAG_VALUE_MAX || has_key(set, key))
        return SRV_S3_INVALID_TAG;
    if (set->n == set->max)
        return SRV_S3_BAD_REQUEST;
    if (HEADER_LEN + key.len + value.len > sizeof set->bytes - set->len)
        return SRV_S3_INVALID_TAG;
    uint8_t *at = set->bytes + set->len;
    at[0] = (uint8_t)key.len;
    at[1] = (uint8_t)value.len;
    at[2] = (uint8_t)(value.len >> 8);
    memcpy(at + HEADER_LEN, key.base, key.len);
    if (value.len > 0)
        memcpy(at + HEADER_LEN + key.len, value.base, value.len);
    set->len += HEADER_LEN + key.len + value.len;
    set->n++;
    return SRV_S3_NONE;
}

enum srv_s3_code srv_s3_tagset_add_field(struct srv_s3_tagset *set, struct srv_str field)
{
    char key[4 * SRV_S3_TAG_KEY_MAX], value[4 * SRV_S3_TAG_VALUE_MAX];
    struct srv_str raw_key, raw_value;
    enum srv_s3_code code = SRV_S3_NONE;
    size_t key_len, value_len;

    while (code == SRV_S3_NONE && srv_query_next(&field, &raw_key, &raw_value)) {
        if (!srv_uri_decode(raw_key, true, key, sizeof key, &key_len) ||
            !srv_uri_decode(raw_value, true, value, sizeof value, &value_len))
            return SRV_S3_INVALID_ARGUMENT;
        code = srv_s3_tagset_add(set, (struct srv_str){key, key_len},
                                 (struct srv_str){value, value_len});
    }
    return code;
}

bool srv_s3_tags_next(struct srv_str *rest_inout, struct srv_s3_tag *tag_out)
{
    const uint8_t *at = (const uint8_t *)rest_inout->base;

    if (rest_inout->len < HEADER_LEN)
        return false;
    size_t key_len = at[0], value_len = (size_t)at[1] | (size_t)at[2] << 8;
    size_t whole = HEADER_LEN + key_len + value_len;
    if (whole > rest_inout->len)
        return false;
    const char *key = rest_inout->base + HEADER_LEN;
    *tag_out = (struct srv_s3_tag){{key, key_len}, {key + key_len, value_len}};
    *rest_inout = (struct srv_str){rest_inout->base + whole, rest_inout->len - whole};
    return true;
}

size_t srv_s3_tags_count(struct srv_str encoded)
{
    struct srv_s3_tag tag;
    size_t n = 0;

    while (srv_s3_tags_next(&encoded, &tag))
        n++;
    return n;
}
