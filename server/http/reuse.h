/* What to do with a request: answer it from the cache, ask the origin whether the stored response
 * still holds, or fetch (RFC 9111, 4 and 5.2.1; RFC 5861).
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/http/facts.h"

enum srv_http_action {
    SRV_HTTP_FETCH,       /* nothing stored is of use */
    SRV_HTTP_SERVE,       /* fresh */
    SRV_HTTP_SERVE_STALE, /* stale, and the client has said that it takes it (max-stale) */
    SRV_HTTP_REFRESH,     /* stale: answer at once and validate behind (RFC 5861, 3) */
    SRV_HTTP_VALIDATE,    /* ask the origin with the stored validators */
    SRV_HTTP_REFUSE,      /* only-if-cached and nothing of use: 504 (RFC 9111, 5.2.1.7) */
};

/* Why the origin is asked, as Cache-Status says it (RFC 9211, 2.2). */
enum srv_http_forward {
    SRV_HTTP_FORWARD_NONE,
    SRV_HTTP_FORWARD_MISS,      /* uri-miss */
    SRV_HTTP_FORWARD_VARY_MISS, /* vary-miss */
    SRV_HTTP_FORWARD_STALE,     /* stale */
    SRV_HTTP_FORWARD_REQUEST,   /* request: its directives or conditions */
    SRV_HTTP_FORWARD_METHOD,    /* method */
    SRV_HTTP_FORWARD_PARTIAL,   /* partial */
    SRV_HTTP_FORWARD_BYPASS,    /* bypass: configured so */
};

struct srv_http_decision {
    enum srv_http_action action;
    enum srv_http_forward forward;
};

/* `stored` is NULL when nothing matches; `asked` are the request's directives. */
struct srv_http_decision srv_http_decide(const struct srv_http_facts *stored,
                                         const struct srv_http_directives *asked, int64_t now_ms);

/* Whether a stale response may stand in for an origin that could not be reached (`status` 0) or
 * answered `status` (RFC 9111, 4.2.4; RFC 5861, 4). */
bool srv_http_may_stand_in(const struct srv_http_facts *stored,
                           const struct srv_http_directives *asked, int status, int64_t now_ms,
                           const struct srv_http_policy *policy);

/* Whether a request may wait for another's answer, and others for its own (RFC 9111, 4): one that
 * asks for the whole, unconditionally, and says nothing that could make its answer its own. */
bool srv_http_may_collapse(enum srv_method method, struct srv_http_fields request,
                           const struct srv_http_directives *asked);
/* Whether a response that may be stored answers all requests that had come by `begun_ms` and waited
 * for it, stale or not: it is as new as one of their own would be. Not one that says that it must
 * be validated (RFC 9111, 5.2.2.2 and 5.2.2.4). */
bool srv_http_is_shared(const struct srv_http_facts *facts, int64_t begun_ms);

/* Whether a request's answer can come from the cache at all: GET and HEAD without conditions that
 * only the origin can judge (RFC 9110, 13.1.1 and 13.1.4). */
bool srv_http_is_lookup(enum srv_method method, struct srv_http_fields request);
