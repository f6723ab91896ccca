/* A front without sockets: the seam of server/exchange.h and server/loop.h for tests of handlers.
 *
 * The test's own thread is the loop. A request's body comes from memory in pieces of a chosen size,
 * at once or only when the loop turns; the response is collected. Either the exchange ends inside
 * of srv_respond, as a fast front may do it, or when the test says so.
 *
 * Owns:    struct fake is the test's; everything it points to is freed by fake_fini.
 * Threads: one, but srv_loop_post on any.
 */
#pragma once

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/buf.h"
#include "server/exchange.h"
#include "server/job.h"
#include "server/loop.h"
#include "tests/harness/test.h"

enum { FAKE_FIELDS = 200 };

struct srv_loop {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct srv_job *first; /* posted, oldest first */
    struct srv_job **last;
    struct srv_buf_pool *bufs;
};

/* One request and, later, its response. */
struct srv_exchange {
    struct srv_loop *loop;
    struct srv_request req;
    struct srv_field fields[FAKE_FIELDS];
    void *ctx;
    void (*gone)(void *ctx);
    const uint8_t *body;
    size_t body_len, body_at;
    size_t piece;               /* bytes lent at a time */
    enum srv_body_event ending; /* what comes after the last byte; END comes along with it */
    bool is_late;               /* bodies come when the loop turns */
    bool stays;                 /* the exchange does not end by itself */
    void (*on_body)(void *ctx, enum srv_body_event event, struct srv_buf *buf);
    bool is_responded, is_waiting, is_failed, is_gone;
    int status;
    uint64_t length; /* announced */
    struct srv_source *source;
    uint8_t *out;
    size_t out_len;
    size_t n_out_fields;
    char *out_names[FAKE_FIELDS], *out_values[FAKE_FIELDS];
};

static inline void fake_loop_init(struct srv_loop *loop, size_t budget)
{
    pthread_mutex_init(&loop->lock, NULL);
    pthread_cond_init(&loop->wake, NULL);
    loop->first = NULL;
    loop->last = &loop->first;
    loop->bufs = srv_buf_pool_create(budget);
    CHECK(loop->bufs != NULL);
}

static inline void fake_loop_fini(struct srv_loop *loop)
{
    CHECK_EQ_U64(srv_buf_pool_used_bytes(loop->bufs), 0);
    srv_buf_pool_destroy(loop->bufs);
}

void srv_loop_post(struct srv_loop *loop, struct srv_job *job)
{
    pthread_mutex_lock(&loop->lock);
    job->next_ = NULL;
    *loop->last = job;
    loop->last = &job->next_;
    pthread_cond_signal(&loop->wake);
    pthread_mutex_unlock(&loop->lock);
}

unsigned srv_loop_index(const struct srv_loop *loop)
{
    (void)loop;
    return 0;
}

uint64_t srv_loop_now_ms(const struct srv_loop *loop)
{
    struct timespec now;

    (void)loop;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Runs one completion, waiting for it up to 20 seconds. */
static inline void fake_turn(struct srv_loop *loop)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    pthread_mutex_lock(&loop->lock);
    while (loop->first == NULL)
        CHECK_MSG(pthread_cond_timedwait(&loop->wake, &loop->lock, &until) == 0,
                  "nothing came back to the loop");
    struct srv_job *job = loop->first;
    loop->first = job->next_;
    if (loop->first == NULL)
        loop->last = &loop->first;
    pthread_mutex_unlock(&loop->lock);
    job->done(job);
}

/* ---- Requests ---- */

static inline struct srv_str fake_str(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

static inline void fake_init(struct srv_exchange *ex, struct srv_loop *loop, enum srv_method method,
                             const char *target)
{
    static const char *const names[] = {"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "BREW"};
    const char *mark = strchr(target, '?');

    memset(ex, 0, sizeof *ex);
    ex->loop = loop;
    ex->req.method = method;
    ex->req.method_name = fake_str(names[method]);
    ex->req.path =
        (struct srv_str){target, mark != NULL ? (size_t)(mark - target) : strlen(target)};
    if (mark != NULL)
        ex->req.query = fake_str(mark + 1);
    ex->req.authority = fake_str("localhost");
    ex->req.fields = ex->fields;
    ex->req.version = 11;
    memcpy(ex->req.id, "0123456789ABCDEF", 17);
    ex->ending = SRV_BODY_END;
    ex->piece = 64 << 10;
}

static inline void fake_field(struct srv_exchange *ex, const char *name, const char *value)
{
    ex->fields[ex->req.n_fields++] = (struct srv_field){fake_str(name), fake_str(value)};
}

static inline void fake_body(struct srv_exchange *ex, const void *bytes, size_t len)
{
    ex->body = bytes;
    ex->body_len = len;
    ex->req.has_body = true;
    ex->req.content_length = len;
}

static inline void fake_end(struct srv_exchange *ex)
{
    struct srv_source *source = ex->source;

    CHECK(!ex->is_gone);
    ex->is_gone = true;
    ex->is_waiting = false;
    ex->source = NULL;
    ex->on_body = NULL;
    if (source != NULL)
        source->destroy(source);
    if (ex->gone != NULL)
        ex->gone(ex->ctx);
}

static inline void fake_fini(struct srv_exchange *ex)
{
    if (!ex->is_gone)
        fake_end(ex);
    for (size_t i = 0; i < ex->n_out_fields; i++) {
        free(ex->out_names[i]);
        free(ex->out_values[i]);
    }
    free(ex->out);
}

/* Lends the next piece to whoever asked. */
static inline void fake_deliver(struct srv_exchange *ex)
{
    void (*on_body)(void *ctx, enum srv_body_event event, struct srv_buf *buf) = ex->on_body;
    size_t left = ex->body_len - ex->body_at;
    size_t n = left < ex->piece ? left : ex->piece;
    bool is_over = n == left;
    struct srv_buf *buf = NULL;

    ex->on_body = NULL;
    if (n > 0) {
        buf = srv_buf_acquire(ex->loop->bufs, n);
        if (buf == NULL) {
            on_body(ex->ctx, SRV_BODY_OVERLOAD, NULL);
            return;
        }
        n = n < buf->capacity ? n : buf->capacity;
        is_over = n == left;
        memcpy(buf->base, ex->body + ex->body_at, n);
        buf->len = n;
        ex->body_at += n;
    }
    if (is_over && ex->ending != SRV_BODY_END) {
        srv_buf_release(buf);
        on_body(ex->ctx, ex->ending, NULL);
    } else {
        on_body(ex->ctx, is_over ? SRV_BODY_END : SRV_BODY_DATA, buf);
    }
}

/* Turns the loop until the request is answered and the response complete. */
static inline void fake_finish(struct srv_exchange *ex)
{
    while (!ex->is_responded || ex->is_waiting) {
        if (ex->on_body != NULL && ex->is_late)
            fake_deliver(ex);
        else
            fake_turn(ex->loop);
    }
}

/* The response's field of that name, or NULL. */
static inline const char *fake_get(const struct srv_exchange *ex, const char *name)
{
    for (size_t i = 0; i < ex->n_out_fields; i++) {
        if (strcmp(ex->out_names[i], name) == 0)
            return ex->out_values[i];
    }
    return NULL;
}

/* ---- The seam ---- */

const struct srv_request *srv_exchange_request(const struct srv_exchange *ex)
{
    CHECK(!ex->is_gone);
    return &ex->req;
}

struct srv_loop *srv_exchange_loop(const struct srv_exchange *ex)
{
    CHECK(!ex->is_gone);
    return ex->loop;
}

void srv_exchange_attach(struct srv_exchange *ex, void *ctx, void (*gone)(void *ctx))
{
    CHECK(ex->gone == NULL);
    ex->ctx = ctx;
    ex->gone = gone;
}

void *srv_exchange_context(const struct srv_exchange *ex)
{
    return ex->ctx;
}

const struct srv_str *srv_request_field(const struct srv_request *req, const char *name,
                                        size_t *count_out)
{
    const struct srv_str *first = NULL;
    size_t count = 0;

    for (size_t i = 0; i < req->n_fields; i++) {
        const struct srv_field *field = &req->fields[i];
        if (field->name.len == strlen(name) && memcmp(field->name.base, name, field->name.len) == 0)
            first = count++ == 0 ? &field->value : first;
    }
    if (count_out != NULL)
        *count_out = count;
    return first;
}

void srv_body_read(struct srv_exchange *ex,
                   void (*on_body)(void *ctx, enum srv_body_event event, struct srv_buf *buf))
{
    CHECK(!ex->is_gone && !ex->is_responded && ex->on_body == NULL);
    ex->on_body = on_body;
    if (!ex->is_late)
        fake_deliver(ex);
}

static inline void fake_append(struct srv_exchange *ex, const void *bytes, size_t len)
{
    ex->out = realloc(ex->out, ex->out_len + len + 1);
    CHECK(ex->out != NULL);
    memcpy(ex->out + ex->out_len, bytes, len);
    ex->out_len += len;
    ex->out[ex->out_len] = '\0';
}

static inline void fake_head(struct srv_exchange *ex, const struct srv_response *res,
                             uint64_t length)
{
    CHECK(!ex->is_gone && !ex->is_responded);
    CHECK(res->n_fields <= FAKE_FIELDS);
    ex->is_responded = true;
    ex->on_body = NULL;
    ex->status = res->status;
    ex->length = length;
    for (size_t i = 0; i < res->n_fields; i++) {
        ex->out_names[i] = strndup(res->fields[i].name.base, res->fields[i].name.len);
        ex->out_values[i] = strndup(res->fields[i].value.base, res->fields[i].value.len);
    }
    ex->n_out_fields = res->n_fields;
}

static inline bool fake_is_bodyless(const struct srv_exchange *ex)
{
    return ex->req.method == SRV_HEAD || ex->status == 204 || ex->status == 304;
}

static inline void fake_over(struct srv_exchange *ex)
{
    if (!ex->stays)
        fake_end(ex);
}

/* Takes what the source has. */
static inline void fake_pull(struct srv_exchange *ex)
{
    struct iovec piece;

    while (ex->out_len < ex->length) {
        uint64_t left = ex->length - ex->out_len;
        size_t max = left < 1 << 20 ? (size_t)left : 1 << 20;
        enum srv_source_state state = ex->source->next(ex->source, max, &piece);
        ex->is_waiting = state == SRV_SOURCE_WAIT;
        ex->is_failed = state == SRV_SOURCE_FAILED;
        if (state == SRV_SOURCE_WAIT)
            return;
        if (state == SRV_SOURCE_FAILED)
            break;
        CHECK(piece.iov_len > 0 && piece.iov_len <= max);
        fake_append(ex, piece.iov_base, piece.iov_len);
    }
    fake_over(ex);
}

void srv_respond(struct srv_exchange *ex, const struct srv_response *res, struct srv_source *source)
{
    fake_head(ex, res, res->content_length);
    CHECK(source != NULL || fake_is_bodyless(ex) || res->content_length == 0);
    if (source != NULL && fake_is_bodyless(ex))
        source->destroy(source);
    else
        ex->source = source;
    if (ex->source != NULL && !ex->stays)
        fake_pull(ex);
    else if (ex->source == NULL)
        fake_over(ex);
}

void srv_respond_bytes(struct srv_exchange *ex, const struct srv_response *res, const void *bytes,
                       size_t len)
{
    fake_head(ex, res, len);
    if (!fake_is_bodyless(ex) && len > 0)
        fake_append(ex, bytes, len);
    fake_over(ex);
}

void srv_source_wake(struct srv_exchange *ex)
{
    CHECK(ex->is_waiting && !ex->is_gone);
    ex->is_waiting = false;
    fake_pull(ex);
}
