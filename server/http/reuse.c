#include "server/http/reuse.h"

enum { MS = 1000 };

static bool has(const struct srv_http_directives *directives, unsigned bit)
{
    return (directives->present & bit) != 0;
}

/* What the request asks beyond freshness: not too old (RFC 9111, 5.2.1.1), and fresh for a while
 * longer (5.2.1.3). */
static bool suits(const struct srv_http_facts *stored, const struct srv_http_directives *asked,
                  int64_t now_ms)
{
    if (has(asked, SRV_CC_MAX_AGE) &&
        srv_http_age_ms(stored, now_ms) >= asked->seconds[SRV_CC_N_MAX_AGE] * MS)
        return false;
    return !has(asked, SRV_CC_MIN_FRESH) ||
           srv_http_fresh_ms(stored, now_ms) >= asked->seconds[SRV_CC_N_MIN_FRESH] * MS;
}

/* RFC 9111, 5.2.1.2 and 4.2.4. */
static bool takes_stale(const struct srv_http_facts *stored,
                        const struct srv_http_directives *asked, int64_t stale_ms)
{
    return has(asked, SRV_CC_MAX_STALE) && (stored->flags & SRV_HTTP_NEVER_STALE) == 0 &&
           stale_ms <= asked->seconds[SRV_CC_N_MAX_STALE] * MS;
}

/* RFC 5861, 3; not for a client that has asked for more than freshness. */
static bool may_refresh(const struct srv_http_facts *stored,
                        const struct srv_http_directives *asked, int64_t stale_ms)
{
    return (stored->flags & SRV_HTTP_NEVER_STALE) == 0 &&
           !has(asked, SRV_CC_MAX_AGE | SRV_CC_MIN_FRESH) &&
           stale_ms < stored->while_revalidate_s * MS;
}

static struct srv_http_decision ask(const struct srv_http_facts *stored,
                                    const struct srv_http_directives *asked,
                                    enum srv_http_forward why)
{
    if (has(asked, SRV_CC_ONLY_IF_CACHED))
        return (struct srv_http_decision){SRV_HTTP_REFUSE, SRV_HTTP_FORWARD_NONE};
    bool can_validate = stored != NULL && !has(asked, SRV_CC_NO_STORE) &&
                        (stored->flags & (SRV_HTTP_HAS_ETAG | SRV_HTTP_HAS_MODIFIED)) != 0;
    return (struct srv_http_decision){can_validate ? SRV_HTTP_VALIDATE : SRV_HTTP_FETCH, why};
}

struct srv_http_decision srv_http_decide(const struct srv_http_facts *stored,
                                         const struct srv_http_directives *asked, int64_t now_ms)
{
    if (stored == NULL)
        return ask(NULL, asked, SRV_HTTP_FORWARD_MISS);
    /* RFC 9111, 5.2.1.4 and 5.2.1.5: neither is answered without the origin. */
    if (has(asked, SRV_CC_NO_CACHE | SRV_CC_NO_STORE))
        return ask(stored, asked, SRV_HTTP_FORWARD_REQUEST);
    if ((stored->flags & SRV_HTTP_NO_CACHE) != 0)
        return ask(stored, asked, SRV_HTTP_FORWARD_STALE);
    int64_t fresh_ms = srv_http_fresh_ms(stored, now_ms);
    if (fresh_ms > 0)
        return suits(stored, asked, now_ms)
                   ? (struct srv_http_decision){SRV_HTTP_SERVE, SRV_HTTP_FORWARD_NONE}
                   : ask(stored, asked, SRV_HTTP_FORWARD_REQUEST);
    if (takes_stale(stored, asked, -fresh_ms) && !has(asked, SRV_CC_MIN_FRESH) &&
        suits(stored, asked, now_ms))
        return (struct srv_http_decision){SRV_HTTP_SERVE_STALE, SRV_HTTP_FORWARD_NONE};
    if (may_refresh(stored, asked, -fresh_ms))
        return (struct srv_http_decision){SRV_HTTP_REFRESH, SRV_HTTP_FORWARD_STALE};
    return ask(stored, asked, SRV_HTTP_FORWARD_STALE);
}

bool srv_http_may_stand_in(const struct srv_http_facts *stored,
                           const struct srv_http_directives *asked, int status, int64_t now_ms,
                           const struct srv_http_policy *policy)
{
    if ((stored->flags & SRV_HTTP_NEVER_STALE) != 0 || has(asked, SRV_CC_NO_CACHE))
        return false;
    int64_t stale_ms = -srv_http_fresh_ms(stored, now_ms);
    int64_t allowed_s = stored->if_error_s;
    if (has(asked, SRV_CC_IF_ERROR) && asked->seconds[SRV_CC_N_IF_ERROR] > allowed_s)
        allowed_s = asked->seconds[SRV_CC_N_IF_ERROR];
    bool is_error = status == 500 || (status >= 502 && status <= 504);
    if (status == 0 && allowed_s < policy->stale_max_s)
        allowed_s = policy->stale_max_s;
    return (status == 0 || is_error) && stale_ms < allowed_s * MS;
}

bool srv_http_is_lookup(enum srv_method method, struct srv_http_fields request)
{
    return (method == SRV_GET || method == SRV_HEAD) &&
           !srv_http_has(request, SRV_STR("if-match")) &&
           !srv_http_has(request, SRV_STR("if-unmodified-since"));
}

bool srv_http_may_collapse(enum srv_method method, struct srv_http_fields request,
                           const struct srv_http_directives *asked)
{
    static const struct srv_str own[] = {
        {"authorization", 13}, {"range", 5}, {"if-none-match", 13}, {"if-modified-since", 17}};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (srv_http_has(request, own[i]))
            return false;
    return method == SRV_GET && !has(asked, SRV_CC_NO_STORE | SRV_CC_NO_CACHE);
}

bool srv_http_is_shared(const struct srv_http_facts *facts, int64_t begun_ms)
{
    if ((facts->flags & SRV_HTTP_NO_CACHE) != 0 || facts->received_ms < begun_ms)
        return false;
    return srv_http_fresh_ms(facts, facts->received_ms) > 0 ||
           (facts->flags & SRV_HTTP_NEVER_STALE) == 0;
}
