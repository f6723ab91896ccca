/* A libh2o that is not what the HTTP/2 gate was built for: it is found out, and HTTP/2 goes on with
 * buffered bodies. */
#include "server/h2_probe.h"

#include "tests/server/h2_fixture.h"

static void open_buffered(void)
{
    fixture_init(&fixture);
    fixture.config.n_threads = 1;
    fixture.config.h2_probe_fails = true;
    fixture_open(&fixture);
}

TEST(the_right_library_passes_and_a_gate_that_is_not_in_place_does_not)
{
    srv_process_init();
    CHECK(srv_h2_probe(false));
    CHECK(!srv_h2_probe(true));
}

TEST(buffered_bodies_arrive_whole)
{
    enum { FRAME = 16000 };
    static char bytes[FRAME];
    open_buffered();
    int fd = connect_h2();
    h2_request(&out, 1, "PUT", "/work", "11", false);
    data(1, "hello", false);
    data(1, " world", true);
    CHECK(h2_flush(fd, &out));
    CHECK(h2_wait(fd, 1, &answer));
    CHECK_EQ_INT(answer.status, 200);
    CHECK(strncmp(answer.text, "11 ", 3) == 0);
    check_alive(fd, 3);
    h2_request(&out, 5, "PUT", "/count", NULL, false);
    for (int i = 0; i < 3; i++)
        h2_frame(&out, H2_DATA, i == 2 ? H2_END_STREAM : 0, 5, bytes, FRAME);
    CHECK(h2_flush(fd, &out));
    CHECK(h2_wait(fd, 5, &answer));
    CHECK(strncmp(answer.text, "48000 ", 6) == 0);
    close(fd);
    fixture_close(&fixture);
}

TEST(heads_and_sources_are_sent_as_ever)
{
    open_buffered();
    int fd = connect_h2();
    h2_request(&out, 1, "GET", "/wait/60000", NULL, true);
    h2_request(&out, 3, "GET", "/fields", NULL, true);
    h2_request(&out, 5, "PUT", "/deny", "3", false);
    data(5, "abc", true);
    CHECK(h2_flush(fd, &out));
    bool seen[6] = {false};
    struct h2_frame frame;
    size_t got = 0;
    while (!(seen[1] && seen[3] && seen[5]) && h2_next(fd, &frame)) {
        got += frame.type == H2_DATA && frame.stream == 1 ? frame.length : 0;
        if (frame.type <= H2_HEADERS && (frame.flags & H2_END_STREAM) != 0)
            seen[frame.stream] = true;
    }
    CHECK_EQ_U64(got, 60000);
    CHECK(seen[1] && seen[3] && seen[5]);
    close(fd);
    fixture_close(&fixture);
}

TEST(clients_may_leave_and_drains_end)
{
    open_buffered();
    for (int i = 0; i < 20; i++) {
        int fd = connect_h2();
        h2_request(&out, 1, "GET", "/wait/3000000", NULL, true);
        h2_request(&out, 3, "PUT", "/work", "11", false);
        data(3, "hello", false);
        CHECK(h2_flush(fd, &out));
        if (i % 2 == 0)
            usleep(1000);
        close(fd);
    }
    fixture_close(&fixture);
}
