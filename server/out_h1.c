#include "server/h2o_glue.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "server/check.h"
#include "server/conn.h"
#include "server/exchange_run.h"
#include "server/fault.h"
#include "server/gates.h"
#include "server/head1_write.h"

/* HTTP/1 responses onto the socket. Clear text is written here and at once, head and first piece
 * together: what the kernel takes, which is nearly always all of it, is never copied, and no event
 * is needed to learn of it. TLS is libh2o's, which has encrypted everything when it returns. */

enum { JOINED_MAX = 16 << 10 /* a TLS record */ };

static void go_on(struct srv_exchange *ex);

/* ---- Heads ---- */

static const char *date(struct srv_loop *loop)
{
    uint64_t now_s = h2o_now(loop->ctx.loop) / 1000;
    if (now_s != loop->date_s) {
        loop->date_s = now_s;
        srv_http_date_write((int64_t)now_s, loop->date);
    }
    return loop->date;
}

void srv_out1_head(struct srv_exchange *ex, const struct srv_response *response,
                   uint64_t announced_length)
{
    const struct srv_head1_answer answer = {
        .status = response->status,
        .date = date(ex->loop),
        .keeps_connection = !ex->must_close,
        .content_length = announced_length,
        .is_chunked = ex->is_chunked,
        .is_relayed = response->is_relayed,
        .fields = response->fields,
        .n_fields = response->n_fields,
    };
    /* Through TLS each run of bytes is a record of its own, which costs more than a copy. */
    bool is_joined = ex->conn->is_tls && ex->bytes.iov_len <= JOINED_MAX;
    size_t n_joined = is_joined ? ex->bytes.iov_len : 0;
    size_t n_before = ex->interim.len;
    char *to = h2o_mem_alloc_pool(ex->pool, n_before + srv_head1_write_bound(&answer) + n_joined);
    if (n_before > 0)
        memcpy(to, ex->interim.base, n_before);
    ex->interim = h2o_iovec_init(NULL, 0);
    size_t len = n_before + srv_head1_write(&answer, to + n_before);
    if (n_joined > 0) {
        memcpy(to + len, ex->bytes.iov_base, n_joined);
        ex->bytes = (struct iovec){NULL, 0};
        ex->out_left = 0;
        ex->n_body_out += n_joined;
    }
    ex->out[0] = h2o_iovec_init(to, len + n_joined);
}

/* ---- Interim responses ---- */

static void on_interim_written(h2o_socket_t *sock, const char *err)
{
    struct srv_conn *conn = sock->on_close.data;
    if (err != NULL) {
        srv_gate_h1_close(conn);
        return;
    }
    conn->ex->is_writing = false;
    srv_body_out_resume(conn->ex);
}

void srv_out1_interim(struct srv_exchange *ex)
{
    h2o_iovec_t *held = &ex->interim;
    if (held->len == 0 || ex->is_writing)
        return;
    if (ex->conn->is_tls) {
        ex->is_writing = true;
        h2o_socket_write(ex->conn->sock, held, 1, on_interim_written);
        *held = h2o_iovec_init(NULL, 0);
        return;
    }
    ssize_t sent =
        send(h2o_socket_get_fd(ex->conn->sock), held->base, held->len, MSG_DONTWAIT | MSG_NOSIGNAL);
    /* What is left goes with the next; a broken connection shows itself then. */
    if (sent > 0)
        *held = h2o_iovec_init(held->base + sent, held->len - (size_t)sent);
}

void srv_respond_interim(struct srv_exchange *ex, int status, const struct srv_field *fields,
                         size_t n_fields)
{
    const struct srv_head1_answer answer = {.status = status,
                                            .content_length = SRV_LENGTH_UNKNOWN,
                                            .is_relayed = true,
                                            .is_interim = true,
                                            .fields = fields,
                                            .n_fields = n_fields};
    SRV_CHECK(!ex->is_responded);
    if (ex->request.version != 11)
        return;
    size_t n_held = ex->interim.len;
    char *to = h2o_mem_alloc_pool(ex->pool, n_held + srv_head1_write_bound(&answer));
    if (n_held > 0)
        memcpy(to, ex->interim.base, n_held);
    ex->interim = h2o_iovec_init(to, n_held + srv_head1_write(&answer, to + n_held));
    srv_out1_interim(ex);
}

/* ---- Chunks (RFC 9112, 7.1) ---- */

/* What stands before a piece: the end of the chunk before it, and its own size. */
static size_t write_frame(char *at, size_t len, bool is_first)
{
    char *start = at;
    bool has_begun = false;
    if (!is_first)
        at = mempcpy(at, "\r\n", 2);
    for (int shift = 28; shift >= 0; shift -= 4) {
        unsigned digit = (unsigned)(len >> shift) & 0xf;
        has_begun = has_begun || digit != 0;
        if (has_begun)
            *at++ = "0123456789abcdef"[digit];
    }
    if (len == 0)
        *at++ = '0';
    at = mempcpy(at, "\r\n", 2);
    return (size_t)((len == 0 ? (char *)mempcpy(at, "\r\n", 2) : at) - start);
}

void srv_out1_frame(struct srv_exchange *ex, size_t len)
{
    h2o_iovec_t *out = &ex->out[0];
    bool is_first = out->len > 0;
    size_t frame_len = write_frame(ex->frame, len, is_first);
    if (!is_first) {
        *out = h2o_iovec_init(ex->frame, frame_len);
        return;
    }
    char *joined = h2o_mem_alloc_pool(ex->pool, out->len + frame_len);
    memcpy(mempcpy(joined, out->base, out->len), ex->frame, frame_len);
    *out = h2o_iovec_init(joined, out->len + frame_len);
}

/* ---- Writing ---- */

/* Gives the kernel what it takes of ex->out. */
static enum srv_out1 write_some(struct srv_exchange *ex)
{
    h2o_iovec_t *out = ex->out;
    int first = out[0].len == 0;
    int n_out = 2 - first - (out[1].len == 0);
    struct iovec vec[2];
    for (int i = 0; i < n_out; i++)
        vec[i] = (struct iovec){out[first + i].base, out[first + i].len};
    const struct msghdr message = {.msg_iov = vec, .msg_iovlen = (size_t)n_out};
    ssize_t sent =
        sendmsg(h2o_socket_get_fd(ex->conn->sock), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent == -1 && errno != EAGAIN && errno != EINTR)
        return SRV_OUT1_BROKEN;
    size_t left = sent == -1 ? 0 : (size_t)sent;
    for (int i = first; i < first + n_out; i++) {
        size_t n = left < out[i].len ? left : out[i].len;
        out[i].base += n;
        out[i].len -= n;
        left -= n;
    }
    return out[0].len + out[1].len == 0 ? SRV_OUT1_SENT : SRV_OUT1_SENDING;
}

static void on_writable(h2o_socket_t *sock, const char *err)
{
    struct srv_conn *conn = sock->on_close.data;
    struct srv_exchange *ex = conn->ex;
    srv_body_out_disarm(ex);
    ex->out1 = err == NULL ? write_some(ex) : SRV_OUT1_BROKEN;
    go_on(ex);
}

static void await_writable(struct srv_exchange *ex)
{
    srv_body_out_arm(ex);
    h2o_socket_notify_write(ex->conn->sock, on_writable);
}

static void on_tls_written(h2o_socket_t *sock, const char *err)
{
    struct srv_conn *conn = sock->on_close.data;
    struct srv_exchange *ex = conn->ex;
    srv_body_out_disarm(ex);
    ex->out1 = err == NULL ? SRV_OUT1_SENT : SRV_OUT1_BROKEN;
    go_on(ex);
}

static void write_tls(struct srv_exchange *ex)
{
    h2o_iovec_t *out = ex->out;
    int first = out[0].len == 0;
    srv_body_out_arm(ex);
    ex->out1 = SRV_OUT1_SENDING;
    ex->loop->must_not_sleep = true;
    h2o_socket_write(ex->conn->sock, out + first, (size_t)(2 - first - (out[1].len == 0)),
                     on_tls_written);
    out[0].len = out[1].len = 0;
}

void srv_out1_send(struct srv_exchange *ex, const h2o_iovec_t *piece)
{
    ex->out[1] = piece == NULL ? h2o_iovec_init(NULL, 0) : *piece;
    if (ex->conn->is_tls) {
        write_tls(ex);
        return;
    }
    ex->out1 = write_some(ex);
    if (ex->out1 == SRV_OUT1_SENDING)
        await_writable(ex);
    else
        srv_conn_queue_after(ex->conn);
}

void srv_out1_own(struct srv_exchange *ex)
{
    h2o_iovec_t *piece = &ex->out[1];
    if (piece->len == 0)
        return;
    if (!srv_body_out_keep(ex, piece->len)) {
        srv_out1_break(ex);
        return;
    }
    char *copy = h2o_mem_alloc_pool(ex->pool, piece->len);
    memcpy(copy, piece->base, piece->len);
    piece->base = copy;
    if (srv_fault_taken())
        srv_out1_break(ex);
}

void srv_out1_break(struct srv_exchange *ex)
{
    ex->out1 = SRV_OUT1_BROKEN;
    srv_conn_queue_after(ex->conn);
}

/* ---- Going on ---- */

void srv_out1_finish(struct srv_exchange *ex, bool may_keep)
{
    ex->is_final = true;
    if (may_keep && !ex->must_close)
        srv_gate_h1_next(ex->conn);
    else
        srv_gate_h1_close(ex->conn);
}

/* What was handed over is sent. */
static void on_sent(struct srv_exchange *ex)
{
    struct srv_conn *conn = ex->conn;
    if (!ex->is_all_sent) {
        srv_body_out_more(ex);
    } else if (!ex->is_early) {
        srv_out1_finish(ex, true);
    } else {
        /* Answered before the body was read: the client must be able to finish sending, or to
         * notice, before the connection goes on. */
        if (ex->must_close && !conn->is_tls)
            shutdown(h2o_socket_get_fd(conn->sock), SHUT_WR);
        srv_body_in_discard(ex);
    }
}

static void go_on(struct srv_exchange *ex)
{
    enum srv_out1 state = ex->out1;
    if (state == SRV_OUT1_SENDING) {
        await_writable(ex);
        return;
    }
    ex->out1 = SRV_OUT1_IDLE;
    if (state == SRV_OUT1_BROKEN)
        srv_gate_h1_close(ex->conn);
    else
        on_sent(ex);
}

bool srv_out1_look(struct srv_exchange *ex)
{
    if (ex->out1 != SRV_OUT1_SENT && ex->out1 != SRV_OUT1_BROKEN)
        return false;
    go_on(ex);
    return true;
}
