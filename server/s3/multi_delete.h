/* DeleteObjects: up to a thousand deletions in one request.
 *
 * Threads: the exchange's loop.
 * Blocks:  never.
 */
#pragma once

#include "server/s3/call.h"

/* Answers later. */
void srv_s3_multi_delete(const struct srv_s3_call *call);
