/* What a successful unsafe request makes invalid (RFC 9111, 4.4).
 *
 * Lends:   targets point into the fields given.
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/http/fields.h"

enum { SRV_HTTP_INVALID_MAX = 3 };

/* Whether a method is known to be safe (RFC 9110, 9.2.1); compared with case. */
bool srv_http_is_safe(struct srv_str method);

/* Targets (path and query) on the request's own host that are to be forgotten after an answer of
 * `status` to an unsafe method: its own, and those of Location and Content-Location where they name
 * the same origin. Returns how many; 0 after an error. Relative references are taken if they begin
 * with a slash; others are resolved against nothing and passed over. */
size_t srv_http_invalidates(struct srv_str method, struct srv_str scheme, struct srv_str authority,
                            struct srv_str target, int status, struct srv_http_fields answer,
                            struct srv_str out[SRV_HTTP_INVALID_MAX]);

/* The target that a URI reference names on this origin: false if on another, or not to be told. */
bool srv_http_own_target(struct srv_str reference, struct srv_str scheme, struct srv_str authority,
                         struct srv_str *target_out);
