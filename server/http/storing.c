#include "server/http/storing.h"

#include "server/http/vary.h"

/* Statuses whose caching rules are implemented here (RFC 9111, 5.2.2.3): all that RFC 9110 defines
 * and that ask for nothing special. */
static bool is_understood(int status)
{
    return srv_http_is_heuristic(status) || status == 302 || status == 303 || status == 307 ||
           status == 400 || status == 401 || status == 403 || status == 451 || status == 500 ||
           (status >= 502 && status <= 504);
}

static bool is_final(int status)
{
    return status >= 200 && status <= 999 && status != 304;
}

/* RFC 9111, 3.5. */
static bool is_shareable(const struct srv_http_question *question)
{
    return !srv_http_has(question->request, SRV_STR("authorization")) ||
           (question->told->present & (SRV_CC_PUBLIC | SRV_CC_S_MAXAGE | SRV_CC_MUST_REVALIDATE)) !=
               0;
}

/* RFC 9111, 3, the last condition, and a validator where the lifetime is over at once. What cannot
 * be shown again without asking for all of it is not worth its room. */
static bool is_useful(const struct srv_http_question *question)
{
    const struct srv_http_facts *facts = question->facts;
    bool is_cacheable = (facts->flags & SRV_HTTP_EXPLICIT) != 0 ||
                        (question->told->present & SRV_CC_PUBLIC) != 0 ||
                        srv_http_is_heuristic(facts->status);
    bool is_reusable = facts->lifetime_s > 0 && (facts->flags & SRV_HTTP_NO_CACHE) == 0;
    bool can_validate = (facts->flags & (SRV_HTTP_HAS_ETAG | SRV_HTTP_HAS_MODIFIED)) != 0;
    return is_cacheable && (is_reusable || can_validate);
}

static bool is_forbidden(const struct srv_http_question *question,
                         const struct srv_http_policy *policy)
{
    unsigned told = question->told->present;
    bool understood = (told & SRV_CC_MUST_UNDERSTAND) != 0;
    if ((question->asked->present & SRV_CC_NO_STORE) != 0 || (told & SRV_CC_PRIVATE) != 0)
        return true;
    /* RFC 9111, 5.2.2.3: must-understand takes no-store's place. */
    if ((told & SRV_CC_NO_STORE) != 0 && !understood)
        return true;
    return !policy->stores_set_cookie && srv_http_has(question->response, SRV_STR("set-cookie"));
}

enum srv_http_storing srv_http_may_store(const struct srv_http_question *question,
                                         const struct srv_http_policy *policy)
{
    int status = question->facts->status;
    bool is_post = question->method == SRV_POST && question->is_own_location && status == 200 &&
                   (question->facts->flags & SRV_HTTP_EXPLICIT) != 0;
    if (question->method != SRV_GET && !is_post)
        return SRV_HTTP_STORE_NOT_METHOD;
    if (!is_final(status) ||
        ((question->told->present & SRV_CC_MUST_UNDERSTAND) != 0 && !is_understood(status)))
        return SRV_HTTP_STORE_NOT_STATUS;
    if (is_forbidden(question, policy))
        return SRV_HTTP_STORE_NOT_ALLOWED;
    if (srv_http_vary_is_any(question->response))
        return SRV_HTTP_STORE_NOT_VARY;
    if (!is_shareable(question))
        return SRV_HTTP_STORE_NOT_AUTHORIZED;
    return is_useful(question) ? SRV_HTTP_STORE : SRV_HTTP_STORE_NOT_USEFUL;
}

const char *srv_http_storing_text(enum srv_http_storing storing)
{
    switch (storing) {
    case SRV_HTTP_STORE: return "stored";
    case SRV_HTTP_STORE_NOT_METHOD: return "method";
    case SRV_HTTP_STORE_NOT_STATUS: return "status";
    case SRV_HTTP_STORE_NOT_ALLOWED: return "forbidden";
    case SRV_HTTP_STORE_NOT_VARY: return "vary";
    case SRV_HTTP_STORE_NOT_AUTHORIZED: return "authorization";
    case SRV_HTTP_STORE_NOT_USEFUL: return "no-freshness";
    }
    return "";
}
