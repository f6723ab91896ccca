/* The uploads of a bucket that is gone: nobody can complete them any more.
 *
 * Threads: any. Blocks: reads the meta pool.
 */
#pragma once

#include "server/exchange.h"

#include "api/gyre.h"

/* Aborts all uploads of the bucket; what stays, for whatever reason, is freed when its time is over
 * (abandon_at). */
void srv_s3_bucket_uploads_abort(struct gyre_store *store, struct srv_str bucket);
