/* The chunk decoder as a table, each row fed whole, byte by byte, and cut at every place. */
#include "server/chunked.h"

#include <stdlib.h>

#include "tests/harness/test.h"

struct row {
    const char *what;
    const char *wire;
    const char *body; /* NULL: malformed */
    size_t extra;     /* bytes of the next request at the end */
};

static const struct row rows[] = {
    {"empty", "0\r\n\r\n", "", 0},
    {"one chunk", "5\r\nhello\r\n0\r\n\r\n", "hello", 0},
    {"two chunks", "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", "hello", 0},
    {"next request follows", "1\r\na\r\n0\r\n\r\nGET / HTTP/1.1", "a", 14},
    {"upper-case hex", "A\r\n0123456789\r\n0\r\n\r\n", "0123456789", 0},
    {"lower-case hex", "a\r\n0123456789\r\n0\r\n\r\n", "0123456789", 0},
    {"16 digits", "0000000000000001\r\na\r\n0000\r\n\r\n", "a", 0},
    {"CRLF in data", "4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n", 0},
    {"extension", "1;a\r\nx\r\n0;b\r\n\r\n", "x", 0},
    {"extension with a value", "1;a=b;c=d\r\nx\r\n0\r\n\r\n", "x", 0},
    {"quoted extension", "1;a=\"b;\\\"c d\";e\r\nx\r\n0\r\n\r\n", "x", 0},
    {"empty quoted extension", "1;a=\"\"\r\nx\r\n0\r\n\r\n", "x", 0},
    {"trailer", "0\r\nX-A: b\r\nY:\r\n\r\n", "", 0},
    {"trailer then next request", "0\r\nX: b\r\n\r\nPUT", "", 3},
    {"0x3", "0x3\r\nabc\r\n0\r\n\r\n", NULL, 0},
    {"size with a trailing space", "3 \r\nabc\r\n0\r\n\r\n", NULL, 0},
    {"size with a leading space", " 3\r\nabc\r\n0\r\n\r\n", NULL, 0},
    {"size with a tab", "3\t\r\nabc\r\n0\r\n\r\n", NULL, 0},
    {"+3", "+3\r\nabc\r\n0\r\n\r\n", NULL, 0},
    {"-3", "-3\r\nabc\r\n0\r\n\r\n", NULL, 0},
    {"no size", "\r\nabc\r\n0\r\n\r\n", NULL, 0},
    {"no size before an empty trailer", "\r\n\r\n", NULL, 0},
    {"no size but an extension before an empty trailer", ";a\r\n\r\n", NULL, 0},
    {"escaped CR in a quoted extension", "1;a=\"\\\r\"\r\nx\r\n0\r\n\r\n", NULL, 0},
    {"only an extension", ";a\r\nabc\r\n0\r\n\r\n", NULL, 0},
    {"LF after the size", "3\nabc\r\n0\r\n\r\n", NULL, 0},
    {"LF after the data", "3\r\nabc\n0\r\n\r\n", NULL, 0},
    {"CR alone after the size", "3\rabc\r\n0\r\n\r\n", NULL, 0},
    {"CR alone after the data", "3\r\nabc\r0\r\n\r\n", NULL, 0},
    {"LF at the end", "0\r\n\n", NULL, 0},
    {"LF after the last size", "0\n\r\n", NULL, 0},
    {"data too long", "3\r\nabcd\r\n0\r\n\r\n", NULL, 0},
    {"data too short", "5\r\nabc\r\n0\r\n\r\n", NULL, 0},
    {"17 digits", "00000000000000001\r\na\r\n0\r\n\r\n", NULL, 0},
    {"size 2^64-1", "ffffffffffffffff\r\na", NULL, 0},
    {"size 2^63", "8000000000000000\r\na", NULL, 0},
    {"sum of sizes overflows", "1\r\na\r\n7fffffffffffffff\r\n", NULL, 0},
    {"no hex", "g\r\nabc\r\n0\r\n\r\n", NULL, 0},
    {"control", "\x01", NULL, 0},
    {"empty extension", "1;\r\nx\r\n0\r\n\r\n", NULL, 0},
    {"extension without a name", "1;=b\r\nx\r\n0\r\n\r\n", NULL, 0},
    {"extension without a value", "1;a=\r\nx\r\n0\r\n\r\n", NULL, 0},
    {"space before an extension", "1 ;a\r\nx\r\n0\r\n\r\n", NULL, 0},
    {"space in an extension", "1; a\r\nx\r\n0\r\n\r\n", NULL, 0},
    {"CR in a quoted extension", "1;a=\"\r\n\"\r\nx\r\n0\r\n\r\n", NULL, 0},
    {"junk after a quoted extension", "1;a=\"b\"c\r\nx\r\n0\r\n\r\n", NULL, 0},
    {"two equals signs", "1;a=b=c\r\nx\r\n0\r\n\r\n", NULL, 0},
    {"LF after an extension", "1;a\nx\r\n0\r\n\r\n", NULL, 0},
    {"trailer without a name", "0\r\n: b\r\n\r\n", NULL, 0},
    {"trailer without a colon", "0\r\nX\r\n\r\n", NULL, 0},
    {"space before a trailer's colon", "0\r\nX : b\r\n\r\n", NULL, 0},
    {"folded trailer", "0\r\nX: b\r\n c\r\n\r\n", NULL, 0},
    {"LF after a trailer", "0\r\nX: b\n\r\n", NULL, 0},
    {"control in a trailer", "0\r\nX: \x01\r\n\r\n", NULL, 0},
};

struct outcome {
    enum srv_chunked_result result;
    char body[256];
    size_t body_len;
    size_t used;
};

/* Feeds one piece to its end or to a result that ends the body. */
static void feed(struct srv_chunked *decoder, const char *bytes, size_t len, struct outcome *out)
{
    char *copy =
        malloc(len + (len == 0)); /* of exact size: a sanitizer sees any byte read too far */
    CHECK(copy != NULL);
    memcpy(copy, bytes, len);
    size_t at = 0;
    do {
        size_t used;
        struct srv_str data;
        out->result = srv_chunked_feed(decoder, copy + at, len - at, &used, &data);
        CHECK((out->result == SRV_CHUNKED_DATA) == (data.len != 0));
        CHECK(data.len == 0 || data.base + data.len == copy + at + used);
        CHECK(out->body_len + data.len <= sizeof(out->body));
        if (data.len != 0)
            memcpy(out->body + out->body_len, data.base, data.len);
        out->body_len += data.len;
        at += used;
    } while (out->result == SRV_CHUNKED_DATA);
    CHECK(out->result != SRV_CHUNKED_MORE || at == len);
    out->used += at;
    free(copy);
}

static void check_row(const struct row *row, size_t step, size_t first)
{
    struct srv_chunked decoder;
    struct outcome out = {.result = SRV_CHUNKED_MORE};
    srv_chunked_init(&decoder);
    size_t len = strlen(row->wire);
    for (size_t at = 0, n = first; at < len && out.result == SRV_CHUNKED_MORE; at += n, n = step) {
        if (n > len - at)
            n = len - at;
        feed(&decoder, row->wire + at, n, &out);
    }
    if (row->body == NULL) {
        CHECK_MSG(out.result == SRV_CHUNKED_BAD, "%s (%zu, %zu): result %d", row->what, first, step,
                  (int)out.result);
        CHECK(decoder.reason != NULL);
        return;
    }
    CHECK_MSG(out.result == SRV_CHUNKED_END, "%s (%zu, %zu): %s", row->what, first, step,
              decoder.reason != NULL ? decoder.reason : "unfinished");
    CHECK_MSG(out.used == len - row->extra, "%s (%zu, %zu): used %zu", row->what, first, step,
              out.used);
    CHECK_EQ_U64(out.body_len, strlen(row->body));
    CHECK_EQ_U64(decoder.total, out.body_len);
    CHECK_EQ_MEM(out.body, row->body, out.body_len);
}

TEST(every_row_gives_its_answer_at_every_split)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t first = 1; first <= strlen(rows[i].wire); first++) {
            check_row(&rows[i], 1000, first);
            check_row(&rows[i], 1, first);
            check_row(&rows[i], 3, first);
        }
}

TEST(no_prefix_of_a_body_is_its_end)
{
    static const char wire[] = "5;a=\"b\"\r\nhello\r\n0\r\nX: y\r\n\r\n";
    for (size_t len = 0; len < sizeof(wire) - 1; len++) {
        struct srv_chunked decoder;
        struct outcome out = {.result = SRV_CHUNKED_MORE};
        srv_chunked_init(&decoder);
        feed(&decoder, wire, len, &out);
        CHECK_EQ_INT(out.result, SRV_CHUNKED_MORE);
    }
}

TEST(left_says_how_much_is_all_data)
{
    struct srv_chunked decoder;
    struct outcome out = {.result = SRV_CHUNKED_MORE};
    srv_chunked_init(&decoder);
    CHECK_EQ_U64(srv_chunked_left(&decoder), 0);
    feed(&decoder, "1f4\r\n", 5, &out);
    CHECK_EQ_U64(srv_chunked_left(&decoder), 500);
    feed(&decoder, "abc", 3, &out);
    CHECK_EQ_U64(srv_chunked_left(&decoder), 497);
    srv_chunked_init(&decoder);
    feed(&decoder, "0\r\n", 3, &out);
    CHECK_EQ_U64(srv_chunked_left(&decoder), 0);
}

TEST(bad_stays_bad)
{
    struct srv_chunked decoder;
    struct outcome out = {.result = SRV_CHUNKED_MORE};
    srv_chunked_init(&decoder);
    feed(&decoder, "x", 1, &out);
    CHECK_EQ_INT(out.result, SRV_CHUNKED_BAD);
    feed(&decoder, "0\r\n\r\n", 5, &out);
    CHECK_EQ_INT(out.result, SRV_CHUNKED_BAD);
}

/* Feeds `count` copies of `piece` after `head` and gives the result. */
static enum srv_chunked_result flood(const char *head, const char *piece, size_t count)
{
    struct srv_chunked decoder;
    struct outcome out = {.result = SRV_CHUNKED_MORE};
    srv_chunked_init(&decoder);
    feed(&decoder, head, strlen(head), &out);
    while (count-- > 0 && out.result == SRV_CHUNKED_MORE) {
        out.body_len = 0;
        feed(&decoder, piece, strlen(piece), &out);
    }
    return out.result;
}

TEST(extensions_and_trailers_are_bounded_for_the_whole_body)
{
    CHECK_EQ_INT(flood("1;", "a", SRV_CHUNKED_EXT_MAX), SRV_CHUNKED_MORE);
    CHECK_EQ_INT(flood("1;", "a", SRV_CHUNKED_EXT_MAX + 1), SRV_CHUNKED_BAD);
    CHECK_EQ_INT(flood("", "1;abcdefghijklmno\r\nx\r\n", SRV_CHUNKED_EXT_MAX / 16),
                 SRV_CHUNKED_MORE);
    CHECK_EQ_INT(flood("", "1;abcdefghijklmno\r\nx\r\n", SRV_CHUNKED_EXT_MAX / 16 + 1),
                 SRV_CHUNKED_BAD);
    CHECK_EQ_INT(flood("0\r\n", "a:bcde\r\n", SRV_CHUNKED_TRAILER_MAX / 8), SRV_CHUNKED_MORE);
    CHECK_EQ_INT(flood("0\r\n", "a:bcde\r\n", SRV_CHUNKED_TRAILER_MAX / 8 + 1), SRV_CHUNKED_BAD);
}
