/* HTTP/2 frames as no library would send them: bodies cut anywhere and windows. */
#include "tests/server/h2_fixture.h"

TEST(a_body_may_be_cut_and_padded_anywhere)
{
    open_fixture();
    connect_h2();
    h2_request(&out, 1, "PUT", "/work", "11", false);
    data(1, "hello", false);
    h2_frame(&out, H2_DATA, 0, 1, "", 0);
    h2_frame(&out, H2_DATA, H2_PADDED, 1, "\x03 wo\0\0\0", 7);
    h2_frame(&out, H2_DATA, H2_PADDED, 1, "\x02\0\0", 3);
    data(1, "rl", false);
    h2_frame(&out, H2_DATA, H2_PADDED | H2_END_STREAM, 1, "\0d", 2);
    h2_request(&out, 3, "GET", "/fields", NULL, true);
    static struct h2_out whole;
    whole = out;
    for (size_t cut = 1; cut < whole.len; cut++) {
        int fd = fixture_connect(&fixture);
        CHECK(client_send(fd, whole.bytes, cut));
        usleep(200);
        CHECK(client_send(fd, whole.bytes + cut, whole.len - cut));
        CHECK_MSG(h2_wait(fd, 1, &answer), "cut at %zu", cut);
        CHECK_MSG(answer.status == 200 && strncmp(answer.text, "11 ", 3) == 0, "cut at %zu: %d %s",
                  cut, answer.status, answer.text);
        close(fd);
    }
    fixture_close(&fixture);
}

TEST(lengths_must_be_kept)
{
    static const struct {
        const char *length, *text;
        int status;
    } rows[] = {{"5", "abcde", 200}, {"5", "abcd", 400}, {"5", "abcdef", 400},
                {"0", "", 200},      {NULL, "abc", 200}, {NULL, "", 200}};
    open_fixture();
    int fd = connect_h2();
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        h2_request(&out, 2 * i + 1, "PUT", "/count", rows[i].length, false);
        data(2 * i + 1, rows[i].text, true);
        CHECK(h2_flush(fd, &out));
        CHECK(h2_wait(fd, 2 * i + 1, &answer));
        CHECK_MSG(answer.status == rows[i].status, "row %u: %d", i, answer.status);
    }
    h2_request(&out, 101, "GET", "/text", "5", true); /* announces a body and ends */
    CHECK(h2_flush(fd, &out));
    CHECK(h2_wait(fd, 101, &answer));
    CHECK_EQ_INT(answer.status, 400);
    check_alive(fd, 103);
    close(fd);
    fixture_close(&fixture);
}

TEST(trailers_end_a_body_and_the_connection_stays_in_step)
{
    uint8_t block[64];
    open_fixture();
    int fd = connect_h2();
    h2_request(&out, 1, "PUT", "/work", NULL, false);
    data(1, "abc", false);
    memcpy(block,
           "\x40\x03x-a\x01"
           "1",
           7); /* enters the dynamic table */
    h2_frame(&out, H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, 1, block, 7);
    CHECK(h2_flush(fd, &out));
    CHECK(h2_wait(fd, 1, &answer));
    CHECK(strncmp(answer.text, "3 ", 2) == 0);
    size_t n = h2_block(block, "GET", "/fields", NULL, "\xbe"); /* refers to it */
    h2_frame(&out, H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, 3, block, n);
    CHECK(h2_flush(fd, &out));
    CHECK(h2_wait(fd, 3, &answer));
    CHECK_MSG(strstr(answer.text, "x-a: 1\n") != NULL, "%s", answer.text);
    CHECK(strstr(answer.text, "host: a\n") != NULL);
    close(fd);
    fixture_close(&fixture);
}

TEST(header_blocks_may_continue)
{
    uint8_t block[256];
    open_fixture();
    int fd = connect_h2();
    size_t n = h2_block(block, "PUT", "/count", "3", NULL);
    h2_frame(&out, H2_HEADERS, 0, 1, block, 5);
    h2_frame(&out, H2_CONTINUATION, 0, 1, block + 5, 5);
    h2_frame(&out, H2_CONTINUATION, H2_END_HEADERS, 1, block + 10, n - 10);
    data(1, "abc", true);
    CHECK(h2_flush(fd, &out));
    CHECK(h2_wait(fd, 1, &answer));
    CHECK(strncmp(answer.text, "3 ", 2) == 0);
    check_alive(fd, 3);
    close(fd);
    fixture_close(&fixture);
}

TEST(who_expects_100_gets_it_once_the_handler_reads)
{
    uint8_t block[256];
    open_fixture();
    int fd = connect_h2();
    size_t n = h2_block(block, "PUT", "/count", "3",
                        "\x0f\x14\x0c"
                        "100-continue");
    h2_frame(&out, H2_HEADERS, H2_END_HEADERS, 1, block, n);
    CHECK(h2_flush(fd, &out));
    struct h2_frame frame;
    memset(&answer, 0, sizeof answer);
    while (answer.interim == 0 && h2_next(fd, &frame))
        h2_take(&frame, 1, &answer);
    CHECK_EQ_INT(answer.interim, 100);
    data(1, "abc", true);
    CHECK(h2_flush(fd, &out));
    CHECK(h2_wait(fd, 1, &answer));
    CHECK_EQ_INT(answer.status, 200);
    CHECK(strncmp(answer.text, "3 ", 2) == 0);
    close(fd);
    fixture_close(&fixture);
}

TEST(a_body_nobody_reads_is_held_within_the_window_and_given_back)
{
    enum { FRAME = 16000, FRAMES = 262 }; /* 4 MiB and less than a frame */
    static char bytes[FRAME];
    open_fixture();
    struct srv_buf_pool *pool = srv_front_buf_pool(fixture.front);
    int fd = connect_h2();
    h2_request(&out, 1, "PUT", "/gated", NULL, false);
    CHECK(h2_flush(fd, &out));
    for (int i = 0; i < FRAMES; i++) {
        h2_frame(&out, H2_DATA, 0, 1, bytes, FRAME);
        CHECK(h2_flush(fd, &out));
    }
    CHECK_SOON(srv_buf_pool_used_bytes(pool) >= 4 << 20);
    CHECK_MSG(srv_buf_pool_used_bytes(pool) <= 5 << 20, "%zu bytes held",
              srv_buf_pool_used_bytes(pool));
    fixture.is_gate_open = true;
    CHECK(h2_wait(fd, 1, &answer));
    CHECK_EQ_STR(answer.text, "late\n");
    CHECK_EQ_U64(srv_buf_pool_used_bytes(pool), 0);
    uint64_t window = answer.window;
    for (int i = 0; i < 130; i++) {
        h2_frame(&out, H2_DATA, 0, 1, bytes, FRAME); /* nobody's any more */
        CHECK(h2_flush(fd, &out));
    }
    for (uint32_t stream = 3; stream < 7; stream += 2) { /* what is due when the first is answered
                                                            comes before the second */
        check_alive(fd, stream);
        window += answer.window;
    }
    CHECK_MSG(window >= 18u << 19 && window <= 20u << 19, "window grew by %llu",
              (unsigned long long)window);
    CHECK_EQ_U64(srv_buf_pool_used_bytes(pool), 0);
    close(fd);
    fixture_close(&fixture);
}

TEST(an_answered_stream_whose_body_still_comes_is_reset_without_an_error)
{
    open_fixture();
    int fd = connect_h2();
    h2_request(&out, 1, "PUT", "/deny", "1000", false);
    data(1, "abc", false);
    CHECK(h2_flush(fd, &out));
    CHECK(h2_wait(fd, 1, &answer));
    CHECK_EQ_INT(answer.status, 403);
    CHECK_EQ_INT(answer.reset, -1);
    CHECK(h2_wait(fd, 1, &answer));
    CHECK_EQ_INT(answer.reset, 0);
    check_alive(fd, 3);
    close(fd);
    fixture_close(&fixture);
}

/* Takes the next frame: what it gives back to the connection's window is added to *window, and a
 * stream that has ended to *ended. The first streams may be answered while the last ones still wait
 * for the window; none may be answered otherwise than well. */
static bool take_progress(int fd, int64_t *window, int *ended)
{
    static struct h2_frame frame;
    if (!h2_next(fd, &frame))
        return false;
    CHECK_MSG(frame.type != H2_RST_STREAM && frame.type != H2_GOAWAY, "type %d of stream %u",
              frame.type, frame.stream);
    CHECK_MSG(frame.type != H2_HEADERS || h2_status(&frame) == 200, "stream %u: %d", frame.stream,
              h2_status(&frame));
    memset(&answer, 0, sizeof answer);
    h2_take(&frame, frame.stream, &answer);
    *window += (int64_t)answer.window;
    *ended += answer.is_ended;
    return true;
}

/* More streams than full buffers fit into the window: none may wait for a buffer that never fills.
 */
TEST(many_slow_bodies_do_not_starve_each_other)
{
    enum { STREAMS = 100, PART = 15000, PARTS = 4 };
    static char bytes[PART];
    open_fixture();
    int ended = 0, fd = connect_h2();
    for (uint32_t i = 0; i < STREAMS; i++)
        h2_request(&out, 2 * i + 1, "PUT", "/count", NULL, false);
    CHECK(h2_flush(fd, &out));
    int64_t window = 65535;
    for (int part = 0; part < PARTS; part++) {
        for (uint32_t i = 0; i < STREAMS; i++) {
            while (window < PART)
                CHECK_MSG(take_progress(fd, &window, &ended), "stuck at part %d of stream %u", part,
                          2 * i + 1);
            window -= PART;
            h2_frame(&out, H2_DATA, part == PARTS - 1 ? H2_END_STREAM : 0, 2 * i + 1, bytes, PART);
            CHECK(h2_flush(fd, &out));
        }
    }
    while (ended < STREAMS)
        CHECK_MSG(take_progress(fd, &window, &ended), "%d of %d ended", ended, STREAMS);
    close(fd);
    fixture_close(&fixture);
}

static void start_wide(void *data, struct srv_exchange *ex)
{
    static char values[20][400]; /* all different, so that no table makes them shorter */
    struct srv_field fields[20];
    const struct srv_request *req = srv_exchange_request(ex);
    if (req->path.len != 5 || memcmp(req->path.base, "/wide", 5) != 0) {
        fixture_start(data, ex);
        return;
    }
    for (int i = 0; i < 20; i++) {
        memset(values[i], '~', sizeof values[i]);
        values[i][0] = (char)('a' + i);
        fields[i] = (struct srv_field){{"x-wide", 6}, {values[i], sizeof values[i]}};
    }
    struct srv_response response = {.status = 200, .fields = fields, .n_fields = 20};
    srv_respond(ex, &response, NULL);
}

/* With half a mebibyte queued libh2o stops reading, and later starts again by itself. */
TEST(bodies_still_pass_by_libh2o_after_it_has_stopped_reading)
{
    static char bytes[16000];
    fixture_init(&fixture);
    fixture.config.n_threads = 1;
    fixture.handler.start = start_wide;
    fixture_open(&fixture);
    int small = 65536, fd = connect_h2();
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    for (uint32_t round = 0; round < 6; round++) {
        for (uint32_t i = 0; i < 90; i++)
            h2_request(&out, round * 200 + 2 * i + 1, "GET", "/wide", NULL, true);
        CHECK(h2_flush(fd, &out));
        usleep(50000);
        uint32_t stream = round * 200 + 199;
        h2_request(&out, stream, "PUT", "/count", NULL, false);
        for (int i = 0; i < 3; i++)
            h2_frame(&out, H2_DATA, i == 2 ? H2_END_STREAM : 0, stream, bytes, sizeof bytes);
        CHECK(h2_flush(fd, &out));
        CHECK_MSG(h2_wait(fd, stream, &answer), "round %u: closed", round);
        CHECK_MSG(strncmp(answer.text, "48000 ", 6) == 0, "round %u: reset %d, %s", round,
                  answer.reset, answer.text);
    }
    close(fd);
    fixture_close(&fixture);
}

TEST(a_stalled_body_is_answered_408_and_one_without_buffers_503)
{
    fixture_init(&fixture);
    fixture.config.body_timeout_ms = 300;
    fixture.config.n_threads = 1;
    fixture.config.buffer_budget_bytes = 100000;
    fixture_open(&fixture);
    int fd = connect_h2();
    h2_request(&out, 1, "PUT", "/count", NULL, false);
    data(1, "abc", false);
    h2_request(&out, 3, "PUT", "/count", NULL, false);
    data(3, "abc", false);
    CHECK(h2_flush(fd, &out));
    CHECK(h2_wait(fd, 3, &answer));
    CHECK_EQ_INT(answer.status, 503);
    CHECK(h2_wait(fd, 1, &answer));
    CHECK_EQ_INT(answer.status, 408);
    check_alive(fd, 5);
    close(fd);
    fixture_close(&fixture);
}

TEST(a_body_that_trickles_is_answered_408)
{
    fixture_init(&fixture);
    fixture.config.body_timeout_ms = 400;
    fixture.config.body_rate = 100;
    fixture.config.n_threads = 1;
    fixture_open(&fixture);
    int fd = connect_h2();
    h2_request(&out, 1, "PUT", "/count", NULL, false);
    for (int i = 0; i < 16; i++) {
        data(1, "x", false);
        CHECK(h2_flush(fd, &out));
        usleep(50000);
    }
    CHECK(h2_wait(fd, 1, &answer));
    CHECK_EQ_INT(answer.status, 408);
    check_alive(fd, 3);
    close(fd);
    fixture_close(&fixture);
}

TEST(a_client_that_takes_a_byte_now_and_then_is_cut_off)
{
    static const uint8_t no_window[] = {0, 4, 0, 0, 0, 0};
    struct srv_front_stats stats;
    fixture_init(&fixture);
    fixture.config.send_timeout_ms = 400;
    fixture.config.send_rate = 1000;
    fixture_open(&fixture);
    int fd = fixture_connect(&fixture);
    out.len = 0;
    h2_put(&out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    h2_frame(&out, H2_SETTINGS, 0, 0, no_window, sizeof no_window);
    h2_request(&out, 1, "GET", "/bytes/100000", NULL, true);
    do {
        h2_frame(&out, H2_WINDOW_UPDATE, 0, 1, "\0\0\0\x01", 4);
        usleep(20000);
        srv_front_stats(fixture.front, &stats);
    } while (h2_flush(fd, &out) && stats.sends_stalled == 0 && stats.h2_flood_window_update == 0);
    CHECK_SOON((srv_front_stats(fixture.front, &stats), stats.sends_stalled == 1));
    CHECK_EQ_U64(stats.h2_flood_window_update, 0);
    close(fd);
    fixture_close(&fixture);
}

TEST(clients_may_leave_at_any_byte)
{
    open_fixture();
    connect_h2();
    h2_request(&out, 1, "PUT", "/work", NULL, false);
    h2_request(&out, 3, "GET", "/wait/300000", NULL, true);
    data(1, "abc", false);
    h2_request(&out, 5, "PUT", "/deny", NULL, false);
    h2_request(&out, 7, "GET", "/late", NULL, true);
    data(5, "abc", false);
    data(1, "abc", true);
    static struct h2_out whole;
    whole = out;
    for (size_t n = 1; n <= whole.len; n++) {
        int fd = fixture_connect(&fixture);
        CHECK(client_send(fd, whole.bytes, n));
        if (n % 3 == 0)
            usleep(500);
        if (n % 2 == 0) {
            struct linger linger = {1, 0};
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
        }
        close(fd);
    }
    fixture_close(&fixture);
}

TEST(a_drain_says_goaway_and_lets_streams_finish)
{
    int goaway;
    open_fixture();
    int idle = connect_h2();
    check_alive(idle, 1);
    int busy = connect_h2();
    h2_request(&out, 1, "GET", "/gated", NULL, true);
    h2_request(&out, 3, "PUT", "/work", "6", false);
    data(3, "abc", false);
    CHECK(h2_flush(busy, &out));
    CHECK_SOON(fixture_has_requests(&fixture, 3));
    srv_front_stop(fixture.front);
    CHECK(h2_wait_end(idle, &goaway));
    CHECK_EQ_INT(goaway, 0);
    data(3, "def", true);
    CHECK(h2_flush(busy, &out));
    CHECK(h2_wait(busy, 3, &answer));
    CHECK(strncmp(answer.text, "6 ", 2) == 0);
    fixture.is_gate_open = true;
    CHECK(h2_wait(busy, 1, &answer));
    CHECK_EQ_STR(answer.text, "late\n");
    CHECK(h2_wait_end(busy, &goaway));
    pthread_join(fixture.thread, NULL);
    CHECK(fixture.is_clean);
    srv_pool_destroy(fixture.pool);
    srv_front_destroy(fixture.front);
    close(idle);
    close(busy);
}
