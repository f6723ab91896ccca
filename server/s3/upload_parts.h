/* The parts of an upload: collected from the store, chosen as CompleteMultipartUpload lists them,
 * and summed up.
 *
 * Owns:    the array of parts, between collect and fini.
 * Threads: any, one at a time.
 * Blocks:  collect, for cold data.
 */
#pragma once

#include "server/s3/checksum.h"
#include "server/s3/error.h"

#include "api/gyre.h"

struct srv_xml_node;

enum { SRV_S3_PART_MIN_BYTES = 5 << 20 }; /* of all parts but the last */

struct srv_s3_upload_part {
    uint32_t number;
    uint32_t created; /* Unix seconds */
    uint64_t length;
    uint64_t serial;
    uint8_t md5[16];
    struct srv_s3_checksum checksum; /* NONE if there is none */
};

struct srv_s3_upload_parts {
    struct srv_s3_upload_part *at; /* in rising order of their numbers */
    size_t n;
    size_t capacity_;
};

/* Collects those above number `after`, at most `max` of them. NONE, NO_SUCH_UPLOAD, SLOW_DOWN, or
 * what the store answers. */
enum srv_s3_code srv_s3_upload_parts_collect(struct gyre_store *store, const struct gyre_key *key,
                                             const struct gyre_upload_id *id, uint32_t after,
                                             size_t max, struct srv_s3_upload_parts *parts_out);
/* Allowed on a zeroed one. */
void srv_s3_upload_parts_fini(struct srv_s3_upload_parts *parts);

/* Keeps those that a <CompleteMultipartUpload> lists; of a number that is listed again and again
 * the last counts, as that is the one a client sent last. NONE; MALFORMED_XML: it lists none, or is
 * no such document; INVALID_PART_ORDER; INVALID_PART: one is not there, or another;
 * ENTITY_TOO_SMALL.
 */
enum srv_s3_code srv_s3_upload_parts_choose(struct srv_s3_upload_parts *parts,
                                            const struct srv_xml_node *root);

/* Bytes of all. */
uint64_t srv_s3_upload_parts_length(const struct srv_s3_upload_parts *parts);

enum { SRV_S3_PARTS_ETAG_MAX = 40 };

/* The ETag of the object: the MD5 of the parts' MD5s, a dash and their number. False without
 * memory.
 */
bool srv_s3_upload_parts_etag(const struct srv_s3_upload_parts *parts,
                              char etag_out[SRV_S3_PARTS_ETAG_MAX]);

/* The checksum of the object out of those of its parts, all of `algorithm`. False when one has
 * none, or without memory. */
bool srv_s3_upload_parts_checksum(const struct srv_s3_upload_parts *parts,
                                  enum srv_checksum algorithm, bool is_composite,
                                  struct srv_s3_checksum *checksum_out);
