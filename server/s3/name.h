/* Which bucket names and keys exist.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/exchange.h"
#include "server/s3/error.h"

enum {
    SRV_S3_BUCKET_MIN = 3, /* bytes */
    SRV_S3_BUCKET_MAX = 63,
    SRV_S3_KEY_MAX = 1024, /* bytes of UTF-8, decoded */
};

/* Whether `name` is 3 to 63 of [a-z0-9.-], begins and ends with a letter or digit, has no "..",
 * ".-" or "-.", and is no IPv4 address. */
bool srv_s3_bucket_valid(struct srv_str name);

/* NONE for a key: 1 to 1024 bytes of valid UTF-8, any characters. KEY_TOO_LONG, INVALID_URI (empty,
 * or not UTF-8). */
enum srv_s3_code srv_s3_key_check(struct srv_str key);
