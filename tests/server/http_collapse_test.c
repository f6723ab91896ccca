#include "server/http/passed.h"
#include "server/http/reuse.h"

#include "tests/harness/test.h"
#include "tests/server/http_fixture.h"

#include "api/gyre.h"

/* ---- Who may wait ---- */

static bool may(enum srv_method method, const char *name, const char *value)
{
    struct srv_http_directives asked;
    const struct srv_field field = {{name, strlen(name)}, {value, strlen(value)}};
    struct srv_http_fields request = {&field, 1};
    srv_http_request_directives(request, &asked);
    return srv_http_may_collapse(method, request, &asked);
}

TEST(whole_and_unconditional_requests_wait)
{
    CHECK(may(SRV_GET, "accept", "text/html"));
    CHECK(may(SRV_GET, "cookie", "a=b"));
    CHECK(may(SRV_GET, "cache-control", "max-age=60"));
    CHECK(!may(SRV_HEAD, "accept", "text/html"));
    CHECK(!may(SRV_POST, "accept", "text/html"));
    CHECK(!may(SRV_GET, "authorization", "Basic eA=="));
    CHECK(!may(SRV_GET, "range", "bytes=0-1"));
    CHECK(!may(SRV_GET, "if-none-match", "\"a\""));
    CHECK(!may(SRV_GET, "if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT"));
    CHECK(!may(SRV_GET, "cache-control", "no-store"));
    CHECK(!may(SRV_GET, "cache-control", "no-cache"));
}

TEST(what_came_since_is_shared_unless_it_must_be_validated)
{
    struct srv_http_facts facts = {.received_ms = 1000, .lifetime_s = 60};
    CHECK(srv_http_is_shared(&facts, 1000));
    CHECK(srv_http_is_shared(&facts, 900));
    CHECK(!srv_http_is_shared(&facts, 1001)); /* it was there before */
    facts.lifetime_s = 0;
    CHECK(srv_http_is_shared(&facts, 900)); /* stale on arrival */
    facts.flags = SRV_HTTP_NEVER_STALE;
    CHECK(!srv_http_is_shared(&facts, 900));
    facts.lifetime_s = 60;
    CHECK(srv_http_is_shared(&facts, 900));
    facts.flags = SRV_HTTP_NO_CACHE;
    CHECK(!srv_http_is_shared(&facts, 900));
}

/* ---- What is remembered ---- */

TEST(what_cannot_be_shared_is_remembered_for_a_while)
{
    static const int64_t times[] = {0, 1, 1764547200000, INT64_C(1) << 40, (INT64_C(1) << 40) - 1};
    struct srv_passed *passed = srv_passed_create();
    struct gyre_key a = gyre_key_of_bytes("a", 1), b = gyre_key_of_bytes("b", 1);
    CHECK(passed != NULL);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        int64_t now_ms = times[i];
        CHECK(!srv_passed_holds(passed, &a, now_ms));
        srv_passed_note(passed, &a, now_ms);
        CHECK(srv_passed_holds(passed, &a, now_ms));
        CHECK(srv_passed_holds(passed, &a, now_ms + SRV_PASSED_MS / 2));
        CHECK(!srv_passed_holds(passed, &b, now_ms));
        CHECK(!srv_passed_holds(passed, &a, now_ms + SRV_PASSED_MS + 1000));
        srv_passed_forget(passed, &b);
        CHECK(srv_passed_holds(passed, &a, now_ms));
        srv_passed_forget(passed, &a);
    }
    srv_passed_destroy(passed);
}

TEST(another_key_of_the_same_row_takes_it)
{
    struct srv_passed *passed = srv_passed_create();
    struct gyre_key a = {{1, 2, 3, 4, 5, 6, 7, 8}}, b = a;
    b.bytes[5]++;
    CHECK(passed != NULL);
    srv_passed_note(passed, &a, 1000);
    CHECK(!srv_passed_holds(passed, &b, 1000));
    srv_passed_note(passed, &b, 1000);
    CHECK(srv_passed_holds(passed, &b, 1000));
    CHECK(!srv_passed_holds(passed, &a, 1000));
    srv_passed_destroy(passed);
}
