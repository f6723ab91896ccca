/* DeleteObject.
 *
 * Threads: the exchange's loop.
 * Blocks:  never.
 */
#pragma once

#include "server/s3/call.h"

/* Answers the call later. */
void srv_s3_object_delete(const struct srv_s3_call *call);
