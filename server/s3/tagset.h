/* Sets of tags, of objects and buckets: checked and kept in a compact form.
 *
 * Lends:   decoded tags point into the encoded form.
 * Threads: any. Blocks: never. Allocates: nothing.
 *
 * Encoded: for each tag u8 length of the key, u16 little-endian length of the value, key, value.
 */
#pragma once

#include "server/exchange.h"
#include "server/s3/error.h"

enum {
    SRV_S3_TAGS_OBJECT_MAX = 10,
    SRV_S3_TAGS_BUCKET_MAX = 50,
    SRV_S3_TAG_KEY_MAX = 128,   /* characters, of up to 4 bytes */
    SRV_S3_TAG_VALUE_MAX = 256, /* likewise */
    SRV_S3_TAGS_BYTES_MAX = 12 << 10,
};

struct srv_s3_tag {
    struct srv_str key;
    struct srv_str value;
};

/* A set that is being made. */
struct srv_s3_tagset {
    size_t n;
    size_t max; /* tags */
    size_t len; /* bytes */
    uint8_t bytes[SRV_S3_TAGS_BYTES_MAX];
};

void srv_s3_tagset_init(struct srv_s3_tagset *set, size_t max);

/* NONE; INVALID_TAG: too long, no UTF-8, or a key that is there already; BAD_REQUEST: too many. */
enum srv_s3_code srv_s3_tagset_add(struct srv_s3_tagset *set, struct srv_str key,
                                   struct srv_str value);

/* Adds the tags of an x-amz-tagging field, in the form of a query. As add, and INVALID_ARGUMENT. */
enum srv_s3_code srv_s3_tagset_add_field(struct srv_s3_tagset *set, struct srv_str field);

/* Takes the next tag off the front of an encoded set. False at its end, or where it is broken. */
bool srv_s3_tags_next(struct srv_str *rest_inout, struct srv_s3_tag *tag_out);

size_t srv_s3_tags_count(struct srv_str encoded);
