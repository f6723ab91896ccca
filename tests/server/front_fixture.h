/* A front in this process with a handler that needs no store: for tests that speak to it through
 * sockets.
 *
 *   GET  /bytes/N     N bytes of a pattern, out of a source
 *   GET  /wait/N      the same, but the source waits for a worker before every piece
 *   GET  /fail/N      announces N bytes and fails after half of them
 *   GET  /text        a short document in memory
 *   GET  /fields      every field of the request, one a line
 *   GET  /late        an answer after 200 ms on a worker
 *   GET  /gated       an answer once the test opens the gate
 *   GET  /never       no answer
 *   PUT  /count       reads the body, answers its length and a sum over all bytes with their places
 *   PUT  /work        the same, with a worker at every buffer
 *   PUT  /deny        403 without reading
 *   PUT  /peek        reads one buffer, then answers 409
 * HEAD works where GET does. Anything else is 404.
 */
#pragma once

#include <pthread.h>

#include "server/front.h"
#include "server/loop.h"
#include "tests/server/front_client.h"
#include "tests/server/front_visit.h"

struct fixture {
    struct srv_front_config config;
    struct srv_listener_config listeners[2]; /* clear, TLS */
    struct srv_handler handler;
    struct srv_pool *pool;
    struct srv_front *front;
    pthread_t thread;
    bool is_clean;       /* what srv_front_run returned */
    _Atomic int n_alive; /* handler contexts */
    _Atomic bool is_gate_open;
};

static inline void visit_await_gate(struct srv_job *job)
{
    const struct visit *v = (struct visit *)job;
    CHECK_SOON(*v->gate);
}

static inline void visit_late(struct srv_job *job)
{
    struct visit *v = (struct visit *)job;
    if (visit_back(v))
        visit_text(v, 200, "late\n");
}

static inline void visit_fields(struct visit *v)
{
    const struct srv_request *req = srv_exchange_request(v->ex);
    char text[4096];
    size_t n =
        (size_t)snprintf(text, sizeof text, "%.*s|%.*s|%.*s|%d|%s\n", (int)req->path.len,
                         req->path.base, (int)req->query.len, req->query.base,
                         (int)req->authority.len, req->authority.base, req->version, req->id);
    for (size_t i = 0; i < req->n_fields && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s: %.*s\n",
                              (int)req->fields[i].name.len, req->fields[i].name.base,
                              (int)req->fields[i].value.len, req->fields[i].value.base);
    struct srv_response response = {.status = 200};
    srv_respond_bytes(v->ex, &response, text, n < sizeof text ? n : sizeof text);
}

static inline bool visit_path_is(const struct srv_request *req, const char *prefix,
                                 uint64_t *number_out)
{
    size_t len = strlen(prefix);
    if (req->path.len < len || memcmp(req->path.base, prefix, len) != 0)
        return false;
    *number_out = 0;
    for (size_t i = len; i < req->path.len; i++)
        *number_out = *number_out * 10 + (uint64_t)(req->path.base[i] - '0');
    return true;
}

static inline void fixture_start(void *data, struct srv_exchange *ex)
{
    struct fixture *f = data;
    const struct srv_request *req = srv_exchange_request(ex);
    struct visit *v = calloc(1, sizeof *v);
    CHECK(v != NULL);
    v->ex = ex;
    v->pool = f->pool;
    v->n_alive = &f->n_alive;
    v->gate = &f->is_gate_open;
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
    } else if (visit_path_is(req, "/gated", &v->end)) {
        visit_submit(v, visit_await_gate, visit_late);
    } else if (visit_path_is(req, "/never", &v->end)) {
        return;
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

static inline void *fixture_run(void *arg)
{
    struct fixture *f = arg;
    f->is_clean = srv_front_run(f->front, NULL);
    return NULL;
}

/* Defaults that suit a test; change f->config before fixture_open. */
static inline void fixture_init(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    srv_process_init();
    srv_front_config_init(&f->config);
    f->handler = (struct srv_handler){.data = f, .start = fixture_start};
    f->listeners[0] = (struct srv_listener_config){
        .address = "127.0.0.1", .is_tls = false, .handler = &f->handler};
    f->listeners[1] = (struct srv_listener_config){
        .address = "127.0.0.1", .is_tls = true, .handler = &f->handler};
    f->config.listeners = f->listeners;
    f->config.n_listeners = 2;
    f->config.n_threads = 2;
    f->config.tls_self_signed = true;
    f->config.drain_timeout_ms = 60000;
}

static inline void fixture_open(struct fixture *f)
{
    char error[256] = "";
    f->pool = srv_pool_create(2, 64);
    f->front = srv_front_create(&f->config, error, sizeof error);
    CHECK_MSG(f->front != NULL, "%s", error);
    CHECK(pthread_create(&f->thread, NULL, fixture_run, f) == 0);
}

/* Stops the front and checks that nothing is left of any exchange. */
static inline void fixture_close(struct fixture *f)
{
    srv_front_stop(f->front);
    pthread_join(f->thread, NULL);
    srv_pool_destroy(f->pool);
    srv_front_destroy(f->front);
    CHECK_EQ_INT(f->n_alive, 0);
}

static inline int fixture_connect(const struct fixture *f)
{
    return client_connect(srv_front_port(f->front, 0));
}

/* Whether handlers have seen that many requests. */
static inline bool fixture_has_requests(const struct fixture *f, uint64_t n)
{
    struct srv_front_stats stats;
    srv_front_stats(f->front, &stats);
    return stats.requests >= n;
}
