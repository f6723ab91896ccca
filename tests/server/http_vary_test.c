/* Vary: names, forms, and which requests are alike. */
#include "server/http/vary.h"

#include "tests/server/http_fixture.h"

static const struct srv_http_policy in_order = {.sorts_languages = false};

static const char *names_of(const char *response)
{
    static struct text_fields fields;
    static char names[SRV_HTTP_VARY_NAMES_MAX];
    size_t len = srv_http_vary_names(read_fields(&fields, response), names);
    return len == SIZE_MAX ? "(too long)" : text_of((struct srv_str){names, len});
}

/* RFC 9110, 12.5.5: names have no case, and their order and number mean nothing. */
TEST(names_are_sorted_once_and_in_lower_case)
{
    CHECK_EQ_STR(names_of(""), "");
    CHECK_EQ_STR(names_of("vary:"), "");
    CHECK_EQ_STR(names_of("vary: Foo"), "foo");
    CHECK_EQ_STR(names_of("vary: b, A ,, b\nvary: a,C"), "a,b,c");
    static struct text_fields fields;
    CHECK(srv_http_vary_is_any(read_fields(&fields, "vary: a,*")));
    CHECK(srv_http_vary_is_any(read_fields(&fields, "vary: a\nvary: * ")));
    CHECK(!srv_http_vary_is_any(read_fields(&fields, "vary: a*, \"*\"")));
}

TEST(too_many_names_are_no_names)
{
    char text[400] = "vary: ";
    for (int i = 0; i < 33; i++) {
        char name[4] = {(char)('a' + i / 26), (char)('a' + i % 26), ',', '\0'};
        strcat(text, name);
    }
    CHECK_EQ_STR(names_of(text), "(too long)");
}

static bool alike(const char *names, const char *one, const char *other,
                  const struct srv_http_policy *policy)
{
    static struct text_fields fields;
    char a[SRV_HTTP_VARY_FORM_MAX], b[SRV_HTTP_VARY_FORM_MAX];
    size_t a_len = srv_http_vary_form(str(names), read_fields(&fields, one), policy, a);
    size_t b_len = srv_http_vary_form(str(names), read_fields(&fields, other), policy, b);
    CHECK(a_len != SIZE_MAX && b_len != SIZE_MAX);
    return a_len == b_len && memcmp(a, b, a_len) == 0;
}

/* RFC 9111, 4.1. */
TEST(requests_that_are_alike)
{
    static const struct {
        const char *names, *one, *other;
        bool alike;
    } rows[] = {
        {"foo", "foo: 1", "foo: 1", true},
        {"foo", "foo: 1", "foo: 2", false},
        {"foo", "foo: 1", "", false},
        {"foo", "foo:", "", false},
        {"foo", "", "bar: 1", true},
        {"foo", "foo: a, b", "foo: a\nfoo: b", true},
        {"foo", "foo: a,b", "foo:  a ,  b", true},
        {"foo", "foo: \"a, b\"", "foo: \"a,b\"", false},
        {"foo", "foo: a, b", "foo: b, a", false},
        {"foo", "foo: A", "foo: a", false},
        {"bar,foo", "foo: 1\nbar: 2", "bar: 2\nfoo: 1", true},
        {"bar,foo", "foo: 1", "bar: 1", false},
        {"a,b", "a: x", "a: x\nb:", false},
        {"accept-encoding", "accept-encoding: br,gzip,xxx,jdcqiab", "accept-encoding: gzip", false},
        {"accept-language", "accept-language: EN-us", "accept-language: en-US", true},
        {"accept-language", "accept-language: en, de", "accept-language: de,en", true},
        {"accept-language", "accept-language: en, de;q=0.5", "accept-language: de;q=0.5, en", true},
        {"accept-language", "accept-language: en, de;q=0.5", "accept-language: de, en;q=0.5",
         false},
        {"accept-language", "accept-language: en;q=0.7, de;q=0.75",
         "accept-language: de;q=0.75, en;q=0.7", true},
        {"accept-language", "accept-language: en", "accept-language: en, de", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_MSG(alike(rows[i].names, rows[i].one, rows[i].other, &srv_http_policy_default) ==
                      rows[i].alike,
                  "%s | %s | %s", rows[i].names, rows[i].one, rows[i].other);
    CHECK(
        !alike("accept-language", "accept-language: en, de", "accept-language: de, en", &in_order));
    CHECK(alike("accept-language", "accept-language: EN, de", "accept-language: en,DE", &in_order));
}

TEST(a_form_that_does_not_fit_is_none)
{
    static char text[TEXT_MAX];
    static struct text_fields fields;
    static char form[SRV_HTTP_VARY_FORM_MAX];
    memset(text, 'x', sizeof text - 1);
    memcpy(text, "foo:", 4);
    struct srv_http_fields request = read_fields(&fields, text);
    struct srv_field three[3] = {request.at[0], request.at[0], request.at[0]};
    CHECK(srv_http_vary_form(str("foo"), request, &in_order, form) != SIZE_MAX);
    CHECK(srv_http_vary_form(str("foo"), (struct srv_http_fields){three, 3}, &in_order, form) ==
          SIZE_MAX);
}
