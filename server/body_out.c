#include "server/h2o_glue.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "server/check.h"
#include "server/conn.h"
#include "server/exchange_run.h"
#include "server/fault.h"
#include "server/gates.h"

/* ---- Clients that stop reading ---- */

/* Bytes of this connection that the client's kernel has acknowledged. */
static uint64_t acked_bytes(struct srv_conn *conn)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    memset(&info, 0, sizeof info);
    getsockopt(h2o_socket_get_fd(conn->sock), IPPROTO_TCP, TCP_INFO, &info, &len);
    return info.tcpi_bytes_acked;
}

static void on_stall(h2o_timeout_entry_t *entry)
{
    struct srv_exchange *ex = H2O_STRUCT_FROM_MEMBER(struct srv_exchange, timer, entry);
    const struct srv_front_config *config = &ex->loop->setting->config;
    uint64_t least = config->send_rate * config->send_timeout_ms / 1000;
    if (least == 0)
        least = 1;
    uint64_t acked = acked_bytes(ex->conn);
    bool is_blocked = ex->req != NULL && srv_gate_h2_is_blocked(ex, least);
    /* A slow client may take minutes over the megabytes that are queued for it. Only one that takes
     * next to nothing is cut off; over HTTP/2 also one that acknowledges other things and gives
     * this response no room. */
    if (acked - ex->acked >= least && !is_blocked) {
        ex->acked = acked;
        h2o_timeout_link(ex->loop->ctx.loop, &ex->loop->timeouts[SRV_TIMEOUT_SEND], &ex->timer);
        return;
    }
    SRV_COUNT(ex->loop, sends_stalled, 1);
    srv_conn_shutdown(ex->conn);
}

void srv_body_out_arm(struct srv_exchange *ex)
{
    h2o_timeout_unlink(&ex->timer);
    ex->timer.cb = on_stall;
    h2o_timeout_link(ex->loop->ctx.loop, &ex->loop->timeouts[SRV_TIMEOUT_SEND], &ex->timer);
}

void srv_body_out_disarm(struct srv_exchange *ex)
{
    h2o_timeout_unlink(&ex->timer);
}

/* ---- Sending ---- */

static void hand_over(struct srv_exchange *ex, h2o_iovec_t *piece, bool is_last)
{
    ex->is_head_sent = true;
    ex->is_all_sent = is_last;
    if (piece != NULL)
        ex->n_body_out += piece->len;
    if (ex->req == NULL) {
        if (ex->is_chunked && (piece != NULL || is_last))
            srv_out1_frame(ex, piece == NULL ? 0 : piece->len);
        srv_out1_send(ex, piece);
        return;
    }
    ex->is_final = is_last;
    srv_body_out_arm(ex);
    srv_gate_h2_sending(ex->conn, piece == NULL ? 0 : piece->len);
    h2o_send(ex->req, piece, piece == NULL ? 0 : 1,
             is_last ? H2O_SEND_STATE_FINAL : H2O_SEND_STATE_IN_PROGRESS);
    srv_gate_h2_check(ex->conn);
}

static void on_abort(h2o_timeout_entry_t *entry)
{
    struct srv_exchange *ex = H2O_STRUCT_FROM_MEMBER(struct srv_exchange, timer, entry);
    h2o_send(ex->req, NULL, 0, H2O_SEND_STATE_ERROR);
}

/* Cuts the response short. That may end the exchange at once, so it waits until no handler is on
 * the stack. */
static void cut_short(struct srv_exchange *ex)
{
    if (ex->req == NULL) {
        srv_out1_break(ex);
        return;
    }
    h2o_timeout_unlink(&ex->timer);
    ex->timer.cb = on_abort;
    h2o_timeout_link(ex->loop->ctx.loop, &ex->loop->ctx.zero_timeout, &ex->timer);
}

static void set_head(struct srv_exchange *ex, const struct srv_response *response, uint64_t len);

/* The rest of the response cannot be had. Before the head is out it becomes an error of its own;
 * afterwards the client must see it end early. */
static void fail(struct srv_exchange *ex)
{
    ex->out_left = 0;
    ex->is_chunked = false; /* no last chunk: that it is cut short must show */
    if (ex->is_head_sent) {
        cut_short(ex);
        return;
    }
    ex->status = 500;
    set_head(ex, &(struct srv_response){.status = 500}, 0);
    hand_over(ex, NULL, true);
}

/* Asks the source for up to `max` bytes; false while it has none. */
static bool next_piece(struct srv_exchange *ex, size_t max, h2o_iovec_t *piece_out)
{
    enum srv_source_state state;
    struct iovec piece = {NULL, 0};
    do {
        ex->is_woken = false;
        ex->is_in_next = true;
        state = ex->source->next(ex->source, max, &piece);
        ex->is_in_next = false;
    } while (state == SRV_SOURCE_WAIT && ex->is_woken);
    ex->is_waiting = state == SRV_SOURCE_WAIT;
    if (state == SRV_SOURCE_END) {
        SRV_CHECK(ex->is_unbounded);
        ex->out_left = 0;
        hand_over(ex, NULL, true);
    } else if (state == SRV_SOURCE_FAILED)
        fail(ex);
    if (state != SRV_SOURCE_READY)
        return false;
    SRV_CHECK(piece.iov_len > 0 && piece.iov_len <= max);
    *piece_out = h2o_iovec_init(piece.iov_base, piece.iov_len);
    return true;
}

/* Many clients that ask for much at once do not keep all others waiting for a mebibyte each. Over
 * HTTP/2 libh2o cuts what it is given. */
static size_t send_limit(const struct srv_exchange *ex)
{
    bool is_h2 = ex->request.version == 20;
    size_t max = ex->conn->is_tls && !is_h2 ? SRV_SEND_TLS_BYTES : SRV_SEND_CLEAR_BYTES;
    if (!is_h2 && ex->loop->round_bytes >= SRV_ROUND_BYTES)
        max = SRV_SEND_CROWD_BYTES;
    return ex->out_left < max ? (size_t)ex->out_left : max;
}

void srv_body_out_more(struct srv_exchange *ex)
{
    h2o_iovec_t piece;
    if (ex->out_left == 0) {
        hand_over(ex, NULL, true);
    } else if (ex->bytes.iov_base != NULL) {
        piece = h2o_iovec_init(ex->bytes.iov_base, ex->bytes.iov_len);
        ex->out_left = 0;
        hand_over(ex, &piece, true);
    } else if (next_piece(ex, send_limit(ex), &piece)) {
        if (!ex->is_unbounded)
            ex->out_left -= piece.len;
        if (ex->request.version != 20) /* encrypting takes some four times as long as copying */
            ex->loop->round_bytes += ex->conn->is_tls ? 4 * piece.len : piece.len;
        hand_over(ex, &piece, ex->out_left == 0);
    }
}

/* libh2o has written what it was given. */
static void proceed(h2o_generator_t *generator, h2o_req_t *req)
{
    struct srv_exchange *ex = H2O_STRUCT_FROM_MEMBER(struct srv_exchange, generator, generator);
    (void)req;
    srv_body_out_disarm(ex);
    srv_body_out_more(ex);
}

void srv_body_out_resume(struct srv_exchange *ex)
{
    if (ex->is_responded)
        srv_body_out_more(ex);
    else
        srv_out1_interim(ex);
}

static void destroy_source(struct srv_exchange *ex)
{
    if (ex->source != NULL)
        ex->source->destroy(ex->source);
    ex->source = NULL;
}

void srv_body_out_fini(struct srv_exchange *ex)
{
    h2o_timeout_unlink(&ex->timer);
    destroy_source(ex);
    free(ex->owned);
    ex->owned = NULL;
    srv_conn_unkeep(ex->conn, ex->body_kept);
    ex->body_kept = 0;
}

/* ---- Heads ---- */

/* Whether a response to this request with this status has no content whatever its fields say. */
static bool is_bodyless(const struct srv_exchange *ex, int status)
{
    return ex->request.method == SRV_HEAD || status < 200 || status == 204 || status == 304;
}

/* The length the head shall announce. */
static uint64_t announced_length(const struct srv_response *response, uint64_t len)
{
    return response->status < 200 || response->status == 204 ? SRV_LENGTH_UNKNOWN : len;
}

/* Prepares the head, which goes out with the first bytes. */
static void set_head(struct srv_exchange *ex, const struct srv_response *response, uint64_t len)
{
    if (ex->req == NULL)
        srv_out1_head(ex, response, announced_length(response, len));
    else
        srv_h2_head_set(ex, response, announced_length(response, len));
}

/* HTTP/1: decides about the connection's future, which the head announces. */
static void set_persistence(struct srv_exchange *ex)
{
    ex->is_early = !ex->in.is_ended;
    if (ex->loop->state > SRV_LOOP_RUN ||
        atomic_load_explicit(&ex->conn->listener->is_removed, memory_order_relaxed) ||
        (ex->is_early && !srv_body_in_is_short(ex)))
        ex->must_close = true;
}

static void begin(struct srv_exchange *ex, const struct srv_response *response, uint64_t len)
{
    SRV_CHECK(!ex->is_responded && response->status >= 200);
    ex->is_responded = true;
    ex->status = response->status;
    if (ex->is_logged)
        srv_observe_answer(ex);
    srv_body_in_stop(ex);
    ex->is_unbounded = response->is_unbounded && !is_bodyless(ex, response->status);
    ex->is_chunked = ex->is_unbounded && ex->req == NULL && ex->request.version == 11;
    ex->out_left = ex->is_unbounded                                                 ? UINT64_MAX
                   : is_bodyless(ex, response->status) || len == SRV_LENGTH_UNKNOWN ? 0
                                                                                    : len;
    if (ex->out_left == 0) {
        destroy_source(ex);
        ex->bytes = (struct iovec){NULL, 0};
    }
    if (ex->req == NULL)
        set_persistence(ex);
    if (ex->is_unbounded && ex->req == NULL && !ex->is_chunked)
        ex->must_close = true;
    set_head(ex, response, len);
    if (ex->req != NULL) {
        ex->generator.proceed = proceed;
        h2o_start_response(ex->req, &ex->generator);
    }
    if (!ex->is_writing)
        srv_body_out_more(ex);
}

void srv_respond(struct srv_exchange *ex, const struct srv_response *response,
                 struct srv_source *source)
{
    uint64_t len = response->content_length;
    ex->source = source;
    if (response->is_unbounded)
        len = SRV_LENGTH_UNKNOWN;
    else if (len == SRV_LENGTH_UNKNOWN && !is_bodyless(ex, response->status))
        len = 0;
    SRV_CHECK(source != NULL || (len == 0 && !response->is_unbounded) ||
              is_bodyless(ex, response->status));
    begin(ex, response, len);
}

bool srv_body_out_keep(struct srv_exchange *ex, size_t bytes)
{
    SRV_CHECK(ex->body_kept == 0);
    if (srv_conn_is_full(ex->conn) || !srv_conn_keep(ex->conn, bytes))
        return false;
    ex->body_kept = bytes;
    return true;
}

void srv_body_out_refuse(struct srv_exchange *ex)
{
    const struct srv_field again = {{"Retry-After", 11}, {"1", 1}};
    begin(ex, &(struct srv_response){.status = 503, .fields = &again, .n_fields = 1}, 0);
}

/* Copies bytes that the client may take long to want; false when the request was answered without
 * them. */
static bool copy_bytes(struct srv_exchange *ex, const void *bytes, size_t len)
{
    if (!srv_body_out_keep(ex, len)) {
        srv_body_out_refuse(ex);
        return false;
    }
    ex->bytes = (struct iovec){h2o_mem_alloc_pool(ex->pool, len), len};
    memcpy(ex->bytes.iov_base, bytes, len);
    if (!srv_fault_taken())
        return true;
    /* `bytes` were stored ones, and are not there. */
    ex->bytes = (struct iovec){NULL, 0};
    begin(ex, &(struct srv_response){.status = 500}, 0);
    return false;
}

void srv_respond_bytes(struct srv_exchange *ex, const struct srv_response *response,
                       const void *bytes, size_t len)
{
    ex->bytes = (struct iovec){(void *)(uintptr_t)bytes, len};
    if (len > 0 && ex->req != NULL && !is_bodyless(ex, response->status) &&
        !copy_bytes(ex, bytes, len))
        return;
    begin(ex, response, len);
    if (ex->req == NULL)
        srv_out1_own(ex);
}

void srv_respond_owned(struct srv_exchange *ex, const struct srv_response *response, void *bytes,
                       size_t len)
{
    /* Through TLS as much again is kept encrypted. */
    size_t kept = ex->conn->is_tls && ex->req == NULL ? 2 * len : len;
    bool is_wanted = len > 0 && !is_bodyless(ex, response->status);
    bool is_kept = is_wanted && srv_body_out_keep(ex, kept);
    /* What nobody gets must go now: without a window even an empty answer stays. */
    if (!is_kept)
        free(bytes);
    if (is_wanted && !is_kept) {
        srv_body_out_refuse(ex);
        return;
    }
    if (is_kept) {
        ex->owned = bytes;
        ex->bytes = (struct iovec){bytes, len};
    }
    begin(ex, response, len);
}

void srv_source_wake(struct srv_exchange *ex)
{
    if (ex->is_in_next) {
        ex->is_woken = true;
    } else if (ex->is_waiting) {
        ex->is_waiting = false;
        srv_body_out_more(ex);
    }
}
