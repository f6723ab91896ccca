/* A front without sockets: one request and its response, for tests of handlers.
 *
 * A request's body comes from memory in pieces of a chosen size, at once or only when the loop
 * turns; the response is collected. Either the exchange ends inside of srv_respond, as a fast front
 * may do it, or when the test says so.
 *
 * Owns:    struct srv_exchange is the test's; what it points to is freed by fake_fini.
 * Threads: the test's.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "server/exchange.h"
#include "tests/server/fake_loop.h"

enum { FAKE_FIELDS = 200 };

/* One request and, later, its response. */
struct srv_exchange {
    struct srv_loop *loop;
    struct srv_request req;
    struct srv_str label; /* of the listener */
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

static inline struct srv_str fake_str(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

static inline void fake_init(struct srv_exchange *ex, struct srv_loop *loop, enum srv_method method,
                             const char *target)
{
    static const char *const names[] = {"GET",    "HEAD",    "PUT",   "POST",
                                        "DELETE", "OPTIONS", "PURGE", "BREW"};
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

/* The response's field of that name (lower-case), or NULL. */
static inline const char *fake_get(const struct srv_exchange *ex, const char *name)
{
    for (size_t i = 0; i < ex->n_out_fields; i++) {
        if (strcmp(ex->out_names[i], name) == 0)
            return ex->out_values[i];
    }
    return NULL;
}
