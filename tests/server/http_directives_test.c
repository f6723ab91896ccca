/* Cache directives as tables: what each field says, and what nonsense is worth. */
#include "server/http/directives.h"

#include "tests/server/http_fixture.h"

static struct srv_http_directives told(const char *text)
{
    static struct text_fields fields;
    struct srv_http_directives directives;
    srv_http_response_directives(read_fields(&fields, text), str("cdn-cache-control"), &directives);
    return directives;
}

static struct srv_http_directives asked(const char *text)
{
    static struct text_fields fields;
    struct srv_http_directives directives;
    srv_http_request_directives(read_fields(&fields, text), &directives);
    return directives;
}

/* RFC 9111, 1.2.2 and 4.2.1: digits only; what is too long is as long as can be. */
TEST(max_age_is_digits_or_stale)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } rows[] = {
        {"cache-control: max-age=3600", 3600},
        {"cache-control: MAX-AGE=3600", 3600},
        {"cache-control: max-age=\"3600\"", 3600},
        {"cache-control: max-age=003600", 3600},
        {"cache-control: foo, max-age=5,bar", 5},
        {"cache-control: foo\ncache-control: max-age=5", 5},
        {"cache-control: a=\"x, max-age=1\", max-age=7", 7},
        {"cache-control: a=\"x\\\", max-age=1\", max-age=7", 7},
        {"cache-control: max-age=2147483647", 2147483647},
        {"cache-control: max-age=2147483648", SRV_CC_FOREVER_S},
        {"cache-control: max-age=2147483649", SRV_CC_FOREVER_S},
        {"cache-control: max-age=99999999999999999999999", SRV_CC_FOREVER_S},
        {"cache-control: max-age=1, max-age=3600", 1},
        {"cache-control: max-age=3600, max-age=1", 3600},
        {"cache-control: max-age", 0},
        {"cache-control: max-age=", 0},
        {"cache-control: max-age=-3600", 0},
        {"cache-control: max-age=+3600", 0},
        {"cache-control: max-age='3600'", 0},
        {"cache-control: max-age=3600.5", 0},
        {"cache-control: max-age=a100", 0},
        {"cache-control: max-age=100a", 0},
        {"cache-control: max-age =3600", 0},
        {"cache-control: max-age= 3600", 0},
        {"cache-control: max-age=\"3600", 0},
        {"cache-control: max-age=\"\"", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct srv_http_directives got = told(rows[i].text);
        CHECK_MSG(got.present == SRV_CC_MAX_AGE, "%s: %x", rows[i].text, got.present);
        CHECK_MSG(got.seconds[SRV_CC_N_MAX_AGE] == rows[i].seconds, "%s: %jd", rows[i].text,
                  (intmax_t)got.seconds[SRV_CC_N_MAX_AGE]);
    }
}

/* RFC 9111, 5.2.2. */
TEST(response_directives)
{
    static const struct {
        const char *text;
        unsigned present;
        const char *no_cache, *private;
    } rows[] = {
        {"", 0, "", ""},
        {"cache-control:", 0, "", ""},
        {"cache-control: NO-STORE, max-age=9", SRV_CC_NO_STORE | SRV_CC_MAX_AGE, "", ""},
        {"cache-control: no-cache", SRV_CC_NO_CACHE, "", ""},
        {"cache-control: no-cache=\"a, b\"", 0, "a, b", ""},
        {"cache-control: no-cache=a", 0, "a", ""},
        {"cache-control: no-cache=\"a\", no-cache", SRV_CC_NO_CACHE, "a", ""},
        {"cache-control: no-cache=\"a\", no-cache=\"b\"", SRV_CC_NO_CACHE, "a", ""},
        {"cache-control: no-cache=\"", SRV_CC_NO_CACHE, "", ""},
        {"cache-control: private", SRV_CC_PRIVATE, "", ""},
        {"cache-control: private=\"set-cookie\"", 0, "", "set-cookie"},
        {"cache-control: public, must-revalidate,proxy-revalidate,must-understand",
         SRV_CC_PUBLIC | SRV_CC_MUST_REVALIDATE | SRV_CC_PROXY_REVALIDATE | SRV_CC_MUST_UNDERSTAND,
         "", ""},
        {"cache-control: s-maxage=1,stale-while-revalidate=2, stale-if-error=3",
         SRV_CC_S_MAXAGE | SRV_CC_WHILE_REVALIDATE | SRV_CC_IF_ERROR, "", ""},
        {"cache-control: x=\"no-store\", y", 0, "", ""},
        {"pragma: no-cache", 0, "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct srv_http_directives got = told(rows[i].text);
        CHECK_MSG(got.present == rows[i].present, "%s: %x", rows[i].text, got.present);
        CHECK_EQ_STR(text_of(got.no_cache_names), rows[i].no_cache);
        CHECK_EQ_STR(text_of(got.private_names), rows[i].private);
    }
}

/* RFC 9111, 5.2.1 and 5.4. */
TEST(request_directives)
{
    CHECK_EQ_INT(asked("pragma: no-cache").present, SRV_CC_NO_CACHE);
    CHECK_EQ_INT(asked("pragma: x, No-Cache").present, SRV_CC_NO_CACHE);
    CHECK_EQ_INT(asked("pragma: no-cache\ncache-control: foo").present, 0);
    CHECK_EQ_INT(asked("cache-control: only-if-cached").present, SRV_CC_ONLY_IF_CACHED);
    CHECK_EQ_INT(asked("cache-control: max-stale").seconds[SRV_CC_N_MAX_STALE], SRV_CC_FOREVER_S);
    CHECK_EQ_INT(asked("cache-control: max-stale=7").seconds[SRV_CC_N_MAX_STALE], 7);
    CHECK_EQ_INT(asked("cache-control: max-stale=x").seconds[SRV_CC_N_MAX_STALE], 0);
    CHECK_EQ_INT(asked("cache-control: min-fresh=x").seconds[SRV_CC_N_MIN_FRESH], SRV_CC_FOREVER_S);
}

/* RFC 9213, 2.1 and 2.2; RFC 9651, 4.2.2. */
TEST(a_targeted_field_decides_alone_if_it_parses)
{
    static const struct {
        const char *text;
        bool is_targeted;
        unsigned present;
        int64_t max_age;
    } rows[] = {
        {"cdn-cache-control: max-age=9\ncache-control: no-store", true, SRV_CC_MAX_AGE, 9},
        {"cdn-cache-control: no-store\ncache-control: max-age=9", true, SRV_CC_NO_STORE, 0},
        {"cdn-cache-control: max-age=1, max-age=2", true, SRV_CC_MAX_AGE, 2},
        {"cdn-cache-control: max-age=1\ncdn-cache-control: private", true,
         SRV_CC_MAX_AGE | SRV_CC_PRIVATE, 1},
        {"cdn-cache-control: max-age=1;a=b;c, no-cache=?1", true, SRV_CC_MAX_AGE | SRV_CC_NO_CACHE,
         1},
        {"cdn-cache-control: no-store=?0, max-age=4", true, SRV_CC_MAX_AGE, 4},
        {"cdn-cache-control: max-age=\"10000\"\ncache-control: max-age=3", true, 0, 0},
        {"cdn-cache-control: max-age=1.5, x=(a \"b\" 1), y=:aGk=:", true, 0, 0},
        {"cdn-cache-control: no-cache=\"a, b\"", true, 0, 0},
        {"cdn-cache-control: max-age=-5", true, SRV_CC_MAX_AGE, 0},
        {"cdn-cache-control:\ncache-control: max-age=3", false, SRV_CC_MAX_AGE, 3},
        {"cdn-cache-control: max-age=10000, &&&&&\ncache-control: max-age=3", false, SRV_CC_MAX_AGE,
         3},
        {"cdn-cache-control: MAX-AGE=1\ncache-control: max-age=3", false, SRV_CC_MAX_AGE, 3},
        {"cdn-cache-control: max-age=1,\ncache-control: max-age=3", false, SRV_CC_MAX_AGE, 3},
        {"cdn-cache-control: max-age =1\ncache-control: max-age=3", false, SRV_CC_MAX_AGE, 3},
        {"cdn-cache-control: max-age=1 x\ncache-control: max-age=3", false, SRV_CC_MAX_AGE, 3},
        {"cdn-cache-control: a=\"x\ncache-control: max-age=3", false, SRV_CC_MAX_AGE, 3},
        {"cdn-cache-control: a=(x\ncache-control: max-age=3", false, SRV_CC_MAX_AGE, 3},
        {"cdn-cache-control: a=1234567890123456\ncache-control: max-age=3", false, SRV_CC_MAX_AGE,
         3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct srv_http_directives got = told(rows[i].text);
        CHECK_MSG(got.is_targeted == rows[i].is_targeted && got.present == rows[i].present,
                  "%s: %d %x", rows[i].text, got.is_targeted, got.present);
        CHECK_MSG(got.seconds[SRV_CC_N_MAX_AGE] == rows[i].max_age, "%s", rows[i].text);
    }
    CHECK_EQ_STR(text_of(told("cdn-cache-control: no-cache=\"a, b\"").no_cache_names), "a, b");
}

/* A cache that is not the target ignores the field (RFC 9213, 2.2). */
TEST(a_field_that_is_no_target_does_not_count)
{
    static struct text_fields fields;
    struct srv_http_directives got;
    struct srv_http_fields response =
        read_fields(&fields, "cdn-cache-control: no-store\ncache-control: max-age=3");
    srv_http_response_directives(response, str(""), &got);
    CHECK_EQ_INT(got.present, SRV_CC_MAX_AGE);
    srv_http_response_directives(response, str("gyre-cache-control, cdn-cache-control"), &got);
    CHECK_EQ_INT(got.present, SRV_CC_NO_STORE);
}
