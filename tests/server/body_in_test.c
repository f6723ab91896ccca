/* Request bodies over HTTP/1: every framing, however it is cut; waiting, stalling and answering
 * before they end. */
#include "tests/server/front_fixture.h"

#include <inttypes.h>

static struct fixture fixture;
static char heard[1 << 14];

static void open_fixture(void)
{
    fixture_init(&fixture);
    fixture_open(&fixture);
}

/* What /count and /work answer for `n` bytes of the pattern. */
static void expect_sum(uint64_t n, char text_out[64])
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint8_t byte = fixture_byte(i);
        sum = fixture_sum(sum, i, &byte, 1);
    }
    snprintf(text_out, 64, "\r\n%" PRIu64 " %" PRIu64 "\n", n, sum);
}

static char *pattern(size_t n)
{
    char *bytes = malloc(n + 1);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)fixture_byte(i);
    return bytes;
}

static void put_with_length(int fd, const char *path, size_t n)
{
    char head[128], want[64], *bytes = pattern(n);
    expect_sum(n, want);
    snprintf(head, sizeof head, "PUT %s HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", path,
             n);
    CHECK(client_say(fd, head) && client_send(fd, bytes, n));
    CHECK_MSG(client_hear(fd, heard, sizeof heard, want), "%zu bytes: %s", n, heard);
    free(bytes);
}

TEST(bodies_with_a_length_arrive_whole_and_the_connection_stays)
{
    static const size_t sizes[] = {0,     1,     100,     16383,   16384,  65535,
                                   65536, 65537, 1048576, 1048577, 5000000};
    open_fixture();
    int fd = fixture_connect(&fixture);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        put_with_length(fd, "/count", sizes[i]);
        put_with_length(fd, "/work", sizes[i]);
    }
    close(fd);
    fixture_close(&fixture);
}

static void put_chunked(int fd, const char *path, size_t n, size_t chunk)
{
    char text[128], want[64], *bytes = pattern(n);
    expect_sum(n, want);
    snprintf(text, sizeof text, "PUT %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n",
             path);
    CHECK(client_say(fd, text));
    for (size_t at = 0; at < n; at += chunk) {
        size_t len = n - at < chunk ? n - at : chunk;
        snprintf(text, sizeof text, "%zX;a=b\r\n", len);
        CHECK(client_say(fd, text) && client_send(fd, bytes + at, len) && client_say(fd, "\r\n"));
    }
    CHECK(client_say(fd, "0\r\nX-Trailer: 1\r\n\r\n"));
    CHECK_MSG(client_hear(fd, heard, sizeof heard, want), "%zu by %zu: %s", n, chunk, heard);
    free(bytes);
}

TEST(chunked_bodies_arrive_whole_and_the_connection_stays)
{
    open_fixture();
    int fd = fixture_connect(&fixture);
    put_chunked(fd, "/count", 0, 1);
    put_chunked(fd, "/count", 1, 1);
    put_chunked(fd, "/work", 1000, 1);
    put_chunked(fd, "/count", 200000, 100);
    put_chunked(fd, "/work", 200000, 65536);
    put_chunked(fd, "/count", 3000000, 16384);
    put_chunked(fd, "/work", 3000000, 1000000);
    put_with_length(fd, "/work", 77);
    close(fd);
    fixture_close(&fixture);
}

TEST(a_body_may_be_cut_anywhere_and_be_followed_by_the_next_request)
{
    static const char text[] =
        "PUT /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        "1\r\na\r\n00A;x=\"y\"\r\n0123456789\r\n0\r\n\r\n"
        "PUT /work HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd"
        "GET /text HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    open_fixture();
    for (size_t cut = 1; cut < sizeof text - 1; cut++) {
        int fd = fixture_connect(&fixture);
        CHECK(client_send(fd, text, cut));
        usleep(300);
        CHECK(client_say(fd, text + cut));
        CHECK(client_hear(fd, heard, sizeof heard, NULL));
        CHECK_MSG(strstr(heard, "\r\n11 ") != NULL && strstr(heard, "\r\n4 ") != NULL &&
                      strstr(heard, "hello\n") != NULL,
                  "cut at %zu: %s", cut, heard);
        close(fd);
    }
    fixture_close(&fixture);
}

static const char *const bad_chunks[] = {
    "0x3\r\nabc\r\n0\r\n\r\n",
    "3 \r\nabc\r\n0\r\n\r\n",
    "3\nabc\r\n0\r\n\r\n",
    "3\r\nabcd\r\n0\r\n\r\n",
    "\r\n0\r\n\r\n",
    "+3\r\nabc\r\n0\r\n\r\n",
    "fffffffffffffffff\r\nabc\r\n",
    "3\r\nabc\r\n0\r\nbad trailer\r\n\r\n",
    "3;\r\nabc\r\n0\r\n\r\n",
};

TEST(bad_chunks_are_answered_400_and_nothing_behind_them_is_read)
{
    open_fixture();
    for (size_t i = 0; i < sizeof bad_chunks / sizeof bad_chunks[0]; i++) {
        int fd = fixture_connect(&fixture);
        CHECK(
            client_say(fd, "PUT /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"));
        CHECK(client_say(fd, bad_chunks[i]));
        CHECK(client_say(fd, "GET /text HTTP/1.1\r\nHost: a\r\n\r\n"));
        CHECK_MSG(client_hear(fd, heard, sizeof heard, NULL), "%s", bad_chunks[i]);
        CHECK_MSG(strncmp(heard, "HTTP/1.1 400 ", 13) == 0, "%s: %s", bad_chunks[i], heard);
        CHECK(strstr(heard, "Connection: close\r\n") != NULL);
        CHECK_MSG(strstr(heard, "hello") == NULL, "smuggled behind %s", bad_chunks[i]);
        close(fd);
    }
    fixture_close(&fixture);
}

TEST(who_waits_for_100_is_told_once_the_handler_reads)
{
    open_fixture();
    int fd = fixture_connect(&fixture);
    for (int i = 0; i < 2; i++) {
        CHECK(client_say(
            fd,
            "PUT /work HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\n"));
        CHECK(client_hear(fd, heard, sizeof heard, "\r\n\r\n"));
        CHECK_EQ_STR(heard, "HTTP/1.1 100 Continue\r\n\r\n");
        CHECK(client_say(fd, "abc"));
        CHECK(client_hear(fd, heard, sizeof heard, "\r\n3 "));
        CHECK(strncmp(heard, "HTTP/1.1 200 ", 13) == 0);
    }
    CHECK(client_say(
        fd, "PUT /deny HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"));
    CHECK(client_hear(fd, heard, sizeof heard, NULL));
    CHECK(strncmp(heard, "HTTP/1.1 403 ", 13) == 0);
    CHECK(strstr(heard, "100 Continue") == NULL);
    close(fd);
    fixture_close(&fixture);
}

TEST(a_body_that_is_there_already_needs_no_100)
{
    open_fixture();
    int fd = fixture_connect(&fixture);
    CHECK(client_say(
        fd,
        "PUT /work HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc"));
    CHECK(client_hear(fd, heard, sizeof heard, "\r\n3 "));
    CHECK(strstr(heard, "100 Continue") == NULL);
    close(fd);
    fixture_close(&fixture);
}

/* A body that stops, and one that takes longer than the timeout but never stops for so long. False
 * if that one was taken for stalled, as it may be when this machine is slower still. */
static bool tells_slow_from_stalled(uint64_t timeout_ms)
{
    fixture_init(&fixture);
    fixture.config.body_timeout_ms = timeout_ms;
    fixture_open(&fixture);
    int slow = fixture_connect(&fixture);
    int stalled = fixture_connect(&fixture);
    CHECK(client_say(stalled, "PUT /count HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"));
    CHECK(client_say(slow, "PUT /count HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n"));
    for (int i = 0; i < 6; i++) {
        usleep((useconds_t)timeout_ms * 400);
        client_say(slow, "x");
    }
    client_hear(slow, heard, sizeof heard, "\r\n6 ");
    bool is_served = strncmp(heard, "HTTP/1.1 200 ", 13) == 0;
    CHECK(client_hear(stalled, heard, sizeof heard, NULL));
    CHECK(strncmp(heard, "HTTP/1.1 408 ", 13) == 0);
    close(slow);
    close(stalled);
    fixture_close(&fixture);
    return is_served;
}

TEST(a_stalled_body_is_answered_408_and_a_slow_one_is_not)
{
    CHECK(tells_slow_from_stalled(300) || tells_slow_from_stalled(1200) ||
          tells_slow_from_stalled(4800));
}

/* Whether a client that sends a byte eight times in the timeout is told that it is too slow. */
static bool is_too_slow(uint64_t rate, bool is_chunked)
{
    enum { TIMEOUT_MS = 400, STEPS = 16 };
    fixture_init(&fixture);
    fixture.config.body_timeout_ms = TIMEOUT_MS;
    fixture.config.body_rate = rate;
    fixture_open(&fixture);
    int fd = fixture_connect(&fixture);
    CHECK(client_say(
        fd, is_chunked ? "PUT /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                       : "PUT /count HTTP/1.1\r\nHost: a\r\nContent-Length: 16\r\n\r\n"));
    for (int i = 0; i < STEPS; i++) {
        usleep(TIMEOUT_MS * 1000 / 8);
        client_say(fd, is_chunked ? "1\r\nx\r\n" : "x");
    }
    if (is_chunked)
        client_say(fd, "0\r\n\r\n");
    client_hear(fd, heard, sizeof heard, "\r\n");
    close(fd);
    fixture_close(&fixture);
    return strncmp(heard, "HTTP/1.1 408 ", 13) == 0;
}

TEST(a_body_that_trickles_is_answered_408)
{
    CHECK(is_too_slow(100, false));
    CHECK(is_too_slow(100, true));
}

TEST(an_early_answer_over_a_short_body_keeps_the_connection)
{
    open_fixture();
    int fd = fixture_connect(&fixture);
    char *bytes = pattern(200000);
    for (int i = 0; i < 3; i++) {
        CHECK(client_say(
            fd, i == 2 ? "PUT /peek HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n"
                       : "PUT /deny HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n"));
        CHECK(client_send(fd, bytes, 200000));
        CHECK(client_hear(fd, heard, sizeof heard, i == 2 ? "seen enough\n" : "denied\n"));
        CHECK(strstr(heard, "Connection: keep-alive\r\n") != NULL);
    }
    CHECK(client_say(fd, "GET /text HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK(client_hear(fd, heard, sizeof heard, "hello\n"));
    free(bytes);
    close(fd);
    fixture_close(&fixture);
}

/* The client sends all before it listens; had the server just closed, the reset would have taken
 * the answer away. */
TEST(an_early_answer_over_a_long_body_reaches_a_client_that_sends_first)
{
    enum { LONG = 20000000 };
    char *bytes = pattern(LONG);
    open_fixture();
    for (int i = 0; i < 5; i++) {
        int fd = fixture_connect(&fixture);
        CHECK(client_say(
            fd, i % 2 ? "PUT /peek HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\n"
                      : "PUT /deny HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\n"));
        CHECK(client_send(fd, bytes, LONG));
        CHECK(client_hear(fd, heard, sizeof heard, NULL));
        CHECK(strncmp(heard, i % 2 ? "HTTP/1.1 409 " : "HTTP/1.1 403 ", 13) == 0);
        CHECK(strstr(heard, "Connection: close\r\n") != NULL);
        close(fd);
    }
    free(bytes);
    fixture_close(&fixture);
}

TEST(without_buffers_a_body_is_answered_503)
{
    fixture_init(&fixture);
    fixture.config.buffer_budget_bytes = 100000; /* one small buffer */
    fixture_open(&fixture);
    int holder = fixture_connect(&fixture);
    int other = fixture_connect(&fixture);
    CHECK(client_say(holder, "PUT /count HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"));
    CHECK_SOON(srv_buf_pool_used_bytes(srv_front_buf_pool(fixture.front)) > 0);
    CHECK(client_say(other, "PUT /count HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"));
    CHECK(client_hear(other, heard, sizeof heard, "\r\n\r\n"));
    CHECK(strncmp(heard, "HTTP/1.1 503 ", 13) == 0);
    CHECK(client_say(holder, "cde"));
    CHECK(client_hear(holder, heard, sizeof heard, "\r\n5 "));
    close(holder);
    close(other);
    fixture_close(&fixture);
}
