/* GetObjectAttributes: what is known of an object, as a document.
 *
 * Threads: the exchange's loop. Blocks: never.
 */
#pragma once

#include "server/s3/call.h"

void srv_s3_attributes_get(const struct srv_s3_call *call);
