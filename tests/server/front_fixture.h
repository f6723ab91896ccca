/* A front in this process with a handler that needs no store: for tests that speak to it through sockets.
 *
 *   GET  /bytes/N     N bytes of a pattern, out of a source
 *   GET  /wait/N      the same, but the source waits for a worker before every piece
 *   GET  /fail/N      announces N bytes and fails after half of them
 *   GET  /text        a short document in memory
 *   GET  /fields      every field of the request, one a line
 *   GET  /late        an answer after 200 ms on a worker
 *   PUT  /count       reads the body, answers its length and a sum over all bytes with their places
 *   PUT  /work        the same, with a worker at every buffer
 *   PUT  /deny        403 without reading
 *   PUT  /peek        reads one buffer, then answers 409
 * HEAD works where GET does. Anything else is 404.
 */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "server/buf.h"
#include "server/exchange.h"
#include "server/front.h"
#include "server/job.h"
#include "server/loop.h"
#include "tests/harness/test.h"

struct fixture {
    struct srv_front_config config;
    struct srv_listener_config listeners[2]; /* clear, TLS */
    struct srv_handler handler;
    struct srv_pool *pool;
    struct srv_front *front;
    pthread_t thread;
    bool is_clean; /* what srv_front_run returned */
    _Atomic int n_alive; /* handler contexts */
};

struct visit {
    struct srv_job job;
    struct srv_source source;
    struct srv_exchange *ex; /* NULL once gone */
    struct fixture *fixture;
    struct srv_buf *buf;
    uint64_t at, end, sum;
    bool waits, fails, works, ends, out;
    char piece[1 << 16];
};

/* ---- Handler ---- */

static inline uint8_t fixture_byte(uint64_t at)
{
    return (uint8_t)(at * 2654435761u >> 13);
}

static inline uint64_t fixture_sum(uint64_t sum, uint64_t at, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum += (at + i + 1) * (uint64_t)(bytes[i] + 1);
    return sum;
}

static void visit_free(struct visit *v)
{
    v->fixture->n_alive--;
    free(v);
}

static void visit_gone(void *ctx)
{
    struct visit *v = ctx;
    v->ex = NULL;
    if (!v->out)
        visit_free(v);
}

static void visit_text(struct visit *v, int status, const char *format, ...)
{
    char text[128];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const struct srv_field fields[] = {{{"Content-Type", 12}, {"text/plain", 10}}, {{"X-Test", 6}, {"1", 1}}};
    struct srv_response response = {.status = status, .fields = fields, .n_fields = 2};
    srv_respond_bytes(v->ex, &response, text, (size_t)n);
}

/* True if the context is to be used on. */
static bool visit_back(struct visit *v)
{
    v->out = false;
    if (v->ex == NULL)
        visit_free(v);
    return v->ex != NULL;
}

static void visit_submit(struct visit *v, void (*run)(struct srv_job *), void (*done)(struct srv_job *))
{
    v->job = (struct srv_job){.run = run, .done = done};
    v->out = true;
    srv_job_submit_admitted(v->fixture->pool, srv_exchange_loop(v->ex), &v->job);
}

static void visit_nothing(struct srv_job *job)
{
    (void)job;
}

static void visit_sleep(struct srv_job *job)
{
    (void)job;
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
}

static void visit_woken(struct srv_job *job)
{
    struct visit *v = (struct visit *)job;
    v->ends = true; /* may give one piece */
    if (visit_back(v))
        srv_source_wake(v->ex);
}

static enum srv_source_state visit_next(struct srv_source *source, size_t max, struct iovec *piece)
{
    struct visit *v = (struct visit *)((char *)source - offsetof(struct visit, source));
    if (v->fails && v->at >= v->end / 2)
        return SRV_SOURCE_FAILED;
    if (v->waits && !v->ends) {
        visit_submit(v, visit_nothing, visit_woken);
        return SRV_SOURCE_WAIT;
    }
    v->ends = false;
    size_t n = max < sizeof v->piece ? max : sizeof v->piece;
    for (size_t i = 0; i < n; i++)
        v->piece[i] = (char)fixture_byte(v->at + i);
    v->at += n;
    *piece = (struct iovec){v->piece, n};
    return SRV_SOURCE_READY;
}

static void visit_destroy_source(struct srv_source *source)
{
    struct visit *v = (struct visit *)((char *)source - offsetof(struct visit, source));
    CHECK(v->source.next != NULL);
    v->source.next = NULL;
}

static void visit_bytes(struct visit *v)
{
    v->source = (struct srv_source){visit_next, visit_destroy_source};
    struct srv_response response = {.status = 200, .content_length = v->end};
    srv_respond(v->ex, &response, &v->source);
}

static void visit_body(void *ctx, enum srv_body_event event, struct srv_buf *buf);

static void visit_sum(struct srv_job *job)
{
    struct visit *v = (struct visit *)job;
    v->sum = fixture_sum(v->sum, v->at, v->buf->base, v->buf->len);
    v->at += v->buf->len;
    srv_buf_release(v->buf);
    v->buf = NULL;
}

static void visit_counted(struct visit *v)
{
    if (v->ends)
        visit_text(v, 200, "%llu %llu\n", (unsigned long long)v->at, (unsigned long long)v->sum);
    else
        srv_body_read(v->ex, visit_body);
}

static void visit_summed(struct srv_job *job)
{
    struct visit *v = (struct visit *)job;
    if (visit_back(v))
        visit_counted(v);
}

static void visit_body(void *ctx, enum srv_body_event event, struct srv_buf *buf)
{
    struct visit *v = ctx;
    if (event == SRV_BODY_MALFORMED || event == SRV_BODY_STALLED || event == SRV_BODY_OVERLOAD) {
        CHECK(buf == NULL);
        visit_text(v, event == SRV_BODY_MALFORMED ? 400 : event == SRV_BODY_STALLED ? 408 : 503, "body\n");
        return;
    }
    CHECK(buf == NULL || buf->len > 0);
    CHECK(event == SRV_BODY_END || buf != NULL);
    v->ends = event == SRV_BODY_END;
    v->buf = buf;
    if (buf == NULL) {
        visit_counted(v);
    } else if (v->works) {
        visit_submit(v, visit_sum, visit_summed);
    } else {
        visit_sum(&v->job);
        visit_counted(v);
    }
}

static void visit_peeked(void *ctx, enum srv_body_event event, struct srv_buf *buf)
{
    (void)event;
    srv_buf_release(buf);
    visit_text(ctx, 409, "seen enough\n");
}

static void visit_late(struct srv_job *job)
{
    struct visit *v = (struct visit *)job;
    if (visit_back(v))
        visit_text(v, 200, "late\n");
}

static void visit_fields(struct visit *v)
{
    const struct srv_request *req = srv_exchange_request(v->ex);
    char text[4096];
    size_t n = (size_t)snprintf(text, sizeof text, "%.*s|%.*s|%.*s|%d|%s\n", (int)req->path.len, req->path.base,
                                (int)req->query.len, req->query.base, (int)req->authority.len, req->authority.base, req->version,
                                req->id);
    for (size_t i = 0; i < req->n_fields && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s: %.*s\n", (int)req->fields[i].name.len, req->fields[i].name.base,
                              (int)req->fields[i].value.len, req->fields[i].value.base);
    struct srv_response response = {.status = 200};
    srv_respond_bytes(v->ex, &response, text, n < sizeof text ? n : sizeof text);
}

static bool visit_path_is(const struct srv_request *req, const char *prefix, uint64_t *number_out)
{
    size_t len = strlen(prefix);
    if (req->path.len < len || memcmp(req->path.base, prefix, len) != 0)
        return false;
    *number_out = 0;
    for (size_t i = len; i < req->path.len; i++)
        *number_out = *number_out * 10 + (uint64_t)(req->path.base[i] - '0');
    return true;
}

static void fixture_start(void *data, struct srv_exchange *ex)
{
    struct fixture *f = data;
    const struct srv_request *req = srv_exchange_request(ex);
    struct visit *v = calloc(1, sizeof *v);
    CHECK(v != NULL);
    v->ex = ex;
    v->fixture = f;
    f->n_alive++;
    srv_exchange_attach(ex, v, visit_gone);
    CHECK(srv_exchange_context(ex) == v);
    if (visit_path_is(req, "/bytes/", &v->end)) {
        visit_bytes(v);
    } else if (visit_path_is(req, "/wait/", &v->end)) {
        v->waits = true;
        visit_bytes(v);
    } else if (visit_path_is(req, "/fail/", &v->end)) {
        v->fails = true;
        visit_bytes(v);
    } else if (visit_path_is(req, "/text", &v->end)) {
        visit_text(v, 200, "hello\n");
    } else if (visit_path_is(req, "/fields", &v->end)) {
        visit_fields(v);
    } else if (visit_path_is(req, "/late", &v->end)) {
        visit_submit(v, visit_sleep, visit_late);
    } else if (visit_path_is(req, "/count", &v->end)) {
        srv_body_read(ex, visit_body);
    } else if (visit_path_is(req, "/work", &v->end)) {
        v->works = true;
        srv_body_read(ex, visit_body);
    } else if (visit_path_is(req, "/deny", &v->end)) {
        visit_text(v, 403, "denied\n");
    } else if (visit_path_is(req, "/peek", &v->end)) {
        srv_body_read(ex, visit_peeked);
    } else {
        visit_text(v, 404, "nothing here\n");
    }
}

/* ---- The front ---- */

static void *fixture_run(void *arg)
{
    struct fixture *f = arg;
    f->is_clean = srv_front_run(f->front);
    return NULL;
}

/* Defaults that suit a test; change f->config before fixture_open. */
static void fixture_init(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    srv_process_init();
    srv_front_config_init(&f->config);
    f->handler = (struct srv_handler){f, fixture_start};
    f->listeners[0] = (struct srv_listener_config){"127.0.0.1", 0, false, &f->handler};
    f->listeners[1] = (struct srv_listener_config){"127.0.0.1", 0, true, &f->handler};
    f->config.listeners = f->listeners;
    f->config.n_listeners = 2;
    f->config.n_threads = 2;
    f->config.tls_self_signed = true;
    f->config.drain_timeout_ms = 3000;
}

static void fixture_open(struct fixture *f)
{
    char error[256] = "";
    f->pool = srv_pool_create(2, 64);
    f->front = srv_front_create(&f->config, error, sizeof error);
    CHECK_MSG(f->front != NULL, "%s", error);
    CHECK(pthread_create(&f->thread, NULL, fixture_run, f) == 0);
}

/* Stops the front and checks that nothing is left of any exchange. */
static void fixture_close(struct fixture *f)
{
    srv_front_stop(f->front);
    pthread_join(f->thread, NULL);
    srv_pool_destroy(f->pool);
    srv_front_destroy(f->front);
    CHECK_EQ_INT(f->n_alive, 0);
}

/* ---- A client ---- */

static int client_open(const struct fixture *f)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(srv_front_port(f->front, 0))};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    CHECK(fd != -1 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

/* Sends all; false if the connection broke. */
static bool client_send(int fd, const void *bytes, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t sent = send(fd, (const char *)bytes + at, n - at, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += (size_t)sent;
    }
    return true;
}

static bool client_say(int fd, const char *text)
{
    return client_send(fd, text, strlen(text));
}

/* Receives until the text holds `until` (NULL: the end), the peer closes, or 5 s pass. True if `until` came, or the close if it was
 * waited for. *text_out is terminated. */
static bool client_hear(int fd, char *text_out, size_t size, const char *until)
{
    size_t at = 0;
    for (;;) {
        text_out[at] = '\0';
        if (until != NULL && memmem(text_out, at, until, strlen(until)) != NULL)
            return true;
        struct pollfd poll_fd = {fd, POLLIN, 0};
        if (at + 1 >= size || poll(&poll_fd, 1, 5000) <= 0)
            return false;
        ssize_t n = recv(fd, text_out + at, size - 1 - at, 0);
        if (n <= 0)
            return until == NULL && n == 0;
        at += (size_t)n;
    }
}
