/* Heads of HTTP/1 responses: what is announced, in which order, and within which bound. */
#include "server/head1_write.h"

#include <string.h>

#include "tests/harness/test.h"

static const char DATE[] = "Sun, 06 Nov 1994 08:49:37 GMT";

static const char *written(struct srv_head1_answer answer)
{
    static char text[1024];
    answer.date = DATE;
    size_t bound = srv_head1_write_bound(&answer);
    CHECK(bound < sizeof text);
    memset(text, '!', sizeof text);
    size_t len = srv_head1_write(&answer, text);
    CHECK_MSG(len <= bound, "%zu bytes, bound %zu", len, bound);
    for (size_t i = len; i < sizeof text; i++)
        CHECK_EQ_INT(text[i], '!');
    text[len] = '\0';
    return text;
}

#define START "\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: Gyre\r\nConnection: "

TEST(the_status_line_has_its_reason)
{
    static const struct {
        int status;
        const char *line;
    } rows[] = {
        {200, "HTTP/1.1 200 OK\r\n"},
        {206, "HTTP/1.1 206 Partial Content\r\n"},
        {431, "HTTP/1.1 431 Request Header Fields Too Large\r\n"},
        {599, "HTTP/1.1 599 Status\r\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *text = written((struct srv_head1_answer){.status = rows[i].status});
        CHECK_MSG(strncmp(text, rows[i].line, strlen(rows[i].line)) == 0, "%s", text);
    }
}

TEST(lengths_are_announced_when_known)
{
    CHECK_EQ_STR(written((struct srv_head1_answer){.status = 304,
                                                   .keeps_connection = true,
                                                   .content_length = SRV_LENGTH_UNKNOWN}),
                 "HTTP/1.1 304 Not Modified" START "keep-alive\r\n\r\n");
    CHECK_EQ_STR(written((struct srv_head1_answer){.status = 200}),
                 "HTTP/1.1 200 OK" START "close\r\nContent-Length: 0\r\n\r\n");
    CHECK_EQ_STR(
        written((struct srv_head1_answer){.status = 200, .content_length = SRV_LENGTH_UNKNOWN - 1}),
        "HTTP/1.1 200 OK" START "close\r\nContent-Length: 18446744073709551614\r\n\r\n");
}

TEST(fields_follow_in_their_order_and_spelling)
{
    const struct srv_field fields[] = {
        {{"ETag", 4}, {"\"x\"", 3}}, {{"x-Empty", 7}, {"", 0}}, {{"B", 1}, {"c d", 3}}};
    CHECK_EQ_STR(written((struct srv_head1_answer){
                     .status = 200, .content_length = 4096, .fields = fields, .n_fields = 3}),
                 "HTTP/1.1 200 OK" START
                 "close\r\nContent-Length: 4096\r\nETag: \"x\"\r\nx-Empty: \r\nB: c d\r\n\r\n");
}

TEST(interim_heads_say_nothing_of_their_own)
{
    const struct srv_field fields[] = {{{"link", 4}, {"x", 1}}};
    CHECK_EQ_STR(written((struct srv_head1_answer){.status = 103,
                                                   .content_length = SRV_LENGTH_UNKNOWN,
                                                   .is_relayed = true,
                                                   .is_interim = true,
                                                   .fields = fields,
                                                   .n_fields = 1}),
                 "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n");
}
