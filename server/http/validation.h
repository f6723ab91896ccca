/* Asking the origin whether a stored response still holds, and what its answer means (RFC 9111, 4.3
 * and 3.2).
 *
 * Lends:   fields written point into those given.
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/http/reuse.h"

enum { SRV_HTTP_CONDITIONS_MAX = 2 };

/* The conditions that ask about `stored`: its validators byte for byte (RFC 9111, 4.3.1). Returns
 * how many. */
size_t srv_http_conditions(struct srv_http_fields stored,
                           struct srv_field out[SRV_HTTP_CONDITIONS_MAX]);

enum srv_http_validated {
    SRV_HTTP_FRESHEN,  /* 304: the stored response, with the new fields, answers (4.3.4) */
    SRV_HTTP_REPLACE,  /* a full answer: it is the client's, and takes the stored one's place */
    SRV_HTTP_STAND_IN, /* an error, and the stale response may be sent instead (4.2.4) */
    SRV_HTTP_AGAIN,    /* a 304 about another response: ask once more without conditions */
};

/* What to do with the origin's answer; `status` 0: there was none. A 304 that carries a validator
 * other than the stored one was not about it (4.3.4). */
enum srv_http_validated srv_http_validated(const struct srv_http_facts *stored,
                                           struct srv_http_fields stored_fields,
                                           const struct srv_http_directives *asked, int status,
                                           struct srv_http_fields answer, int64_t now_ms,
                                           const struct srv_http_policy *policy);

/* Merges the fields of a 304 into stored ones (RFC 9111, 3.2): a field that the answer carries
 * takes the place of all stored lines of that name, except those that belong to the stored bytes.
 * `out` has room for both; returns how many. */
size_t srv_http_update(struct srv_http_fields stored, struct srv_http_fields answer,
                       struct srv_field *out);

/* What a 200 to HEAD says about a stored GET (RFC 9111, 4.3.5): FRESHEN, or REPLACE when it differs
 * in ETag, Last-Modified or Content-Length, and the stored one is of no use any more. */
enum srv_http_validated srv_http_head_says(struct srv_http_fields stored, uint64_t stored_length,
                                           struct srv_http_fields answer);
