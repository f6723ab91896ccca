#include "server/s3/location.h"

#include <string.h>

void srv_s3_location_feed(struct srv_s3_location *location, const char *bytes, size_t len)
{
    if (len > sizeof location->bytes - location->len) {
        location->is_too_long = true;
        return;
    }
    memcpy(location->bytes + location->len, bytes, len);
    location->len += len;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct srv_str trim(struct srv_str text)
{
    while (text.len > 0 && is_space(text.base[0]))
        text = (struct srv_str){text.base + 1, text.len - 1};
    while (text.len > 0 && is_space(text.base[text.len - 1]))
        text.len--;
    return text;
}

static const char *find(struct srv_str text, const char *word)
{
    return text.len == 0 ? NULL : memmem(text.base, text.len, word, strlen(word));
}

static struct srv_str after(struct srv_str text, const char *at)
{
    return (struct srv_str){at, (size_t)(text.base + text.len - at)};
}

/* What stands between <name ...> and </name>; false when the element is not closed or not there. */
static bool element(struct srv_str text, const char *open, const char *close,
                    struct srv_str *content_out)
{
    const char *begin = find(text, open);

    *content_out = (struct srv_str){NULL, 0};
    if (begin == NULL)
        return false;
    text = after(text, begin + strlen(open));
    const char *end_of_tag = text.len == 0 ? NULL : memchr(text.base, '>', text.len);
    if (end_of_tag == NULL)
        return false;
    if (end_of_tag > text.base && end_of_tag[-1] == '/')
        return true; /* <name/> */
    text = after(text, end_of_tag + 1);
    const char *end = find(text, close);
    if (end == NULL)
        return false;
    *content_out = (struct srv_str){text.base, (size_t)(end - text.base)};
    return true;
}

static bool is_region(struct srv_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.base[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-'))
            return false;
    }
    return name.len <= 63;
}

enum srv_s3_code srv_s3_location_check(struct srv_s3_location *location)
{
    struct srv_str body = trim((struct srv_str){location->bytes, location->len});
    struct srv_str content, region;

    if (location->is_too_long)
        return SRV_S3_MALFORMED_XML;
    if (body.len == 0)
        return SRV_S3_NONE;
    if (!element(body, "<CreateBucketConfiguration", "</CreateBucketConfiguration>", &content))
        return SRV_S3_MALFORMED_XML;
    if (find(content, "<LocationConstraint") == NULL)
        return SRV_S3_NONE;
    if (!element(content, "<LocationConstraint", "</LocationConstraint>", &region))
        return SRV_S3_MALFORMED_XML;
    region = trim(region);
    if (!is_region(region))
        return SRV_S3_INVALID_LOCATION;
    if (region.len > 0)
        location->region = region;
    return SRV_S3_NONE;
}
