#include "server/s3/lifecycle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/iso_date.h"
#include "server/s3/call.h"
#include "server/s3/numbers.h"
#include "server/s3/tagset.h"
#include "server/xml.h"
#include "server/xml_read.h"

enum { NODES_MAX = 20000, ID_MAX = 255, DAYS_MAX = 36500, MADE_ID_MAX = 16 };

struct srv_s3_lifecycle {
    struct srv_xml_doc *doc;
    size_t n;
    struct srv_s3_lifecycle_rule *rules;
    char (*made_ids)[MADE_ID_MAX]; /* of rules that came without */
};

static bool equals(struct srv_str text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.base, word, text.len) == 0;
}

static bool same(struct srv_str a, struct srv_str b)
{
    return a.len == b.len && memcmp(a.base, b.base, a.len) == 0;
}

/* ---- Reading ---- */

static enum srv_s3_code read_days(struct srv_str text, uint64_t *days_out)
{
    return srv_s3_parse_u64(text, days_out) && *days_out >= 1 && *days_out <= DAYS_MAX
               ? SRV_S3_NONE
               : SRV_S3_INVALID_ARGUMENT;
}

static enum srv_s3_code read_expiration(const struct srv_xml_node *node,
                                        struct srv_s3_lifecycle_rule *rule)
{
    struct srv_str days = srv_xml_child_text(node, "Days");
    struct srv_str date = srv_xml_child_text(node, "Date");

    if (days.base != NULL && date.base != NULL)
        return SRV_S3_MALFORMED_XML;
    if (days.base != NULL)
        return read_days(days, &rule->days);
    if (date.base == NULL) /* of delete markers, which there are none of */
        return srv_xml_child(node, "ExpiredObjectDeleteMarker") != NULL ? SRV_S3_NONE
                                                                        : SRV_S3_MALFORMED_XML;
    bool has_dashes = date.len > 4 && date.base[4] == '-';
    if (!has_dashes || !srv_iso_date_parse(date, &rule->date_s) || rule->date_s == 0)
        return SRV_S3_MALFORMED_XML;
    /* S3 takes whole days alone: another time is a mistake of whoever wrote it. */
    return rule->date_s % SRV_S3_LIFECYCLE_DAY_S == 0 ? SRV_S3_NONE : SRV_S3_INVALID_ARGUMENT;
}

static enum srv_s3_code read_actions(const struct srv_xml_node *node,
                                     struct srv_s3_lifecycle_rule *rule)
{
    const struct srv_xml_node *expiration = srv_xml_child(node, "Expiration");
    const struct srv_xml_node *uploads = srv_xml_child(node, "AbortIncompleteMultipartUpload");
    const struct srv_xml_node *versions = srv_xml_child(node, "NoncurrentVersionExpiration");
    enum srv_s3_code code = SRV_S3_NONE;

    if (srv_xml_child(node, "Transition") != NULL ||
        srv_xml_child(node, "NoncurrentVersionTransition") != NULL)
        return SRV_S3_NOT_IMPLEMENTED;
    if (expiration == NULL && uploads == NULL && versions == NULL)
        return SRV_S3_MALFORMED_XML;
    if (expiration != NULL)
        code = read_expiration(expiration, rule);
    if (code == SRV_S3_NONE && uploads != NULL)
        code = read_days(srv_xml_child_text(uploads, "DaysAfterInitiation"), &rule->upload_days);
    return code;
}

static enum srv_s3_code read_filter(const struct srv_xml_node *node,
                                    struct srv_s3_lifecycle_rule *rule)
{
    const struct srv_xml_node *filter = srv_xml_child(node, "Filter");
    const struct srv_xml_node *both = srv_xml_child(filter, "And");

    rule->prefix = srv_xml_child_text(node, "Prefix");
    if (filter == NULL && rule->prefix.base == NULL)
        return SRV_S3_MALFORMED_XML;
    filter = both != NULL ? both : filter;
    rule->filter = filter;
    if (rule->prefix.base == NULL)
        rule->prefix = srv_xml_child_text(filter, "Prefix");
    if (rule->prefix.base == NULL)
        rule->prefix = srv_s3_str("");
    struct srv_str more = srv_xml_child_text(filter, "ObjectSizeGreaterThan");
    struct srv_str less = srv_xml_child_text(filter, "ObjectSizeLessThan");
    rule->has_more_than = more.base != NULL;
    rule->has_less_than = less.base != NULL;
    if ((rule->has_more_than && !srv_s3_parse_u64(more, &rule->more_than)) ||
        (rule->has_less_than && !srv_s3_parse_u64(less, &rule->less_than)))
        return SRV_S3_INVALID_ARGUMENT;
    return SRV_S3_NONE;
}

static enum srv_s3_code read_rule(struct srv_s3_lifecycle *lifecycle,
                                  const struct srv_xml_node *node)
{
    struct srv_s3_lifecycle_rule *rule = &lifecycle->rules[lifecycle->n];
    char *made = lifecycle->made_ids[lifecycle->n];
    struct srv_str status = srv_xml_child_text(node, "Status");

    if (!srv_xml_is(node, "Rule") || (!equals(status, "Enabled") && !equals(status, "Disabled")))
        return SRV_S3_MALFORMED_XML;
    rule->is_enabled = equals(status, "Enabled");
    rule->id = srv_xml_child_text(node, "ID");
    if (rule->id.len == 0) {
        snprintf(made, MADE_ID_MAX, "rule-%zu", lifecycle->n + 1);
        rule->id = srv_s3_str(made);
    }
    if (rule->id.len > ID_MAX)
        return SRV_S3_INVALID_ARGUMENT;
    for (size_t i = 0; i < lifecycle->n; i++) {
        if (same(lifecycle->rules[i].id, rule->id))
            return SRV_S3_INVALID_ARGUMENT;
    }
    enum srv_s3_code code = read_filter(node, rule);
    if (code == SRV_S3_NONE)
        code = read_actions(node, rule);
    lifecycle->n++;
    return code;
}

static enum srv_s3_code read_rules(struct srv_s3_lifecycle *lifecycle)
{
    const struct srv_xml_node *root = srv_xml_root(lifecycle->doc);
    enum srv_s3_code code = SRV_S3_NONE;
    size_t n = 0;

    if (!srv_xml_is(root, "LifecycleConfiguration") || root->child == NULL)
        return SRV_S3_MALFORMED_XML;
    for (const struct srv_xml_node *node = root->child; node != NULL; node = node->next)
        n++;
    if (n > SRV_S3_LIFECYCLE_RULES_MAX)
        return SRV_S3_MALFORMED_XML;
    lifecycle->rules = calloc(n, sizeof *lifecycle->rules);
    lifecycle->made_ids = calloc(n, sizeof *lifecycle->made_ids);
    if (lifecycle->rules == NULL || lifecycle->made_ids == NULL)
        return SRV_S3_SLOW_DOWN;
    for (const struct srv_xml_node *node = root->child; code == SRV_S3_NONE && node != NULL;
         node = node->next)
        code = read_rule(lifecycle, node);
    return code;
}

struct srv_s3_lifecycle *srv_s3_lifecycle_create(const char *bytes, size_t len,
                                                 enum srv_s3_code *code_out)
{
    struct srv_s3_lifecycle *lifecycle = calloc(1, sizeof *lifecycle);

    *code_out = SRV_S3_SLOW_DOWN;
    if (lifecycle == NULL)
        return NULL;
    lifecycle->doc = srv_xml_doc_create(bytes, len, NODES_MAX);
    *code_out = lifecycle->doc != NULL ? read_rules(lifecycle) : SRV_S3_MALFORMED_XML;
    if (*code_out == SRV_S3_NONE)
        return lifecycle;
    srv_s3_lifecycle_destroy(lifecycle);
    return NULL;
}

void srv_s3_lifecycle_destroy(struct srv_s3_lifecycle *lifecycle)
{
    if (lifecycle == NULL)
        return;
    srv_xml_doc_destroy(lifecycle->doc);
    free(lifecycle->rules);
    free(lifecycle->made_ids);
    free(lifecycle);
}

/* ---- Writing ---- */

static void write_node(struct srv_xml *xml, const struct srv_xml_node *node)
{
    /* Names are terminated: the document keeps them so. */
    srv_xml_open(xml, node->name.base);
    if (node->child == NULL)
        srv_xml_text(xml, node->text);
    for (const struct srv_xml_node *at = node->child; at != NULL; at = at->next)
        write_node(xml, at);
    srv_xml_close(xml, node->name.base);
}

void srv_s3_lifecycle_write(const struct srv_s3_lifecycle *lifecycle, struct srv_xml *xml)
{
    const struct srv_xml_node *rule = srv_xml_root(lifecycle->doc)->child;

    srv_xml_open(xml, "LifecycleConfiguration" SRV_S3_XMLNS);
    for (size_t i = 0; i < lifecycle->n; i++, rule = rule->next) {
        srv_xml_open(xml, "Rule");
        srv_xml_element(xml, "ID", lifecycle->rules[i].id);
        for (const struct srv_xml_node *at = rule->child; at != NULL; at = at->next) {
            if (!srv_xml_is(at, "ID"))
                write_node(xml, at);
        }
        srv_xml_close(xml, "Rule");
    }
    srv_xml_close(xml, "LifecycleConfiguration");
}

/* ---- Applying ---- */

static bool has_tag(struct srv_str tags, struct srv_str key, struct srv_str value)
{
    struct srv_s3_tag tag;

    while (srv_s3_tags_next(&tags, &tag)) {
        if (same(tag.key, key) && same(tag.value, value))
            return true;
    }
    return false;
}

static bool has_prefix(struct srv_str key, struct srv_str prefix)
{
    return key.len >= prefix.len && memcmp(key.base, prefix.base, prefix.len) == 0;
}

static bool applies(const struct srv_s3_lifecycle_rule *rule, const struct srv_s3_meta *meta,
                    uint64_t length)
{
    if (!rule->is_enabled || !has_prefix(meta->key, rule->prefix) ||
        (rule->has_more_than && length <= rule->more_than) ||
        (rule->has_less_than && length >= rule->less_than))
        return false;
    const struct srv_xml_node *at = rule->filter != NULL ? rule->filter->child : NULL;
    for (; at != NULL; at = at->next) {
        if (srv_xml_is(at, "Tag") &&
            !has_tag(meta->tags, srv_xml_child_text(at, "Key"), srv_xml_child_text(at, "Value")))
            return false;
    }
    return true;
}

const struct srv_s3_lifecycle_rule *srv_s3_lifecycle_of_object(
    const struct srv_s3_lifecycle *lifecycle, const struct srv_s3_meta *meta, uint64_t length,
    int64_t *expiry_s_out)
{
    const struct srv_s3_lifecycle_rule *first = NULL;
    int64_t modified_s = meta->modified_ms / 1000;

    *expiry_s_out = 0;
    for (size_t i = 0; i < lifecycle->n; i++) {
        const struct srv_s3_lifecycle_rule *rule = &lifecycle->rules[i];
        int64_t days = modified_s / SRV_S3_LIFECYCLE_DAY_S + 1 + (int64_t)rule->days;
        int64_t expiry_s = rule->days > 0 ? days * SRV_S3_LIFECYCLE_DAY_S : rule->date_s;
        if (expiry_s == 0 || !applies(rule, meta, length) ||
            (first != NULL && expiry_s >= *expiry_s_out))
            continue;
        first = rule;
        *expiry_s_out = expiry_s;
    }
    return first;
}

bool srv_s3_lifecycle_is_due(const struct srv_s3_lifecycle *lifecycle,
                             const struct srv_s3_meta *meta, uint64_t length, int64_t now_s,
                             int64_t day_s)
{
    int64_t modified_s = meta->modified_ms / 1000, expiry_s;

    if (day_s == SRV_S3_LIFECYCLE_DAY_S)
        return srv_s3_lifecycle_of_object(lifecycle, meta, length, &expiry_s) != NULL &&
               expiry_s <= now_s;
    for (size_t i = 0; i < lifecycle->n; i++) {
        const struct srv_s3_lifecycle_rule *rule = &lifecycle->rules[i];
        expiry_s = rule->days > 0 ? modified_s + (int64_t)rule->days * day_s : rule->date_s;
        if (expiry_s != 0 && expiry_s <= now_s && applies(rule, meta, length))
            return true;
    }
    return false;
}

bool srv_s3_lifecycle_is_upload_due(const struct srv_s3_lifecycle *lifecycle, struct srv_str key,
                                    int64_t created_s, int64_t now_s, int64_t day_s)
{
    for (size_t i = 0; i < lifecycle->n; i++) {
        const struct srv_s3_lifecycle_rule *rule = &lifecycle->rules[i];
        if (rule->is_enabled && rule->upload_days > 0 && has_prefix(key, rule->prefix) &&
            created_s + (int64_t)rule->upload_days * day_s <= now_s)
            return true;
    }
    return false;
}
