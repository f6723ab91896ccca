/* Records beside stored responses, and heads of origins: what is written reads back, and nothing
 * else reads. */
#include "server/http/record.h"

#include <stdlib.h>

#include "server/http/origin_head.h"
#include "tests/server/http_fixture.h"

static void *write_one(size_t *len_out)
{
    static struct text_fields text;
    const struct srv_http_facts facts = {.status = 599,
                                         .flags = SRV_HTTP_NO_CACHE | SRV_HTTP_EXPLICIT,
                                         .received_ms = INT64_MAX,
                                         .initial_age_ms = -1,
                                         .lifetime_s = 3,
                                         .while_revalidate_s = 4,
                                         .if_error_s = 5,
                                         .date_s = INT64_MIN};
    void *bytes = srv_http_record_write(SRV_HTTP_RECORD_INDEX, &facts, 0x8877665544332211,
                                        read_fields(&text, "a: 1\nb:\na: \xff, x"), len_out);
    CHECK(bytes != NULL);
    return bytes;
}

TEST(a_record_reads_back)
{
    static struct srv_http_record record;
    size_t len;
    void *bytes = write_one(&len);
    CHECK(srv_http_record_read(bytes, len, &record));
    CHECK_EQ_INT(record.kind, SRV_HTTP_RECORD_INDEX);
    CHECK_EQ_U64(record.generation, 0x8877665544332211);
    CHECK_EQ_INT(record.facts.status, 599);
    CHECK_EQ_INT(record.facts.flags, SRV_HTTP_NO_CACHE | SRV_HTTP_EXPLICIT);
    CHECK(record.facts.received_ms == INT64_MAX && record.facts.initial_age_ms == -1);
    CHECK(record.facts.lifetime_s == 3 && record.facts.while_revalidate_s == 4);
    CHECK(record.facts.if_error_s == 5 && record.facts.date_s == INT64_MIN);
    CHECK_EQ_INT(record.n_fields, 3);
    CHECK_EQ_STR(text_of(record.fields[1].name), "b");
    CHECK_EQ_STR(text_of(record.fields[1].value), "");
    CHECK_EQ_STR(text_of(record.fields[2].value), "\xff, x");
    free(bytes);
}

TEST(a_record_cut_or_lengthened_is_none)
{
    static struct srv_http_record record;
    size_t len;
    uint8_t *bytes = write_one(&len);
    for (size_t n = 0; n < len; n++) {
        /* A block of its own, so that a sanitizer sees every byte read beyond. */
        uint8_t *cut = malloc(n + 1);
        memcpy(cut, bytes, n);
        CHECK_MSG(!srv_http_record_read(cut, n, &record) && record.n_fields == 0, "%zu bytes", n);
        free(cut);
    }
    uint8_t *longer = calloc(1, len + 1);
    memcpy(longer, bytes, len);
    CHECK(!srv_http_record_read(longer, len + 1, &record));
    longer[0] ^= 1;
    CHECK(!srv_http_record_read(longer, len, &record));
    free(longer);
    free(bytes);
}

/* ---- Heads ---- */

static enum srv_http_head_state feed(struct srv_http_head *head, const char *text)
{
    enum srv_http_head_state state = head->state;
    while (*text != '\0') {
        size_t len = strcspn(text, "\n") + 1;
        state = srv_http_head_line(head, (struct srv_str){text, len});
        text += len;
    }
    return state;
}

/* RFC 9112, 4 to 6.3; RFC 9110, 15.2. */
TEST(heads_that_are_read)
{
    struct srv_http_head head = {0};
    CHECK_EQ_INT(feed(&head, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"), SRV_HTTP_HEAD_DONE);
    CHECK_EQ_INT(head.status, 103);
    CHECK_EQ_INT(feed(&head, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA:  b c \r\n d\r\n"
                             "content-LENGTH: 5\r\nX:\r\n\r\n"),
                 SRV_HTTP_HEAD_DONE);
    CHECK_EQ_INT(head.status, 200);
    CHECK_EQ_U64(head.content_length, 5);
    CHECK_EQ_INT(head.n_fields, 4);
    CHECK_EQ_STR(text_of(head.fields[1].name), "a");
    CHECK_EQ_STR(text_of(head.fields[1].value), "b c d");
    CHECK_EQ_STR(text_of(head.fields[3].value), "");
    srv_http_head_fini(&head);
    CHECK_EQ_INT(feed(&head, "HTTP/2 999\r\n\r\n"), SRV_HTTP_HEAD_DONE);
    CHECK_EQ_INT(head.status, 999);
    CHECK(head.content_length == SRV_LENGTH_UNKNOWN);
    srv_http_head_fini(&head);
    CHECK_EQ_INT(feed(&head, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
                             "Transfer-Encoding: Chunked\r\n\r\n"),
                 SRV_HTTP_HEAD_DONE);
    CHECK(head.content_length == SRV_LENGTH_UNKNOWN);
    srv_http_head_fini(&head);
    CHECK_EQ_INT(feed(&head, "HTTP/1.1 200 OK\r\nTransfer-Encoding: none-knows\r\n\r\n"),
                 SRV_HTTP_HEAD_DONE);
    srv_http_head_fini(&head);
}

TEST(heads_that_are_refused)
{
    static const char *const texts[] = {
        "\r\n",
        "200 OK\r\n",
        "HTTP/1.1 20 OK\r\n",
        "HTTP/1.1 2000 OK\r\n",
        "HTTP/1.1 2x0 OK\r\n",
        "HTTP/1.1 099 OK\r\n",
        "HTTP/1.1200 OK\r\n",
        "ICY 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n",
        "HTTP/1.1 200 OK\r\n: x\r\n",
        "HTTP/1.1 200 OK\r\na : x\r\n",
        "HTTP/1.1 200 OK\r\na\x01: x\r\n",
        "HTTP/1.1 200 OK\r\na: \x01\r\n",
        "HTTP/1.1 200 OK\r\n folded\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: none-knows\r\nContent-Length: 5\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct srv_http_head head = {0};
        CHECK_MSG(feed(&head, texts[i]) == SRV_HTTP_HEAD_BAD, "%s", texts[i]);
        CHECK_EQ_INT(srv_http_head_line(&head, str("HTTP/1.1 200 OK")), SRV_HTTP_HEAD_BAD);
        srv_http_head_fini(&head);
    }
}

TEST(heads_have_bounds)
{
    struct srv_http_head head = {0};
    static char line[SRV_HTTP_HEAD_MAX];
    memset(line, 'x', sizeof line);
    line[1] = ':';
    feed(&head, "HTTP/1.1 200 OK\n");
    CHECK_EQ_INT(srv_http_head_line(&head, (struct srv_str){line, sizeof line / 2}),
                 SRV_HTTP_HEAD_OPEN);
    CHECK_EQ_INT(srv_http_head_line(&head, (struct srv_str){line, sizeof line}), SRV_HTTP_HEAD_BAD);
    srv_http_head_fini(&head);
    feed(&head, "HTTP/1.1 200 OK\n");
    for (int i = 0; i < SRV_HTTP_FIELDS_MAX; i++)
        CHECK_EQ_INT(srv_http_head_line(&head, str("a: b")), SRV_HTTP_HEAD_OPEN);
    CHECK_EQ_INT(srv_http_head_line(&head, str("a: b")), SRV_HTTP_HEAD_BAD);
    srv_http_head_fini(&head);
}
