/* The body of a CreateBucket: a CreateBucketConfiguration, of which the location alone matters.
 *
 * Owns:    the caller owns struct srv_s3_location, zeroed before the first feed.
 * Threads: one at a time. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/s3/error.h"

enum { SRV_S3_LOCATION_BODY_MAX = 4096 };

struct srv_s3_location {
    size_t len;
    bool is_too_long;
    struct srv_str region; /* once it was checked: what is named, in `bytes`; base NULL: nothing */
    char bytes[SRV_S3_LOCATION_BODY_MAX];
};

void srv_s3_location_feed(struct srv_s3_location *location, const char *bytes, size_t len);

/* Whether the whole body is one that a bucket can be made for: nothing at all, or a configuration
 * whose location, if there is one, is shaped like the name of a region. Every such name is taken:
 * the data are where the gateway is, and clients name the region they are configured for. NONE,
 * MALFORMED_XML, INVALID_LOCATION. */
enum srv_s3_code srv_s3_location_check(struct srv_s3_location *location);
