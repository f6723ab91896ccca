/* Answers about what buckets do not have here: configurations of stub.def, the payer of requests
 * and the region.
 *
 * Threads: the exchange's loop. Blocks: never.
 */
#pragma once

#include "server/s3/call.h"

/* GET of a configuration: there is none, or an empty one. */
void srv_s3_stub_get(const struct srv_s3_call *call);
/* DELETE of one: there is none afterwards. */
void srv_s3_stub_delete(const struct srv_s3_call *call);

void srv_s3_request_payment_get(const struct srv_s3_call *call);
void srv_s3_bucket_location_get(const struct srv_s3_call *call);

/* OPTIONS, the question of browsers whether a page of another site may go ahead: no bucket has
 * rules that would allow it. */
void srv_s3_preflight(const struct srv_s3_call *call);
