/* Changes to what is kept beside an object, its bytes staying as they are: tags and access control
 * lists. The store keeps both in one, so the object is stored again with the same ETag and time.
 *
 * Threads: the exchange's loop.
 * Blocks:  never.
 */
#pragma once

#include "server/s3/call.h"

void srv_s3_object_tagging_put(const struct srv_s3_call *call);
void srv_s3_object_tagging_delete(const struct srv_s3_call *call);
void srv_s3_object_acl_put(const struct srv_s3_call *call);
