#include "server/h2o_glue.h"

#include <string.h>

#include <h2o/http2_internal.h>

#include "server/conn.h"
#include "server/exchange_run.h"
#include "server/h2_body.h"
#include "server/h2_gate.h"
#include "server/gates.h"

/* What the client sends, frame by frame. Request bodies never get to libh2o: a HEADERS frame that
 * announces one is passed on as if the stream ended with it, so that the handler starts at once,
 * and the DATA that follows goes to pooled buffers.
 *
 *   frame -> libh2o's input [pass]     everything but DATA, in whole frames
 *   frame -> body -> handler           DATA of a stream that has an exchange
 *   frame -> nowhere                   DATA of one that was answered early, unknown types
 */

enum {
    FRAME_HEAD = 9,
    FRAME_MAX = 16384, /* libh2o announces the protocol's default */
    PREFACE_LEN = 24,
    WINDOW_DEFAULT = 65535,
    HEADERS_MAX = SRV_HEAD1_BYTES_MAX, /* compressed bytes of one header block */
    UPDATES_PER_REQUEST = 4,           /* WINDOW_UPDATE frames a client earns */
    TURN_MAX = 16,                     /* requests that are begun before others have their turn, */
    BEHIND_MAX = 128 << 10,            /* as long as no more bytes than these wait meanwhile */
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
    if (conn->sock != NULL && conn->h2 != NULL && conn->sock->_cb.read == NULL)
        srv_conn_queue_after(conn);
}

bool srv_h2_is_open(const struct srv_conn *conn)
{
    return conn->sock != NULL && conn->sock->_cb.read != NULL;
}

/* Lets libh2o see what has been passed. False when it takes no more for now, or ever. */
static bool flush(struct srv_conn *conn)
{
    if (conn->sock->input->size > 0) {
        conn->h2o_read(conn->sock, NULL);
        for (unsigned n = srv_h2_take_malformed(); n > 0 && srv_h2_is_open(conn); n--)
            srv_gate_h2_malformed(conn);
        srv_gate_h2_check(conn);
    }
    return srv_h2_is_open(conn);
}

/* Ends the connection for an error of the client's, unless libh2o finds one in what came before. */
static bool fail(struct srv_conn *conn, int error)
{
    if (flush(conn))
        srv_h2_fail(conn, (enum srv_h2_error)error);
    return false;
}

enum { MANY_STREAMS = 1 << 20 };

static void set_raised(struct srv_conn *conn, bool is_raised)
{
    h2o_http2_conn_t *h2o = conn->sock->data;
    if (is_raised != conn->h2->is_raised)
        h2o->num_streams.pull.open += is_raised ? MANY_STREAMS : -(uint32_t)MANY_STREAMS;
    conn->h2->is_raised = is_raised;
}

/* As flush, for one header block: libh2o reads it and refuses the stream (REFUSED_STREAM, which
 * tells that it may be tried again) before it makes a request of it, as it does with one too many.
 */
static bool flush_refusing(struct srv_conn *conn)
{
    set_raised(conn, true);
    if (!flush(conn))
        return false; /* it may be closed; srv_h2_filter lowers the number if not */
    set_raised(conn, false);
    return true;
}

/* ---- DATA ---- */

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

/* What is wrong with a DATA frame whose head is `frame` and whose padding takes `pad` bytes; 0 if
 * nothing is. */
static int data_error(const struct srv_h2 *h2, const h2o_http2_frame_t *frame, uint32_t pad)
{
    const struct srv_h2_body *body = srv_h2_body_find(h2, frame->stream_id);
    bool is_padded = (frame->flags & H2O_HTTP2_FRAME_FLAG_PADDED) != 0;
    if (h2->is_in_block || frame->stream_id % 2 == 0 || frame->stream_id > h2->max_stream)
        return SRV_H2_PROTOCOL_ERROR;
    if (is_padded && frame->length == 0)
        return SRV_H2_FRAME_SIZE_ERROR;
    if (pad > frame->length)
        return SRV_H2_PROTOCOL_ERROR;
    if (frame->length > h2->window)
        return SRV_H2_FLOW_CONTROL_ERROR;
    return body != NULL && body->is_ended ? SRV_H2_STREAM_CLOSED : 0;
}

/* DATA of a stream that has no body here: it is over, or had ended with its header block. One that
 * was answered early may be in the middle of sending; for others libh2o knows what to say, and is
 * shown the frame without its payload. */
static bool is_late(struct srv_conn *conn, const h2o_http2_frame_t *frame)
{
    char head[FRAME_HEAD];
    if (srv_h2_is_answered_early(conn->h2, frame->stream_id))
        return true;
    if (!srv_h2_charge(conn, SRV_H2_FLOOD_empty_data))
        return false;
    memcpy(head, conn->rest, sizeof head);
    memset(head, 0, 3);
    head[4] = 0;
    pass(conn, head, sizeof head);
    return true;
}

/* Begins a DATA frame; false when more must come first, or the connection is over. */
static bool begin_data(struct srv_conn *conn, const h2o_http2_frame_t *frame)
{
    struct srv_h2 *h2 = conn->h2;
    bool is_padded = (frame->flags & H2O_HTTP2_FRAME_FLAG_PADDED) != 0;
    bool is_last = (frame->flags & H2O_HTTP2_FRAME_FLAG_END_STREAM) != 0;
    if (is_padded && conn->rest_len < FRAME_HEAD + 1 && frame->length > 0)
        return false;
    uint32_t pad = is_padded && frame->length > 0 ? 1u + (uint8_t)conn->rest[FRAME_HEAD] : 0;
    int error = data_error(h2, frame, pad);
    if (error != 0)
        return fail(conn, error);
    if (frame->length == pad && !is_last && !srv_h2_charge(conn, SRV_H2_FLOOD_empty_data))
        return false;
    h2->target = srv_h2_body_find(h2, frame->stream_id);
    if (h2->target == NULL && !is_late(conn, frame))
        return false;
    h2->ends_stream = is_last;
    h2->window -= frame->length;
    h2->data_left = frame->length - pad;
    h2->pad_left = pad > 0 ? pad - 1 : 0;
    srv_conn_consume(conn, FRAME_HEAD + (pad > 0));
    srv_h2_give_back(conn, pad > 0);
    if (!srv_h2_body_is_wanted(h2->target))
        h2->target = NULL;
    finish_data(conn);
    return true;
}

/* ---- Header blocks ---- */

/* A header block has gone to libh2o in full. Whoever was to claim the body has had the chance. */
static bool end_block(struct srv_conn *conn)
{
    struct srv_h2 *h2 = conn->h2;
    h2->is_in_block = false;
    bool is_refusing = h2->is_refusing;
    h2->is_refusing = false;
    if (h2->opening == NULL && !is_refusing)
        return true;
    if (!(is_refusing ? flush_refusing(conn) : flush(conn)))
        return false;
    if (h2->opening != NULL && h2->opening->ex == NULL)
        srv_h2_body_remove(conn, h2->opening);
    h2->opening = NULL;
    return true;
}

/* Fields after a body. libh2o believes the stream to have ended long ago, but its decompressor must
 * see them. */
static bool take_trailers(struct srv_conn *conn, struct srv_h2_body *body,
                          const h2o_http2_frame_t *frame)
{
    h2o_http2_conn_t *h2o = conn->sock->data;
    h2o_http2_headers_payload_t payload;
    const char *why = NULL;
    size_t length = 0;
    if (h2o_http2_decode_headers_payload(&payload, frame, &why) != 0 ||
        h2o_hpack_parse_headers(body->ex->req, &h2o->_input_header_table, payload.headers,
                                payload.headers_len, NULL, &length, NULL, &why) != 0)
        return fail(conn, SRV_H2_PROTOCOL_ERROR);
    srv_h2_body_end(conn, body);
    return true;
}

static bool is_new_stream(const struct srv_h2 *h2, const h2o_http2_frame_t *frame)
{
    return frame->stream_id % 2 == 1 && frame->stream_id > h2->max_stream;
}

static bool take_headers(struct srv_conn *conn, const char *bytes, const h2o_http2_frame_t *frame)
{
    const uint8_t complete = H2O_HTTP2_FRAME_FLAG_END_HEADERS | H2O_HTTP2_FRAME_FLAG_END_STREAM;
    struct srv_h2 *h2 = conn->h2;
    char head[FRAME_HEAD];
    memcpy(head, bytes, sizeof head);
    struct srv_h2_body *open = srv_h2_body_find(h2, frame->stream_id);
    if (open != NULL && open->ex != NULL && !open->is_ended &&
        (frame->flags & complete) == complete)
        return take_trailers(conn, open, frame);
    if (is_new_stream(h2, frame)) {
        srv_h2_earn_updates(conn, UPDATES_PER_REQUEST);
        h2->n_turn++;
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
    if (h2->block_bytes > HEADERS_MAX) {
        srv_h2_count_flood(conn->loop, SRV_H2_FLOOD_continuation);
        srv_conn_condemn(conn);
    }
    if (conn->is_condemned || !srv_h2_charge(conn, SRV_H2_FLOOD_continuation))
        return false;
    pass(conn, bytes, FRAME_HEAD + frame->length);
    return (frame->flags & H2O_HTTP2_FRAME_FLAG_END_HEADERS) == 0 || end_block(conn);
}

/* ---- Other frames ---- */

/* What a frame is charged to; SRV_H2_N_FLOODS for those that are not. */
static enum srv_h2_flood flood_of(uint8_t type)
{
    switch (type) {
    case H2O_HTTP2_FRAME_TYPE_WINDOW_UPDATE: return SRV_H2_FLOOD_window_update;
    case H2O_HTTP2_FRAME_TYPE_PRIORITY: return SRV_H2_FLOOD_priority;
    case H2O_HTTP2_FRAME_TYPE_RST_STREAM: return SRV_H2_FLOOD_rst_stream;
    case H2O_HTTP2_FRAME_TYPE_SETTINGS:
    case H2O_HTTP2_FRAME_TYPE_GOAWAY: return SRV_H2_FLOOD_settings;
    case H2O_HTTP2_FRAME_TYPE_PING: return SRV_H2_FLOOD_ping;
    case H2O_HTTP2_FRAME_TYPE_PUSH_PROMISE: return SRV_H2_N_FLOODS; /* ends the connection */
    default: return SRV_H2_FLOOD_unknown;
    }
}

/* Whether the frame has a length that its type may have (RFC 9113, 6.3 to 6.9). */
static bool is_size_valid(const h2o_http2_frame_t *frame)
{
    switch (frame->type) {
    case H2O_HTTP2_FRAME_TYPE_PRIORITY: return frame->length == 5;
    case H2O_HTTP2_FRAME_TYPE_RST_STREAM:
    case H2O_HTTP2_FRAME_TYPE_WINDOW_UPDATE: return frame->length == 4;
    case H2O_HTTP2_FRAME_TYPE_PING: return frame->length == 8;
    case H2O_HTTP2_FRAME_TYPE_GOAWAY: return frame->length >= 8;
    case H2O_HTTP2_FRAME_TYPE_SETTINGS:
        return (frame->flags & H2O_HTTP2_FRAME_FLAG_ACK) != 0 ? frame->length == 0
                                                              : frame->length % 6 == 0;
    default: return true;
    }
}

/* A number of 31 bits; the highest of the 32 is reserved. */
static uint32_t read_u31(const uint8_t *at)
{
    return ((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]) &
           0x7fffffff;
}

/* What is wrong with a frame, by RFC 9113, that libh2o would not notice or call by another name; 0
 * if nothing is. */
static int frame_error(const struct srv_h2 *h2, const h2o_http2_frame_t *frame)
{
    enum { SETTING_BYTES = 6, INITIAL_WINDOW_SIZE = 4 };
    bool is_continuation = frame->type == H2O_HTTP2_FRAME_TYPE_CONTINUATION;
    if (is_continuation != h2->is_in_block ||
        (is_continuation && frame->stream_id != h2->block_stream))
        return SRV_H2_PROTOCOL_ERROR;
    if (!is_size_valid(frame))
        return SRV_H2_FRAME_SIZE_ERROR;
    if (frame->type == H2O_HTTP2_FRAME_TYPE_SETTINGS)
        for (const uint8_t *at = frame->payload; at < frame->payload + frame->length;
             at += SETTING_BYTES)
            if (at[0] == 0 && at[1] == INITIAL_WINDOW_SIZE && at[2] >= 0x80)
                return SRV_H2_FLOW_CONTROL_ERROR;
    return 0;
}

/* Whether the stream is to depend on itself: an error (RFC 7540, 5.3.1), also for those that do not
 * heed priorities any more. */
static bool depends_on_itself(const h2o_http2_frame_t *frame)
{
    size_t at = frame->type == H2O_HTTP2_FRAME_TYPE_HEADERS &&
                (frame->flags & H2O_HTTP2_FRAME_FLAG_PADDED) != 0;
    bool has_priority = frame->type == H2O_HTTP2_FRAME_TYPE_PRIORITY ||
                        (frame->type == H2O_HTTP2_FRAME_TYPE_HEADERS &&
                         (frame->flags & H2O_HTTP2_FRAME_FLAG_PRIORITY) != 0);
    return has_priority && frame->length >= at + 4 && frame->stream_id != 0 &&
           read_u31(frame->payload + at) == frame->stream_id;
}

/* A window update that cannot be (RFC 9113, 6.9) has libh2o reset the stream. It counts as a
 * request abandoned, also where nothing was left to abandon; the end of an exchange whose response
 * lacks content counts it by itself. */
static void charge_update(struct srv_conn *conn, const h2o_http2_frame_t *frame)
{
    uint32_t n = read_u31(frame->payload);
    h2o_http2_conn_t *h2o = conn->sock->data;
    h2o_http2_stream_t *stream = h2o_http2_conn_get_stream(h2o, frame->stream_id);
    bool is_over = stream == NULL;
    int64_t window =
        is_over ? h2o->peer_settings.initial_window_size : stream->output_window._avail;
    bool is_fatal = n == 0 || window + (int64_t)n > INT32_MAX;
    if (is_fatal && (is_over || (stream->state >= H2O_HTTP2_STREAM_STATE_SEND_HEADERS &&
                                 !srv_glue_owes_bytes(&stream->req))))
        srv_glue_count_abort(conn);
}

/* A whole frame other than DATA at the start of the rest; false when no more can be taken now. */
static bool take_frame(struct srv_conn *conn, const h2o_http2_frame_t *frame)
{
    const char *bytes = conn->rest;
    int error = frame_error(conn->h2, frame);
    if (error == 0 && depends_on_itself(frame)) {
        SRV_COUNT(conn->loop, h2_self_dependent, 1);
        error = SRV_H2_PROTOCOL_ERROR;
    }
    if (error != 0)
        return fail(conn, error);
    /* Fields of an open stream are trailers, unless what is on the way to libh2o ends it. */
    bool is_headers = frame->type == H2O_HTTP2_FRAME_TYPE_HEADERS;
    bool may_trail = is_headers && srv_h2_body_find(conn->h2, frame->stream_id) != NULL;
    /* What a reset costs is to be known before the next one. */
    bool is_reset = frame->type == H2O_HTTP2_FRAME_TYPE_RST_STREAM;
    bool is_update = frame->type == H2O_HTTP2_FRAME_TYPE_WINDOW_UPDATE && frame->stream_id != 0;
    bool is_refused = is_headers && is_new_stream(conn->h2, frame) && !srv_conn_has_room(conn);
    if ((may_trail || is_reset || is_update || is_refused) && (!flush(conn) || conn->h2->is_failed))
        return false;
    conn->h2->is_refusing |= is_refused;
    if (is_update)
        charge_update(conn, frame);
    if (conn->is_condemned)
        return false;
    srv_conn_consume(conn, FRAME_HEAD + frame->length);
    if (is_headers) {
        conn->h2->block_stream = frame->stream_id;
        return take_headers(conn, bytes, frame);
    }
    if (frame->type == H2O_HTTP2_FRAME_TYPE_CONTINUATION)
        return take_continuation(conn, bytes, frame);
    enum srv_h2_flood flood = flood_of(frame->type);
    if (flood != SRV_H2_N_FLOODS && !srv_h2_charge(conn, flood))
        return false;
    /* Unknown types are to be ignored; libh2o would do so on stderr. */
    if (flood != SRV_H2_FLOOD_unknown)
        pass(conn, bytes, FRAME_HEAD + frame->length);
    return true;
}

/* The client's first bytes, which have been looked at already. */
static bool take_preface(struct srv_conn *conn)
{
    if (conn->rest_len < PREFACE_LEN)
        return false;
    conn->h2->has_preface = true;
    pass(conn, conn->rest, PREFACE_LEN);
    srv_conn_consume(conn, PREFACE_LEN);
    conn->h2->window = WINDOW_DEFAULT;
    /* libh2o queues its SETTINGS before this is looked at. */
    srv_h2_give_back(conn, SRV_FRONT_H2_WINDOW - WINDOW_DEFAULT);
    return flush(conn);
}

static h2o_http2_frame_t read_head(const char *bytes)
{
    const uint8_t *head = (const uint8_t *)bytes;
    return (h2o_http2_frame_t){
        .length = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2],
        .payload = head + FRAME_HEAD,
        .type = head[3],
        .flags = head[4],
        .stream_id = read_u31(head + 5),
    };
}

/* Takes what it can from the rest; false when more must come first, or the connection is over. */
static bool take_one(struct srv_conn *conn)
{
    struct srv_h2 *h2 = conn->h2;
    if (!h2->has_preface)
        return take_preface(conn);
    if (h2->data_left > 0 || h2->pad_left > 0) {
        take_data(conn);
        return true;
    }
    if (conn->rest_len < FRAME_HEAD)
        return false;
    h2o_http2_frame_t frame = read_head(conn->rest);
    if (frame.length > FRAME_MAX)
        return fail(conn, SRV_H2_FRAME_SIZE_ERROR);
    if (frame.type == H2O_HTTP2_FRAME_TYPE_DATA)
        return begin_data(conn, &frame);
    return conn->rest_len >= FRAME_HEAD + frame.length && take_frame(conn, &frame);
}

static bool is_turn_over(const struct srv_conn *conn)
{
    return conn->h2->n_turn >= TURN_MAX && conn->rest_len <= BEHIND_MAX;
}

/* Bytes that libh2o has for the client, if they are more than usual: small answers, which need no
 * window, to one that does not read. */
static size_t output_bytes(const struct srv_conn *conn)
{
    enum { STOP_BYTES = 512 << 10 }; /* so much makes libh2o stop reading */
    const h2o_http2_conn_t *h2o = conn->sock->data;
    if (!srv_h2_is_open(conn) && conn->is_tls)
        return STOP_BYTES; /* or it is closing, and must not be touched */
    size_t bytes = h2o->_write.buf->size;
    if (h2o->_write.buf_in_flight != NULL)
        bytes += h2o->_write.buf_in_flight->size;
    return bytes > SRV_CONN_OUTPUT_FREE ? bytes : 0;
}

/* Counts what waits for the rest of its frame or header block, and for a client that reads. Where
 * there is no room for it the connection ends: nothing less can be refused of a block that has
 * begun. */
void srv_h2_count(struct srv_conn *conn)
{
    struct srv_h2 *h2 = conn->h2;
    if (conn->sock == NULL || h2->is_failed)
        return;
    size_t bytes = output_bytes(conn) + (h2->is_in_block ? h2->block_bytes : 0);
    if (!is_turn_over(conn)) /* else it is taken up at once */
        bytes += conn->rest_len;
    if (srv_conn_keep_head(conn, bytes))
        return;
    if (srv_h2_is_open(conn))
        srv_h2_fail(conn, SRV_H2_ENHANCE_YOUR_CALM);
    else
        srv_conn_shutdown(conn); /* its client would not read why */
}

void srv_h2_filter(struct srv_conn *conn)
{
    conn->h2->n_turn = 0;
    if (srv_h2_is_open(conn))
        set_raised(conn, false);
    while (srv_h2_is_open(conn) && conn->rest_len > 0 && !conn->h2->is_failed &&
           !is_turn_over(conn) && take_one(conn))
        ;
    if (srv_h2_is_open(conn) && !conn->h2->is_failed)
        flush(conn);
    if (conn->sock == NULL)
        return;
    if (is_turn_over(conn) && conn->rest_len > 0)
        srv_conn_queue_after(conn);
    srv_h2_count(conn);
    if (conn->h2->is_failed)
        conn->rest_len = 0;
    srv_conn_settle(conn);
}
