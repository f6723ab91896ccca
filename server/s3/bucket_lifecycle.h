/* GetBucketLifecycleConfiguration, and the changes of it.
 *
 * Threads: the exchange's loop. Blocks: never.
 */
#pragma once

#include "server/s3/call.h"

void srv_s3_bucket_lifecycle_get(const struct srv_s3_call *call);
void srv_s3_bucket_lifecycle_put(const struct srv_s3_call *call);
void srv_s3_bucket_lifecycle_delete(const struct srv_s3_call *call);
