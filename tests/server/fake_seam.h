/* What handlers call of server/exchange.h, over a fake front. Included by one file of a program.
 *
 * Threads: the test's.
 */
#pragma once

#include <ctype.h>

#include "tests/server/fake_front.h"
#include "tests/server/fake_fields.h"

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

struct srv_str srv_exchange_label(const struct srv_exchange *ex)
{
    CHECK(!ex->is_gone);
    return ex->label;
}

void srv_exchange_attach(struct srv_exchange *ex, void *ctx, void (*gone)(void *ctx))
{
    CHECK(ex->gone == NULL || gone == NULL); /* one at a time */
    ex->ctx = ctx;
    ex->gone = gone;
}

struct srv_conn *srv_work_begin(struct srv_exchange *ex)
{
    return (struct srv_conn *)(void *)ex;
}

void srv_work_end(struct srv_conn *work)
{
    (void)work;
}

/* What tests allow a request to keep. */
static size_t fake_keep_max = SIZE_MAX;

bool srv_exchange_keep(struct srv_exchange *ex, size_t bytes)
{
    (void)ex;
    return bytes <= fake_keep_max;
}

void *srv_exchange_context(const struct srv_exchange *ex)
{
    return ex->ctx;
}

void srv_exchange_note(struct srv_exchange *ex, unsigned operation)
{
    CHECK(!ex->is_gone && operation < SRV_OPERATIONS_MAX);
}

void srv_exchange_note_user(struct srv_exchange *ex, struct srv_str user)
{
    CHECK(!ex->is_gone && user.base != NULL);
}

void srv_exchange_note_result(struct srv_exchange *ex, enum srv_result result)
{
    CHECK(!ex->is_gone && result < SRV_N_RESULTS);
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
        for (char *c = ex->out_names[i]; *c != '\0'; c++)
            *c = (char)tolower((unsigned char)*c);
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

void srv_respond_owned(struct srv_exchange *ex, const struct srv_response *res, void *bytes,
                       size_t len)
{
    srv_respond_bytes(ex, res, bytes, len);
    free(bytes);
}

void srv_source_wake(struct srv_exchange *ex)
{
    CHECK(ex->is_waiting && !ex->is_gone);
    ex->is_waiting = false;
    fake_pull(ex);
}
