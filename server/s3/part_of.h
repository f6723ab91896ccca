/* The part of an object that a request asks for by partNumber.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/s3/checksum.h"
#include "server/s3/error.h"
#include "server/s3/meta.h"

#include "api/gyre.h"

struct srv_s3_part {
    bool is_asked;
    uint32_t n_parts; /* of an object that came by an upload; 0 for one that was put */
    uint64_t offset;  /* bytes into the object */
    uint64_t length;
    struct srv_s3_checksum checksum; /* of the part; NONE if it is not known */
};

/* Looks for partNumber in the query. Part 1 of an object that was put is all of it. NONE;
 * INVALID_ARGUMENT: it is no number from 1 to 10000; INVALID_PART: the object has no such part. */
enum srv_s3_code srv_s3_part_of(const struct srv_request *req, const struct gyre_handle *handle,
                                const struct srv_s3_meta *meta, struct srv_s3_part *part_out);

/* How many parts of an upload an object consists of. */
uint32_t srv_s3_count_parts(const struct srv_s3_meta *meta);

/* The checksum of the part that is the `index`-th; NONE if it is not known. */
void srv_s3_part_checksum(const struct srv_s3_meta *meta, uint32_t index,
                          struct srv_s3_checksum *checksum_out);
