/* The front as a whole: stopping, limits, counters, and what is said when it cannot start. */
#include "tests/server/front_fixture.h"

#include <signal.h>

static struct fixture fixture;
static char heard[1 << 14];

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct srv_front_stats stats_now(void)
{
    struct srv_front_stats stats;
    srv_front_stats(fixture.front, &stats);
    return stats;
}

static void join(void)
{
    pthread_join(fixture.thread, NULL);
    srv_pool_destroy(fixture.pool);
    srv_front_destroy(fixture.front);
    CHECK_EQ_INT(fixture.n_alive, 0);
}

/* Stops a front with idle connections; milliseconds until it had ended. */
static uint64_t drain_idle_connections(void)
{
    int fds[20];
    fixture_init(&fixture);
    fixture_open(&fixture);
    for (int i = 0; i < 20; i++) {
        fds[i] = fixture_connect(&fixture);
        if (i % 2) {
            CHECK(client_say(fds[i], "GET /text HTTP/1.1\r\nHost: a\r\n\r\n"));
            CHECK(client_hear(fds[i], heard, sizeof heard, "hello\n"));
        }
    }
    CHECK_SOON(stats_now().connections_accepted == 20);
    uint64_t before = now_ms();
    fixture_close(&fixture);
    uint64_t took_ms = now_ms() - before;
    CHECK(fixture.is_clean);
    for (int i = 0; i < 20; i++) {
        CHECK(client_hear(fds[i], heard, sizeof heard, NULL));
        close(fds[i]);
    }
    return took_ms;
}

/* A busy machine may take its time once, but not every time. */
TEST(a_drain_gives_idle_connections_a_second)
{
    uint64_t took_ms = UINT64_MAX;
    for (int i = 0; i < 4 && took_ms >= 2000; i++)
        took_ms = drain_idle_connections();
    CHECK_MSG(took_ms >= 900 && took_ms < 2000, "took %llu ms", (unsigned long long)took_ms);
}

TEST(a_drain_lets_requests_finish_and_then_closes)
{
    fixture_init(&fixture);
    fixture.config.n_threads = 1;
    fixture_open(&fixture);
    int idle = fixture_connect(&fixture);
    int late = fixture_connect(&fixture);
    int body = fixture_connect(&fixture);
    CHECK(client_say(late, "GET /gated HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK(client_say(body, "PUT /work HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc"));
    CHECK_SOON(fixture_has_requests(&fixture, 2) && stats_now().connections_accepted == 3);
    srv_front_stop(fixture.front);
    CHECK(client_hear(idle, heard, sizeof heard, NULL)); /* the drain has begun */
    fixture.is_gate_open = true;
    CHECK(client_say(body, "def"));
    CHECK(client_hear(late, heard, sizeof heard, NULL));
    CHECK(strstr(heard, "late\n") != NULL && strstr(heard, "Connection: close\r\n") != NULL);
    CHECK(client_hear(body, heard, sizeof heard, NULL));
    CHECK(strstr(heard, "\r\n6 ") != NULL);
    join();
    CHECK(fixture.is_clean);
    close(idle);
    close(late);
    close(body);
}

/* Stops a front with requests that never end, `stops` times; milliseconds until it had ended. */
static uint64_t drain_stuck_requests(uint64_t timeout_ms, int stops)
{
    fixture_init(&fixture);
    fixture.config.drain_timeout_ms = timeout_ms;
    fixture_open(&fixture);
    int stuck = fixture_connect(&fixture);
    int reading = fixture_connect(&fixture);
    CHECK(client_say(stuck, "PUT /work HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc"));
    CHECK(client_say(reading, "GET /bytes/100000000 HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK_SOON(fixture_has_requests(&fixture, 2));
    uint64_t before = now_ms();
    for (int i = 0; i < stops; i++) {
        srv_front_stop(fixture.front);
        usleep(50000);
    }
    join();
    CHECK(!fixture.is_clean);
    close(stuck);
    close(reading);
    return now_ms() - before;
}

/* A busy machine may miss a bound once, but not with all timeouts. */
TEST(a_drain_is_bounded_and_a_second_stop_ends_it)
{
    bool is_right = false;
    uint64_t took_ms = 0, timeout_ms = 125;
    while (!is_right && (timeout_ms *= 4) <= 8000) {
        took_ms = drain_stuck_requests(timeout_ms, 1);
        is_right = took_ms >= timeout_ms - timeout_ms / 10 && took_ms < 4 * timeout_ms;
    }
    CHECK_MSG(is_right, "took %llu ms", (unsigned long long)took_ms);
    CHECK(drain_stuck_requests(100000, 2) < 90000);
}

TEST(sigterm_drains)
{
    fixture_init(&fixture);
    fixture_open(&fixture);
    int fd = fixture_connect(&fixture);
    CHECK(client_say(fd, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK_SOON(fixture_has_requests(&fixture, 1));
    kill(getpid(), SIGTERM);
    CHECK(client_hear(fd, heard, sizeof heard, NULL));
    CHECK(strstr(heard, "late\n") != NULL);
    join();
    CHECK(fixture.is_clean);
    close(fd);
}

TEST(connections_over_the_limit_are_told_so)
{
    enum { LIMIT = 10 };
    int fds[LIMIT + 5];
    fixture_init(&fixture);
    fixture.config.max_connections = LIMIT;
    fixture.config.max_connections_per_address = LIMIT;
    fixture_open(&fixture);
    for (int i = 0; i < LIMIT; i++) {
        fds[i] = fixture_connect(&fixture);
        CHECK(client_say(fds[i], "GET /text HTTP/1.1\r\nHost: a\r\n\r\n"));
        CHECK(client_hear(fds[i], heard, sizeof heard, "hello\n"));
    }
    for (int i = LIMIT; i < LIMIT + 5; i++) {
        fds[i] = fixture_connect(&fixture);
        CHECK(client_say(fds[i], "GET /text HTTP/1.1\r\nHost: a\r\n\r\n"));
        CHECK(client_hear(fds[i], heard, sizeof heard, NULL));
        CHECK(strncmp(heard, "HTTP/1.1 503 ", 13) == 0);
        CHECK(strstr(heard, "Retry-After: 1\r\n") != NULL &&
              strstr(heard, "Connection: close\r\n") != NULL);
        close(fds[i]);
    }
    CHECK_EQ_U64(stats_now().connections_refused, 5);
    CHECK(client_say(fds[0], "GET /text HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK(client_hear(fds[0], heard, sizeof heard, "hello\n"));
    close(fds[0]);
    CHECK_SOON(stats_now().connections_open == LIMIT - 1);
    fds[0] = fixture_connect(&fixture);
    CHECK(client_say(fds[0], "GET /text HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK(client_hear(fds[0], heard, sizeof heard, "hello\n"));
    for (int i = 0; i < LIMIT; i++)
        close(fds[i]);
    fixture_close(&fixture);
}

TEST(counters_tell_what_happened)
{
    fixture_init(&fixture);
    fixture_open(&fixture);
    int fd = fixture_connect(&fixture);
    CHECK(client_say(fd, "PUT /work HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabcdef"));
    CHECK(client_hear(fd, heard, sizeof heard, "\r\n6 "));
    CHECK(client_say(fd, "GET / HTTP/9.9\r\n\r\n"));
    CHECK(client_hear(fd, heard, sizeof heard, NULL));
    close(fd);
    struct srv_front_stats stats = stats_now();
    CHECK_EQ_U64(stats.connections_accepted, 1);
    CHECK_EQ_U64(stats.requests, 1);
    CHECK_EQ_U64(stats.body_bytes, 6);
    CHECK_EQ_U64(stats.heads_rejected, 1);
    CHECK_EQ_U64(stats.requests_aborted, 0);
    CHECK_EQ_INT(srv_front_n_loops(fixture.front), 2);
    CHECK_EQ_U64(srv_buf_pool_used_bytes(srv_front_buf_pool(fixture.front)), 0);
    fixture_close(&fixture);
}

TEST(what_cannot_start_says_why_and_leaves_nothing)
{
    struct fixture second;
    char error[256];
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_init(&second);
    second.listeners[1].port = srv_front_port(fixture.front, 0);
    CHECK(srv_front_create(&second.config, error, sizeof error) == NULL);
    CHECK_MSG(strstr(error, "already in use") != NULL, "said: %s", error);
    second.listeners[1].port = 0;
    second.config.tls_self_signed = false;
    CHECK(srv_front_create(&second.config, error, sizeof error) == NULL);
    CHECK_MSG(strstr(error, "no certificate") != NULL, "said: %s", error);
    second.config.tls_cert_path = "/nowhere.pem";
    CHECK(srv_front_create(&second.config, error, sizeof error) == NULL);
    CHECK_MSG(strstr(error, "/nowhere.pem") != NULL, "said: %s", error);
    fixture_close(&fixture);
}
