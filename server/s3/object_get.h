/* GetObject and HeadObject.
 *
 *   HIT      metadata and bytes are in memory: answered at once, on the loop, without allocating
 *   COLD     a worker finds the object first
 *   UNREAD   the object is found, but the first bytes wanted are not in memory: a worker reads them
 *
 * Threads: the exchange's loop.
 * Blocks:  never.
 */
#pragma once

#include "server/s3/call.h"

/* Bodies, or ranges of them, up to this are copied into the response and the object let go of at
 * once; longer ones are lent from the mapping while they are sent. */
enum { SRV_S3_COPY_MAX = 64 << 10 };

/* Answers the call, now or later. It may be on the stack. */
void srv_s3_object_get(const struct srv_s3_call *call);
