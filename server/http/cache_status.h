/* The Cache-Status field (RFC 9211): how a cache has handled a request, in one member.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/http/reuse.h"

enum { SRV_HTTP_CACHE_STATUS_MAX = 160 }; /* longest value with its terminator */

struct srv_http_handled {
    enum srv_http_forward forward; /* NONE: answered from the cache */
    int forward_status;            /* of the origin; 0: it did not answer, or was not asked */
    int64_t ttl_s;                 /* for hits: what is left of the lifetime, negative when stale */
    bool is_stored;
    bool is_collapsed;
    const char *detail; /* a token; NULL: none */
};

/* Writes the value, with terminator; returns its length. */
size_t srv_http_cache_status(const struct srv_http_handled *handled,
                             char text_out[SRV_HTTP_CACHE_STATUS_MAX]);
