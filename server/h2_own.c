#include "server/h2o_glue.h"

#include <string.h>

#include <h2o/http2_internal.h>

#include "server/conn.h"
#include "server/gates.h"
#include "server/h2_body.h"
#include "server/h2_gate.h"

/* What is written to an HTTP/2 client beside libh2o: credit for bodies, 100, resets; and how an
 * exchange gets hold of its body. */

enum { FRAME_HEAD = 9 };

/* ---- Writing frames of our own ---- */

/* An interim response: HEADERS with `:status: 100`, which is no request's end. */
static void emit_continue(h2o_http2_conn_t *h2o, uint32_t stream)
{
    static const char BLOCK[] = "\x08\x03"
                                "100";
    const size_t len = sizeof BLOCK - 1;
    h2o_iovec_t to = h2o_buffer_reserve(&h2o->_write.buf, FRAME_HEAD + len);
    h2o_http2_encode_frame_header((uint8_t *)to.base, len, H2O_HTTP2_FRAME_TYPE_HEADERS,
                                  H2O_HTTP2_FRAME_FLAG_END_HEADERS, (int32_t)stream);
    memcpy(to.base + FRAME_HEAD, BLOCK, len);
    h2o->_write.buf->size += FRAME_HEAD + len;
}

bool srv_h2_emit(struct srv_conn *conn, h2o_http2_conn_t *h2o)
{
    struct srv_h2 *h2 = conn->h2;
    size_t before = h2o->_write.buf->size;
    if (h2->credit >= srv_h2_credit_step) {
        h2o_http2_encode_window_update_frame(&h2o->_write.buf, 0, (int32_t)h2->credit);
        h2->window += h2->credit;
        h2->credit = 0;
    }
    for (struct srv_h2_body *body = h2->bodies; body != NULL; body = body->next) {
        if (body->sends_continue)
            emit_continue(h2o, body->stream);
        body->sends_continue = false;
        if (body->credit >= srv_h2_credit_step && !body->is_ended) {
            h2o_http2_encode_window_update_frame(&h2o->_write.buf, body->stream,
                                                 (int32_t)body->credit);
            body->credit = 0;
        }
    }
    while (h2->is_reset_due && h2->n_resets > 0)
        h2o_http2__encode_rst_stream_frame(&h2o->_write.buf, h2->resets[--h2->n_resets], 0);
    h2->is_reset_due = false;
    return h2o->_write.buf->size != before;
}

/* ---- Exchanges ---- */

/* Where libh2o has kept the body. */
static void bind_entity(struct srv_exchange *ex)
{
    const h2o_req_t *req = ex->req;
    ex->request.has_body = req->entity.base != NULL;
    ex->request.content_length = req->entity.len;
    ex->in.left = req->entity.len;
    ex->in.is_ended = !ex->request.has_body;
}

void srv_gate_h2_bind(struct srv_exchange *ex)
{
    if (ex->conn->h2 == NULL) {
        bind_entity(ex);
        return;
    }
    h2o_http2_stream_t *stream = H2O_STRUCT_FROM_MEMBER(h2o_http2_stream_t, req, ex->req);
    struct srv_h2_body *body = ex->conn->h2->opening;
    uint64_t length = stream->_expected_content_length == SIZE_MAX
                          ? SRV_LENGTH_UNKNOWN
                          : stream->_expected_content_length;
    ex->in.is_failed = srv_h2_n_lengths() > 1;
    if (body == NULL || body->stream != stream->stream_id) {
        /* Without a body a length can announce nothing but 0, which some clients sign. */
        ex->request.has_body = length == 0;
        ex->in.is_ended = true;
        ex->in.is_failed |= length != SRV_LENGTH_UNKNOWN && length != 0;
        return;
    }
    body->ex = ex;
    body->length = length;
    body->owes_continue = srv_request_field(&ex->request, "expect", NULL) != NULL;
    ex->in.h2 = body;
    ex->request.has_body = true;
    ex->request.content_length = length;
}

bool srv_gate_h2_is_blocked(struct srv_exchange *ex, uint64_t least)
{
    if (ex->conn->h2 == NULL)
        return false;
    const h2o_http2_stream_t *stream = H2O_STRUCT_FROM_MEMBER(h2o_http2_stream_t, req, ex->req);
    const h2o_http2_conn_t *h2o = ex->conn->sock->data;
    bool stands_still = ex->req->bytes_sent - ex->sent_seen < least;
    ex->sent_seen = ex->req->bytes_sent;
    return stands_still && (stream->output_window._avail <= 0 || h2o->_write.window._avail <= 0);
}

static void make_resets_due(struct srv_conn *conn)
{
    conn->h2->is_reset_due = true;
    srv_conn_queue_after(conn);
}

static void on_reset_time(h2o_timeout_entry_t *entry)
{
    make_resets_due(H2O_STRUCT_FROM_MEMBER(struct srv_conn, timer, entry));
}

/* The client has its answer and may go on sending into a window that is never opened again. Told so
 * at once, some take the reset for a failure and the answer for lost; so they get a moment to
 * notice by themselves. */
static void reset_later(struct srv_conn *conn, uint32_t stream)
{
    struct srv_h2 *h2 = conn->h2;
    h2->resets[h2->n_resets++] = stream;
    if (h2->n_resets == SRV_H2_RESETS_MAX)
        make_resets_due(conn);
    else if (!h2o_timeout_is_linked(&conn->timer))
        srv_conn_set_timer(conn, SRV_TIMEOUT_LINGER, on_reset_time);
}

static void note_early(struct srv_h2 *h2, uint32_t stream)
{
    h2->early[h2->n_early++ % SRV_H2_EARLY_MAX] = stream;
}

bool srv_h2_is_answered_early(const struct srv_h2 *h2, uint32_t stream)
{
    unsigned n = h2->n_early < SRV_H2_EARLY_MAX ? h2->n_early : SRV_H2_EARLY_MAX;
    for (unsigned i = 0; i < n; i++)
        if (h2->early[i] == stream)
            return true;
    return false;
}

void srv_gate_h2_unbind(struct srv_exchange *ex)
{
    struct srv_h2_body *body = ex->in.h2;
    ex->in.h2 = NULL;
    if (ex->is_final && !body->is_ended) {
        note_early(ex->conn->h2, body->stream);
        if (ex->conn->h2->n_resets < SRV_H2_RESETS_MAX && !ex->conn->h2->is_failed)
            reset_later(ex->conn, body->stream);
    }
    srv_h2_body_remove(ex->conn, body);
}
