#include "server/http/facts.h"

#include "server/http/date.h"

enum { MS = 1000, WEEK_S = 7 * 86400, DAY_S = 86400 };

const struct srv_http_policy srv_http_policy_default = {
    .targets = {"cdn-cache-control", 17},
    .heuristic_percent = 10,
    .heuristic_max_s = WEEK_S,
    .stale_max_s = DAY_S,
    .sorts_languages = true,
    .stores_set_cookie = true,
};

bool srv_http_is_heuristic(int status)
{
    switch (status) {
    case 200:
    case 203:
    case 204:
    case 206:
    case 300:
    case 301:
    case 308:
    case 404:
    case 405:
    case 410:
    case 414:
    case 501: return true;
    default: return false;
    }
}

/* RFC 9111, 4.2.1: the directives in order; then Expires, unless a targeted field has taken
 * Cache-Control's place (RFC 9213, 2.2). False: nothing is said. */
static bool explicit_lifetime(struct srv_http_fields fields,
                              const struct srv_http_directives *directives, int64_t date_s,
                              int64_t received_s, int64_t *lifetime_s_out)
{
    int64_t expires_s;
    *lifetime_s_out = 0;
    if ((directives->present & SRV_CC_S_MAXAGE) != 0)
        *lifetime_s_out = directives->seconds[SRV_CC_N_S_MAXAGE];
    else if ((directives->present & SRV_CC_MAX_AGE) != 0)
        *lifetime_s_out = directives->seconds[SRV_CC_N_MAX_AGE];
    else if (!directives->is_targeted && srv_http_has(fields, SRV_STR("expires"))) {
        /* RFC 9111, 5.3: what is no date lies in the past. */
        if (srv_http_date_field(fields, SRV_STR("expires"), received_s, &expires_s) &&
            expires_s > date_s)
            *lifetime_s_out = expires_s - date_s;
    } else
        return false;
    return true;
}

/* RFC 9111, 4.2.2. */
static int64_t guessed_lifetime(int status, struct srv_http_fields fields,
                                const struct srv_http_directives *directives, int64_t date_s,
                                const struct srv_http_policy *policy)
{
    int64_t modified_s;
    bool may = srv_http_is_heuristic(status) || (directives->present & SRV_CC_PUBLIC) != 0;
    if (!may || !srv_http_date_field(fields, SRV_STR("last-modified"), date_s, &modified_s) ||
        modified_s >= date_s)
        return 0;
    int64_t lifetime_s = (date_s - modified_s) * policy->heuristic_percent / 100;
    return lifetime_s < policy->heuristic_max_s ? lifetime_s : policy->heuristic_max_s;
}

/* RFC 9111, 4.2.3. Date has whole seconds only, so that it is compared with whole seconds. */
static int64_t initial_age_ms(struct srv_http_fields fields, int64_t date_s,
                              const struct srv_http_times *times)
{
    int64_t apparent_ms = (times->received_ms / MS - date_s) * MS;
    int64_t delay_ms = times->received_ms - times->requested_ms;
    int64_t corrected_ms = srv_http_age_field(fields) * MS + (delay_ms > 0 ? delay_ms : 0);
    return apparent_ms > corrected_ms ? apparent_ms : corrected_ms;
}

static unsigned flags_of(struct srv_http_fields fields,
                         const struct srv_http_directives *directives)
{
    struct srv_str value;
    int64_t date_s;
    unsigned present = directives->present, flags = 0;
    if ((present & SRV_CC_NO_CACHE) != 0)
        flags |= SRV_HTTP_NO_CACHE | SRV_HTTP_NEVER_STALE;
    /* s-maxage means proxy-revalidate (RFC 9111, 5.2.2.10). */
    if ((present & (SRV_CC_MUST_REVALIDATE | SRV_CC_PROXY_REVALIDATE | SRV_CC_S_MAXAGE)) != 0)
        flags |= SRV_HTTP_NEVER_STALE;
    if (srv_http_first(fields, SRV_STR("etag"), &value) && value.len > 0)
        flags |= SRV_HTTP_HAS_ETAG;
    if (srv_http_date_field(fields, SRV_STR("last-modified"), 0, &date_s))
        flags |= SRV_HTTP_HAS_MODIFIED;
    return flags;
}

void srv_http_facts_of(int status, struct srv_http_fields fields,
                       const struct srv_http_directives *directives,
                       const struct srv_http_times *times, const struct srv_http_policy *policy,
                       struct srv_http_facts *facts_out)
{
    int64_t received_s = times->received_ms / MS;
    struct srv_http_facts facts = {.status = status, .received_ms = times->received_ms};
    if (!srv_http_date_field(fields, SRV_STR("date"), received_s, &facts.date_s))
        facts.date_s = received_s; /* RFC 9110, 6.6.1 */
    facts.flags = flags_of(fields, directives);
    if (explicit_lifetime(fields, directives, facts.date_s, received_s, &facts.lifetime_s))
        facts.flags |= SRV_HTTP_EXPLICIT;
    else
        facts.lifetime_s = guessed_lifetime(status, fields, directives, facts.date_s, policy);
    facts.initial_age_ms = initial_age_ms(fields, facts.date_s, times);
    if ((directives->present & SRV_CC_WHILE_REVALIDATE) != 0)
        facts.while_revalidate_s = directives->seconds[SRV_CC_N_WHILE_REVALIDATE];
    if ((directives->present & SRV_CC_IF_ERROR) != 0)
        facts.if_error_s = directives->seconds[SRV_CC_N_IF_ERROR];
    *facts_out = facts;
}

int64_t srv_http_age_ms(const struct srv_http_facts *facts, int64_t now_ms)
{
    int64_t resident_ms = now_ms - facts->received_ms;
    return facts->initial_age_ms + (resident_ms > 0 ? resident_ms : 0);
}

int64_t srv_http_fresh_ms(const struct srv_http_facts *facts, int64_t now_ms)
{
    return facts->lifetime_s * MS - srv_http_age_ms(facts, now_ms);
}
