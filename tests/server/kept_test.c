/* What clients make the server keep: answers they do not take, and heads that are long. */
#include <malloc.h>
#include <poll.h>

#include "tests/server/h2_fixture.h"

enum { DOCUMENT = 256 << 10, KEPT_MAX = 4 << 20, HEAD = 60000, PART = 16000 };

static char heard[1 << 16];
static char long_head[HEAD + 64];

static struct srv_front_stats stats(void)
{
    struct srv_front_stats now;
    srv_front_stats(fixture.front, &now);
    return now;
}

static size_t used_bytes(void)
{
    return srv_buf_pool_used_bytes(srv_front_buf_pool(fixture.front));
}

/* /copy and /own answer with a document, anything else with a word. */
static void respond(void *data, struct srv_exchange *ex)
{
    struct srv_str path = srv_exchange_request(ex)->path;
    struct srv_response response = {.status = 200, .content_length = DOCUMENT};
    char *bytes = malloc(DOCUMENT);
    (void)data;
    CHECK(bytes != NULL);
    memset(bytes, 'd', DOCUMENT);
    if (path.len == 4) {
        srv_respond_owned(ex, &response, bytes, DOCUMENT);
        return;
    }
    bool is_copy = path.base[1] == 'c';
    srv_respond_bytes(ex, &response, is_copy ? bytes : "hello\n", is_copy ? DOCUMENT : 6);
    free(bytes);
}

static void open_responder(size_t budget)
{
    fixture_init(&fixture);
    fixture.config.n_threads = 1;
    fixture.config.buffer_budget_bytes = budget;
    fixture.config.buffer_share_bytes = budget;
    fixture.handler.start = respond;
    fixture_open(&fixture);
}

/* A connection whose client takes nothing of what it asks for. */
static int connect_greedy(const char *path, unsigned n_requests)
{
    static const uint8_t no_window[] = {0, 4, 0, 0, 0, 0};
    int fd = fixture_connect(&fixture);
    out.len = 0;
    h2_put(&out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    h2_frame(&out, H2_SETTINGS, 0, 0, no_window, sizeof no_window);
    for (unsigned i = 0; i < n_requests; i++)
        h2_request(&out, 2 * i + 1, "GET", path, NULL, true);
    CHECK(h2_flush(fd, &out));
    return fd;
}

static void check_answers_are_bounded(const char *path)
{
    enum { REQUESTS = 90, STREAMS_MAX = 128 << 10 };
    open_responder(64 << 20);
    int greedy = connect_greedy(path, REQUESTS);
    CHECK_SOON(stats().kept_refused == REQUESTS - KEPT_MAX / DOCUMENT);
    CHECK_EQ_U64(stats().kept_bytes, used_bytes());
    CHECK(used_bytes() >= KEPT_MAX && used_bytes() < KEPT_MAX + STREAMS_MAX);
    CHECK_EQ_U64(stats().requests, KEPT_MAX / DOCUMENT); /* the others made no work */
    int fd = connect_h2();
    check_alive(fd, 1);
    close(fd);
    close(greedy);
    CHECK_SOON(used_bytes() == 0);
    CHECK_EQ_U64(stats().kept_bytes, 0);
    fixture_close(&fixture);
}

TEST(a_connection_keeps_few_answers_that_its_client_does_not_take)
{
    check_answers_are_bounded("/copy");
    check_answers_are_bounded("/own");
}

TEST(answers_of_all_connections_stay_within_the_budget)
{
    enum { BUDGET = 1 << 20, CONNECTIONS = 8 };
    int fds[CONNECTIONS];
    open_responder(BUDGET);
    for (int i = 0; i < CONNECTIONS; i++)
        fds[i] = connect_greedy(i % 2 == 0 ? "/own" : "/copy", 1);
    CHECK_SOON(stats().kept_refused == CONNECTIONS - BUDGET / DOCUMENT);
    CHECK_EQ_U64(used_bytes(), BUDGET);
    int over = fixture_connect(&fixture);
    CHECK(client_say(over, "GET /own HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK(client_hear(over, heard, sizeof heard, "\r\n\r\n"));
    CHECK_MSG(strncmp(heard, "HTTP/1.1 503 ", 13) == 0, "%s", heard);
    CHECK(client_say(over, "GET /text HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK_MSG(client_hear(over, heard, sizeof heard, "hello\n"), "%s", heard);
    for (int i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
    CHECK_SOON(used_bytes() == 0);
    CHECK(client_say(over, "GET /own HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK(client_hear(over, heard, sizeof heard, "\r\n\r\nddd"));
    CHECK_MSG(strncmp(heard, "HTTP/1.1 200 ", 13) == 0, "%s", heard);
    close(over);
    fixture_close(&fixture);
}

/* The bytes that malloc has handed out and not got back. */
static size_t allocated_bytes(void)
{
    struct mallinfo2 now = mallinfo2();
    return now.uordblks + now.hblkhd;
}

TEST(what_a_client_does_not_get_is_not_kept)
{
    enum { REQUESTS = 90, SLACK = 2 << 20 };
    open_responder(64 << 20);
    size_t before = allocated_bytes();
    int greedy = connect_greedy("/own", REQUESTS);
    CHECK_SOON(stats().kept_refused == REQUESTS - KEPT_MAX / DOCUMENT);
    size_t grown = allocated_bytes() - before;
    CHECK_MSG(grown < KEPT_MAX + SLACK, "%zu", grown);
    close(greedy);
    CHECK_SOON(used_bytes() == 0);
    fixture_close(&fixture);
}

/* Requests whose answers are small enough to need no window, and are not read. */
static bool ask_on(int fd, uint32_t *stream)
{
    out.len = 0;
    for (int i = 0; i < 200; i++, *stream += 2)
        h2_request(&out, *stream, "HEAD", "/text", NULL, true);
    for (size_t at = 0; at < out.len;) {
        struct pollfd poll_fd = {fd, POLLOUT | POLLRDHUP, 0};
        if (poll(&poll_fd, 1, 1000) != 1 || (poll_fd.revents & POLLRDHUP) != 0)
            return false;
        ssize_t sent = send(fd, out.bytes + at, out.len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN)
            return false;
        at += sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

TEST(answers_that_pile_up_unread_are_within_the_budget)
{
    enum { BUDGET = 1 << 20, CONNECTIONS = 3, STREAM_MAX = 4000000 };
    int fds[CONNECTIONS];
    open_responder(BUDGET);
    for (int i = 0; i < CONNECTIONS; i++) {
        uint32_t stream = 1;
        fds[i] = fixture_connect(&fixture);
        out.len = 0;
        h2_preface(&out);
        CHECK(h2_flush(fds[i], &out));
        while (stream < STREAM_MAX && stats().kept_refused == 0 && ask_on(fds[i], &stream))
            ;
        CHECK_MSG(stream < STREAM_MAX, "connection %d", i);
        CHECK(used_bytes() <= BUDGET);
    }
    CHECK(stats().kept_refused > 0);
    int fd = fixture_connect(&fixture);
    CHECK(client_say(fd, "GET /text HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK_MSG(client_hear(fd, heard, sizeof heard, "hello\n"), "%s", heard);
    close(fd);
    for (int i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
    CHECK_SOON(used_bytes() == 0);
    fixture_close(&fixture);
}

/* A connection with `PART` bytes of a block that goes on, or of a frame that has not come whole. */
static int connect_unfinished(bool is_block)
{
    static uint8_t part[PART];
    int fd = connect_h2();
    h2_frame(&out, H2_HEADERS, H2_END_STREAM | (is_block ? 0 : H2_END_HEADERS), 1, part, PART);
    out.len -= is_block ? 0 : 1;
    CHECK(h2_flush(fd, &out));
    return fd;
}

TEST(heads_and_frames_of_http_2_without_end_are_within_the_budget)
{
    enum { ALLOWED = 6 };
    int fds[ALLOWED], goaway;
    fixture_init(&fixture);
    fixture.config.n_threads = 1;
    fixture.config.buffer_budget_bytes = fixture.config.buffer_share_bytes =
        ALLOWED * PART + PART / 2;
    fixture_open(&fixture);
    for (int i = 0; i < ALLOWED; i++)
        fds[i] = connect_unfinished(i % 2 == 0);
    CHECK_SOON(used_bytes() >= ALLOWED * (size_t)PART);
    for (int i = 0; i < 2; i++) {
        int over = connect_unfinished(i == 0);
        CHECK(h2_wait_end(over, &goaway));
        CHECK_EQ_INT(goaway, 11);
        CHECK_EQ_U64(stats().kept_refused, (uint64_t)i + 1);
        close(over);
    }
    for (int i = 0; i < ALLOWED; i++)
        close(fds[i]);
    CHECK_SOON(used_bytes() == 0);
    fixture_close(&fixture);
}

/* An HTTP/1 head of `HEAD` bytes and a little, with or without its end. */
static void say_long_head(int fd, const char *start, const char *end)
{
    size_t n = (size_t)snprintf(long_head, sizeof long_head, "%s\r\nHost: a\r\nX: ", start);
    memset(long_head + n, 'x', HEAD - n);
    CHECK(client_send(fd, long_head, HEAD) && client_say(fd, end));
}

TEST(long_heads_of_http_1_are_within_the_budget)
{
    enum { BUDGET = 4 * HEAD + HEAD / 2, CONNECTIONS = 4 };
    int fds[CONNECTIONS];
    fixture_init(&fixture);
    fixture.config.n_threads = 1;
    fixture.config.buffer_budget_bytes = fixture.config.buffer_share_bytes = BUDGET;
    fixture_open(&fixture);
    for (int i = 0; i < CONNECTIONS; i++)
        say_long_head(fds[i] = fixture_connect(&fixture), "GET /bytes/100000000 HTTP/1.1",
                      i % 2 == 0 ? "" : "\r\n\r\n");
    CHECK_SOON(used_bytes() >= CONNECTIONS * (size_t)HEAD);
    int over = fixture_connect(&fixture);
    say_long_head(over, "GET /text HTTP/1.1", "\r\n\r\n");
    CHECK(client_hear(over, heard, sizeof heard, "\r\n\r\n"));
    CHECK_MSG(strncmp(heard, "HTTP/1.1 503 ", 13) == 0, "%s", heard);
    close(over);
    for (int i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
    CHECK_SOON(used_bytes() == 0);
    over = fixture_connect(&fixture);
    say_long_head(over, "GET /text HTTP/1.1", "\r\n\r\n");
    CHECK_MSG(client_hear(over, heard, sizeof heard, "hello\n"), "%s", heard);
    close(over);
    fixture_close(&fixture);
}

TEST(long_heads_of_http_2_are_within_the_budget)
{
    enum { VALUE = 15000, REQUESTS = 8, ALLOWED = 4 };
    static uint8_t block[VALUE + 64];
    fixture_init(&fixture);
    fixture.config.n_threads = 1;
    fixture.config.buffer_budget_bytes = fixture.config.buffer_share_bytes =
        ALLOWED * VALUE + VALUE / 2;
    fixture_open(&fixture);
    int fd = connect_h2();
    CHECK(h2_flush(fd, &out));
    for (uint32_t i = 0; i < REQUESTS; i++) {
        size_t n = h2_block(block, "GET", "/never", NULL, NULL);
        /* x, with a value whose length is an integer of three octets. */
        memcpy(block + n, "\0\x01x\x7f", 4);
        n += 4;
        block[n++] = (uint8_t)(0x80 | ((VALUE - 127) & 0x7f));
        block[n++] = (uint8_t)((VALUE - 127) >> 7);
        memset(block + n, 'x', VALUE);
        h2_frame(&out, H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, 2 * i + 1, block, n + VALUE);
        CHECK(h2_flush(fd, &out));
    }
    CHECK_SOON(stats().kept_refused == REQUESTS - ALLOWED);
    CHECK(h2_wait(fd, 2 * REQUESTS - 1, &answer));
    CHECK_EQ_INT(answer.status, 503);
    CHECK(used_bytes() >= ALLOWED * (size_t)VALUE);
    close(fd);
    CHECK_SOON(used_bytes() == 0);
    fixture_close(&fixture);
}
