/* ListObjects, ListObjectsV2 and ListObjectVersions.
 *
 * Threads: the exchange's loop.
 * Blocks:  never.
 */
#pragma once

#include "server/s3/call.h"

/* Answer later. */
void srv_s3_object_list_v1(const struct srv_s3_call *call);
void srv_s3_object_list_v2(const struct srv_s3_call *call);
void srv_s3_object_list_versions(const struct srv_s3_call *call);
