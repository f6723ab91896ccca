/* What an HTTP/2 client may not do too often. */
#include "tests/server/h2_fixture.h"

/* Sends what `put` makes until the connection breaks; the requests a handler has seen. As much goes
 * out at once as can, so that the server gets more in a moment than it may take in one, however
 * slow this machine is. */
static uint64_t flood(void (*put)(uint32_t stream))
{
    enum { ROOM = 128 }; /* for one call of `put` */
    struct srv_front_stats before, after;
    int goaway;
    srv_front_stats(fixture.front, &before);
    int fd = connect_h2();
    bool is_open = true;
    for (uint32_t stream = 1; is_open && stream < 400000;) {
        for (; out.len + ROOM < sizeof out.bytes; stream += 2)
            put(stream);
        is_open = h2_flush(fd, &out);
    }
    CHECK(h2_wait_end(fd, &goaway));
    close(fd);
    srv_front_stats(fixture.front, &after);
    CHECK_EQ_U64(after.connections_condemned - before.connections_condemned, 1);
    return after.requests - before.requests;
}

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

static void put_ping(uint32_t stream)
{
    (void)stream;
    h2_frame(&out, H2_PING, 0, 0, "12345678", 8);
}

static void put_unknown(uint32_t stream)
{
    h2_frame(&out, 0xfa, 0xff, stream, "whatever", 8);
}

TEST(floods_cost_the_connection_and_little_work)
{
    open_fixture();
    uint64_t n = flood(put_rapid_reset);
    CHECK_MSG(n <= 201, "%llu requests", (unsigned long long)n);
    n = flood(put_made_you_reset);
    CHECK_MSG(n <= 201, "%llu requests", (unsigned long long)n);
    CHECK_EQ_U64(flood(put_ping), 0);
    CHECK_EQ_U64(flood(put_unknown), 0);
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
