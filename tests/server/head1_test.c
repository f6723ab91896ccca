/* The head check as a table: each row is a head, whole and byte by byte, and the answer decided for
 * it. */
#include "server/head1.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/test.h"

#define H "Host: h\r\n"
#define END "\r\n"
#define GET(fields) "GET /b/k HTTP/1.1\r\n" H fields END
#define PUT(fields) "PUT /b/k HTTP/1.1\r\n" H fields END

struct row {
    const char *what;
    const char *head;
    int status; /* 0: accepted */
    size_t len; /* 0: strlen */
};

static const struct row rejected[] = {
    {"length and chunked", PUT("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), 400, 0},
    {"chunked and length", PUT("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"), 400, 0},
    {"same length twice", PUT("Content-Length: 3\r\nContent-Length: 3\r\n"), 400, 0},
    {"two lengths", PUT("Content-Length: 3\r\ncontent-length: 4\r\n"), 400, 0},
    {"length +3", PUT("Content-Length: +3\r\n"), 400, 0},
    {"length -1", PUT("Content-Length: -1\r\n"), 400, 0},
    {"length 0x3", PUT("Content-Length: 0x3\r\n"), 400, 0},
    {"length empty", PUT("Content-Length:\r\n"), 400, 0},
    {"length blank", PUT("Content-Length:  \t \r\n"), 400, 0},
    {"length list", PUT("Content-Length: 3, 3\r\n"), 400, 0},
    {"length 2^64", PUT("Content-Length: 18446744073709551616\r\n"), 400, 0},
    {"length 2^64-1", PUT("Content-Length: 18446744073709551615\r\n"), 400, 0},
    {"length 2^63", PUT("Content-Length: 9223372036854775808\r\n"), 400, 0},
    {"length with inner space", PUT("Content-Length: 1 2\r\n"), 400, 0},
    {"length decimal", PUT("Content-Length: 1.0\r\n"), 400, 0},
    {"chunked twice in one", PUT("Transfer-Encoding: chunked, chunked\r\n"), 400, 0},
    {"chunked twice in two", PUT("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
     400, 0},
    {"identity then chunked in two",
     PUT("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"), 400, 0},
    {"identity", PUT("Transfer-Encoding: identity\r\n"), 400, 0},
    {"gzip then chunked", PUT("Transfer-Encoding: gzip, chunked\r\n"), 501, 0},
    {"chunked then gzip", PUT("Transfer-Encoding: chunked, gzip\r\n"), 400, 0},
    {"chunked with a parameter", PUT("Transfer-Encoding: chunked;q=1\r\n"), 400, 0},
    {"xchunked", PUT("Transfer-Encoding: xchunked\r\n"), 400, 0},
    {"quoted chunked", PUT("Transfer-Encoding: \"chunked\"\r\n"), 400, 0},
    {"chunked with VT", PUT("Transfer-Encoding: \vchunked\r\n"), 400, 0},
    {"empty coding", PUT("Transfer-Encoding:\r\n"), 400, 0},
    {"coding list with a hole", PUT("Transfer-Encoding: chunked,\r\n"), 400, 0},
    {"chunked in 1.0", "PUT / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n" END, 400, 0},
    {"folded by space", GET("X: a\r\n b\r\n"), 400, 0},
    {"folded by tab", GET("X: a\r\n\tb\r\n"), 400, 0},
    {"folded before any field", "GET / HTTP/1.1\r\n Host: h\r\n" END, 400, 0},
    {"bare LF after the request line", "GET / HTTP/1.1\nHost: h\r\n" END, 400, 0},
    {"bare LF after a field", "GET / HTTP/1.1\r\nHost: h\n\r\n", 400, 0},
    {"bare LF at the end", "GET / HTTP/1.1\r\nHost: h\r\n\n", 400, 0},
    {"bare CR in a value", GET("X: a\rb\r\n"), 400, 0},
    {"CR CR LF", GET("X: a\r\r\n"), 400, 0},
    {"CR in the target", "GET /a\rb HTTP/1.1\r\n" H END, 400, 0},
    {"NUL in a value", GET("X: a\0b\r\n"), 400, sizeof(GET("X: a\0b\r\n")) - 1},
    {"NUL in a name", GET("X\0Y: b\r\n"), 400, sizeof(GET("X\0Y: b\r\n")) - 1},
    {"NUL in the target", "GET /\0 HTTP/1.1\r\n" H END, 400,
     sizeof("GET /\0 HTTP/1.1\r\n" H END) - 1},
    {"VT in a value", GET("X: a\vb\r\n"), 400, 0},
    {"DEL in a value", GET("X: a\x7f\r\n"), 400, 0},
    {"ESC in a value", GET("X: \x1b[0m\r\n"), 400, 0},
    {"space before the colon", GET("X : a\r\n"), 400, 0},
    {"tab before the colon", GET("X\t: a\r\n"), 400, 0},
    {"no colon", GET("X\r\n"), 400, 0},
    {"empty name", GET(": a\r\n"), 400, 0},
    {"slash in a name", GET("X/Y: a\r\n"), 400, 0},
    {"high byte in a name", GET("X\xc3\xa9: a\r\n"), 400, 0},
    {"space before Host", "GET / HTTP/1.1\r\nA: b\r\nHost : h\r\n" END, 400, 0},
    {"no Host", "GET / HTTP/1.1\r\n" END, 400, 0},
    {"two Hosts", GET(H), 400, 0},
    {"two Hosts in 1.0", "GET / HTTP/1.0\r\n" H H END, 400, 0},
    {"empty Host", "GET / HTTP/1.1\r\nHost:\r\n" END, 400, 0},
    {"Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n" END, 400, 0},
    {"Host with a user", "GET / HTTP/1.1\r\nHost: a@c\r\n" END, 400, 0},
    {"Host a/b@c", "GET / HTTP/1.1\r\nHost: a/b@c\r\n" END, 400, 0},
    {"Host with a space", "GET / HTTP/1.1\r\nHost: a b\r\n" END, 400, 0},
    {"Host list", "GET / HTTP/1.1\r\nHost: a, b\r\n" END, 400, 0},
    {"Host with a bad port", "GET / HTTP/1.1\r\nHost: a:x\r\n" END, 400, 0},
    {"Host with port 65536", "GET / HTTP/1.1\r\nHost: a:65536\r\n" END, 400, 0},
    {"Host with two ports", "GET / HTTP/1.1\r\nHost: a:1:2\r\n" END, 400, 0},
    {"Host of a port only", "GET / HTTP/1.1\r\nHost: :80\r\n" END, 400, 0},
    {"Host with half a bracket", "GET / HTTP/1.1\r\nHost: [::1\r\n" END, 400, 0},
    {"Host with junk after the bracket", "GET / HTTP/1.1\r\nHost: [::1]x\r\n" END, 400, 0},
    {"Host with empty brackets", "GET / HTTP/1.1\r\nHost: []\r\n" END, 400, 0},
    {"Host with broken percent", "GET / HTTP/1.1\r\nHost: a%4\r\n" END, 400, 0},
    {"Host with a high byte", "GET / HTTP/1.1\r\nHost: \xc3\xa9\r\n" END, 400, 0},
    {"HTTP/0.9", "GET /\r\n" END, 400, 0},
    {"HTTP/1.2", "GET / HTTP/1.2\r\n" H END, 505, 0},
    {"HTTP/2.0", "GET / HTTP/2.0\r\n" H END, 505, 0},
    {"HTTP/3.0", "GET / HTTP/3.0\r\n" H END, 505, 0},
    {"HTTP/0.9 named", "GET / HTTP/0.9\r\n" H END, 505, 0},
    {"HTTP/1", "GET / HTTP/1\r\n" H END, 400, 0},
    {"HTTP/1.10", "GET / HTTP/1.10\r\n" H END, 400, 0},
    {"HTTP/11", "GET / HTTP/11\r\n" H END, 400, 0},
    {"http/1.1", "GET / http/1.1\r\n" H END, 400, 0},
    {"space after the version", "GET / HTTP/1.1 \r\n" H END, 400, 0},
    {"two spaces after the target", "GET /  HTTP/1.1\r\n" H END, 400, 0},
    {"two spaces after the method", "GET  / HTTP/1.1\r\n" H END, 400, 0},
    {"tab after the method", "GET\t/ HTTP/1.1\r\n" H END, 400, 0},
    {"space in the target", "GET /a b HTTP/1.1\r\n" H END, 400, 0},
    {"tab in the target", "GET /a\tb HTTP/1.1\r\n" H END, 400, 0},
    {"fragment", "GET /a#b HTTP/1.1\r\n" H END, 400, 0},
    {"DEL in the target", "GET /\x7f HTTP/1.1\r\n" H END, 400, 0},
    {"space before the method", " GET / HTTP/1.1\r\n" H END, 400, 0},
    {"method with a colon", "GE:T / HTTP/1.1\r\n" H END, 400, 0},
    {"method with a bracket", "GE[T / HTTP/1.1\r\n" H END, 400, 0},
    {"no method", "/ HTTP/1.1\r\n" H END, 400, 0},
    {"method alone", "GET\r\n" H END, 400, 0},
    {"long method", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\n" H END, 501, 0},
    {"CONNECT", "CONNECT h:443 HTTP/1.1\r\n" H END, 501, 0},
    {"relative target", "GET echo HTTP/1.1\r\n" H END, 400, 0},
    {"* for GET", "GET * HTTP/1.1\r\n" H END, 400, 0},
    {"* and more", "OPTIONS *x HTTP/1.1\r\n" H END, 400, 0},
    {"ftp URL", "GET ftp://h/a HTTP/1.1\r\n" H END, 400, 0},
    {"URL without a host", "GET http:///a HTTP/1.1\r\n" H END, 400, 0},
    {"URL with a user", "GET http://u@h/a HTTP/1.1\r\n" H END, 400, 0},
    {"URL without Host", "GET http://h/a HTTP/1.1\r\n" END, 400, 0},
    {"Expect of something else", PUT("Content-Length: 3\r\nExpect: 200-ok\r\n"), 417, 0},
    {"empty Expect", PUT("Content-Length: 3\r\nExpect:\r\n"), 417, 0},
    {"Expect twice", PUT("Expect: 100-continue\r\nExpect: 100-continue\r\n"), 417, 0},
    {"Expect list", PUT("Expect: 100-continue, x\r\n"), 417, 0},
    {"two empty lines first", "\r\n\r\nGET / HTTP/1.1\r\n" H END, 400, 0},
    {"LF first", "\nGET / HTTP/1.1\r\n" H END, 400, 0},
    {"TLS hello", "\x16\x03\x01\x02", 400, 0},
};

static const struct row accepted[] = {
    {"plain", GET(""), 0, 0},
    {"1.0 without Host", "GET / HTTP/1.0\r\n" END, 0, 0},
    {"one empty line first", "\r\nGET / HTTP/1.1\r\n" H END, 0, 0},
    {"value without space", GET("X:a\r\n"), 0, 0},
    {"value with white space around", GET("X: \t a \t\r\n"), 0, 0},
    {"empty value", GET("X:\r\n"), 0, 0},
    {"high bytes in a value", GET("X: \xff\xfe\r\n"), 0, 0},
    {"tab in a value", GET("X: a\tb\r\n"), 0, 0},
    {"all token marks in a name", GET("!#$%&'*+-.^_`|~09azAZ: a\r\n"), 0, 0},
    {"raw UTF-8 target", "GET /b/\xd0\xba\xd0\xbb HTTP/1.1\r\n" H END, 0, 0},
    {"marks in the target", "GET /b/\"<>\\^`{|} HTTP/1.1\r\n" H END, 0, 0},
    {"dots and slashes", "GET //../%2e%2e/ HTTP/1.1\r\n" H END, 0, 0},
    {"own method", "BREW /pot HTTP/1.1\r\n" H END, 0, 0},
    {"lower-case method", "get / HTTP/1.1\r\n" H END, 0, 0},
    {"length 0", PUT("Content-Length: 0\r\n"), 0, 0},
    {"length with zeros", PUT("Content-Length: 0003\r\n"), 0, 0},
    {"largest length", PUT("Content-Length: 9223372036854775807\r\n"), 0, 0},
    {"length with a trailing space", PUT("Content-Length: 3 \r\n"), 0, 0},
    {"chunked", PUT("Transfer-Encoding: chunked\r\n"), 0, 0},
    {"CHUNKED", PUT("TRANSFER-ENCODING: \tCHUNKED \r\n"), 0, 0},
    {"Expect", PUT("Content-Length: 3\r\nExpect: 100-Continue\r\n"), 0, 0},
    {"IPv6 Host", "GET / HTTP/1.1\r\nHost: [::1]:9000\r\n" END, 0, 0},
    {"Host with an empty port", "GET / HTTP/1.1\r\nHost: h:\r\n" END, 0, 0},
    {"Host with marks", "GET / HTTP/1.1\r\nHost: a_b-c.d~%41\r\n" END, 0, 0},
    {"* for OPTIONS", "OPTIONS * HTTP/1.1\r\n" H END, 0, 0},
    {"URL", "GET HTTP://x:80/a?b HTTP/1.1\r\n" H END, 0, 0},
};

/* Feeds a copy of exact size, so that a sanitizer sees any byte read too far. */
static enum srv_head1_result feed(struct srv_head1 *head, const char *bytes, size_t len)
{
    char *copy = malloc(len + (len == 0));
    CHECK(copy != NULL);
    memcpy(copy, bytes, len);
    enum srv_head1_result result = srv_head1_feed(head, copy, len);
    free(copy);
    return result;
}

static void check_row(const struct row *row, size_t first)
{
    static struct srv_head1 head;
    size_t len = row->len != 0 ? row->len : strlen(row->head);
    srv_head1_init(&head);
    enum srv_head1_result result = SRV_HEAD1_MORE;
    if (first < len)
        result = feed(&head, row->head, first);
    if (result == SRV_HEAD1_MORE)
        result = feed(&head, row->head, len);
    enum srv_head1_result want = row->status == 0 ? SRV_HEAD1_DONE : SRV_HEAD1_REJECTED;
    CHECK_MSG(result == want, "%s (split at %zu): result %d", row->what, first, (int)result);
    CHECK_MSG(head.status == row->status, "%s: status %d", row->what, head.status);
    CHECK_MSG(want == SRV_HEAD1_DONE || (head.reason != NULL && head.reason[0] != '\0'),
              "%s: no reason", row->what);
    CHECK_MSG(want == SRV_HEAD1_REJECTED || head.head_len == len, "%s: %u of %zu bytes", row->what,
              head.head_len, len);
}

TEST(malformed_heads_are_rejected_at_every_split)
{
    for (size_t i = 0; i < sizeof(rejected) / sizeof(rejected[0]); i++)
        for (size_t split = 0; split < 200; split++)
            check_row(&rejected[i], split);
}

TEST(valid_heads_are_accepted_at_every_split)
{
    for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++)
        for (size_t split = 0; split < 200; split++)
            check_row(&accepted[i], split);
}

TEST(unfinished_head_asks_for_more)
{
    static const char text[] = PUT("Content-Length: 3\r\n");
    static struct srv_head1 head;
    srv_head1_init(&head);
    for (size_t len = 0; len + 1 < sizeof(text) - 1; len++)
        CHECK_EQ_INT(feed(&head, text, len), SRV_HEAD1_MORE);
    CHECK_EQ_INT(feed(&head, text, sizeof(text) - 1), SRV_HEAD1_DONE);
}

static void parse(struct srv_head1 *head, const char *text)
{
    srv_head1_init(head);
    CHECK_EQ_INT(srv_head1_feed(head, text, strlen(text)), SRV_HEAD1_DONE);
}

static void check_span(const char *text, struct srv_head1_span span, const char *want)
{
    struct srv_str got = srv_head1_str(text, span);
    CHECK_MSG(got.len == strlen(want) && memcmp(got.base, want, got.len) == 0,
              "'%.*s' instead of '%s'", (int)got.len, got.base, want);
}

TEST(parts_of_a_head_are_found)
{
    static struct srv_head1 head;
    const char *text =
        "PUT /b/a%20b?x=1?y HTTP/1.1\r\nA: 1\r\nHoSt: \th:9 \r\nExpect: 100-continue\r\n"
        "cOntent-length: 42\r\n\r\nbody";
    parse(&head, text);
    check_span(text, head.method, "PUT");
    check_span(text, head.target, "/b/a%20b?x=1?y");
    check_span(text, head.path, "/b/a%20b");
    check_span(text, head.query, "x=1?y");
    check_span(text, head.authority, "h:9");
    CHECK_EQ_INT(head.version, 11);
    CHECK_EQ_INT(head.body, SRV_HEAD1_BODY_LENGTH);
    CHECK_EQ_U64(head.content_length, 42);
    CHECK(head.expect_continue && head.keep_alive);
    CHECK_EQ_INT(head.n_fields, 4);
    CHECK_EQ_INT(head.host_at, 1);
    CHECK_EQ_INT(head.expect_at, 2);
    CHECK_EQ_INT(head.content_length_at, 3);
    CHECK_EQ_INT(head.transfer_encoding_at, SRV_HEAD1_NO_FIELD);
    check_span(text, head.fields[3].name, "cOntent-length");
    check_span(text, head.fields[0].value, "1");
    check_span(text + head.head_len, (struct srv_head1_span){0, 4}, "body");
}

TEST(absolute_form_replaces_host)
{
    static struct srv_head1 head;
    const char *text = "GET http://real:81/a/b?c HTTP/1.1\r\nHost: other\r\n\r\n";
    parse(&head, text);
    check_span(text, head.authority, "real:81");
    check_span(text, head.path, "/a/b");
    check_span(text, head.query, "c");
    text = "GET https://real?c HTTP/1.1\r\nHost: other\r\n\r\n";
    parse(&head, text);
    check_span(text, head.authority, "real");
    check_span(text, head.path, "");
    check_span(text, head.query, "c");
}

TEST(connection_wishes_are_understood)
{
    static const struct {
        const char *text;
        bool keep;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", true},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: x , CLOSE\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: closed\r\n\r\n", true},
        {"GET / HTTP/1.0\r\n\r\n", false},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
    };
    static struct srv_head1 head;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        parse(&head, rows[i].text);
        CHECK_MSG(head.keep_alive == rows[i].keep, "row %zu", i);
    }
}

TEST(expect_is_heeded_only_before_a_body)
{
    static struct srv_head1 head;
    parse(&head, PUT("Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n"));
    CHECK(head.expect_continue);
    parse(&head, PUT("Expect: 100-continue\r\nContent-Length: 0\r\n"));
    CHECK(head.expect_continue);
    parse(&head, PUT("Expect: 100-continue\r\n"));
    CHECK(!head.expect_continue && head.expect_at == 1);
    parse(&head, "PUT / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    CHECK(!head.expect_continue);
}

/* Feeds `text` in steps of `step` bytes and gives the status, 0 if accepted. */
static int status_of(const char *text, size_t len, size_t step)
{
    static struct srv_head1 head;
    srv_head1_init(&head);
    for (size_t n = step; n < len; n += step) {
        enum srv_head1_result result = srv_head1_feed(&head, text, n);
        if (result != SRV_HEAD1_MORE)
            return head.status;
    }
    (void)srv_head1_feed(&head, text, len);
    return head.status;
}

TEST(limits_answer_with_their_own_status)
{
    static char text[200 << 10];
    for (size_t step = 1 << 10; step <= sizeof(text); step *= 200) {
        int n = snprintf(text, sizeof(text), "GET /%0*d HTTP/1.1\r\n" H END, 16 << 10, 0);
        CHECK_EQ_INT(status_of(text, (size_t)n, step), 414);
        CHECK_EQ_INT(status_of(text, (size_t)n - 20, step), 414);
        n = snprintf(text, sizeof(text), "GET /%0*d HTTP/1.1\r\n" H END, (16 << 10) - 14, 0);
        CHECK_EQ_INT(status_of(text, (size_t)n, step), 0);
        n = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n" H "X: %0*d\r\n" END, 64 << 10, 0);
        CHECK_EQ_INT(status_of(text, (size_t)n, step), 431);
        CHECK_EQ_INT(status_of(text, 65536, step), 431);
        n = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n" H "X: %0*d\r\n" END, (64 << 10) - 32,
                     0);
        CHECK_EQ_INT(n, 65536);
        CHECK_EQ_INT(status_of(text, (size_t)n, step), 0);
    }
    size_t at = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n" H);
    for (int i = 0; i < 99; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "X%d: a\r\n", i);
    memcpy(text + at, "\r\n", 2);
    CHECK_EQ_INT(status_of(text, at + 2, 7), 0);
    memcpy(text + at, "Y: a\r\n\r\n", 8);
    CHECK_EQ_INT(status_of(text, at + 8, 7), 431);
}

TEST(pipelined_bytes_are_left_alone)
{
    static struct srv_head1 head;
    const char *text = GET("") "PUT \0 nonsense \n\n";
    srv_head1_init(&head);
    CHECK_EQ_INT(srv_head1_feed(&head, text, sizeof(GET("") "PUT \0 nonsense \n\n") - 1),
                 SRV_HEAD1_DONE);
    CHECK_EQ_U64(head.head_len, sizeof(GET("")) - 1);
}
