/* Whether a response may be kept (RFC 9111, 3).
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/http/facts.h"

enum srv_http_storing {
    SRV_HTTP_STORE,
    SRV_HTTP_STORE_NOT_METHOD,  /* neither GET nor a POST that answers as one (RFC 9110, 9.3.3) */
    SRV_HTTP_STORE_NOT_STATUS,  /* interim, not understood, or 304 */
    SRV_HTTP_STORE_NOT_ALLOWED, /* no-store or private, of the response or the request */
    SRV_HTTP_STORE_NOT_VARY,    /* Vary: * */
    SRV_HTTP_STORE_NOT_AUTHORIZED, /* answers Authorization and does not say it may be shared */
    SRV_HTTP_STORE_NOT_USEFUL,     /* it could neither be reused nor validated */
};

struct srv_http_question {
    enum srv_method method;
    struct srv_http_fields request;
    const struct srv_http_directives *asked;
    struct srv_http_fields response;
    const struct srv_http_directives *told;
    const struct srv_http_facts *facts;
    bool is_own_location; /* Content-Location is the request's own URI */
};

enum srv_http_storing srv_http_may_store(const struct srv_http_question *question,
                                         const struct srv_http_policy *policy);

/* Static text for logs and Cache-Status. */
const char *srv_http_storing_text(enum srv_http_storing storing);
