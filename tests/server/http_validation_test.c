/* Validation, selection, invalidation, what passes, and what is said about it, as tables. */
#include "server/http/validation.h"

#include "server/http/cache_status.h"
#include "server/http/forwarding.h"
#include "server/http/invalidation.h"
#include "server/http/selection.h"
#include "tests/server/http_fixture.h"

#define NOW_MS INT64_C(1700000000000) /* Tue, 14 Nov 2023 22:13:20 GMT */

static const char *joined(const struct srv_field *fields, size_t n)
{
    static char text[1024];
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        CHECK(strlen(text) + fields[i].name.len + fields[i].value.len + 3 < sizeof text);
        strncat(text, fields[i].name.base, fields[i].name.len);
        strcat(text, ":");
        strncat(text, fields[i].value.base, fields[i].value.len);
        strcat(text, "\n");
    }
    return text;
}

/* RFC 9111, 4.3.1: validators go back byte for byte. */
TEST(conditions_are_the_stored_validators)
{
    static struct text_fields fields;
    struct srv_field out[SRV_HTTP_CONDITIONS_MAX];
    size_t n = srv_http_conditions(
        read_fields(&fields, "etag: W/\"a b\"\nlast-modified: whenever\netag: \"c\""), out);
    CHECK_EQ_STR(joined(out, n), "if-none-match:W/\"a b\"\nif-modified-since:whenever\n");
    CHECK_EQ_INT(srv_http_conditions(read_fields(&fields, "etag:"), out), 0);
}

/* RFC 9111, 4.3.3 and 4.3.4. */
TEST(what_an_answer_to_a_validation_means)
{
    static const struct {
        const char *stored, *answer;
        int status;
        enum srv_http_validated means;
    } rows[] = {
        {"etag: \"a\"", "", 304, SRV_HTTP_FRESHEN},
        {"etag: \"a\"", "etag: \"a\"", 304, SRV_HTTP_FRESHEN},
        {"etag: W/\"a\"", "etag: \"a\"", 304, SRV_HTTP_FRESHEN},
        {"etag: \"a\"", "etag: \"b\"", 304, SRV_HTTP_AGAIN},
        {"etag: \"a\"", "", 200, SRV_HTTP_REPLACE},
        {"etag: \"a\"", "", 404, SRV_HTTP_REPLACE},
        {"etag: \"a\"", "", 503, SRV_HTTP_REPLACE},
        {"etag: \"a\"\ncache-control: max-age=1, stale-if-error=60", "", 503, SRV_HTTP_STAND_IN},
        {"etag: \"a\"\ncache-control: max-age=1", "", 0, SRV_HTTP_STAND_IN},
        {"etag: \"a\"\ncache-control: max-age=1, must-revalidate", "", 0, SRV_HTTP_REPLACE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct text_fields stored_text, answer_text;
        const struct srv_http_times times = {NOW_MS, NOW_MS};
        const struct srv_http_directives asked = {0};
        struct srv_http_directives told;
        struct srv_http_facts facts;
        struct srv_http_fields stored = read_fields(&stored_text, rows[i].stored);
        srv_http_response_directives(stored, srv_http_policy_default.targets, &told);
        srv_http_facts_of(200, stored, &told, &times, &srv_http_policy_default, &facts);
        enum srv_http_validated means = srv_http_validated(
            &facts, stored, &asked, rows[i].status, read_fields(&answer_text, rows[i].answer),
            NOW_MS + 5000, &srv_http_policy_default);
        CHECK_MSG(means == rows[i].means, "%zu: %d", i, means);
    }
}

/* RFC 9111, 3.2. */
TEST(an_update_takes_the_place_of_whole_fields)
{
    static struct text_fields stored, answer;
    struct srv_field out[2 * TEXT_FIELDS_MAX];
    size_t n = srv_http_update(
        read_fields(&stored, "a: 1\ncontent-length: 5\ncontent-encoding: br\nb: 1\nb: 2\nage: 9\n"
                             "content-foo: x\nhop: y"),
        read_fields(&answer, "b: 3\ncontent-length: 0\ncontent-encoding: gzip\ncontent-foo: z\n"
                             "connection: hop\nhop: n\nc: new"),
        out);
    CHECK_EQ_STR(joined(out, n), "a:1\ncontent-length:5\ncontent-encoding:br\nhop:y\nb:3\n"
                                 "content-foo:z\nc:new\n");
}

/* RFC 9111, 4.3.5. */
TEST(a_head_freshens_or_contradicts)
{
    static struct text_fields stored, answer;
    struct srv_http_fields old =
        read_fields(&stored, "etag: \"a\"\nlast-modified: Tue, 14 Nov 2023 22:13:20 GMT");
    static const struct {
        const char *answer;
        enum srv_http_validated says;
    } rows[] = {
        {"", SRV_HTTP_FRESHEN},
        {"etag: \"a\"\ncontent-length: 5", SRV_HTTP_FRESHEN},
        {"etag: \"b\"", SRV_HTTP_REPLACE},
        {"last-modified: Tue, 14 Nov 2023 22:13:21 GMT", SRV_HTTP_REPLACE},
        {"content-length: 6", SRV_HTTP_REPLACE},
        {"content-length: x", SRV_HTTP_REPLACE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_MSG(srv_http_head_says(old, 5, read_fields(&answer, rows[i].answer)) == rows[i].says,
                  "%s", rows[i].answer);
}

/* RFC 9110, 13.1.2, 13.1.3, 13.1.5, 14.2; RFC 9111, 4.3.2. */
TEST(what_of_a_stored_response_answers)
{
    static const char WHOLE[] = "etag: \"a\"\nlast-modified: Tue, 14 Nov 2023 22:13:20 GMT";
    static const struct {
        int stored_status;
        const char *stored, *request;
        int status;
        uint64_t first, last;
    } rows[] = {
        {200, WHOLE, "", 200, 0, 0},
        {200, WHOLE, "if-none-match: \"a\"", 304, 0, 0},
        {200, WHOLE, "if-none-match: W/\"a\"", 304, 0, 0},
        {200, WHOLE, "if-none-match: \"b\", \"a\"", 304, 0, 0},
        {200, WHOLE, "if-none-match: \"b\"\nif-none-match: \"a\"", 304, 0, 0},
        {200, WHOLE, "if-none-match: *", 304, 0, 0},
        {200, WHOLE, "if-none-match: \"b\"", 200, 0, 0},
        {200, "etag: W/\"a\"", "if-none-match: \"a\"", 304, 0, 0},
        {200, WHOLE, "if-none-match: \"b\"\nif-modified-since: Tue, 14 Nov 2023 22:13:20 GMT", 200,
         0, 0},
        {200, WHOLE, "if-modified-since: Tue, 14 Nov 2023 22:13:20 GMT", 304, 0, 0},
        {200, WHOLE, "if-modified-since: Tuesday, 14-Nov-23 22:13:20 GMT", 304, 0, 0},
        {200, WHOLE, "if-modified-since: Tue Nov 14 22:13:20 2023", 304, 0, 0},
        {200, WHOLE, "if-modified-since: Tue, 14 Nov 2023 22:13:19 GMT", 200, 0, 0},
        {200, WHOLE, "if-modified-since: nonsense", 200, 0, 0},
        {200, "date: Tue, 14 Nov 2023 22:13:20 GMT",
         "if-modified-since: Tue, 14 Nov 2023 22:13:20 GMT", 304, 0, 0},
        {200, "date: Tue, 14 Nov 2023 22:13:20 GMT",
         "if-modified-since: Tue, 14 Nov 2023 22:13:19 GMT", 200, 0, 0},
        {404, WHOLE, "if-none-match: \"a\"", 404, 0, 0},
        {200, WHOLE, "range: bytes=2-4", 206, 2, 4},
        {200, WHOLE, "range: bytes=2-", 206, 2, 9},
        {200, WHOLE, "range: bytes=-3", 206, 7, 9},
        {200, WHOLE, "range: bytes=10-", 416, 0, 0},
        {200, WHOLE, "range: bytes=4-2", 200, 0, 0},
        {200, WHOLE, "range: bytes=0-1,4-5", 200, 0, 0},
        {200, WHOLE, "range: bytes=0-1\nrange: bytes=0-1", 200, 0, 0},
        {404, WHOLE, "range: bytes=0-1", 404, 0, 0},
        {200, WHOLE, "range: bytes=0-1\nif-range: \"a\"", 206, 0, 1},
        {200, WHOLE, "range: bytes=0-1\nif-range: \"b\"", 200, 0, 0},
        {200, "etag: W/\"a\"", "range: bytes=0-1\nif-range: W/\"a\"", 200, 0, 0},
        {200, WHOLE, "range: bytes=0-1\nif-range: Tue, 14 Nov 2023 22:13:20 GMT", 206, 0, 1},
        {200, WHOLE, "range: bytes=0-1\nif-range: Tue, 14 Nov 2023 22:13:21 GMT", 200, 0, 0},
        {200, WHOLE, "range: bytes=0-1\nif-none-match: \"a\"", 304, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct text_fields stored, request;
        const struct srv_http_facts facts = {
            .status = rows[i].stored_status, .received_ms = NOW_MS, .date_s = NOW_MS / 1000};
        struct srv_http_selection got =
            srv_http_select(&facts, read_fields(&stored, rows[i].stored), 10,
                            read_fields(&request, rows[i].request));
        CHECK_MSG(got.status == rows[i].status && got.range.first == rows[i].first &&
                      got.range.last == rows[i].last,
                  "%s: %d %ju-%ju", rows[i].request, got.status, (uintmax_t)got.range.first,
                  (uintmax_t)got.range.last);
    }
}

/* RFC 9110, 14.4. */
TEST(content_ranges)
{
    static const struct {
        const char *text;
        bool ok;
    } rows[] = {
        {"bytes 4-9/10", true},
        {"bytes 0-0/1", true},
        {"bytes 4-9/*", false},
        {"bytes */10", false},
        {"bytes 9-4/10", false},
        {"bytes 4-10/10", false},
        {"bytes 4-9/10 ", false},
        {"4-9/10", false},
        {"bytes=4-9/10", false},
        {"bytes 4-9", false},
        {"", false},
        {"bytes -1-9/10", false},
        {"bytes 4-9/99999999999999999999999", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct srv_http_part part;
        bool ok = srv_http_content_range(str(rows[i].text), &part);
        CHECK_MSG(ok == rows[i].ok && (ok || part.total == 0), "%s", rows[i].text);
    }
}

/* RFC 9111, 4.4; RFC 9110, 9.2.1. */
TEST(what_becomes_invalid)
{
    static const struct {
        const char *method, *answer;
        int status;
        const char *targets;
    } rows[] = {
        {"POST", "", 200, "/a?b"},
        {"PUT", "", 204, "/a?b"},
        {"DELETE", "", 301, "/a?b"},
        {"M-SEARCH", "", 200, "/a?b"},
        {"FOO", "", 200, "/a?b"},
        {"POST", "", 404, ""},
        {"POST", "", 500, ""},
        {"GET", "location: /x", 200, ""},
        {"HEAD", "", 200, ""},
        {"OPTIONS", "", 200, ""},
        {"TRACE", "", 200, ""},
        {"POST", "location: /x", 201, "/a?b /x"},
        {"POST", "location: http://h:1/x#f\ncontent-location: //H:1/y", 201, "/a?b /x /y"},
        {"POST", "location: HTTP://H:1", 201, "/a?b /"},
        {"POST", "location: http://other/x", 201, "/a?b"},
        {"POST", "location: https://h:1/x", 201, "/a?b"},
        {"POST", "location: http://h:12/x", 201, "/a?b"},
        {"POST", "location: x", 201, "/a?b"},
        {"POST", "location: /a?b", 201, "/a?b"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct text_fields answer;
        struct srv_str out[SRV_HTTP_INVALID_MAX];
        char text[128] = "";
        size_t n = srv_http_invalidates(str(rows[i].method), str("http"), str("h:1"), str("/a?b"),
                                        rows[i].status, read_fields(&answer, rows[i].answer), out);
        for (size_t k = 0; k < n; k++) {
            strcat(text, k > 0 ? " " : "");
            strncat(text, out[k].base, out[k].len);
        }
        CHECK_EQ_STR(text, rows[i].targets);
    }
}

/* RFC 9110, 7.6.1; RFC 9111, 5.2.2.4 and 5.2.2.7. */
TEST(what_passes)
{
    static struct text_fields text;
    struct srv_field out[TEXT_FIELDS_MAX];
    struct srv_http_fields fields =
        read_fields(&text, "connection: A, close\nconnection: b\na: 1\nB: 2\nc: 3\nte: x\n"
                           "keep-alive: 5\nproxy-connection: x\ntrailer: x\nupgrade: x\n"
                           "transfer-encoding: chunked\nproxy-authenticate: x\n"
                           "proxy-authorization: x\nproxy-authentication-info: x\nd: 4");
    CHECK_EQ_STR(joined(out, srv_http_pass(fields, out)), "c:3\nd:4\n");
    CHECK_EQ_STR(joined(out, srv_http_pass_stored(fields, str("C"), str(""), out)), "d:4\n");
    CHECK_EQ_STR(joined(out, srv_http_pass_stored(fields, str(""), str("x, d"), out)), "c:3\n");
    fields =
        read_fields(&text, "host: h\ncontent-length: 5\nexpect: 100-continue\nrange: bytes=0-\n"
                           "if-none-match: x\nif-modified-since: x\nif-range: x\nx: 1");
    CHECK_EQ_STR(joined(out, srv_http_pass_request(fields, true, out)), "x:1\n");
    CHECK_EQ_STR(joined(out, srv_http_pass_request(fields, false, out)),
                 "range:bytes=0-\nif-none-match:x\nif-modified-since:x\nif-range:x\nx:1\n");
}

/* RFC 9211, 2. */
TEST(what_cache_status_says)
{
    static const struct {
        struct srv_http_handled handled;
        const char *text;
    } rows[] = {
        {{.ttl_s = 376}, "gyre; hit; ttl=376"},
        {{.ttl_s = -5}, "gyre; hit; ttl=-5"},
        {{.ttl_s = INT64_MIN}, "gyre; hit; ttl=-9223372036854775808"},
        {{.forward = SRV_HTTP_FORWARD_MISS, .forward_status = 200, .is_stored = true},
         "gyre; fwd=uri-miss; fwd-status=200; stored"},
        {{.forward = SRV_HTTP_FORWARD_STALE, .forward_status = 304, .is_collapsed = true},
         "gyre; fwd=stale; fwd-status=304; collapsed"},
        {{.forward = SRV_HTTP_FORWARD_METHOD, .detail = "x"}, "gyre; fwd=method; detail=x"},
    };
    char text[SRV_HTTP_CACHE_STATUS_MAX];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_EQ_INT(srv_http_cache_status(&rows[i].handled, text), strlen(rows[i].text));
        CHECK_EQ_STR(text, rows[i].text);
    }
}
