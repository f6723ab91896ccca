#include "server/s3/labels.h"

#include <string.h>

#include "server/check.h"
#include "server/s3/name.h"

static uint64_t label_of(enum gyre_label_kind kind, struct srv_str bucket, struct srv_str rest)
{
    char bytes[SRV_S3_BUCKET_MAX + 1 + SRV_S3_KEY_MAX];

    SRV_CHECK(bucket.len <= SRV_S3_BUCKET_MAX && rest.len <= SRV_S3_KEY_MAX);
    memcpy(bytes, bucket.base, bucket.len);
    bytes[bucket.len] = '\0';
    if (rest.len > 0)
        memcpy(bytes + bucket.len + 1, rest.base, rest.len);
    return gyre_label(kind, bytes, bucket.len + 1 + rest.len);
}

uint64_t srv_s3_label_of_tag(struct srv_str bucket, struct srv_str tag)
{
    return label_of(GYRE_LABEL_TAG, bucket, tag);
}

uint64_t srv_s3_label_of_prefix(struct srv_str bucket, struct srv_str prefix)
{
    return label_of(GYRE_LABEL_PREFIX, bucket, prefix);
}

bool srv_s3_prefix_has_label(struct srv_str prefix)
{
    size_t depth = 0;

    for (size_t i = 0; i < prefix.len; i++)
        depth += prefix.base[i] == '/';
    return prefix.len == 0 || (prefix.len <= SRV_S3_KEY_MAX && depth <= SRV_S3_PURGE_DEPTH_MAX &&
                               prefix.base[prefix.len - 1] == '/');
}

void srv_s3_labels_of(const struct srv_s3_meta *meta, struct srv_s3_labels *labels_out)
{
    struct srv_str bucket = meta->bucket, key = meta->key, rest = meta->cache_tags, tag;
    size_t depth = 0;

    labels_out->n = 0;
    labels_out->at[labels_out->n++] = srv_s3_label_of_prefix(bucket, (struct srv_str){NULL, 0});
    for (size_t i = 0; i < key.len && depth < SRV_S3_PURGE_DEPTH_MAX; i++) {
        if (key.base[i] != '/')
            continue;
        depth++;
        labels_out->at[labels_out->n++] =
            srv_s3_label_of_prefix(bucket, (struct srv_str){key.base, i + 1});
    }
    while (labels_out->n < GYRE_LABELS_MAX && srv_s3_cache_tags_next(&rest, &tag))
        labels_out->at[labels_out->n++] = srv_s3_label_of_tag(bucket, tag);
}

/* ---- Tags ---- */

bool srv_s3_cache_tags_next(struct srv_str *rest, struct srv_str *tag)
{
    *tag = (struct srv_str){NULL, 0};
    if (rest->len == 0)
        return false;
    const char *end = memchr(rest->base, '\n', rest->len);
    size_t len = end != NULL ? (size_t)(end - rest->base) : rest->len;
    size_t step = end != NULL ? len + 1 : len;
    *tag = (struct srv_str){rest->base, len < SRV_S3_KEY_MAX ? len : SRV_S3_KEY_MAX};
    *rest = (struct srv_str){rest->base + step, rest->len - step};
    return true;
}

bool srv_s3_cache_tags_add(struct srv_str tag, char text[SRV_S3_CACHE_TAGS_BYTES],
                           size_t *len_inout)
{
    struct srv_str rest = {text, *len_inout}, other;
    size_t n = 0;

    if (tag.len == 0)
        return true;
    for (; srv_s3_cache_tags_next(&rest, &other); n++)
        if (other.len == tag.len && memcmp(other.base, tag.base, tag.len) == 0)
            return true;
    size_t between = *len_inout > 0;
    if (n == SRV_S3_CACHE_TAGS_MAX || tag.len > SRV_S3_CACHE_TAG_LEN_MAX ||
        memchr(tag.base, '\n', tag.len) != NULL ||
        tag.len + between > SRV_S3_CACHE_TAGS_BYTES - *len_inout)
        return false;
    if (between)
        text[(*len_inout)++] = '\n';
    memcpy(text + *len_inout, tag.base, tag.len);
    *len_inout += tag.len;
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* Splits at `separator`, which may be a space, and takes spaces off. */
static bool add_list(struct srv_str list, char separator, char text[SRV_S3_CACHE_TAGS_BYTES],
                     size_t *len_inout)
{
    while (list.len > 0) {
        const char *end = memchr(list.base, separator, list.len);
        size_t len = end != NULL ? (size_t)(end - list.base) : list.len;
        size_t step = end != NULL ? len + 1 : len;
        struct srv_str item = {list.base, len};
        list = (struct srv_str){list.base + step, list.len - step};
        while (item.len > 0 && is_space(item.base[0]))
            item = (struct srv_str){item.base + 1, item.len - 1};
        while (item.len > 0 && is_space(item.base[item.len - 1]))
            item.len--;
        if (!srv_s3_cache_tags_add(item, text, len_inout))
            return false;
    }
    return true;
}

static bool is_named(struct srv_str name, const char *other)
{
    return name.len == strlen(other) && memcmp(name.base, other, name.len) == 0;
}

bool srv_s3_cache_tags_read(const struct srv_request *req, char text[SRV_S3_CACHE_TAGS_BYTES],
                            size_t *len_inout)
{
    for (size_t i = 0; i < req->n_fields; i++) {
        const struct srv_field *field = &req->fields[i];
        char separator = is_named(field->name, "surrogate-key") ? ' '
                         : is_named(field->name, "cache-tag")   ? ','
                                                                : '\0';
        if (separator != '\0' && !add_list(field->value, separator, text, len_inout))
            return false;
    }
    return true;
}
