/* Signing keys, kept for the day and region that they are good for: deriving one costs as much as
 * verifying five requests.
 *
 * Owns:    each thread keeps a few, until it ends.
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/s3/access.h"
#include "server/s3/sigv4.h"

/* The key of a user's secret for the scope of `sig`; lent until the thread's next call. */
const struct srv_hmac_key *srv_s3_signing_key(const struct srv_s3_key_pair *pair,
                                              const struct srv_sigv4 *sig);
