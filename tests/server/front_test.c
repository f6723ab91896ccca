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

static void join(void)
{
    pthread_join(fixture.thread, NULL);
    srv_pool_destroy(fixture.pool);
    srv_front_destroy(fixture.front);
    CHECK_EQ_INT(fixture.n_alive, 0);
}

TEST(a_drain_closes_idle_connections_at_once)
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
    usleep(100000);
    uint64_t before = now_ms();
    fixture_close(&fixture);
    CHECK(fixture.is_clean);
    CHECK_MSG(now_ms() - before < 1000, "took %llu ms", (unsigned long long)(now_ms() - before));
    for (int i = 0; i < 20; i++) {
        CHECK(client_hear(fds[i], heard, sizeof heard, NULL));
        close(fds[i]);
    }
}

TEST(a_drain_lets_requests_finish_and_then_closes)
{
    fixture_init(&fixture);
    fixture_open(&fixture);
    int late = fixture_connect(&fixture);
    int body = fixture_connect(&fixture);
    CHECK(client_say(late, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK(client_say(body, "PUT /work HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc"));
    usleep(50000);
    srv_front_stop(fixture.front);
    usleep(50000);
    CHECK(client_say(body, "def"));
    CHECK(client_hear(late, heard, sizeof heard, NULL));
    CHECK(strstr(heard, "late\n") != NULL && strstr(heard, "Connection: close\r\n") != NULL);
    CHECK(client_hear(body, heard, sizeof heard, NULL));
    CHECK(strstr(heard, "\r\n6 ") != NULL);
    join();
    CHECK(fixture.is_clean);
    close(late);
    close(body);
}

TEST(a_drain_is_bounded_and_a_second_stop_ends_it)
{
    for (int round = 0; round < 2; round++) {
        fixture_init(&fixture);
        fixture.config.drain_timeout_ms = round == 0 ? 500 : 60000;
        fixture_open(&fixture);
        int stuck = fixture_connect(&fixture);
        int reading = fixture_connect(&fixture);
        CHECK(client_say(stuck, "PUT /work HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc"));
        CHECK(client_say(reading, "GET /bytes/100000000 HTTP/1.1\r\nHost: a\r\n\r\n"));
        usleep(50000);
        uint64_t before = now_ms();
        srv_front_stop(fixture.front);
        usleep(50000);
        if (round == 1)
            srv_front_stop(fixture.front);
        join();
        CHECK(!fixture.is_clean);
        CHECK(now_ms() - before < 2000);
        CHECK(round == 1 || now_ms() - before >= 450);
        close(stuck);
        close(reading);
    }
}

TEST(sigterm_drains)
{
    fixture_init(&fixture);
    fixture_open(&fixture);
    int fd = fixture_connect(&fixture);
    CHECK(client_say(fd, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n"));
    usleep(50000);
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
    struct srv_front_stats stats;
    fixture_init(&fixture);
    fixture.config.max_connections = LIMIT;
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
    srv_front_stats(fixture.front, &stats);
    CHECK_EQ_U64(stats.connections_refused, 5);
    CHECK(client_say(fds[0], "GET /text HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK(client_hear(fds[0], heard, sizeof heard, "hello\n"));
    close(fds[0]);
    usleep(50000);
    fds[0] = fixture_connect(&fixture);
    CHECK(client_say(fds[0], "GET /text HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK(client_hear(fds[0], heard, sizeof heard, "hello\n"));
    for (int i = 0; i < LIMIT; i++)
        close(fds[i]);
    fixture_close(&fixture);
}

TEST(counters_tell_what_happened)
{
    struct srv_front_stats stats;
    fixture_init(&fixture);
    fixture_open(&fixture);
    int fd = fixture_connect(&fixture);
    CHECK(client_say(fd, "PUT /work HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabcdef"));
    CHECK(client_hear(fd, heard, sizeof heard, "\r\n6 "));
    CHECK(client_say(fd, "GET / HTTP/9.9\r\n\r\n"));
    CHECK(client_hear(fd, heard, sizeof heard, NULL));
    close(fd);
    srv_front_stats(fixture.front, &stats);
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
