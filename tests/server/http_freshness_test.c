/* Lifetimes, ages, what may be stored and what is done with it, as tables with a time. */
#include "server/http/facts.h"

#include "server/http/date.h"
#include "server/http/reuse.h"
#include "server/http/storing.h"
#include "server/http_date.h"
#include "tests/server/http_fixture.h"

#define NOW_S INT64_C(1700000000) /* Tue, 14 Nov 2023 22:13:20 GMT */
#define NOW_MS (NOW_S * 1000)

struct stored {
    struct text_fields text;
    struct srv_http_fields fields;
    struct srv_http_directives told;
    struct srv_http_facts facts;
};

/* A response that was asked for `delay_ms` before it came, at NOW. */
static struct stored *receive(int status, const char *text, int64_t delay_ms)
{
    static struct stored stored;
    const struct srv_http_times times = {NOW_MS - delay_ms, NOW_MS};
    stored.fields = read_fields(&stored.text, text);
    srv_http_response_directives(stored.fields, srv_http_policy_default.targets, &stored.told);
    srv_http_facts_of(status, stored.fields, &stored.told, &times, &srv_http_policy_default,
                      &stored.facts);
    return &stored;
}

#define DATE "date: Tue, 14 Nov 2023 22:13:20 GMT\n"

/* RFC 9111, 4.2.1 and 4.2.2. */
TEST(lifetimes)
{
    static const struct {
        int status;
        const char *text;
        int64_t lifetime_s;
        bool is_explicit;
    } rows[] = {
        {200, "", 0, false},
        {200, "cache-control: max-age=9", 9, true},
        {200, "cache-control: max-age=9, s-maxage=5", 5, true},
        {200, "cache-control: max-age=0, s-maxage=5", 5, true},
        {200, "cache-control: max-age=9, s-maxage=0", 0, true},
        {200, "cache-control: max-age=x\nexpires: Tue, 14 Nov 2023 23:13:20 GMT", 0, true},
        {200, DATE "expires: Tue, 14 Nov 2023 23:13:20 GMT", 3600, true},
        {200, DATE "expires: tue, 14 nov 2023 23:13:20 gmt", 3600, true},
        {200, DATE "expires: Tuesday, 14-Nov-23 23:13:20 GMT", 3600, true},
        {200, DATE "expires: Tue Nov 14 23:13:20 2023", 3600, true},
        {200, "expires: Tue, 14 Nov 2023 23:13:20 GMT", 3600, true},
        {200, "date: nonsense\nexpires: Tue, 14 Nov 2023 23:13:20 GMT", 3600, true},
        {200, DATE "expires: Tue, 14 Nov 2023 22:13:20 GMT", 0, true},
        {200, "date: Tue, 14 Nov 2040 00:00:00 GMT\nexpires: Tue, 14 Nov 2039 00:00:00 GMT", 0,
         true},
        {200, DATE "expires: 0", 0, true},
        {200, DATE "expires: Tue, 14 Nov 2023 23:13:20 UTC", 0, true},
        {200, DATE "expires: Tue, 14 Nov 23 23:13:20 GMT", 0, true},
        {200, DATE "expires: Tue 14 Nov 2023 23:13:20 GMT", 0, true},
        {200, DATE "expires: Tue, 14  Nov 2023 23:13:20 GMT", 0, true},
        {200, DATE "expires: Tue, 14-Nov-2023 23:13:20 GMT", 0, true},
        {200, DATE "expires: Tue, 14 Nov 2023 23.13.20 GMT", 0, true},
        {200, DATE "expires: Tue, 14 Nov 2023 3:13:20 GMT", 0, true},
        {200, DATE "expires: x\nexpires: Tue, 14 Nov 2023 23:13:20 GMT", 0, true},
        {200, DATE "cache-control: max-age=7\nexpires: 0", 7, true},
        {200, DATE "cdn-cache-control: no-cache\nexpires: Tue, 14 Nov 2023 23:13:20 GMT", 0, false},
        {200, DATE "last-modified: Tue, 14 Nov 2023 21:13:20 GMT", 360, false},
        {404, DATE "last-modified: Tue, 14 Nov 2023 21:13:20 GMT", 360, false},
        {201, DATE "last-modified: Tue, 14 Nov 2023 21:13:20 GMT", 0, false},
        {201, DATE "cache-control: public\nlast-modified: Tue, 14 Nov 2023 21:13:20 GMT", 360,
         false},
        {200, DATE "last-modified: Tue, 14 Nov 2023 22:13:20 GMT", 0, false},
        {200, DATE "last-modified: Tue, 14 Nov 2000 21:13:20 GMT", 7 * 86400, false},
        {599, "cache-control: max-age=3", 3, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct stored *got = receive(rows[i].status, rows[i].text, 0);
        CHECK_MSG(got->facts.lifetime_s == rows[i].lifetime_s, "%zu %s: %jd", i, rows[i].text,
                  (intmax_t)got->facts.lifetime_s);
        CHECK_MSG(((got->facts.flags & SRV_HTTP_EXPLICIT) != 0) == rows[i].is_explicit, "%zu %s", i,
                  rows[i].text);
    }
}

/* RFC 9111, 4.2.3 and 5.1. */
TEST(ages)
{
    static const struct {
        const char *text;
        int64_t delay_ms, after_ms, age_ms;
    } rows[] = {
        {DATE, 0, 3000, 3000},
        {DATE, 40, 0, 40},
        {DATE "age: 7200", 500, 0, 7200500},
        {DATE "age: 7200, 0", 0, 0, 7200000},
        {DATE "age: 0, 7200", 0, 0, 0},
        {DATE "age: 0\nage: 7200", 0, 0, 0},
        {DATE "age: abc", 0, 0, 0},
        {DATE "age: -7200", 0, 0, 0},
        {DATE "age: 7200.0", 0, 0, 0},
        {DATE "age: 99999999999999999999", 0, 0, SRV_CC_FOREVER_S * 1000},
        {"date: Tue, 14 Nov 2023 20:13:20 GMT", 0, 0, 7200000},
        {"date: Tue, 14 Nov 2023 20:13:20 GMT\nage: 5", 0, 1, 7200001},
        {"date: Tue, 14 Nov 2023 23:13:20 GMT", 0, 0, 0},
        {"", 0, -5000, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct stored *got = receive(200, rows[i].text, rows[i].delay_ms);
        int64_t age_ms = srv_http_age_ms(&got->facts, NOW_MS + rows[i].after_ms);
        CHECK_MSG(age_ms == rows[i].age_ms, "%s: %jd", rows[i].text, (intmax_t)age_ms);
    }
}

/* RFC 9111, 3. */
TEST(what_may_be_stored)
{
    static const struct {
        enum srv_method method;
        int status;
        const char *request, *response;
        enum srv_http_storing storing;
    } rows[] = {
        {SRV_GET, 200, "", "cache-control: max-age=9", SRV_HTTP_STORE},
        {SRV_GET, 200, "", "", SRV_HTTP_STORE_NOT_USEFUL},
        {SRV_GET, 200, "", "etag: \"a\"", SRV_HTTP_STORE},
        {SRV_GET, 200, "", "cache-control: max-age=0", SRV_HTTP_STORE_NOT_USEFUL},
        {SRV_GET, 200, "", "cache-control: max-age=0\netag: \"a\"", SRV_HTTP_STORE},
        {SRV_GET, 200, "", "cache-control: no-cache\netag: \"a\"", SRV_HTTP_STORE},
        {SRV_GET, 200, "", "cache-control: max-age=9, no-store", SRV_HTTP_STORE_NOT_ALLOWED},
        {SRV_GET, 200, "", "cache-control: max-age=9, No-StoRE", SRV_HTTP_STORE_NOT_ALLOWED},
        {SRV_GET, 200, "", "cache-control: max-age=9, private", SRV_HTTP_STORE_NOT_ALLOWED},
        {SRV_GET, 200, "", "cache-control: max-age=9, private=\"a\"", SRV_HTTP_STORE},
        {SRV_GET, 200, "cache-control: no-store", "cache-control: max-age=9",
         SRV_HTTP_STORE_NOT_ALLOWED},
        {SRV_GET, 200, "", "cache-control: max-age=9, no-store, must-understand", SRV_HTTP_STORE},
        {SRV_GET, 299, "", "cache-control: max-age=9, must-understand", SRV_HTTP_STORE_NOT_STATUS},
        {SRV_GET, 299, "", "cache-control: max-age=9", SRV_HTTP_STORE},
        {SRV_GET, 499, "", "cache-control: max-age=9", SRV_HTTP_STORE},
        {SRV_GET, 503, "", "cache-control: max-age=9", SRV_HTTP_STORE},
        {SRV_GET, 302, "", "", SRV_HTTP_STORE_NOT_USEFUL},
        {SRV_GET, 103, "", "cache-control: max-age=9", SRV_HTTP_STORE_NOT_STATUS},
        {SRV_GET, 304, "", "cache-control: max-age=9", SRV_HTTP_STORE_NOT_STATUS},
        {SRV_GET, 404, "", DATE "last-modified: Tue, 14 Nov 2023 21:13:20 GMT", SRV_HTTP_STORE},
        {SRV_GET, 201, "", DATE "last-modified: Tue, 14 Nov 2023 21:13:20 GMT",
         SRV_HTTP_STORE_NOT_USEFUL},
        {SRV_GET, 200, "", "cache-control: max-age=9\nvary: a, *", SRV_HTTP_STORE_NOT_VARY},
        {SRV_GET, 200, "", "cache-control: max-age=9\nvary: a\nvary: *", SRV_HTTP_STORE_NOT_VARY},
        {SRV_GET, 200, "authorization: x", "cache-control: max-age=9",
         SRV_HTTP_STORE_NOT_AUTHORIZED},
        {SRV_GET, 200, "authorization: x", "cache-control: max-age=9, public", SRV_HTTP_STORE},
        {SRV_GET, 200, "authorization: x", "cache-control: s-maxage=9", SRV_HTTP_STORE},
        {SRV_GET, 200, "authorization: x", "cache-control: max-age=9, must-revalidate",
         SRV_HTTP_STORE},
        {SRV_GET, 200, "cookie: x", "cache-control: max-age=9\nset-cookie: a=b", SRV_HTTP_STORE},
        {SRV_HEAD, 200, "", "cache-control: max-age=9", SRV_HTTP_STORE_NOT_METHOD},
        {SRV_POST, 200, "", "cache-control: max-age=9", SRV_HTTP_STORE},
        {SRV_POST, 200, "", "etag: \"a\"", SRV_HTTP_STORE_NOT_METHOD},
        {SRV_POST, 201, "", "cache-control: max-age=9", SRV_HTTP_STORE_NOT_METHOD},
        {SRV_PUT, 200, "", "cache-control: max-age=9", SRV_HTTP_STORE_NOT_METHOD},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct text_fields request;
        struct srv_http_directives asked;
        const struct stored *got = receive(rows[i].status, rows[i].response, 0);
        struct srv_http_fields fields = read_fields(&request, rows[i].request);
        srv_http_request_directives(fields, &asked);
        const struct srv_http_question question = {.method = rows[i].method,
                                                   .request = fields,
                                                   .asked = &asked,
                                                   .response = got->fields,
                                                   .told = &got->told,
                                                   .facts = &got->facts,
                                                   .is_own_location = true};
        enum srv_http_storing storing = srv_http_may_store(&question, &srv_http_policy_default);
        CHECK_MSG(storing == rows[i].storing, "%zu %s: %s", i, rows[i].response,
                  srv_http_storing_text(storing));
    }
}

/* RFC 9111, 4, 4.2.4 and 5.2.1; RFC 5861, 3. */
TEST(what_is_done_with_a_request)
{
    static const struct {
        const char *request, *stored;
        int64_t after_ms;
        enum srv_http_action action;
    } rows[] = {
        {"", NULL, 0, SRV_HTTP_FETCH},
        {"cache-control: only-if-cached", NULL, 0, SRV_HTTP_REFUSE},
        {"", "cache-control: max-age=2", 1999, SRV_HTTP_SERVE},
        {"", "cache-control: max-age=2", 2000, SRV_HTTP_FETCH},
        {"", "cache-control: max-age=2\netag: \"a\"", 2000, SRV_HTTP_VALIDATE},
        {"", "cache-control: max-age=2, no-cache\netag: \"a\"", 0, SRV_HTTP_VALIDATE},
        {"", "cache-control: max-age=2, no-cache=\"a\"\netag: \"a\"", 0, SRV_HTTP_SERVE},
        {"cache-control: no-cache", "cache-control: max-age=2\netag: \"a\"", 0, SRV_HTTP_VALIDATE},
        {"pragma: no-cache", "cache-control: max-age=2", 0, SRV_HTTP_FETCH},
        {"cache-control: no-store", "cache-control: max-age=2\netag: \"a\"", 0, SRV_HTTP_FETCH},
        {"cache-control: max-age=0", "cache-control: max-age=9\netag: \"a\"", 0, SRV_HTTP_VALIDATE},
        {"cache-control: max-age=5", "cache-control: max-age=9", 4000, SRV_HTTP_SERVE},
        {"cache-control: max-age=5", "cache-control: max-age=9", 5000, SRV_HTTP_FETCH},
        {"cache-control: min-fresh=5", "cache-control: max-age=9", 4000, SRV_HTTP_SERVE},
        {"cache-control: min-fresh=5", "cache-control: max-age=9", 4001, SRV_HTTP_FETCH},
        {"cache-control: max-stale", "cache-control: max-age=9", 1000000, SRV_HTTP_SERVE_STALE},
        {"cache-control: max-stale=5", "cache-control: max-age=9", 14000, SRV_HTTP_SERVE_STALE},
        {"cache-control: max-stale=5", "cache-control: max-age=9", 14001, SRV_HTTP_FETCH},
        {"cache-control: max-stale", "cache-control: max-age=9, must-revalidate", 9000,
         SRV_HTTP_FETCH},
        {"cache-control: max-stale", "cache-control: s-maxage=9", 9000, SRV_HTTP_FETCH},
        {"cache-control: max-stale, max-age=10", "cache-control: max-age=9", 9500,
         SRV_HTTP_SERVE_STALE},
        {"cache-control: max-stale, max-age=10", "cache-control: max-age=9", 10000, SRV_HTTP_FETCH},
        {"cache-control: only-if-cached", "cache-control: max-age=9", 0, SRV_HTTP_SERVE},
        {"cache-control: only-if-cached", "cache-control: max-age=9\netag: \"a\"", 9000,
         SRV_HTTP_REFUSE},
        {"", "cache-control: max-age=2, stale-while-revalidate=3\netag: \"a\"", 4999,
         SRV_HTTP_REFRESH},
        {"", "cache-control: max-age=2, stale-while-revalidate=3\netag: \"a\"", 5000,
         SRV_HTTP_VALIDATE},
        {"", "cache-control: max-age=2, stale-while-revalidate=3, must-revalidate", 4000,
         SRV_HTTP_FETCH},
        {"cache-control: max-age=9", "cache-control: max-age=2, stale-while-revalidate=3", 4000,
         SRV_HTTP_FETCH},
        {"", DATE "etag: \"a\"", 0, SRV_HTTP_VALIDATE},
        {"", DATE "last-modified: Tue, 14 Nov 2023 22:13:20 GMT", 0, SRV_HTTP_VALIDATE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct text_fields request;
        struct srv_http_directives asked;
        const struct stored *stored =
            rows[i].stored == NULL ? NULL : receive(200, rows[i].stored, 0);
        srv_http_request_directives(read_fields(&request, rows[i].request), &asked);
        struct srv_http_decision got = srv_http_decide(stored == NULL ? NULL : &stored->facts,
                                                       &asked, NOW_MS + rows[i].after_ms);
        CHECK_MSG(got.action == rows[i].action, "%zu %s | %s: %d", i, rows[i].request,
                  rows[i].stored, got.action);
    }
}

/* RFC 9111, 4.2.4; RFC 5861, 4. The default allows a day for an origin that cannot be reached. */
TEST(what_stands_in_for_an_origin_that_fails)
{
    static const struct {
        const char *request, *stored;
        int status;
        int64_t after_s;
        bool may;
    } rows[] = {
        {"", "cache-control: max-age=2", 0, 100, true},
        {"", "cache-control: max-age=2", 0, 86401, true},
        {"", "cache-control: max-age=2", 0, 86402, false},
        {"", "cache-control: max-age=2", 503, 3, false},
        {"", "cache-control: max-age=2, stale-if-error=60", 503, 61, true},
        {"", "cache-control: max-age=2, stale-if-error=60", 503, 62, false},
        {"", "cache-control: max-age=2, stale-if-error=60", 500, 3, true},
        {"", "cache-control: max-age=2, stale-if-error=60", 501, 3, false},
        {"", "cache-control: max-age=2, stale-if-error=60", 404, 3, false},
        {"cache-control: stale-if-error=60", "cache-control: max-age=2", 502, 3, true},
        {"", "cache-control: max-age=2, must-revalidate", 0, 3, false},
        {"", "cache-control: max-age=2, proxy-revalidate", 0, 3, false},
        {"", "cache-control: s-maxage=2", 0, 3, false},
        {"", "cache-control: no-cache\netag: \"a\"", 0, 3, false},
        {"", "cdn-cache-control: max-age=2, must-revalidate", 0, 3, false},
        {"cache-control: no-cache", "cache-control: max-age=2", 0, 3, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct text_fields request;
        struct srv_http_directives asked;
        const struct stored *stored = receive(200, rows[i].stored, 0);
        srv_http_request_directives(read_fields(&request, rows[i].request), &asked);
        bool may = srv_http_may_stand_in(&stored->facts, &asked, rows[i].status,
                                         NOW_MS + rows[i].after_s * 1000, &srv_http_policy_default);
        CHECK_MSG(may == rows[i].may, "%zu %s", i, rows[i].stored);
    }
}
