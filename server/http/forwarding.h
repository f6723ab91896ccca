/* Which fields pass through an intermediary, and what it adds (RFC 9110, 7.6).
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/http/fields.h"

/* Whether a field named `name` (lower case) concerns one connection only: named by Connection, or
 * known to be so (RFC 9110, 7.6.1). */
bool srv_http_is_hop(struct srv_http_fields fields, struct srv_str name);

/* Copies the fields that pass; returns how many. `out` has room for fields.n. */
size_t srv_http_pass(struct srv_http_fields fields, struct srv_field *out);

/* As srv_http_pass for a request that goes to the origin, also without what the fetch writes itself
 * (Content-Length, Expect, Host) and, with `is_conditional`, without the client's own conditions
 * and ranges, whose places are taken. */
size_t srv_http_pass_request(struct srv_http_fields fields, bool is_conditional,
                             struct srv_field *out);

/* As srv_http_pass for a response that is kept, also without the fields that no-cache="..." and
 * private="..." name (RFC 9111, 5.2.2.4 and 5.2.2.7). */
size_t srv_http_pass_stored(struct srv_http_fields fields, struct srv_str no_cache_names,
                            struct srv_str private_names, struct srv_field *out);
