#include <stdlib.h>
#include <string.h>

#include "server/options_section.h"
#include "server/options_set.h"
#include "server/quantity.h"
#include "server/s3/name.h"

/* "buckets": {NAME: {"etag": KIND, "index": "on" or "off", "ttl": RULE, "evict": "yes" or
 * "never", "quota": SIZE}}, what differs from bucket to bucket. */

enum { WHERE_MAX = 400 };

static bool read_etag(struct srv_section *section, const json_t *value, enum srv_s3_etag *etag_out)
{
    char where[WHERE_MAX];
    uint64_t etag = SRV_S3_ETAG_MD5;
    if (!json_is_string(value))
        return srv_section_error(section, "give \"md5\" or \"opaque\"");
    srv_section_where(section, where, sizeof where);
    bool ok = srv_option_etag(json_string_value(value), where, &etag, section->error_out);
    *etag_out = (enum srv_s3_etag)etag;
    return ok;
}

static bool read_index(struct srv_section *section, const json_t *value, bool *is_unlisted_out)
{
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    *is_unlisted_out = strcmp(text, "off") == 0;
    return *is_unlisted_out || strcmp(text, "on") == 0 ||
           srv_section_error(section, "give \"on\" or \"off\"");
}

static bool read_ttl(struct srv_section *section, const json_t *value, struct srv_s3_ttl *ttl_out)
{
    return (json_is_string(value) && srv_s3_ttl_parse(json_string_value(value), ttl_out)) ||
           srv_section_error(section, "give a duration such as \"1h\", \"headers\", "
                                      "\"metadata:NAME\" or \"none\"");
}

static bool read_evict(struct srv_section *section, const json_t *value, bool *never_out)
{
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    *never_out = strcmp(text, "never") == 0;
    return *never_out || strcmp(text, "yes") == 0 ||
           srv_section_error(section, "give \"never\" or \"yes\"");
}

static bool read_quota(struct srv_section *section, const json_t *value, uint64_t *bytes_out)
{
    return (json_is_string(value) && srv_size_parse(json_string_value(value), bytes_out)) ||
           srv_section_error(section, "give a size such as \"10GiB\"");
}

static bool read_member(struct srv_section *section, const char *key, const json_t *value,
                        struct srv_s3_bucket_rule *rule)
{
    static const char *const keys[] = {"etag", "evict", "index", "quota", "ttl"};
    if (strcmp(key, "index") == 0)
        return read_index(section, value, &rule->is_unlisted);
    if (strcmp(key, "evict") == 0)
        return read_evict(section, value, &rule->never_evicts);
    if (strcmp(key, "quota") == 0)
        return read_quota(section, value, &rule->quota_bytes);
    if (strcmp(key, "ttl") == 0)
        return read_ttl(section, value, &rule->ttl);
    if (strcmp(key, "etag") == 0)
        return read_etag(section, value, &rule->etag);
    return srv_section_unknown(section, "a bucket", keys, sizeof keys / sizeof keys[0]);
}

static bool read_bucket(struct srv_section *section, const char *name, const json_t *value,
                        struct srv_s3_bucket_rule *bucket_out)
{
    const char *key;
    json_t *member;
    *bucket_out = (struct srv_s3_bucket_rule){.etag = (enum srv_s3_etag)section->options->etag};
    if (!json_is_object(value))
        return srv_section_error(section, "give an object such as {\"etag\": \"opaque\"}");
    if (!srv_s3_bucket_valid((struct srv_str){name, strlen(name)}))
        return srv_section_error(section,
                                 "this is no bucket's name: 3 to 63 of a-z, 0-9, '.' and '-'");
    json_object_foreach((json_t *)(uintptr_t)value, key, member)
    {
        srv_section_enter(section, key);
        if (!read_member(section, key, member, bucket_out))
            return false;
        srv_section_leave(section);
    }
    char *copy = strdup(name);
    if (copy == NULL)
        return srv_section_error(section, "out of memory");
    bucket_out->bucket = copy;
    return true;
}

bool srv_buckets_section_read(struct srv_section *section)
{
    struct srv_options *options = section->options;
    const char *name;
    json_t *member;
    if (!json_is_object(section->value))
        return srv_section_error(section,
                                 "give an object such as {\"name\": {\"etag\": \"opaque\"}}");
    options->buckets = calloc(json_object_size(section->value) + 1, sizeof options->buckets[0]);
    if (options->buckets == NULL)
        return srv_section_error(section, "out of memory");
    json_object_foreach((json_t *)(uintptr_t)section->value, name, member)
    {
        srv_section_enter(section, name);
        if (!read_bucket(section, name, member, &options->buckets[options->n_buckets]))
            return false;
        srv_section_leave(section);
        options->n_buckets++;
    }
    return true;
}

void srv_buckets_section_fini(struct srv_options *options)
{
    while (options->n_buckets > 0)
        free((char *)(uintptr_t)options->buckets[--options->n_buckets].bucket);
    free(options->buckets);
    options->buckets = NULL;
}
