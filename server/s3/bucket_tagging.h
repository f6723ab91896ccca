/* GetBucketTagging, PutBucketTagging and DeleteBucketTagging.
 *
 * Threads: the exchange's loop. Blocks: never.
 */
#pragma once

#include "server/s3/call.h"

void srv_s3_bucket_tagging_get(const struct srv_s3_call *call);
void srv_s3_bucket_tagging_put(const struct srv_s3_call *call);
void srv_s3_bucket_tagging_delete(const struct srv_s3_call *call);
