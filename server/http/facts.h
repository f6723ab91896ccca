/* What a cache has to know of a response to reuse it: computed once, when it is received or
 * freshened, and kept beside it.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/http/directives.h"

/* How a site treats what the RFCs leave open. */
struct srv_http_policy {
    struct srv_str targets;     /* targeted fields that count, preferred first, lower case */
    unsigned heuristic_percent; /* of the time since Last-Modified; 0: no heuristic freshness */
    int64_t heuristic_max_s;    /* ... but not longer */
    int64_t stale_max_s;        /* how long past freshness an origin that cannot be reached is
                                   stood in for */
    bool sorts_languages;       /* Accept-Language: members of equal weight have no order */
    bool stores_set_cookie;     /* if everything else allows it */
};

extern const struct srv_http_policy srv_http_policy_default;

enum {
    SRV_HTTP_NO_CACHE = 1 << 0,     /* never without validation (RFC 9111, 5.2.2.4) */
    SRV_HTTP_NEVER_STALE = 1 << 1,  /* must-revalidate and its kin (RFC 9111, 4.2.4) */
    SRV_HTTP_HAS_ETAG = 1 << 2,     /* can be validated with If-None-Match */
    SRV_HTTP_HAS_MODIFIED = 1 << 3, /* ... with If-Modified-Since */
    SRV_HTTP_EXPLICIT = 1 << 4,     /* its lifetime is given, not guessed */
};

struct srv_http_facts {
    int status;
    unsigned flags;                         /* SRV_HTTP_* */
    int64_t received_ms;                    /* Unix time */
    int64_t initial_age_ms;                 /* RFC 9111, 4.2.3: corrected_initial_age */
    int64_t lifetime_s;                     /* freshness lifetime; 0: stale from the start */
    int64_t while_revalidate_s, if_error_s; /* RFC 5861, past the lifetime */
    int64_t date_s;                         /* of Date, or of receipt */
};

/* When the request went out and when its response's head came in, Unix time. */
struct srv_http_times {
    int64_t requested_ms;
    int64_t received_ms;
};

/* Statuses that may be stored without being told (RFC 9110, 15.1). */
bool srv_http_is_heuristic(int status);

/* The facts of a response with this status and these fields. */
void srv_http_facts_of(int status, struct srv_http_fields fields,
                       const struct srv_http_directives *directives,
                       const struct srv_http_times *times, const struct srv_http_policy *policy,
                       struct srv_http_facts *facts_out);

/* Current age (RFC 9111, 4.2.3); never negative. */
int64_t srv_http_age_ms(const struct srv_http_facts *facts, int64_t now_ms);

/* Milliseconds for which it stays fresh; negative or 0: stale for so long. */
int64_t srv_http_fresh_ms(const struct srv_http_facts *facts, int64_t now_ms);
