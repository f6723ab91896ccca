/* What one client address may have: connections, buffers, requests; and networks that may not come.
 * Clients are 127.0.0.1 and 127.0.0.2. */
#include "tests/server/h2_fixture.h"

static char heard[1 << 16];

static int connect_from(const char *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in from = {.sin_family = AF_INET};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(srv_front_port(fixture.front, 0))};
    inet_pton(AF_INET, address, &from.sin_addr);
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    CHECK(fd != -1 && bind(fd, (struct sockaddr *)&from, sizeof from) == 0);
    CHECK(connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

static struct srv_front_stats stats(void)
{
    struct srv_front_stats now;
    srv_front_stats(fixture.front, &now);
    return now;
}

static void check_served(int fd)
{
    CHECK(client_say(fd, "GET /text HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK_MSG(client_hear(fd, heard, sizeof heard, "hello\n"), "%s", heard);
}

static void check_refused(int fd, int status, const char *text)
{
    char line[64];
    snprintf(line, sizeof line, "HTTP/1.1 %d ", status);
    CHECK(client_say(fd, "GET /text HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK(client_hear(fd, heard, sizeof heard, NULL));
    CHECK_MSG(strncmp(heard, line, strlen(line)) == 0 && strstr(heard, text) != NULL, "%s", heard);
    CHECK(strstr(heard, "Connection: close\r\n") != NULL);
    close(fd);
}

TEST(an_address_has_no_more_connections_than_its_share_and_others_have_theirs)
{
    fixture_init(&fixture);
    fixture.config.max_connections = 6;
    fixture.config.max_connections_per_address = 2;
    fixture_open(&fixture);
    int one = connect_from("127.0.0.1"), two = connect_from("127.0.0.1");
    check_served(one);
    check_served(two);
    check_refused(connect_from("127.0.0.1"), 503, "too many connections");
    CHECK_SOON(stats().connections_open == 2);
    int other = connect_from("127.0.0.2");
    check_served(other);
    CHECK_EQ_U64(stats().connections_over_address, 1);
    CHECK_EQ_U64(stats().connections_refused, 1);
    close(two);
    CHECK_SOON(stats().connections_open == 2);
    two = connect_from("127.0.0.1");
    check_served(two);
    close(one);
    close(two);
    close(other);
    fixture_close(&fixture);
}

TEST(an_address_has_three_quarters_of_all_connections_unless_told_otherwise)
{
    int fds[4];
    fixture_init(&fixture);
    fixture.config.max_connections = 4;
    fixture_open(&fixture);
    for (int i = 0; i < 3; i++)
        check_served(fds[i] = connect_from("127.0.0.1"));
    check_refused(connect_from("127.0.0.1"), 503, "too many connections");
    CHECK_SOON(stats().connections_open == 3); /* the refused one counts until it is gone */
    check_served(fds[3] = connect_from("127.0.0.2"));
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    fixture_close(&fixture);
}

TEST(who_is_one_too_many_is_told_even_if_it_says_nothing)
{
    fixture_init(&fixture);
    fixture.config.max_connections = 2;
    fixture.config.max_connections_per_address = 1;
    fixture.config.handshake_timeout_ms = 600000;
    fixture_open(&fixture);
    int one = connect_from("127.0.0.1");
    check_served(one);
    int silent = connect_from("127.0.0.1");
    CHECK(client_hear(silent, heard, sizeof heard, NULL));
    CHECK_MSG(strncmp(heard, "HTTP/1.1 503 ", 13) == 0, "%s", heard);
    CHECK_EQ_U64(stats().connections_silent, 1);
    close(silent);
    close(one);
    fixture_close(&fixture);
}

TEST(silent_ones_of_one_address_do_not_keep_others_from_being_told)
{
    enum { SILENT = 400 };
    int fds[SILENT];
    fixture_init(&fixture);
    fixture.config.max_connections = 2;
    fixture.config.max_connections_per_address = 1;
    fixture_open(&fixture);
    int one = connect_from("127.0.0.1"), two = connect_from("127.0.0.2");
    check_served(one);
    check_served(two);
    for (int i = 0; i < SILENT; i++)
        fds[i] = connect_from("127.0.0.1");
    check_refused(connect_from("127.0.0.2"), 503, "too many connections");
    check_refused(connect_from("127.0.0.3"), 503, "too many connections");
    for (int i = 0; i < SILENT; i++)
        close(fds[i]);
    close(one);
    close(two);
    fixture_close(&fixture);
}

/* Stalled uploads of one client, over either protocol, leave the others room. */
static void check_share(bool is_h2)
{
    enum { UPLOADS = 2 };
    int fds[UPLOADS];
    fixture_init(&fixture);
    fixture.config.buffer_budget_bytes = 16 << 20;
    fixture.config.buffer_share_bytes = UPLOADS * (64 << 10);
    fixture_open(&fixture);
    struct srv_buf_pool *pool = srv_front_buf_pool(fixture.front);
    for (int i = 0; i < UPLOADS; i++) {
        fds[i] = connect_from("127.0.0.1");
        out.len = 0;
        h2_preface(&out);
        h2_request(&out, 1, "PUT", "/count", "100", false);
        data(1, "ab", false);
        CHECK(is_h2
                  ? h2_flush(fds[i], &out)
                  : client_say(fds[i],
                               "PUT /count HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nab"));
    }
    CHECK_SOON(srv_buf_pool_used_bytes(pool) == UPLOADS * (64 << 10));
    int over = connect_from("127.0.0.1"), other = connect_from("127.0.0.2");
    CHECK(client_say(over, "PUT /count HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde"));
    CHECK(client_hear(over, heard, sizeof heard, "\r\n\r\n"));
    CHECK_MSG(strncmp(heard, "HTTP/1.1 503 ", 13) == 0, "%s", heard);
    CHECK(client_say(other, "PUT /count HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde"));
    CHECK_MSG(client_hear(other, heard, sizeof heard, "\r\n5 "), "%s", heard);
    CHECK_EQ_U64(stats().bodies_over_share, 1);
    for (int i = 0; i < UPLOADS; i++)
        close(fds[i]);
    CHECK_SOON(srv_buf_pool_used_bytes(pool) == 0);
    int again = connect_from("127.0.0.1");
    CHECK(client_say(again, "PUT /count HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde"));
    CHECK_MSG(client_hear(again, heard, sizeof heard, "\r\n5 "), "%s", heard);
    close(over);
    close(other);
    close(again);
    fixture_close(&fixture);
}

TEST(stalled_uploads_of_one_address_leave_buffers_to_others)
{
    check_share(false);
    check_share(true);
}

/* Hears one whole answer, whichever of the two it is. */
static bool hear_answer(int fd)
{
    size_t at = 0;
    for (;;) {
        ssize_t n = recv(fd, heard + at, sizeof heard - 1 - at, 0);
        if (n <= 0)
            return false;
        at += (size_t)n;
        heard[at] = '\0';
        if (strstr(heard, "\r\n\r\nhello\n") != NULL || strstr(heard, "of this address") != NULL)
            return true;
    }
}

TEST(requests_beyond_the_rate_of_an_address_are_answered_503)
{
    enum { BURST = 5 };
    fixture_init(&fixture);
    fixture.listeners[0].limits.requests_per_s = 1;
    fixture.listeners[0].limits.requests_burst = BURST;
    fixture_open(&fixture);
    int fd = connect_from("127.0.0.1"), other = connect_from("127.0.0.2");
    int served = 0, refused = 0;
    for (int i = 0; i < 4 * BURST; i++) {
        CHECK(client_say(fd, "GET /text HTTP/1.1\r\nHost: a\r\n\r\n"));
        CHECK(hear_answer(fd));
        bool is_refused = strncmp(heard, "HTTP/1.1 503 ", 13) == 0;
        CHECK(!is_refused || strstr(heard, "\r\nRetry-After: 1\r\n") != NULL);
        served += !is_refused;
        refused += is_refused;
    }
    CHECK_MSG(served >= BURST && refused > 0, "%d served, %d refused", served, refused);
    CHECK_EQ_U64(stats().requests_over_rate, (uint64_t)refused);
    check_served(other);
    close(other);
    close(fd);
    fixture_close(&fixture);
}

TEST(networks_that_may_not_connect_are_answered_403)
{
    const char *why;
    fixture_init(&fixture);
    CHECK(srv_cidr_add(&fixture.listeners[0].limits.networks, "127.0.0.2", 9, false, &why));
    fixture_open(&fixture);
    int friend = connect_from("127.0.0.1");
    check_served(friend);
    check_refused(connect_from("127.0.0.2"), 403, "may not connect");
    int fd = connect_from("127.0.0.2");
    out.len = 0;
    h2_preface(&out);
    h2_request(&out, 1, "GET", "/text", NULL, true);
    CHECK(h2_flush(fd, &out));
    CHECK(h2_wait(fd, 1, &answer));
    CHECK_EQ_INT(answer.status, 403);
    CHECK_EQ_U64(stats().connections_denied, 2);
    CHECK_EQ_U64(stats().requests, 1);
    close(fd);
    close(friend);
    fixture_close(&fixture);
}

TEST(clear_text_on_a_port_for_tls_is_told_so)
{
    fixture_init(&fixture);
    fixture_open(&fixture);
    for (int i = 0; i < 2; i++) {
        int fd = client_connect(srv_front_port(fixture.front, 1));
        CHECK(client_say(fd, i == 0 ? "GET / HTTP/1.1\r\nHost: a\r\n\r\n" : "PRI * HTTP/2.0\r\n"));
        if (i == 1)
            CHECK(client_say(fd, "\r\nSM\r\n\r\n"));
        CHECK(client_hear(fd, heard, sizeof heard, NULL));
        CHECK_MSG(strncmp(heard, "HTTP/1.1 400 ", 13) == 0 && strstr(heard, "TLS") != NULL, "%s",
                  heard);
        close(fd);
    }
    CHECK_EQ_U64(stats().tls_plain, 2);
    CHECK_EQ_U64(stats().tls_failed, 0);
    fixture_close(&fixture);
}

TEST(a_drain_does_not_wait_for_heads_that_do_not_end)
{
    fixture_init(&fixture);
    fixture.config.drain_timeout_ms = 30000;
    fixture.config.n_threads = 1;
    fixture_open(&fixture);
    int head = connect_from("127.0.0.1"), preface = connect_from("127.0.0.1");
    int silent = client_connect(srv_front_port(fixture.front, 1));
    int hello = client_connect(srv_front_port(fixture.front, 1));
    CHECK(client_say(head, "GET /text HTT") && client_say(preface, "PRI * HT"));
    CHECK(client_send(hello, "\x16\x03\x01", 3));
    int later = connect_from("127.0.0.1");
    for (int i = 0; i < 2; i++) /* after the second the loop has looked at all that came before */
        check_served(later);
    srv_front_stop(fixture.front);
    CHECK(client_hear(head, heard, sizeof heard, NULL));
    CHECK_MSG(strncmp(heard, "HTTP/1.1 503 ", 13) == 0, "%s", heard);
    close(head);
    CHECK(client_hear(preface, heard, sizeof heard, NULL));
    CHECK(client_hear(silent, heard, sizeof heard, NULL));
    CHECK(client_hear(hello, heard, sizeof heard, NULL));
    close(preface);
    close(silent);
    close(hello);
    close(later);
    fixture_close(&fixture);
}
