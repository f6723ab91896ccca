/* Response fields that a request's query puts in place of the stored ones: response-content-type
 * and so on.
 *
 * Lends:   values point into the memory given.
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/s3/error.h"
#include "server/s3/meta.h"

enum { SRV_S3_OVERRIDE_BYTES = 2048 };

/* Whether a query has any. */
bool srv_s3_has_override(struct srv_str query);

/* Puts them into `meta`, decoded in `bytes`. NONE; INVALID_ARGUMENT: one is no field value, or all
 * are too long. */
enum srv_s3_code srv_s3_override(struct srv_str query, struct srv_s3_meta *meta,
                                 char bytes[SRV_S3_OVERRIDE_BYTES]);
