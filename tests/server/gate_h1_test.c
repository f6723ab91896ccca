/* HTTP/1 over raw sockets: what is no request gets its answer and a close, what is one is served
 * however it arrives. */
#include "tests/server/front_fixture.h"

static struct fixture fixture;
static char heard[1 << 17];

static void open_fixture(void)
{
    fixture_init(&fixture);
    fixture_open(&fixture);
}

/* Says `text` and returns the status of the first answer, after the peer has closed; 0 if it never
 * answered. */
static int status_then_close(const char *text, size_t len)
{
    int fd = fixture_connect(&fixture);
    int status = 0;
    client_send(fd, text, len);
    CHECK_MSG(client_hear(fd, heard, sizeof heard, NULL), "not closed after: %s", text);
    sscanf(heard, "HTTP/1.1 %d ", &status);
    close(fd);
    return status;
}

#define STATUS_OF(literal) status_then_close(literal, sizeof(literal) - 1)
#define HOST "Host: a\r\n"

static const struct {
    const char *text;
    int status;
} malformed[] = {
    {"GET /text HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"GET /text HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400},
    {"PUT /count HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400},
    {"PUT /count HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", 400},
    {"PUT /count HTTP/1.1\r\n" HOST "Content-Length: +3\r\n\r\nxxx", 400},
    {"PUT /count HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n", 400},
    {"PUT /count HTTP/1.1\r\n" HOST "Content-Length: 0x3\r\n\r\nxxx", 400},
    {"PUT /count HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n", 400},
    {"PUT /count HTTP/1.1\r\n" HOST "Content-Length: 3, 3\r\n\r\nxxx", 400},
    {"PUT /count HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551616\r\n\r\n", 400},
    {"PUT /count HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
    {"PUT /count HTTP/1.1\r\n" HOST
     "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n",
     400},
    {"PUT /count HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n", 400},
    {"PUT /count HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"GET /text HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n", 400},
    {"GET /text HTTP/1.1\n"
     "Host: a\n\n",
     400},
    {"GET /text HTTP/1.1\r\nHost: a\n\r\n", 400},
    {"GET /text HTTP/1.1\r\n" HOST "A: b\rc\r\n\r\n", 400},
    {"GET /text HTTP/1.1\r\n" HOST "A : b\r\n\r\n", 400},
    {"GET /te xt HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /text HTTP/1.1\r\n" HOST "A: b\vc\r\n\r\n", 400},
    {"GET /text HTTP/1.1\r\n" HOST ": b\r\n\r\n", 400},
    {"GET /text HTTP/1.1\r\n\r\n", 400},
    {"GET /text HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
    {"GET /text HTTP/1.1\r\nHost: a/b@c\r\n\r\n", 400},
    {"GET text HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /text HTTP/1.2\r\n" HOST "\r\n", 505},
    {"GET /text HTTP/2.0\r\n" HOST "\r\n", 505},
    {"GET /text\r\n\r\n", 400},
    {"CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n", 501},
    {"PUT /count HTTP/1.1\r\n" HOST "Content-Length: 1\r\nExpect: miracles\r\n\r\n", 417},
    {"PRI * HTTP/2.0\r\n\r\nSX\r\n\r\n", 505},
    {"\x16\x03\x01\x02", 400},
};

TEST(malformed_heads_get_their_answer_and_a_close)
{
    open_fixture();
    int bystander = fixture_connect(&fixture);
    CHECK(client_say(bystander, "GET /te"));
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        int status = status_then_close(malformed[i].text, strlen(malformed[i].text));
        CHECK_MSG(status == malformed[i].status, "row %zu: %d instead of %d for %s", i, status,
                  malformed[i].status, malformed[i].text);
        CHECK_MSG(strstr(heard, "Connection: close\r\n") != NULL, "row %zu promises to go on", i);
    }
    CHECK_EQ_INT(STATUS_OF("GET /text HTTP/1.1\r\nHost: a\r\nA: b\0c\r\n\r\n"), 400);
    close(bystander);
    CHECK_EQ_INT(STATUS_OF("GET /text HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), 200);
    fixture_close(&fixture);
}

TEST(overlong_heads_are_refused)
{
    static char text[100000];
    open_fixture();
    memset(text, 'a', sizeof text);
    memcpy(text, "GET /", 5);
    CHECK_EQ_INT(status_then_close(text, 20000), 414);
    int n = snprintf(text, 100, "GET /text HTTP/1.1\r\nHost: a\r\nX: ");
    memset(text + n, 'b', 200);
    CHECK_EQ_INT(status_then_close(text, sizeof text), 431);
    char *at = text + snprintf(text, 100, "GET /text HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < 120; i++)
        at += sprintf(at, "A: b\r\n");
    at += sprintf(at, "\r\n");
    CHECK_EQ_INT(status_then_close(text, (size_t)(at - text)), 431);
    fixture_close(&fixture);
}

TEST(a_rejected_head_does_not_lose_its_answer_to_what_the_client_still_sends)
{
    static char body[200000];
    open_fixture();
    for (int i = 0; i < 20; i++) {
        int fd = fixture_connect(&fixture);
        CHECK(client_say(fd, "PUT /count HTTP/1.1\r\nHost: a\r\nContent-Length: "
                             "200000\r\nContent-Length: 200000\r\n\r\n"));
        client_send(fd, body, sizeof body);
        CHECK(client_hear(fd, heard, sizeof heard, NULL));
        CHECK(strncmp(heard, "HTTP/1.1 400 ", 13) == 0);
        close(fd);
    }
    fixture_close(&fixture);
}

TEST(heads_may_come_a_byte_at_a_time_and_stay_open)
{
    const char *text =
        "\r\nGET /fields?q=1 HTTP/1.1\r\nHost: example.org:80\r\nX-Mixed-Case:  v w \t\r\n\r\n";
    open_fixture();
    int fd = fixture_connect(&fixture);
    for (int round = 0; round < 2; round++) {
        for (const char *at = text; *at != '\0'; at++)
            CHECK(client_send(fd, at, 1));
        CHECK(client_hear(fd, heard, sizeof heard, "x-mixed-case: v w\n"));
        CHECK(strstr(heard, "/fields|q=1|example.org:80|11|") != NULL);
        CHECK(strstr(heard, "host: example.org:80\n") != NULL);
        CHECK(strstr(heard, "Connection: keep-alive\r\n") != NULL);
    }
    close(fd);
    fixture_close(&fixture);
}

TEST(pipelined_requests_are_answered_in_order)
{
    enum { N = 300 };
    static char text[N * 60], *at = text;
    open_fixture();
    for (int i = 0; i < N; i++)
        at += sprintf(at, "GET /fields?%d HTTP/1.1\r\nHost: a\r\n\r\n", i);
    sprintf(at, "GET /fields?last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    int fd = fixture_connect(&fixture);
    CHECK(client_say(fd, text));
    CHECK(client_hear(fd, heard, sizeof heard, NULL));
    const char *from = heard;
    for (int i = 0; i < N; i++) {
        char want[32];
        sprintf(want, "/fields|%d|", i);
        from = strstr(from, want);
        CHECK_MSG(from != NULL, "answer %d is missing or out of order", i);
    }
    CHECK(strstr(from, "/fields|last|") != NULL);
    close(fd);
    fixture_close(&fixture);
}

TEST(what_comes_during_an_answer_waits_for_its_turn)
{
    open_fixture();
    for (int round = 0; round < 2; round++) {
        int fd = fixture_connect(&fixture);
        CHECK(client_say(fd, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n"));
        usleep(50000);
        CHECK(client_say(fd, "GET /text HTTP/1.1\r\nHost: a\r\n\r\nGET /te"));
        if (round == 1) /* the client is done sending, and still listens */
            shutdown(fd, SHUT_WR);
        CHECK(client_hear(fd, heard, sizeof heard, "hello\n"));
        CHECK(strstr(heard, "late\n") < strstr(heard, "hello\n"));
        if (round == 0)
            CHECK(client_say(fd, "xt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        CHECK(client_hear(fd, heard, sizeof heard, NULL));
        CHECK_EQ_INT(strstr(heard, "hello\n") != NULL, round == 0);
        close(fd);
    }
    fixture_close(&fixture);
}

TEST(absolute_targets_and_their_authority_are_understood)
{
    open_fixture();
    int fd = fixture_connect(&fixture);
    CHECK(client_say(fd, "GET http://b:1/fields?x HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK(client_hear(fd, heard, sizeof heard, "host: a\n"));
    CHECK(strstr(heard, "/fields|x|b:1|11|") != NULL);
    CHECK(client_say(fd, "GET http://b?x HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK(client_hear(fd, heard, sizeof heard, "nothing here\n"));
    close(fd);
    fixture_close(&fixture);
}

TEST(connections_of_http_1_0_close_unless_asked_to_stay)
{
    open_fixture();
    CHECK_EQ_INT(STATUS_OF("GET /text HTTP/1.0\r\n\r\n"), 200);
    CHECK(strstr(heard, "Connection: close\r\n") != NULL);
    int fd = fixture_connect(&fixture);
    for (int i = 0; i < 2; i++) {
        CHECK(client_say(fd, "GET /text HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
        CHECK(client_hear(fd, heard, sizeof heard, "hello\n"));
        CHECK(strstr(heard, "Connection: keep-alive\r\n") != NULL);
    }
    close(fd);
    fixture_close(&fixture);
}

TEST(unfinished_heads_and_idle_connections_are_closed_in_time)
{
    fixture_init(&fixture);
    fixture.config.head_timeout_ms = 300;
    fixture.config.idle_timeout_ms = 1000;
    fixture_open(&fixture);
    int dripping = fixture_connect(&fixture);
    int idle = fixture_connect(&fixture);
    CHECK(client_say(idle, "GET /text HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK(client_hear(idle, heard, sizeof heard, "hello\n"));
    const char *text = "GET /text HTTP/1.1\r\nHost: a\r\nA: ";
    for (int n = 0; client_say(dripping, text); n++, text = "b") {
        CHECK_MSG(n < 1000, "still taking bytes of one head");
        usleep(50000); /* shorter than the timeout, which no byte may start anew */
    }
    client_hear(dripping, heard, sizeof heard, NULL);
    CHECK_EQ_STR(heard, "");
    CHECK(client_hear(idle, heard, sizeof heard, NULL));
    CHECK_EQ_STR(heard, "");
    close(dripping);
    close(idle);
    fixture_close(&fixture);
}

TEST(heads_have_no_content)
{
    open_fixture();
    int fd = fixture_connect(&fixture);
    CHECK(client_say(
        fd, "HEAD /bytes/1000 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /text HTTP/1.1\r\nHost: a\r\n\r\n"
            "GET /text HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK(client_hear(fd, heard, sizeof heard, "hello\n"));
    CHECK(strstr(heard, "Content-Length: 1000\r\n") != NULL);
    CHECK(strstr(strstr(heard, "\r\n\r\n") + 4, "HTTP/1.1 200 OK") ==
          strstr(heard, "\r\n\r\n") + 4);
    close(fd);
    fixture_close(&fixture);
}

/* A client that leaves at any point of a conversation must leave nothing behind. */
TEST(clients_may_leave_at_any_byte)
{
    static const char text[] =
        "PUT /work HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        "GET /wait/100000 HTTP/1.1\r\nHost: a\r\n\r\nGET /late HTTP/1.1\r\nHost: a\r\n\r\n";
    open_fixture();
    for (size_t n = 0; n < sizeof text; n++) {
        int fd = fixture_connect(&fixture);
        CHECK(client_send(fd, text, n));
        if (n % 3 == 0)
            usleep(500);
        if (n % 2 == 0) { /* with a reset */
            struct linger linger = {1, 0};
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
        }
        close(fd);
    }
    fixture_close(&fixture);
}
