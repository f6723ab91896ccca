/* PutObject and UploadPart: receives a body and has workers store it, one buffer being worked on
 * while the next comes in.
 *
 * Threads: the exchange's loop.
 * Blocks:  never.
 */
#pragma once

#include "server/s3/call.h"

/* Answers the call later. */
void srv_s3_object_put(const struct srv_s3_call *call);
void srv_s3_part_put(const struct srv_s3_call *call);
