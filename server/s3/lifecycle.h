/* Rules by which the objects of a bucket expire, and its uploads are given up: read from XML,
 * checked, and applied to an object.
 *
 * Owns:    struct srv_s3_lifecycle owns its rules and their strings.
 * Threads: any; it never changes.
 * Blocks:  never.
 *
 * What S3 has for versions is accepted and without effect, as there is one version of everything.
 */
#pragma once

#include "server/s3/error.h"
#include "server/s3/meta.h"

struct srv_xml;

enum {
    SRV_S3_LIFECYCLE_BYTES_MAX = 32 << 10, /* of a document, as kept */
    SRV_S3_LIFECYCLE_RULES_MAX = 1000,
    SRV_S3_LIFECYCLE_DAY_S = 24 * 3600,
};

struct srv_s3_lifecycle_rule {
    struct srv_str id;
    bool is_enabled;
    struct srv_str prefix;
    const struct srv_xml_node *filter; /* whose tags are asked for; NULL: none */
    bool has_more_than, has_less_than;
    uint64_t more_than, less_than; /* bytes */
    uint64_t days;                 /* after an object was stored; 0: none */
    int64_t date_s;                /* from this Unix time on; 0: none */
    uint64_t upload_days;          /* after an upload was begun; 0: none */
};

struct srv_s3_lifecycle;

/* Reads a <LifecycleConfiguration>. NULL with *code_out: MALFORMED_XML, INVALID_ARGUMENT,
 * NOT_IMPLEMENTED (storage classes to move to), SLOW_DOWN. */
struct srv_s3_lifecycle *srv_s3_lifecycle_create(const char *bytes, size_t len,
                                                 enum srv_s3_code *code_out);
/* NULL is allowed. */
void srv_s3_lifecycle_destroy(struct srv_s3_lifecycle *lifecycle);

/* Writes the document, in which every rule has an id. */
void srv_s3_lifecycle_write(const struct srv_s3_lifecycle *lifecycle, struct srv_xml *xml);

/* The rule by which an object expires first, NULL when none does, and when: at the midnight after
 * its days, as S3 has it. */
const struct srv_s3_lifecycle_rule *srv_s3_lifecycle_of_object(
    const struct srv_s3_lifecycle *lifecycle, const struct srv_s3_meta *meta, uint64_t length,
    int64_t *expiry_s_out);

/* Whether an object has expired at `now_s`, with days of `day_s` seconds. */
bool srv_s3_lifecycle_is_due(const struct srv_s3_lifecycle *lifecycle,
                             const struct srv_s3_meta *meta, uint64_t length, int64_t now_s,
                             int64_t day_s);
/* Whether an upload to `key` begun at `created_s` is to be given up. */
bool srv_s3_lifecycle_is_upload_due(const struct srv_s3_lifecycle *lifecycle, struct srv_str key,
                                    int64_t created_s, int64_t now_s, int64_t day_s);
