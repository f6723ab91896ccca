#include "server/h2o_glue.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <h2o/http2_internal.h>

#include "server/check.h"
#include "server/conn.h"
#include "server/gates.h"
#include "server/h2_body.h"
#include "server/h2_gate.h"

/* An HTTP/2 connection: a filter reads the frames in front of libh2o (h2_frames.c), and what
 * libh2o would not write is written between its rounds (h2_own.c). Request bodies pass by libh2o,
 * so that the connection's receive window is ours: a byte is given back to it when a handler takes
 * the byte, which bounds what a client can make us hold.
 *
 *   OPEN -> FAILED [srv_h2_fail] -> GOAWAY written -> closed by libh2o -> lingering [linger.c]
 */

/* ---- Ending ---- */

static void on_fail_timeout(h2o_timeout_entry_t *entry)
{
    srv_conn_shutdown(H2O_STRUCT_FROM_MEMBER(struct srv_conn, timer, entry));
}

void srv_h2_fail(struct srv_conn *conn, enum srv_h2_error code)
{
    struct srv_h2 *h2 = conn->h2;
    const h2o_http2_conn_t *h2o = conn->sock->data;
    if (h2->is_failed || h2o->state == H2O_HTTP2_CONN_STATE_IS_CLOSING)
        return;
    h2->is_failed = true;
    h2->error = (int)code;
    SRV_COUNT(conn->loop, h2_failed, 1);
    h2o_timeout_unlink(&h2->timer);
    srv_conn_set_timer(conn, SRV_TIMEOUT_LINGER, on_fail_timeout);
    srv_conn_queue_after(conn);
}

/* Tells the client why, and has libh2o close the connection once that is written. That must not be
 * reset with the client's GOAWAY unread. */
static void say_goaway(struct srv_conn *conn, h2o_http2_conn_t *h2o)
{
    srv_conn_linger(conn);
    if (h2o->state >= H2O_HTTP2_CONN_STATE_IS_CLOSING)
        return;
    /* libh2o's own errors are negative. */
    h2o_http2_encode_goaway_frame(&h2o->_write.buf, conn->h2->max_stream, -conn->h2->error,
                                  h2o_iovec_init(NULL, 0));
    h2o_http2_conn_request_write(h2o);
    h2o->state = H2O_HTTP2_CONN_STATE_IS_CLOSING;
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

/* A frame that has begun must end in the time of a head, and the preface, too. */
static void on_slow_head(h2o_timeout_entry_t *entry)
{
    struct srv_h2 *h2 = H2O_STRUCT_FROM_MEMBER(struct srv_h2, timer, entry);
    if (h2->has_preface)
        SRV_COUNT(h2->conn->loop, heads_slow, 1);
    else if (h2->conn->rest_len > 0)
        SRV_COUNT(h2->conn->loop, prefaces_unfinished, 1);
    else
        SRV_COUNT(h2->conn->loop, connections_silent, 1);
    srv_h2_fail(h2->conn, SRV_H2_ENHANCE_YOUR_CALM);
}

static void watch_head(struct srv_conn *conn)
{
    struct srv_h2 *h2 = conn->h2;
    bool is_partial =
        srv_h2_is_open(conn) && (conn->rest_len > 0 || h2->is_in_block || !h2->has_preface);
    if (!is_partial || h2->is_failed) {
        h2o_timeout_unlink(&h2->timer);
    } else if (!h2o_timeout_is_linked(&h2->timer)) {
        h2->timer.cb = on_slow_head;
        h2o_timeout_link(conn->loop->ctx.loop, &conn->loop->timeouts[SRV_TIMEOUT_HEAD], &h2->timer);
    }
}

/* Filters what has come. libh2o may have found an error by itself, in fields that the filter does
 * not read, and be about to close. */
static void filter(struct srv_conn *conn)
{
    srv_h2_filter(conn);
    if (conn->sock == NULL)
        return;
    watch_head(conn);
    const h2o_http2_conn_t *h2o = conn->sock->data;
    if (!srv_h2_is_open(conn) || h2o->state != H2O_HTTP2_CONN_STATE_IS_CLOSING ||
        conn->h2->is_failed || conn->loop->state != SRV_LOOP_RUN)
        return;
    conn->h2->is_failed = true;
    SRV_COUNT(conn->loop, h2_failed, 1);
    srv_conn_linger(conn);
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

/* Puts the gate back where libh2o has read by itself, takes up what had to wait, and writes. */
static enum srv_after after(struct srv_conn *conn)
{
    h2o_socket_t *sock = conn->sock;
    enum srv_after result = SRV_AFTER_IDLE;
    if (sock->_cb.read == conn->h2o_read)
        sock->_cb.read = on_readable;
    if (srv_h2_is_open(conn) && (conn->rest_len > 0 || sock->input->size > 0)) {
        filter(conn);
        result = SRV_AFTER_ACTED;
    }
    if (conn->sock == NULL)
        return result;
    if (!srv_h2_is_open(conn))
        return SRV_AFTER_AGAIN;
    if (conn->head_kept > 0)
        srv_h2_count(conn);
    h2o_http2_conn_t *h2o = sock->data;
    SRV_CHECK(h2o->sock ==
              sock); /* else the library is not the one whose header this was built with */
    if (conn->h2->is_failed) {
        say_goaway(conn, h2o);
        return SRV_AFTER_ACTED;
    }
    if (h2o->state < H2O_HTTP2_CONN_STATE_IS_CLOSING && srv_h2_emit(conn, h2o)) {
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
    *conn->h2 = (struct srv_h2){.conn = conn};
    srv_h2_floods_init(conn);
    h2o_http2_accept(&conn->loop->accept, sock, now);
    conn->h2o_read = sock->_cb.read;
    conn->after = after;
    sock->_cb.read = on_readable;
    if (conn->refusal != 0)
        srv_conn_set_timer(conn, SRV_TIMEOUT_LINGER, on_refusal_over);
    srv_conn_ref(conn);
    filter(conn);
    srv_conn_unref(conn);
}

void srv_gate_h2_start_buffered(struct srv_conn *conn)
{
    h2o_socket_t *sock = conn->sock;
    struct timeval now = *h2o_get_timestamp(&conn->loop->ctx, NULL, NULL);
    size_t n = conn->rest_len;
    /* What was received here so far is libh2o's to read, and all that comes. */
    h2o_socket_dont_read(sock, 0);
    if (n > 0) {
        memcpy(h2o_buffer_reserve(&sock->input, n).base, conn->rest, n);
        sock->input->size += n;
    }
    conn->rest_len = 0;
    srv_conn_settle(conn);
    srv_conn_ref(conn);
    h2o_http2_accept(&conn->loop->accept, sock, now);
    if (n > 0 && conn->sock != NULL)
        sock->_cb.read(sock, NULL);
    srv_conn_unref(conn);
}

void srv_gate_h2_free(struct srv_conn *conn)
{
    while (conn->h2->bodies != NULL)
        srv_h2_body_remove(conn, conn->h2->bodies);
    h2o_timeout_unlink(&conn->h2->timer);
    free(conn->h2);
    conn->h2 = NULL;
}
