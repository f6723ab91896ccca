/* Methods, targets, authorities; and the addresses of listeners. */
#include "server/target.h"

#include "server/address.h"
#include "tests/harness/test.h"

static struct srv_str str(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

TEST(methods_are_compared_with_case)
{
    CHECK_EQ_INT(srv_method_of(str("GET")), SRV_GET);
    CHECK_EQ_INT(srv_method_of(str("HEAD")), SRV_HEAD);
    CHECK_EQ_INT(srv_method_of(str("PUT")), SRV_PUT);
    CHECK_EQ_INT(srv_method_of(str("POST")), SRV_POST);
    CHECK_EQ_INT(srv_method_of(str("DELETE")), SRV_DELETE);
    CHECK_EQ_INT(srv_method_of(str("OPTIONS")), SRV_OPTIONS);
    CHECK_EQ_INT(srv_method_of(str("PURGE")), SRV_PURGE);
    CHECK_EQ_INT(srv_method_of(str("get")), SRV_METHOD_OTHER);
    CHECK_EQ_INT(srv_method_of(str("GETS")), SRV_METHOD_OTHER);
    CHECK_EQ_INT(srv_method_of(str("")), SRV_METHOD_OTHER);
}

TEST(targets_split_at_the_first_question_mark)
{
    struct srv_str path, query;
    srv_target_split(str("/a?b?c"), &path, &query);
    CHECK(path.len == 2 && query.len == 3 && query.base[0] == 'b');
    srv_target_split(str("/a?"), &path, &query);
    CHECK(path.len == 2 && query.len == 0 && query.base != NULL);
    srv_target_split(str("/a"), &path, &query);
    CHECK(path.len == 2 && query.base == NULL);
    srv_target_split((struct srv_str){NULL, 0}, &path, &query);
    CHECK(path.len == 0 && query.len == 0);
}

TEST(authorities_are_host_and_port)
{
    static const char *const good[] = {"h",          "h:",    "h:0",     "h:65535",
                                       "1.2.3.4:80", "[::1]", "[::1]:9", "[::ffff:1.2.3.4]",
                                       "a_b~",       "x%41"};
    static const char *const bad[] = {"",     ":",   ":80",  "h:65536", "h:123456", "h:8a",
                                      "h:-1", "a b", "a/b",  "a@b",     "a?b",      "a#b",
                                      "[",    "[]",  "[::1", "[::1]9",  "[g::]",    "[1]",
                                      "a%",   "a%4", "a%4g", "a:1:2",   "a\xff",    "a\x01"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        CHECK_MSG(srv_authority_valid(str(good[i])), "'%s'", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_MSG(!srv_authority_valid(str(bad[i])), "'%s'", bad[i]);
    CHECK(!srv_authority_valid((struct srv_str){"a\0b", 3}));
}

TEST(authorities_are_the_same_whatever_their_case_and_default_port)
{
    static const struct {
        const char *a, *b;
        unsigned port;
        bool want;
    } rows[] = {
        {"h", "h", 80, true},
        {"h", "H", 80, true},
        {"h", "h:", 80, true},
        {"h:80", "h", 80, true},
        {"h:080", "h:80", 443, true},
        {"h:0", "h:", 80, false},
        {"h:443", "h", 80, false},
        {"h:443", "h", 443, true},
        {"h:81", "h:82", 80, false},
        {"h", "g", 80, false},
        {"h1", "h", 80, false},
        {"h:1", "h1", 80, false},
        {"1.2.3.4", "1.2.3.4:80", 80, true},
        {"[::1]", "[::1]:80", 80, true},
        {"[::1]", "[::2]", 80, false},
        {"[::1]:1", "[::1]", 80, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_MSG(srv_authority_same(str(rows[i].a), str(rows[i].b), rows[i].port) == rows[i].want,
                  "row %zu", i);
        CHECK_MSG(srv_authority_same(str(rows[i].b), str(rows[i].a), rows[i].port) == rows[i].want,
                  "row %zu", i);
    }
}

TEST(listen_addresses_are_read_as_listed)
{
    static const struct {
        const char *text;
        const char *host; /* NULL: refused */
        uint16_t port;
        bool is_tls;
        bool is_loopback;
        const char *url;
    } rows[] = {
        {"127.0.0.1:9000", "127.0.0.1", 9000, false, true, "http://127.0.0.1:9000"},
        {"localhost:9000", "127.0.0.1", 9000, false, true, "http://127.0.0.1:9000"},
        {"tls:127.0.0.1:9443", "127.0.0.1", 9443, true, true, "https://127.0.0.1:9443"},
        {"[::1]:9000", "::1", 9000, false, true, "http://[::1]:9000"},
        {"tls:[::]:1", "::", 1, true, false, "https://[::1]:1"},
        {"0.0.0.0:80", "0.0.0.0", 80, false, false, "http://127.0.0.1:80"},
        {"*:80", "0.0.0.0", 80, false, false, "http://127.0.0.1:80"},
        {":80", "0.0.0.0", 80, false, false, "http://127.0.0.1:80"},
        {"127.0.0.1:0", "127.0.0.1", 0, false, true, "http://127.0.0.1:0"},
        {"", NULL, 0, false, false, NULL},
        {"9000", NULL, 0, false, false, NULL},
        {"127.0.0.1", NULL, 0, false, false, NULL},
        {"127.0.0.1:", NULL, 0, false, false, NULL},
        {"127.0.0.1:65536", NULL, 0, false, false, NULL},
        {"127.0.0.1:-1", NULL, 0, false, false, NULL},
        {"127.0.0:1", NULL, 0, false, false, NULL},
        {"example.com:1", NULL, 0, false, false, NULL},
        {"::1:9000", NULL, 0, false, false, NULL},
        {"[::1]", NULL, 0, false, false, NULL},
        {"[::1:9000", NULL, 0, false, false, NULL},
        {"[127.0.0.1]:1", NULL, 0, false, false, NULL},
        {"ssl:127.0.0.1:1", NULL, 0, false, false, NULL},
        {"000000000000000000000000000000000000000000000000001:1", NULL, 0, false, false, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct srv_address got;
        const char *why;
        char url[SRV_URL_MAX];
        bool ok = srv_address_parse(rows[i].text, &got, &why);
        CHECK_MSG(ok == (rows[i].host != NULL), "'%s'", rows[i].text);
        CHECK_MSG(ok == (why == NULL), "'%s'", rows[i].text);
        if (!ok)
            continue;
        CHECK_EQ_STR(got.host, rows[i].host);
        CHECK_EQ_INT(got.port, rows[i].port);
        CHECK_EQ_INT(got.is_tls, rows[i].is_tls);
        CHECK_EQ_INT(srv_address_is_loopback(&got), rows[i].is_loopback);
        srv_address_url(&got, got.port, url);
        CHECK_EQ_STR(url, rows[i].url);
    }
}
