#include "server/h2o_glue.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "server/check.h"
#include "server/conn.h"
#include "server/exchange_run.h"
#include "server/gates.h"
#include "server/h2_body.h"

enum {
    BUF_FIRST_BYTES = 64 << 10,
    BUF_FULL_BYTES = 1 << 20,
    FAST_MS = 250, /* a buffer filled within this time is followed by a large one */
    DISCARD_SHORT_BYTES =
        256 << 10,        /* an unread rest up to this length does not cost the connection */
    DISCARD_MS = 10000,   /* longest time that a client which ignores its answer is listened to */
    PUMP_BYTES = 4 << 20, /* received in one go before other connections have their turn */
};

static const char CONTINUE[] = "HTTP/1.1 100 Continue\r\n\r\n";

/* What one attempt to get body bytes has led to. */
enum step {
    STEP_MORE,  /* some came */
    STEP_EMPTY, /* none there now */
    STEP_END,   /* the body is complete */
    STEP_BAD,   /* its framing is not */
    STEP_GONE,  /* the client has closed */
};

static void pump(struct srv_exchange *ex, bool may_close);
static void discard(struct srv_exchange *ex);

/* ---- Stalling ---- */

static void on_stall(h2o_timeout_entry_t *entry)
{
    struct srv_body_in *in = H2O_STRUCT_FROM_MEMBER(struct srv_body_in, timer, entry);
    struct srv_exchange *ex = H2O_STRUCT_FROM_MEMBER(struct srv_exchange, in, in);
    if (ex->request.version != 20)
        h2o_socket_read_stop(ex->conn->sock);
    if (in->is_discarding) {
        srv_out1_finish(ex, false);
        return;
    }
    SRV_COUNT(ex->loop, bodies_stalled, 1);
    srv_body_in_deliver(ex, SRV_BODY_STALLED);
}

static uint64_t received(const struct srv_exchange *ex)
{
    const struct srv_body_in *in = &ex->in;
    if (in->h2 != NULL)
        return in->h2->received;
    return ex->n_body_in + (in->buf != NULL ? in->buf->len : 0);
}

/* Whether too little has come since the timer was set for it to be set anew: a byte now and then
 * does not keep a body alive. */
static bool is_trickle(struct srv_exchange *ex)
{
    const struct srv_front_config *config = &ex->loop->setting->config;
    uint64_t least = config->body_rate * config->body_timeout_ms / 1000;
    return !ex->in.is_discarding && h2o_timeout_is_linked(&ex->in.timer) &&
           received(ex) - ex->in.seen < least;
}

void srv_body_in_arm(struct srv_exchange *ex)
{
    struct srv_body_in *in = &ex->in;
    enum srv_timeout which = in->is_discarding ? SRV_TIMEOUT_LINGER : SRV_TIMEOUT_BODY;
    if (is_trickle(ex))
        return;
    in->seen = received(ex);
    h2o_timeout_unlink(&in->timer);
    in->timer.cb = on_stall;
    h2o_timeout_link(ex->loop->ctx.loop, &ex->loop->timeouts[which], &in->timer);
}

void srv_body_in_disarm(struct srv_exchange *ex)
{
    h2o_timeout_unlink(&ex->in.timer);
}

/* ---- Delivering ---- */

void srv_body_in_deliver(struct srv_exchange *ex, enum srv_body_event event)
{
    struct srv_body_in *in = &ex->in;
    void (*on_body)(void *, enum srv_body_event, struct srv_buf *) = in->on_body;
    struct srv_buf *buf = in->buf;
    in->on_body = NULL;
    in->buf = NULL;
    srv_body_in_disarm(ex);
    if (event == SRV_BODY_END)
        in->is_ended = true;
    else if (event != SRV_BODY_DATA)
        in->is_failed = true;
    if (buf != NULL && (in->is_failed || buf->len == 0)) {
        srv_buf_release(buf);
        buf = NULL;
    }
    if (buf != NULL) {
        SRV_COUNT(ex->loop, body_bytes, buf->len);
        ex->n_body_in += buf->len;
    }
    on_body(ex->ctx, event, buf);
}

/* A buffer to fill: small for a body that is short, starts, or comes slowly. False when none can be
 * had. */
static bool get_buf(struct srv_exchange *ex)
{
    struct srv_body_in *in = &ex->in;
    if (in->buf != NULL)
        return true;
    size_t want = in->is_fast ? BUF_FULL_BYTES : BUF_FIRST_BYTES;
    if (!in->is_chunked && in->left < want)
        want = (size_t)in->left;
    in->buf = srv_buf_acquire_for(ex->loop->env->bufs, srv_conn_share(ex->conn), want);
    in->buf_started_ms = h2o_now(ex->loop->ctx.loop);
    return in->buf != NULL;
}

static bool is_full(const struct srv_body_in *in)
{
    return in->buf->len == in->buf->capacity;
}

/* ---- Getting bytes ---- */

/* Room for body bytes: the buffer's, or without end where they are dropped. */
static size_t room(const struct srv_body_in *in)
{
    return in->is_discarding ? SIZE_MAX : in->buf->capacity - in->buf->len;
}

static void keep(struct srv_body_in *in, const char *bytes, size_t n)
{
    if (in->is_discarding)
        return;
    memcpy(in->buf->base + in->buf->len, bytes, n);
    in->buf->len += n;
}

/* Decodes chunked bytes out of the rest. */
static enum step take_chunked(struct srv_exchange *ex)
{
    struct srv_body_in *in = &ex->in;
    struct srv_conn *conn = ex->conn;
    while (conn->rest_len > 0 && room(in) > 0) {
        size_t n = conn->rest_len < room(in) ? conn->rest_len : room(in);
        size_t used;
        struct srv_str data;
        enum srv_chunked_result result =
            srv_chunked_feed(&in->chunked, conn->rest, n, &used, &data);
        if (result == SRV_CHUNKED_DATA)
            keep(in, data.base, data.len);
        srv_conn_consume(conn, used);
        if (result == SRV_CHUNKED_BAD)
            return STEP_BAD;
        if (result == SRV_CHUNKED_END)
            return STEP_END;
    }
    return STEP_MORE;
}

/* Takes body bytes out of the connection's rest. */
static enum step take_rest(struct srv_exchange *ex)
{
    struct srv_body_in *in = &ex->in;
    struct srv_conn *conn = ex->conn;
    if (in->is_chunked)
        return take_chunked(ex);
    size_t n = conn->rest_len < room(in) ? conn->rest_len : room(in);
    if (n > in->left)
        n = (size_t)in->left;
    keep(in, conn->rest, n);
    in->left -= n;
    srv_conn_consume(conn, n);
    return in->left == 0 ? STEP_END : STEP_MORE;
}

/* Receives clear text: body bytes to where they shall stay, framing and dropped bytes into the
 * scratch. */
static enum step receive_clear(struct srv_exchange *ex)
{
    struct srv_body_in *in = &ex->in;
    struct srv_conn *conn = ex->conn;
    uint64_t sure = in->is_chunked ? srv_chunked_left(&in->chunked)
                                   : in->left; /* bytes that can be nothing but body */
    bool is_direct = sure > 0 && !in->is_discarding;
    char *to = is_direct ? (char *)in->buf->base + in->buf->len : conn->loop->scratch;
    size_t want = is_direct ? room(in) : in->is_discarding ? SRV_SCRATCH_BYTES : SRV_READ_BYTES;
    if (want > sure && !(in->is_chunked && !is_direct))
        want = (size_t)sure;
    ssize_t n = recv(h2o_socket_get_fd(conn->sock), to, want, MSG_DONTWAIT);
    if (n == -1 && (errno == EAGAIN || errno == EINTR))
        return STEP_EMPTY;
    if (n <= 0)
        return STEP_GONE;
    in->budget -= in->budget < (size_t)n ? in->budget : (size_t)n;
    if (!is_direct) {
        conn->rest = to;
        conn->rest_len = (size_t)n;
        return STEP_MORE;
    }
    in->buf->len += (size_t)n;
    if (!in->is_chunked) {
        in->left -= (uint64_t)n;
        return in->left == 0 ? STEP_END : STEP_MORE;
    }
    size_t used;
    struct srv_str data;
    srv_chunked_feed(&in->chunked, to, (size_t)n, &used, &data);
    SRV_CHECK(used == (size_t)n && data.len == used);
    return STEP_MORE;
}

static enum step receive(struct srv_exchange *ex)
{
    struct srv_conn *conn = ex->conn;
    if (ex->in.budget == 0)
        return STEP_EMPTY;
    if (!conn->is_tls)
        return receive_clear(ex);
    srv_conn_take_tls(conn);
    return conn->rest_len > 0 ? STEP_MORE : STEP_EMPTY;
}

/* ---- The pump ---- */

static void on_readable(h2o_socket_t *sock, const char *err)
{
    struct srv_conn *conn = sock->on_close.data;
    struct srv_exchange *ex = conn->ex;
    if (err != NULL) {
        srv_gate_h1_close(conn);
        return;
    }
    if (ex->in.is_discarding)
        discard(ex);
    else
        pump(ex, true);
}

/* Gets bytes until the buffer is full, the body complete or nothing left to take. */
static enum step fill(struct srv_exchange *ex)
{
    enum step step = STEP_MORE;
    while (step == STEP_MORE && room(&ex->in) > 0)
        step = ex->conn->rest_len > 0 ? take_rest(ex) : receive(ex);
    return step;
}

/* Reports what a step has led to; false when the pump must wait for the socket. */
static bool report(struct srv_exchange *ex, enum step step)
{
    struct srv_body_in *in = &ex->in;
    if (step == STEP_END) {
        srv_body_in_deliver(ex, SRV_BODY_END);
    } else if (step == STEP_BAD) {
        SRV_COUNT(ex->loop, bodies_malformed, 1);
        srv_body_in_deliver(ex, SRV_BODY_MALFORMED);
    } else if (is_full(in) ||
               (in->is_streamed && step == STEP_EMPTY && in->buf != NULL && in->buf->len > 0)) {
        in->is_fast = h2o_now(ex->loop->ctx.loop) - in->buf_started_ms <= FAST_MS;
        srv_body_in_deliver(ex, SRV_BODY_DATA);
    } else {
        return false;
    }
    return true;
}

/* Waits for more, or stops waiting. */
static void set_reading(struct srv_exchange *ex, bool is_wanted)
{
    h2o_socket_t *sock = ex->conn->sock;
    if (is_wanted) {
        srv_body_in_arm(ex);
        if (sock->_cb.read != on_readable)
            h2o_socket_read_start(sock, on_readable);
    } else {
        srv_body_in_disarm(ex);
        if (sock->_cb.read == on_readable)
            h2o_socket_read_stop(sock);
    }
}

/* Gets the handler's next buffer; false when the pump is done for now, with the step that ended it.
 */
static bool pump_one(struct srv_exchange *ex, enum step *step_out)
{
    struct srv_body_in *in = &ex->in;
    *step_out = STEP_EMPTY;
    if (in->is_ended) {
        srv_body_in_deliver(ex, SRV_BODY_END);
        return false;
    }
    if (!get_buf(ex)) {
        SRV_COUNT(ex->loop, bodies_overload, 1);
        srv_conn_count_share(ex->conn);
        srv_body_in_deliver(ex, SRV_BODY_OVERLOAD);
        return false;
    }
    *step_out = fill(ex);
    return *step_out != STEP_GONE && report(ex, *step_out);
}

/* Serves the handler as long as it asks and bytes are there. Only an event of the socket may close
 * the connection (`may_close`): the handler must not lose its exchange while it is on the stack. */
static void pump(struct srv_exchange *ex, bool may_close)
{
    struct srv_body_in *in = &ex->in;
    enum step step = STEP_EMPTY;
    in->budget = PUMP_BYTES;
    in->is_pumping = true;
    while (in->on_body != NULL && pump_one(ex, &step))
        ;
    in->is_pumping = false;
    srv_conn_settle(ex->conn);
    if (step == STEP_GONE && may_close)
        srv_gate_h1_close(ex->conn);
    else
        set_reading(ex, in->on_body != NULL);
}

/* ---- 100 Continue ---- */

static void on_continue_written(h2o_socket_t *sock, const char *err)
{
    struct srv_conn *conn = sock->on_close.data;
    if (err != NULL) {
        srv_gate_h1_close(conn);
        return;
    }
    conn->ex->is_writing = false;
    srv_body_out_resume(conn->ex);
}

/* Tells a client that waits to go on. Bytes that are there already say that it does not wait. */
static void send_continue(struct srv_exchange *ex)
{
    struct srv_conn *conn = ex->conn;
    ex->in.owes_continue = false;
    if (conn->rest_len > 0)
        return;
    if (conn->is_tls) {
        static h2o_iovec_t out = {(char *)(uintptr_t)CONTINUE, sizeof CONTINUE - 1};
        ex->is_writing = true;
        h2o_socket_write(conn->sock, &out, 1, on_continue_written);
        return;
    }
    /* Nothing else is being written, so that these few bytes find room unless the client is gone.
     */
    ssize_t n = send(h2o_socket_get_fd(conn->sock), CONTINUE, sizeof CONTINUE - 1,
                     MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n != (ssize_t)sizeof CONTINUE - 1)
        srv_conn_shutdown(conn);
}

/* ---- What the rest of the front and the handlers call ---- */

void srv_body_in_init(struct srv_exchange *ex, const struct srv_head1 *head)
{
    struct srv_body_in *in = &ex->in;
    in->is_chunked = head->body == SRV_HEAD1_BODY_CHUNKED;
    in->left = head->body == SRV_HEAD1_BODY_LENGTH ? head->content_length : 0;
    in->owes_continue = head->expect_continue;
    in->is_ended = !in->is_chunked && in->left == 0;
    srv_chunked_init(&in->chunked);
}

void srv_body_in_stop(struct srv_exchange *ex)
{
    struct srv_body_in *in = &ex->in;
    in->on_body = NULL;
    srv_buf_release(in->buf);
    in->buf = NULL;
    if (ex->request.version != 20) {
        set_reading(ex, false);
        return;
    }
    srv_body_in_disarm(ex);
    srv_gate_h2_stop(ex);
}

void srv_body_in_fini(struct srv_exchange *ex)
{
    srv_body_in_disarm(ex);
    srv_buf_release(ex->in.buf);
    ex->in.buf = NULL;
    ex->in.on_body = NULL;
    if (ex->in.h2 != NULL)
        srv_gate_h2_unbind(ex);
}

void srv_body_read(struct srv_exchange *ex,
                   void (*on_body)(void *ctx, enum srv_body_event event, struct srv_buf *buf))
{
    struct srv_body_in *in = &ex->in;
    SRV_CHECK(in->on_body == NULL && !in->is_failed && !ex->is_responded);
    in->on_body = on_body;
    if (ex->request.version == 20) {
        srv_gate_h2_want(ex);
        return;
    }
    if (in->owes_continue)
        send_continue(ex);
    if (!in->is_pumping)
        pump(ex, false);
}

void srv_body_stream(struct srv_exchange *ex)
{
    ex->in.is_streamed = true;
}

bool srv_body_in_is_short(const struct srv_exchange *ex)
{
    const struct srv_body_in *in = &ex->in;
    return !in->is_failed && !in->owes_continue &&
           (in->is_chunked || in->left <= DISCARD_SHORT_BYTES);
}

/* How long a chunked body is shows only when it is dropped. From here on the connection is lost to
 * it, and its client is told so. */
static void note_dropped(struct srv_exchange *ex, size_t n)
{
    struct srv_body_in *in = &ex->in;
    in->n_dropped += n;
    if (!in->is_chunked || ex->must_close || in->n_dropped <= DISCARD_SHORT_BYTES)
        return;
    ex->must_close = true;
    if (!ex->conn->is_tls)
        shutdown(h2o_socket_get_fd(ex->conn->sock), SHUT_WR);
}

/* Drops what comes. After bad framing there is no telling where the body ends, so all is dropped.
 */
static enum step drop(struct srv_exchange *ex)
{
    struct srv_conn *conn = ex->conn;
    enum step step = STEP_MORE;
    while (step == STEP_MORE) {
        if (conn->rest_len == 0) {
            step = receive(ex);
            note_dropped(ex, conn->rest_len);
        } else if (ex->in.is_failed) {
            conn->rest_len = 0;
        } else {
            step = take_rest(ex);
        }
    }
    srv_conn_settle(conn);
    return step;
}

static void discard(struct srv_exchange *ex)
{
    struct srv_body_in *in = &ex->in;
    in->budget = PUMP_BYTES;
    enum step step = drop(ex);
    bool is_over = step != STEP_EMPTY || h2o_now(ex->loop->ctx.loop) >= in->discard_until_ms;
    set_reading(ex, !is_over);
    if (is_over)
        srv_out1_finish(ex, step == STEP_END);
}

void srv_body_in_discard(struct srv_exchange *ex)
{
    ex->in.is_discarding = true;
    ex->in.discard_until_ms = h2o_now(ex->loop->ctx.loop) + DISCARD_MS;
    discard(ex);
}
