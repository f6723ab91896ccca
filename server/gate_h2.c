#include "server/h2o_glue.h"

#include <errno.h>
#include <string.h>

#include <h2o/http2_internal.h>

#include "server/check.h"
#include "server/h2_body.h"
#include "server/conn.h"
#include "server/gates.h"

/* Reads the frames in front of libh2o. Request bodies never get there: a HEADERS frame that
 * announces one is passed on as if the stream ended with it, so that the handler starts at once,
 * and the DATA that follows goes to pooled buffers. The connection's receive window is therefore
 * ours: a byte is given back to it when a handler takes the byte, which bounds what a client can
 * make us hold.
 *
 *   frame -> libh2o's input [pass]     everything but DATA, in whole frames
 *   frame -> body -> handler           DATA of a stream that has an exchange
 *   frame -> nowhere                   DATA of one that is over, unknown types
 */

enum {
    FRAME_HEAD = 9,
    FRAME_MAX = 16384, /* libh2o announces the protocol's default */
    PREFACE_LEN = 24,
    WINDOW_DEFAULT = 65535,
    HEADERS_MAX = SRV_HEAD1_BYTES_MAX, /* compressed bytes of one header block */
    CONTROL_BURST = 2000,              /* frames that cost work and carry no request: at once, */
    CONTROL_PER_MS = 1,                /* and in the long run */
};

/* ---- To libh2o ---- */

static void pass(struct srv_conn *conn, const char *bytes, size_t n)
{
    h2o_iovec_t to = h2o_buffer_reserve(&conn->sock->input, n);
    memcpy(to.base, bytes, n);
    conn->sock->input->size += n;
}

void srv_gate_h2_check(struct srv_conn *conn)
{
    /* libh2o stops reading while much output is queued, and afterwards reads by itself. */
    if (conn->sock != NULL && conn->sock->_cb.read == NULL)
        srv_conn_queue_after(conn);
}

/* Whether libh2o takes input. It does not while much output is queued; nor once it has closed a
 * connection whose TLS has yet to say goodbye, and then nothing of it may be touched. */
static bool is_open(const struct srv_conn *conn)
{
    return conn->sock != NULL && conn->sock->_cb.read != NULL;
}

/* Lets libh2o see what has been passed. False when it takes no more for now, or ever. */
static bool flush(struct srv_conn *conn)
{
    if (conn->sock->input->size > 0) {
        conn->h2o_read(conn->sock, NULL);
        srv_gate_h2_check(conn);
    }
    return is_open(conn);
}

/* Passes a frame that libh2o answers by closing the connection: `type` of `stream` without the
 * payload it must have. */
static void pass_broken(struct srv_conn *conn, const char *head)
{
    char broken[FRAME_HEAD];
    memcpy(broken, head, FRAME_HEAD);
    memset(broken, 0, 3);
    broken[4] |= H2O_HTTP2_FRAME_FLAG_PADDED;
    pass(conn, broken, sizeof broken);
    flush(conn);
    srv_conn_shutdown(conn);
}

/* Charges a frame that makes work without asking for anything; false when the client has sent too
 * many. */
static bool charge(struct srv_conn *conn)
{
    struct srv_h2 *h2 = conn->h2;
    uint64_t now = h2o_now(conn->loop->ctx.loop);
    uint64_t earned = (now - h2->control_at_ms) * CONTROL_PER_MS;
    h2->control_at_ms = now;
    h2->control_left = earned > CONTROL_BURST - h2->control_left
                           ? CONTROL_BURST
                           : h2->control_left + (uint32_t)earned;
    if (h2->control_left == 0) {
        srv_conn_condemn(conn);
        return false;
    }
    h2->control_left--;
    return true;
}

/* ---- Frames ---- */

static void finish_data(struct srv_conn *conn)
{
    struct srv_h2 *h2 = conn->h2;
    if (h2->data_left == 0 && h2->pad_left == 0 && h2->ends_stream) {
        h2->ends_stream = false;
        srv_h2_body_end(conn, h2->target);
    }
}

/* Takes payload of the DATA frame under way. */
static void take_data(struct srv_conn *conn)
{
    struct srv_h2 *h2 = conn->h2;
    uint32_t *left = h2->data_left > 0 ? &h2->data_left : &h2->pad_left;
    size_t n = conn->rest_len < *left ? conn->rest_len : *left;
    const char *bytes = conn->rest;
    *left -= (uint32_t)n;
    srv_conn_consume(conn, n);
    if (left == &h2->data_left)
        srv_h2_body_keep(conn, bytes, n);
    else
        srv_h2_give_back(conn, n);
    finish_data(conn);
}

/* Begins a DATA frame; false when more must come first, or the connection is over. */
static bool begin_data(struct srv_conn *conn, const h2o_http2_frame_t *frame)
{
    struct srv_h2 *h2 = conn->h2;
    bool is_padded = (frame->flags & H2O_HTTP2_FRAME_FLAG_PADDED) != 0;
    if (is_padded && conn->rest_len < FRAME_HEAD + 1 && frame->length > 0)
        return false;
    uint32_t pad = is_padded && frame->length > 0 ? 1u + (uint8_t)conn->rest[FRAME_HEAD] : 0;
    bool is_idle = frame->stream_id % 2 == 0 || frame->stream_id > h2->max_stream;
    if (h2->is_in_block || is_idle || pad > frame->length || (is_padded && frame->length == 0)) {
        pass_broken(conn, conn->rest);
        return false;
    }
    if (frame->length == 0 && !charge(conn))
        return false;
    h2->target = srv_h2_body_find(h2, frame->stream_id);
    h2->ends_stream = (frame->flags & H2O_HTTP2_FRAME_FLAG_END_STREAM) != 0;
    h2->data_left = frame->length - pad;
    h2->pad_left = pad > 0 ? pad - 1 : 0;
    srv_conn_consume(conn, FRAME_HEAD + (pad > 0));
    srv_h2_give_back(conn, pad > 0);
    if (!srv_h2_body_is_wanted(h2->target) || h2->target->is_ended)
        h2->target = NULL;
    finish_data(conn);
    return true;
}

/* A header block has gone to libh2o in full. Whoever was to claim the body has had the chance. */
static bool end_block(struct srv_conn *conn)
{
    struct srv_h2 *h2 = conn->h2;
    h2->is_in_block = false;
    if (h2->opening == NULL)
        return true;
    if (!flush(conn))
        return false;
    if (h2->opening != NULL && h2->opening->ex == NULL)
        srv_h2_body_remove(conn, h2->opening);
    h2->opening = NULL;
    return true;
}

/* Fields after a body. libh2o believes the stream to have ended long ago, but its decompressor must
 * see them. */
static void take_trailers(struct srv_conn *conn, struct srv_h2_body *body,
                          const h2o_http2_frame_t *frame)
{
    h2o_http2_conn_t *h2o = conn->sock->data;
    h2o_http2_headers_payload_t payload;
    const char *why = NULL;
    size_t length = 0;
    if (h2o_http2_decode_headers_payload(&payload, frame, &why) != 0 ||
        h2o_hpack_parse_headers(body->ex->req, &h2o->_input_header_table, payload.headers,
                                payload.headers_len, NULL, &length, NULL, &why) != 0)
        srv_conn_shutdown(conn);
    else
        srv_h2_body_end(conn, body);
}

static bool take_headers(struct srv_conn *conn, const char *bytes, const h2o_http2_frame_t *frame)
{
    const uint8_t complete = H2O_HTTP2_FRAME_FLAG_END_HEADERS | H2O_HTTP2_FRAME_FLAG_END_STREAM;
    struct srv_h2 *h2 = conn->h2;
    char head[FRAME_HEAD];
    memcpy(head, bytes, sizeof head);
    struct srv_h2_body *open = srv_h2_body_find(h2, frame->stream_id);
    if (open != NULL && open->ex != NULL && !open->is_ended &&
        (frame->flags & complete) == complete) {
        take_trailers(conn, open, frame);
        return true;
    }
    if (frame->stream_id % 2 == 1 && frame->stream_id > h2->max_stream) {
        h2->max_stream = frame->stream_id;
        if ((frame->flags & H2O_HTTP2_FRAME_FLAG_END_STREAM) == 0) {
            h2->opening = srv_h2_body_create(conn, frame->stream_id);
            head[4] |= H2O_HTTP2_FRAME_FLAG_END_STREAM;
        }
    }
    pass(conn, head, sizeof head);
    pass(conn, bytes + FRAME_HEAD, frame->length);
    h2->is_in_block = true;
    h2->block_bytes = frame->length;
    return (frame->flags & H2O_HTTP2_FRAME_FLAG_END_HEADERS) == 0 || end_block(conn);
}

static bool take_continuation(struct srv_conn *conn, const char *bytes,
                              const h2o_http2_frame_t *frame)
{
    struct srv_h2 *h2 = conn->h2;
    h2->block_bytes += frame->length;
    if (h2->block_bytes > HEADERS_MAX)
        srv_conn_condemn(conn);
    if (conn->is_condemned || !charge(conn))
        return false;
    pass(conn, bytes, FRAME_HEAD + frame->length);
    return (frame->flags & H2O_HTTP2_FRAME_FLAG_END_HEADERS) == 0 || end_block(conn);
}

/* A whole frame other than DATA at the start of the rest; false when no more can be taken now. */
static bool take_frame(struct srv_conn *conn, const h2o_http2_frame_t *frame)
{
    const char *bytes = conn->rest;
    if (conn->h2->is_in_block && frame->type != H2O_HTTP2_FRAME_TYPE_CONTINUATION) {
        pass_broken(conn, bytes);
        return false;
    }
    /* Fields of an open stream are trailers, unless what is on the way to libh2o ends it. */
    bool may_trail = frame->type == H2O_HTTP2_FRAME_TYPE_HEADERS &&
                     srv_h2_body_find(conn->h2, frame->stream_id) != NULL;
    if (may_trail && !flush(conn))
        return false;
    srv_conn_consume(conn, FRAME_HEAD + frame->length);
    switch (frame->type) {
    case H2O_HTTP2_FRAME_TYPE_HEADERS: return take_headers(conn, bytes, frame);
    case H2O_HTTP2_FRAME_TYPE_CONTINUATION: return take_continuation(conn, bytes, frame);
    case H2O_HTTP2_FRAME_TYPE_WINDOW_UPDATE: break;
    case H2O_HTTP2_FRAME_TYPE_PRIORITY:
    case H2O_HTTP2_FRAME_TYPE_RST_STREAM:
    case H2O_HTTP2_FRAME_TYPE_SETTINGS:
    case H2O_HTTP2_FRAME_TYPE_PUSH_PROMISE:
    case H2O_HTTP2_FRAME_TYPE_PING:
    case H2O_HTTP2_FRAME_TYPE_GOAWAY:
        if (!charge(conn))
            return false;
        break;
    default: return charge(conn); /* to be ignored; libh2o would do so on stderr */
    }
    pass(conn, bytes, FRAME_HEAD + frame->length);
    return true;
}

/* Takes what it can from the rest; false when more must come first, or the connection is over. */
static bool take_one(struct srv_conn *conn)
{
    struct srv_h2 *h2 = conn->h2;
    const uint8_t *head = (const uint8_t *)conn->rest;
    if (!h2->has_preface) {
        if (conn->rest_len < PREFACE_LEN)
            return false;
        h2->has_preface = true;
        pass(conn, conn->rest, PREFACE_LEN);
        srv_conn_consume(conn, PREFACE_LEN);
        srv_h2_give_back(
            conn, SRV_FRONT_H2_WINDOW -
                      WINDOW_DEFAULT); /* libh2o queues its SETTINGS before this is looked at */
        return flush(conn);
    }
    if (h2->data_left > 0 || h2->pad_left > 0) {
        take_data(conn);
        return true;
    }
    if (conn->rest_len < FRAME_HEAD)
        return false;
    h2o_http2_frame_t frame = {
        .length = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2],
        .payload = head + FRAME_HEAD,
        .type = head[3],
        .flags = head[4],
        .stream_id =
            ((uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8]) &
            0x7fffffff,
    };
    if (frame.length > FRAME_MAX) {
        pass(conn, conn->rest, FRAME_HEAD);
        if (flush(conn))
            srv_conn_shutdown(conn);
        return false;
    }
    if (frame.type == H2O_HTTP2_FRAME_TYPE_DATA)
        return begin_data(conn, &frame);
    return conn->rest_len >= FRAME_HEAD + frame.length && take_frame(conn, &frame);
}

/* ---- Reading ---- */

/* Receives clear text behind what is left of the last time. False when nothing came. */
static bool receive(struct srv_conn *conn)
{
    char *scratch = conn->loop->scratch;
    size_t held = conn->rest_len;
    if (held > 0)
        memcpy(scratch, conn->rest, held);
    ssize_t n =
        recv(h2o_socket_get_fd(conn->sock), scratch + held, SRV_SCRATCH_BYTES - held, MSG_DONTWAIT);
    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            conn->h2o_read(conn->sock, h2o_socket_error_closed);
        return false;
    }
    conn->rest_len = 0;
    srv_conn_settle(conn);
    conn->rest = scratch;
    conn->rest_len = held + (size_t)n;
    return true;
}

static void filter(struct srv_conn *conn)
{
    while (is_open(conn) && conn->rest_len > 0 && !conn->is_condemned && take_one(conn))
        ;
    if (is_open(conn))
        flush(conn);
    if (conn->is_condemned)
        conn->rest_len = 0;
    if (conn->sock != NULL)
        srv_conn_settle(conn);
}

static void on_readable(h2o_socket_t *sock, const char *err)
{
    struct srv_conn *conn = sock->on_close.data;
    if (err != NULL) {
        conn->h2o_read(sock, err);
        return;
    }
    srv_conn_ref(conn);
    if (conn->is_tls)
        srv_conn_take_tls(conn);
    if (conn->is_tls || receive(conn))
        filter(conn);
    srv_conn_unref(conn);
}

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

/* Writes what bodies have made due; true if anything was. */
static bool emit(struct srv_conn *conn, h2o_http2_conn_t *h2o)
{
    struct srv_h2 *h2 = conn->h2;
    size_t before = h2o->_write.buf->size;
    if (h2->credit >= srv_h2_credit_step) {
        h2o_http2_encode_window_update_frame(&h2o->_write.buf, 0, (int32_t)h2->credit);
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

/* Puts the gate back where libh2o has read by itself, takes up what had to wait, and writes. */
static enum srv_after after(struct srv_conn *conn)
{
    h2o_socket_t *sock = conn->sock;
    enum srv_after result = SRV_AFTER_IDLE;
    if (sock->_cb.read == conn->h2o_read)
        sock->_cb.read = on_readable;
    if (is_open(conn) && (conn->rest_len > 0 || sock->input->size > 0)) {
        filter(conn);
        result = SRV_AFTER_ACTED;
    }
    if (conn->sock == NULL)
        return result;
    if (!is_open(conn))
        return SRV_AFTER_AGAIN;
    h2o_http2_conn_t *h2o = sock->data;
    SRV_CHECK(h2o->sock ==
              sock); /* else the library is not the one whose header this was built with */
    if (h2o->state < H2O_HTTP2_CONN_STATE_IS_CLOSING && emit(conn, h2o)) {
        h2o_http2_conn_request_write(h2o);
        srv_gate_h2_check(conn);
    }
    return result;
}

static void on_refusal_over(h2o_timeout_entry_t *entry)
{
    srv_conn_shutdown(H2O_STRUCT_FROM_MEMBER(struct srv_conn, timer, entry));
}

void srv_gate_h2_start(struct srv_conn *conn)
{
    h2o_socket_t *sock = conn->sock;
    struct timeval now = *h2o_get_timestamp(&conn->loop->ctx, NULL, NULL);
    conn->h2 = h2o_mem_alloc(sizeof *conn->h2);
    *conn->h2 = (struct srv_h2){.control_left = CONTROL_BURST,
                                .control_at_ms = h2o_now(conn->loop->ctx.loop)};
    h2o_http2_accept(&conn->loop->accept, sock, now);
    conn->h2o_read = sock->_cb.read;
    conn->after = after;
    sock->_cb.read = on_readable;
    if (conn->is_refused)
        srv_conn_set_timer(conn, SRV_TIMEOUT_LINGER, on_refusal_over);
    srv_conn_ref(conn);
    filter(conn);
    srv_conn_unref(conn);
}

void srv_gate_h2_free(struct srv_conn *conn)
{
    while (conn->h2->bodies != NULL)
        srv_h2_body_remove(conn, conn->h2->bodies);
    free(conn->h2);
    conn->h2 = NULL;
}

/* ---- Exchanges ---- */

void srv_gate_h2_bind(struct srv_exchange *ex)
{
    h2o_http2_stream_t *stream = H2O_STRUCT_FROM_MEMBER(h2o_http2_stream_t, req, ex->req);
    struct srv_h2_body *body = ex->conn->h2->opening;
    uint64_t length = stream->_expected_content_length == SIZE_MAX
                          ? SRV_LENGTH_UNKNOWN
                          : stream->_expected_content_length;
    if (body == NULL || body->stream != stream->stream_id) {
        /* Without a body there is nothing a length could announce. */
        ex->in.is_ended = true;
        ex->in.is_failed = length != SRV_LENGTH_UNKNOWN && length != 0;
        return;
    }
    body->ex = ex;
    body->length = length;
    body->owes_continue = srv_request_field(&ex->request, "expect", NULL) != NULL;
    ex->in.h2 = body;
    ex->request.has_body = true;
    ex->request.content_length = length;
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

void srv_gate_h2_unbind(struct srv_exchange *ex)
{
    struct srv_h2_body *body = ex->in.h2;
    ex->in.h2 = NULL;
    if (ex->is_final && !body->is_ended && ex->conn->h2->n_resets < SRV_H2_RESETS_MAX)
        reset_later(ex->conn, body->stream);
    srv_h2_body_remove(ex->conn, body);
}
