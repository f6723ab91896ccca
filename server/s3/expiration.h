/* The field x-amz-expiration: when an object expires, and by which rule.
 *
 * Threads: the exchange's loop. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/s3/call.h"

enum { SRV_S3_EXPIRATION_MAX = 512 };

/* Adds the field if a rule of the call's bucket applies to the object; `text` is memory for it. */
void srv_s3_head_add_expiration(struct srv_s3_head *head, const struct srv_s3_call *call,
                                const struct srv_s3_meta *meta, uint64_t length,
                                char text[SRV_S3_EXPIRATION_MAX]);
