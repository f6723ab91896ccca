#include "server/s3/override.h"

#include <stddef.h>
#include <string.h>

#include "server/chars.h"
#include "server/uri.h"

static const struct {
    const char *name;
    size_t at;
} fields[] = {
    {"response-content-type", offsetof(struct srv_s3_meta, content_type)},
    {"response-content-language", offsetof(struct srv_s3_meta, content_language)},
    {"response-expires", offsetof(struct srv_s3_meta, expires)},
    {"response-cache-control", offsetof(struct srv_s3_meta, cache_control)},
    {"response-content-disposition", offsetof(struct srv_s3_meta, content_disposition)},
    {"response-content-encoding", offsetof(struct srv_s3_meta, content_encoding)},
};

bool srv_s3_has_override(struct srv_str query)
{
    static const char prefix[] = "response-";
    struct srv_str name, value;

    while (srv_query_next(&query, &name, &value)) {
        if (name.len > sizeof prefix - 1 && memcmp(name.base, prefix, sizeof prefix - 1) == 0)
            return true;
    }
    return false;
}

/* A decoded value may hold anything, line ends included, which would begin fields of their own. */
static bool is_field_value(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!srv_is_text((unsigned char)bytes[i]))
            return false;
    }
    return len == 0 || (bytes[0] != ' ' && bytes[len - 1] != ' ');
}

enum srv_s3_code srv_s3_override(struct srv_str query, struct srv_s3_meta *meta,
                                 char bytes[SRV_S3_OVERRIDE_BYTES])
{
    size_t used = 0, len;
    struct srv_str raw;

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (!srv_query_find(query, fields[i].name, &raw))
            continue;
        if (!srv_uri_decode(raw, true, bytes + used, SRV_S3_OVERRIDE_BYTES - used, &len) ||
            !is_field_value(bytes + used, len))
            return SRV_S3_INVALID_ARGUMENT;
        struct srv_str *value = (void *)((char *)meta + fields[i].at);
        *value = (struct srv_str){bytes + used, len};
        used += len;
    }
    return SRV_S3_NONE;
}
