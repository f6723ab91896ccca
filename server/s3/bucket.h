/* CreateBucket, HeadBucket, DeleteBucket and ListBuckets.
 *
 * Threads: the exchange's loop.
 * Blocks:  never.
 */
#pragma once

#include "server/s3/call.h"

/* Answer now. The call may be on the stack. */
void srv_s3_bucket_head(const struct srv_s3_call *call);
void srv_s3_bucket_list(const struct srv_s3_call *call);

/* Answer later. */
void srv_s3_bucket_create(const struct srv_s3_call *call);
void srv_s3_bucket_delete(const struct srv_s3_call *call);
