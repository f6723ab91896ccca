/* What an HTTP/2 client may not do too often. */
#include "tests/server/h2_fixture.h"

static void put_rapid_reset(uint32_t stream)
{
    h2_request(&out, stream, "GET", "/never", NULL, true);
    h2_frame(&out, H2_RST_STREAM, 0, stream, "\0\0\0\x08", 4);
}

static void put_made_you_reset(uint32_t stream)
{
    h2_request(&out, stream, "GET", "/never", NULL, true);
    h2_frame(&out, H2_WINDOW_UPDATE, 0, stream, "\0\0\0\0", 4);
}

/* A response without content is complete before the update comes. */
static void put_made_you_reset_head(uint32_t stream)
{
    h2_request(&out, stream, "HEAD", "/text", NULL, true);
    h2_frame(&out, H2_WINDOW_UPDATE, 0, stream, "\0\0\0\0", 4);
}

/* A carriage return in a value: libh2o answers 400. */
static void put_malformed(uint32_t stream)
{
    uint8_t block[128];
    size_t n = h2_block(block, "GET", "/text", NULL, NULL);
    memcpy(block + n,
           "\0\x01x\x03"
           "a\rb",
           7);
    h2_frame(&out, H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, stream, block, n + 7);
}

/* No path: libh2o resets the stream. */
static void put_pathless(uint32_t stream)
{
    h2_frame(&out, H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, stream, "\x82\x86", 2);
}

/* A method that is no token: the gate answers 400. */
static void put_bad_method(uint32_t stream)
{
    h2_request(&out, stream, "GE T", "/text", NULL, true);
}

static void put_ping(uint32_t stream)
{
    (void)stream;
    h2_frame(&out, H2_PING, 0, 0, "12345678", 8);
}

static void put_unknown(uint32_t stream)
{
    h2_frame(&out, 0xfa, 0xff, stream, "whatever", 8);
}

static void put_settings(uint32_t stream)
{
    (void)stream;
    h2_frame(&out, H2_SETTINGS, 0, 0, "", 0);
}

static void put_priority(uint32_t stream)
{
    if (stream == 1)
        h2_request(&out, stream, "GET", "/never", NULL, true);
    h2_frame(&out, H2_PRIORITY, 0, 1, "\0\0\0\0\x10", 5);
}

static void put_window_update(uint32_t stream)
{
    (void)stream;
    h2_frame(&out, H2_WINDOW_UPDATE, 0, 0, "\0\0\0\x01", 4);
}

static void put_reset(uint32_t stream)
{
    if (stream == 1)
        h2_request(&out, stream, "GET", "/text", NULL, true);
    h2_frame(&out, H2_RST_STREAM, 0, 1, "\0\0\0\x08", 4);
}

static void put_empty_data(uint32_t stream)
{
    if (stream == 1)
        h2_request(&out, stream, "PUT", "/work", NULL, false);
    h2_frame(&out, H2_DATA, 0, 1, "", 0);
}

static void put_late_data(uint32_t stream)
{
    if (stream == 1)
        h2_request(&out, stream, "GET", "/text", NULL, true);
    h2_frame(&out, H2_DATA, 0, 1, "a", 1);
}

static void put_continuation(uint32_t stream)
{
    h2_frame(&out, stream == 1 ? H2_HEADERS : H2_CONTINUATION, 0, 1, "\x84", stream == 1);
}

#define FLOOD(put, counter)                            \
    {                                                  \
        put, offsetof(struct srv_front_stats, counter) \
    }

static const struct {
    void (*put)(uint32_t stream);
    size_t counter_at;
} floods[] = {
    FLOOD(put_rapid_reset, abort_floods),
    FLOOD(put_made_you_reset, abort_floods),
    FLOOD(put_made_you_reset_head, abort_floods),
    FLOOD(put_malformed, h2_flood_malformed),
    FLOOD(put_pathless, h2_flood_malformed),
    FLOOD(put_bad_method, h2_flood_malformed),
    FLOOD(put_ping, h2_flood_ping),
    FLOOD(put_settings, h2_flood_settings),
    FLOOD(put_priority, h2_flood_priority),
    FLOOD(put_window_update, h2_flood_window_update),
    FLOOD(put_reset, h2_flood_rst_stream),
    FLOOD(put_empty_data, h2_flood_empty_data),
    FLOOD(put_late_data, h2_flood_empty_data),
    FLOOD(put_continuation, h2_flood_continuation),
    FLOOD(put_unknown, h2_flood_unknown),
};

/* Sends what there is unless the peer has closed: a send that waits for room may not hear of that
 * for a minute. */
static bool send_unless_closed(int fd)
{
    struct pollfd poll_fd = {fd, POLLOUT | POLLRDHUP, 0};
    for (size_t at = 0; at < out.len;) {
        if (poll(&poll_fd, 1, -1) != 1 || (poll_fd.revents & POLLRDHUP) != 0)
            return false;
        ssize_t sent = send(fd, out.bytes + at, out.len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN)
            return false;
        at += sent > 0 ? (size_t)sent : 0;
    }
    out.len = 0;
    return true;
}

/* Sends what a row makes until the connection breaks; the requests a handler has seen. As much goes
 * out at once as can, so that the server gets more in a moment than it may take in one, however
 * slow this machine is. */
static uint64_t flood(size_t row)
{
    enum { ROOM = 128 }; /* for one call of `put` */
    struct srv_front_stats before, after;
    int goaway;
    srv_front_stats(fixture.front, &before);
    int fd = connect_h2();
    bool is_open = true;
    for (uint32_t stream = 1; is_open && stream < 400000;) {
        for (; out.len + ROOM < sizeof out.bytes; stream += 2)
            floods[row].put(stream);
        is_open = send_unless_closed(fd);
    }
    CHECK_MSG(h2_wait_end(fd, &goaway), "row %zu: open", row);
    close(fd);
    srv_front_stats(fixture.front, &after);
    CHECK_MSG(after.connections_condemned == before.connections_condemned + 1,
              "row %zu: GOAWAY %d, not condemned", row, goaway);
    for (size_t i = 0; i < sizeof floods / sizeof floods[0]; i++) {
        size_t at = floods[i].counter_at;
        uint64_t n = *(uint64_t *)((char *)&after + at) - *(uint64_t *)((char *)&before + at);
        CHECK_MSG(n == (at == floods[row].counter_at), "row %zu: counter of row %zu grew by %llu",
                  row, i, (unsigned long long)n);
    }
    return after.requests - before.requests;
}

TEST(floods_cost_the_connection_and_little_work_and_are_named)
{
    enum { AT_ONCE = 201, PER_S = 20 }; /* requests that may be abandoned */
    open_fixture();
    for (size_t i = 0; i < sizeof floods / sizeof floods[0]; i++) {
        struct timespec began, ended;
        clock_gettime(CLOCK_MONOTONIC, &began);
        uint64_t n = flood(i);
        clock_gettime(CLOCK_MONOTONIC, &ended);
        uint64_t seconds = (uint64_t)(ended.tv_sec - began.tv_sec) + 1;
        CHECK_MSG(n <= AT_ONCE + PER_S * seconds, "row %zu: %llu requests in less than %llu s", i,
                  (unsigned long long)n, (unsigned long long)seconds);
    }
    int fd = connect_h2();
    check_alive(fd, 1);
    close(fd);
    fixture_close(&fixture);
}

TEST(endless_header_blocks_are_cut)
{
    static char bytes[16000];
    int goaway;
    open_fixture();
    int fd = connect_h2();
    h2_frame(&out, H2_HEADERS, 0, 1, "\x82", 1);
    for (int i = 0; i < 50 && h2_flush(fd, &out); i++)
        h2_frame(&out, H2_CONTINUATION, 0, 1, bytes, sizeof bytes);
    CHECK(h2_wait_end(fd, &goaway));
    struct srv_front_stats stats;
    srv_front_stats(fixture.front, &stats);
    CHECK_EQ_U64(stats.connections_condemned, 1);
    close(fd);
    fixture_close(&fixture);
}
