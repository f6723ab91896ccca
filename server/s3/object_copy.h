/* CopyObject: an object is stored again under another name, or with other metadata, without its
 * bytes going through the client.
 *
 *   NEW -> OPENED [a worker finds the source] -> POURING [a worker, some MiB at a time] -> answered
 *
 * Threads: the exchange's loop.
 * Blocks:  never.
 */
#pragma once

#include "server/s3/call.h"

/* Answers a PUT with x-amz-copy-source. */
void srv_s3_object_copy(const struct srv_s3_call *call);
