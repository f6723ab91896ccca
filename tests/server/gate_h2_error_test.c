/* HTTP/2 clients that break the protocol, or abuse it: each is told why, and nobody else notices.
 */
#include "tests/server/h2_fixture.h"

enum {
    PROTOCOL_ERROR = 1,
    FLOW_CONTROL_ERROR = 3,
    STREAM_CLOSED = 5,
    FRAME_SIZE_ERROR = 6,
    COMPRESSION_ERROR = 9,
    ENHANCE_YOUR_CALM = 11,
};

/* Sends what is in `out`, with `behind` bytes of junk after it: the client must hear why. */
static void check_goaway(int fd, size_t row, int error)
{
    static const char junk[20000];
    int goaway;
    CHECK(h2_flush(fd, &out));
    client_send(fd, junk, sizeof junk);
    CHECK_MSG(h2_wait_end(fd, &goaway), "row %zu is still open", row);
    CHECK_MSG(goaway == error, "row %zu: GOAWAY with %d instead of %d", row, goaway, error);
    close(fd);
}

TEST(what_breaks_the_protocol_ends_the_connection_with_the_reason)
{
    static const struct {
        int type, flags;
        uint32_t stream;
        const char *payload;
        size_t n;
        int error;
    } rows[] = {
        {H2_DATA, 0, 0, "a", 1, PROTOCOL_ERROR},
        {H2_DATA, 0, 5, "a", 1, PROTOCOL_ERROR}, /* idle */
        {H2_DATA, 0, 2, "a", 1, PROTOCOL_ERROR},
        {H2_DATA, H2_PADDED, 1, "", 0, FRAME_SIZE_ERROR},
        {H2_DATA, H2_PADDED, 1,
         "\x05"
         "abc",
         4, PROTOCOL_ERROR},
        {H2_HEADERS, H2_END_HEADERS | H2_PADDED, 3,
         "\x05"
         "abc",
         4, PROTOCOL_ERROR},
        {H2_HEADERS, H2_END_HEADERS, 0, "\x82", 1, PROTOCOL_ERROR},
        {H2_HEADERS, H2_END_HEADERS, 4, "\x82\x86\x84", 3, PROTOCOL_ERROR},
        {H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, 3, "\xfe", 1, COMPRESSION_ERROR},
        {H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, 1, "\x82", 1, PROTOCOL_ERROR}, /* trailers */
        {H2_CONTINUATION, H2_END_HEADERS, 1, "", 0, PROTOCOL_ERROR},
        {H2_PUSH_PROMISE, H2_END_HEADERS, 1, "abcd", 4, PROTOCOL_ERROR},
        {H2_SETTINGS, 0, 1, "", 0, PROTOCOL_ERROR},
        {H2_SETTINGS, 0, 0, "12345", 5, FRAME_SIZE_ERROR},
        {H2_SETTINGS, 0, 0, "\0\x02\0\0\0\x02", 6, PROTOCOL_ERROR},
        {H2_SETTINGS, 0, 0, "\0\x04\x80\0\0\0", 6, FLOW_CONTROL_ERROR},
        {H2_SETTINGS, 0, 0, "\0\x05\0\0\0\x01", 6, PROTOCOL_ERROR},
        {H2_PING, 0, 0, "1234567", 7, FRAME_SIZE_ERROR},
        {H2_PING, 0, 1, "12345678", 8, PROTOCOL_ERROR},
        {H2_PRIORITY, 0, 1, "1234", 4, FRAME_SIZE_ERROR},
        {H2_RST_STREAM, 0, 99, "\0\0\0\0", 4, PROTOCOL_ERROR},
        {H2_RST_STREAM, 0, 1, "\0\0\0", 3, FRAME_SIZE_ERROR},
        {H2_WINDOW_UPDATE, 0, 0, "\0\0\0\0", 4, PROTOCOL_ERROR},
        {H2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff", 4, FLOW_CONTROL_ERROR},
        {H2_WINDOW_UPDATE, 0, 0, "\0\0\0", 3, FRAME_SIZE_ERROR},
        {H2_GOAWAY, 0, 1, "\0\0\0\0\0\0\0\0", 8, PROTOCOL_ERROR},
    };
    open_fixture();
    int bystander = connect_h2();
    check_alive(bystander, 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int fd = connect_h2();
        h2_request(&out, 1, "PUT", "/work", NULL, false);
        h2_frame(&out, rows[i].type, rows[i].flags, rows[i].stream, rows[i].payload, rows[i].n);
        check_goaway(fd, i, rows[i].error);
    }
    check_alive(bystander, 3);
    close(bystander);
    fixture_close(&fixture);
}

TEST(sequences_that_break_the_protocol_end_it_too)
{
    open_fixture();
    int fd = connect_h2(); /* a frame between a header block and its continuation */
    h2_frame(&out, H2_HEADERS, 0, 1, "\x82", 1);
    data(1, "abc", false);
    check_goaway(fd, 0, PROTOCOL_ERROR);
    fd = connect_h2(); /* the continuation of another stream's */
    h2_frame(&out, H2_HEADERS, 0, 1, "\x82", 1);
    h2_frame(&out, H2_CONTINUATION, H2_END_HEADERS, 3, "\x86", 1);
    check_goaway(fd, 1, PROTOCOL_ERROR);
    fd = connect_h2(); /* a frame that is too long */
    h2_put(&out, "\x00\x40\x01\x06\x00\x00\x00\x00\x00", 9);
    check_goaway(fd, 2, FRAME_SIZE_ERROR);
    fd = connect_h2(); /* DATA behind the end of a body that is being worked on */
    h2_request(&out, 1, "PUT", "/late", NULL, false);
    data(1, "abc", true);
    data(1, "abc", false);
    check_goaway(fd, 3, STREAM_CLOSED);
    fd = connect_h2(); /* a stream that was skipped */
    h2_request(&out, 3, "GET", "/late", NULL, true);
    h2_request(&out, 1, "GET", "/late", NULL, true);
    check_goaway(fd, 4, STREAM_CLOSED);
    fixture_close(&fixture);
}

TEST(data_for_a_request_without_a_body_resets_the_stream_and_no_more)
{
    open_fixture();
    int fd = connect_h2();
    h2_request(&out, 1, "GET", "/never", NULL, true);
    data(1, "abc", false);
    CHECK(h2_flush(fd, &out));
    CHECK(h2_wait(fd, 1, &answer));
    CHECK_EQ_INT(answer.reset, STREAM_CLOSED);
    check_alive(fd, 3);
    close(fd);
    fixture_close(&fixture);
}

TEST(who_sends_past_the_window_is_told_and_held_to_it)
{
    enum { FRAME = 16000 };
    static char bytes[FRAME];
    int goaway;
    open_fixture();
    int fd = connect_h2();
    h2_request(&out, 1, "PUT", "/late", NULL, false);
    CHECK(h2_flush(fd, &out));
    for (int i = 0; i < 600; i++) {
        h2_frame(&out, H2_DATA, 0, 1, bytes, FRAME);
        if (!h2_flush(fd, &out))
            break;
        size_t used = srv_buf_pool_used_bytes(srv_front_buf_pool(fixture.front));
        CHECK_MSG(used <= 5 << 20, "%zu bytes held", used);
    }
    CHECK(h2_wait_end(fd, &goaway));
    CHECK_EQ_INT(goaway, FLOW_CONTROL_ERROR);
    close(fd);
    fixture_close(&fixture);
}

TEST(heads_that_do_not_end_are_ended)
{
    static const struct {
        int type, flags;
        const char *payload;
        size_t n, sent;
    } rows[] = {
        {H2_HEADERS, H2_END_HEADERS, "\x82\x86\x84", 3, 10},
        {H2_HEADERS, H2_END_HEADERS, "\x82\x86\x84", 3, 4},
        {H2_HEADERS, 0, "\x82\x86\x84", 3, 12},
        {H2_PING, 0, "12345678", 8, 16},
    };
    struct srv_front_stats stats;
    fixture_init(&fixture);
    fixture.config.head_timeout_ms = 300;
    fixture_open(&fixture);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int goaway, fd = connect_h2();
        h2_request(&out, 1, "GET", "/never", NULL, true);
        size_t before = out.len;
        h2_frame(&out, rows[i].type, rows[i].flags, rows[i].type == H2_PING ? 0 : 3,
                 rows[i].payload, rows[i].n);
        CHECK(client_send(fd, out.bytes, before + rows[i].sent));
        CHECK_MSG(h2_wait_end(fd, &goaway), "row %zu is still open", i);
        CHECK_EQ_INT(goaway, ENHANCE_YOUR_CALM);
        close(fd);
    }
    srv_front_stats(fixture.front, &stats);
    CHECK_EQ_U64(stats.heads_slow, sizeof rows / sizeof rows[0]);
    fixture_close(&fixture);
}
