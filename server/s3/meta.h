/* The record stored beside each object: all that a GET returns besides the bytes, and whose object
 * it is.
 *
 * Lends:   a decoded record's strings point into the bytes it was decoded from.
 * Threads: any. Blocks: never. Allocates: nothing.
 *
 * Format, integers little-endian: u8 version (1), u8 zero, then items of u8 tag, u16 length and
 * that many bytes, to the end. ETAG, MODIFIED (i64 milliseconds), BUCKET and KEY come exactly once;
 * the others at most once; USER any number of times, with u8 name length, name, value. A tag
 * from 0x80 on may be skipped by readers that do not know it, any other makes the record
 * unreadable.
 */
#pragma once

#include "server/exchange.h"

enum {
    SRV_S3_META_USER_BYTES_MAX =
        2048,                   /* names (without prefix) and values of all x-amz-meta- fields */
    SRV_S3_META_USER_MAX = 128, /* how many of them */
    SRV_S3_META_RECORD_MAX = 16 << 10, /* encoded bytes */
    SRV_S3_ETAG_LEN_MAX = 64,
};

/* Header values have a NULL base when the object has none. */
struct srv_s3_meta {
    struct srv_str bucket;
    struct srv_str key;
    struct srv_str etag; /* without quotes */
    int64_t modified_ms; /* Unix time, not negative */
    struct srv_str content_type;
    struct srv_str content_encoding;
    struct srv_str content_disposition;
    struct srv_str content_language;
    struct srv_str cache_control;
    struct srv_str expires;       /* the header as sent */
    struct srv_str storage_class; /* if it is not STANDARD */
    struct srv_str redirect;      /* x-amz-website-redirect-location */
    struct srv_str owner;         /* the user who stored it */
    struct srv_str acl;           /* as of server/s3/acl.h */
    struct srv_str tags;          /* as of server/s3/tagset.h */
    struct srv_str checksum;      /* as of server/s3/checksum.h */
    struct srv_str upload;        /* the id of the upload that it came by */
    struct srv_str part_sums;     /* the values of an upload's parts, one after the other */
    struct srv_str cache_tags;    /* by which it can be purged, as of server/s3/labels.h */
    size_t n_user;
    struct srv_field user[SRV_S3_META_USER_MAX]; /* names lower-case, without "x-amz-meta-" */
};

/* Writes the record. True with its length; false, and 0 in *len_out, when it would be longer than
 * `capacity` or break a limit above. */
bool srv_s3_meta_encode(const struct srv_s3_meta *meta, uint8_t *bytes_out, size_t capacity,
                        size_t *len_out);

/* Reads a record of whatever origin. False, and *meta_out of no use, unless it is whole and keeps
 * every rule of the format. */
bool srv_s3_meta_decode(const void *bytes, size_t len, struct srv_s3_meta *meta_out);
