/* Preconditions of a request against what is stored, in the order of RFC 9110, 13.2.2.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 *
 * A list may be spread over several fields. A date that cannot be read, or is given twice, is as if
 * absent. ETags without quotes are understood (server/etag_list.h).
 */
#pragma once

#include "server/exchange.h"

/* What identifies the stored state. */
struct srv_validators {
    struct srv_str etag; /* without quotes; strong */
    int64_t modified_s;  /* Unix seconds, as sent in Last-Modified */
};

enum srv_verdict {
    SRV_VERDICT_PROCEED,
    SRV_VERDICT_NOT_MODIFIED, /* 304; for GET and HEAD only */
    SRV_VERDICT_FAILED,       /* 412 */
    SRV_VERDICT_MISSING,      /* If-Match, but nothing is stored: 412 by the RFC, 404 with S3 */
};

/* Decides whether `req` may go ahead; `stored` is NULL when nothing is. On failure *field_out (may
 * be NULL) names the field that decided, as it is usually written ("If-Match"), static. */
enum srv_verdict srv_conditional_decide(const struct srv_request *req,
                                        const struct srv_validators *stored, int64_t now_s,
                                        const char **field_out);

/* The value of the Range field if it is to be heeded: NULL when there is none, more than one, or
 * If-Range asks for another state than the stored one. A date in If-Range matches when it is the
 * stored one; it is the client that must not use a date of the very second in which it received it
 * (RFC 9110, 8.8.2.2), for only the client knows when that was. */
const struct srv_str *srv_conditional_range(const struct srv_request *req,
                                            const struct srv_validators *stored, int64_t now_s);
