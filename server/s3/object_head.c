#include "server/s3/object_head.h"

#include <stdio.h>
#include <string.h>

#include "server/check.h"
#include "server/s3/tagset.h"

struct srv_str srv_s3_quote_etag(struct srv_str etag, char quoted[SRV_S3_ETAG_LEN_MAX + 2])
{
    SRV_CHECK(etag.len <= SRV_S3_ETAG_LEN_MAX);
    quoted[0] = '"';
    memcpy(quoted + 1, etag.base, etag.len);
    quoted[etag.len + 1] = '"';
    return (struct srv_str){quoted, etag.len + 2};
}

void srv_s3_head_add_checksum(struct srv_s3_head *head, const struct srv_s3_checksum *checksum,
                              const char *type, char text[SRV_S3_CHECKSUM_TEXT_MAX])
{
    if (checksum->algorithm == SRV_CHECKSUM_NONE)
        return;
    struct srv_str value = srv_s3_checksum_text(checksum, text);
    srv_s3_head_add(head, srv_checksum_field(checksum->algorithm), value);
    if (type != NULL)
        srv_s3_head_add(head, "x-amz-checksum-type", srv_s3_str(type));
}

static void add_if_set(struct srv_s3_head *head, const char *name, struct srv_str value)
{
    if (value.base != NULL)
        srv_s3_head_add(head, name, value);
}

void srv_s3_object_head_init(struct srv_s3_object_head *object, const struct srv_s3_call *call,
                             const struct srv_s3_meta *meta)
{
    struct srv_s3_head *head = &object->head;

    srv_s3_head_init(head, call);
    srv_s3_head_add(head, "ETag", srv_s3_quote_etag(meta->etag, object->etag));
    srv_http_date_write(meta->modified_ms / 1000, object->modified);
    srv_s3_head_add(head, "Last-Modified", (struct srv_str){object->modified, SRV_HTTP_DATE_LEN});
    srv_s3_head_add(head, "Accept-Ranges", srv_s3_str("bytes"));
    add_if_set(head, "Cache-Control", meta->cache_control);
    add_if_set(head, "Expires", meta->expires);
}

/* Without the printf family: every hit passes here. */
static size_t write_decimal(uint64_t n, char text[SRV_S3_DECIMAL_MAX])
{
    char digits[SRV_S3_DECIMAL_MAX];
    size_t len = 0;

    do
        digits[len++] = (char)('0' + n % 10);
    while ((n /= 10) > 0 && len < sizeof digits);
    for (size_t i = 0; i < len; i++)
        text[i] = digits[len - 1 - i];
    return len;
}

void srv_s3_object_head_hit(struct srv_s3_object_head *object, const struct gyre_info *info,
                            int64_t now_s)
{
    const size_t hit_len = sizeof SRV_S3_HIT_TTL - 1;
    int64_t age = now_s - (int64_t)info->created, ttl = (int64_t)info->expires - now_s;
    struct srv_s3_head *head = &object->head;

    size_t len = write_decimal(age > 0 ? (uint64_t)age : 0, object->age);
    srv_s3_head_add(head, "Age", (struct srv_str){object->age, len});
    if (info->expires == 0) {
        srv_s3_head_add(head, "Cache-Status", srv_s3_str("gyre; hit"));
        return;
    }
    memcpy(object->cache_status, SRV_S3_HIT_TTL, hit_len);
    len = write_decimal(ttl > 0 ? (uint64_t)ttl : 0, object->cache_status + hit_len);
    srv_s3_head_add(head, "Cache-Status", (struct srv_str){object->cache_status, hit_len + len});
}

/* Stored names lack the prefix, so that it takes no room in each object. */
static void add_user(struct srv_s3_object_head *object, const struct srv_s3_meta *meta)
{
    char *at = object->user_names;

    for (size_t i = 0; i < meta->n_user; i++) {
        struct srv_str name = meta->user[i].name;
        memcpy(at, SRV_S3_USER_PREFIX, SRV_S3_USER_PREFIX_LEN);
        memcpy(at + SRV_S3_USER_PREFIX_LEN, name.base, name.len);
        struct srv_str full = {at, SRV_S3_USER_PREFIX_LEN + name.len};
        SRV_CHECK(object->head.n < SRV_S3_HEAD_FIELDS_MAX);
        object->head.fields[object->head.n++] = (struct srv_field){full, meta->user[i].value};
        at += full.len;
    }
}

void srv_s3_object_head_describe(struct srv_s3_object_head *object, const struct srv_s3_meta *meta)
{
    struct srv_s3_head *head = &object->head;
    bool has_type = meta->content_type.base != NULL;

    srv_s3_head_add(head, "Content-Type",
                    has_type ? meta->content_type : srv_s3_str("binary/octet-stream"));
    add_if_set(head, "Content-Encoding", meta->content_encoding);
    add_if_set(head, "Content-Disposition", meta->content_disposition);
    add_if_set(head, "Content-Language", meta->content_language);
    add_if_set(head, "x-amz-storage-class", meta->storage_class);
    add_if_set(head, "x-amz-website-redirect-location", meta->redirect);
    if (meta->tags.len > 0) {
        int len =
            snprintf(object->n_tags, sizeof object->n_tags, "%zu", srv_s3_tags_count(meta->tags));
        srv_s3_head_add(head, "x-amz-tagging-count", (struct srv_str){object->n_tags, (size_t)len});
    }
    add_user(object, meta);
}

void srv_s3_object_head_range(struct srv_s3_object_head *object, const struct srv_range *range,
                              uint64_t length)
{
    size_t len = srv_range_write(range, length, object->range);
    srv_s3_head_add(&object->head, "Content-Range", (struct srv_str){object->range, len});
}
