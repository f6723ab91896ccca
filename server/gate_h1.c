#include "server/h2o_glue.h"

#include <errno.h>
#include <string.h>

#include "server/check.h"
#include "server/status.h"
#include "server/conn.h"
#include "server/exchange_run.h"
#include "server/gates.h"

/* HTTP/1 up to the point where a head is a request, and from the end of its exchange on. Every head
 * is checked before anybody else reads it. libh2o lends its sockets and timers, no more. */

enum {
    ANSWER_BYTES = 512,
    PIPELINED_MAX = 16, /* requests of one connection that are answered before others have a turn */
};

static void on_readable(h2o_socket_t *sock, const char *err);

/* ---- Ending ---- */

static void end_exchange(struct srv_conn *conn)
{
    struct srv_exchange *ex = conn->ex;
    if (ex == NULL)
        return;
    conn->ex = NULL;
    srv_glue_end(ex);
    h2o_mem_clear_pool(&conn->pool);
}

void srv_gate_h1_close(struct srv_conn *conn)
{
    if (conn->is_closing)
        return;
    conn->is_closing = true;
    conn->loop->must_not_sleep = true; /* TLS has a goodbye to say */
    srv_conn_clear_timer(conn);
    end_exchange(conn);
    h2o_socket_close(conn->sock);
}

static void on_timeout(h2o_timeout_entry_t *entry)
{
    struct srv_conn *conn = H2O_STRUCT_FROM_MEMBER(struct srv_conn, timer, entry);
    if (conn->partial != NULL)
        SRV_COUNT(conn->loop, heads_slow, 1);
    srv_gate_h1_close(conn);
}

/* ---- Rejecting ---- */

/* The answer is out. A close with unread input would reset the connection and could take the answer
 * with it, so the client gets a moment to read it and to stop sending. */
static void on_reject_written(h2o_socket_t *sock, const char *err)
{
    struct srv_conn *conn = sock->on_close.data;
    if (err == NULL)
        srv_conn_linger(conn);
    srv_gate_h1_close(conn);
}

/* Answers what cannot be taken for a request, and closes: nothing behind it can be trusted. */
static void reject(struct srv_conn *conn, int status, const char *reason)
{
    static const char FORMAT[] =
        "HTTP/1.1 %d %s\r\nServer: Gyre\r\nConnection: close\r\nContent-Type: text/plain\r\n%s"
        "Content-Length: %zu\r\n\r\n%s%s";
    bool is_head = conn->rest_len >= 5 && memcmp(conn->rest, "HEAD ", 5) == 0;
    const char *retry = status == 503 ? "Retry-After: 1\r\n" : "";
    size_t len = strlen(reason) + 1;
    conn->answer = h2o_mem_alloc(ANSWER_BYTES);
    int n = snprintf(conn->answer, ANSWER_BYTES, FORMAT, status, srv_status_reason(status), retry,
                     len, is_head ? "" : reason, is_head ? "" : "\n");
    SRV_CHECK(n > 0 && n < ANSWER_BYTES);
    SRV_COUNT(conn->loop, heads_rejected, 1);
    srv_observe_rejected(conn, status);
    srv_conn_clear_timer(conn);
    conn->rest_len = 0;
    srv_conn_keep_head(conn, 0);
    srv_conn_settle(conn);
    h2o_socket_read_stop(conn->sock);
    conn->loop->must_not_sleep = true;
    h2o_iovec_t out = {conn->answer, (size_t)n};
    h2o_socket_write(conn->sock, &out, 1, on_reject_written);
}

/* ---- Draining ---- */

static void on_drain_timeout(h2o_timeout_entry_t *entry)
{
    reject(H2O_STRUCT_FROM_MEMBER(struct srv_conn, timer, entry), 503, "the server is stopping");
}

void srv_gate_h1_drain(struct srv_conn *conn)
{
    if (conn->ex != NULL || conn->is_closing || conn->sock->_cb.read != on_readable)
        return;
    if (conn->partial == NULL && conn->rest_len == 0) {
        srv_gate_h1_close(conn);
    } else if (conn->partial != NULL && !conn->is_ending) {
        conn->is_ending = true;
        srv_conn_set_timer(conn, SRV_TIMEOUT_LINGER, on_drain_timeout);
    }
}

/* ---- Heads ---- */

/* Keeps the state of an unfinished head with the connection. */
static void keep_partial(struct srv_conn *conn)
{
    if (!srv_conn_keep_head(conn, conn->rest_len)) {
        reject(conn, 503, "too much is under way");
        return;
    }
    if (conn->partial == NULL) {
        conn->partial = h2o_mem_alloc(sizeof *conn->partial);
        *conn->partial = conn->loop->head;
        srv_conn_set_timer(conn, SRV_TIMEOUT_HEAD, on_timeout);
    }
    srv_conn_settle(conn);
}

/* Starts the request that a complete head is. */
static void start(struct srv_conn *conn, struct srv_head1 *head)
{
    const char *bytes = conn->rest;
    srv_conn_clear_timer(conn);
    srv_conn_keep_head(conn, 0);
    srv_conn_consume(conn, head->head_len);
    if (conn->is_tls)
        h2o_socket_read_stop(conn->sock);
    srv_glue_start_h1(conn, head, bytes);
    free(conn->partial);
    conn->partial = NULL;
    srv_conn_settle(conn);
}

/* Looks for a head in the rest; true if that has started a request. */
static bool feed(struct srv_conn *conn)
{
    struct srv_head1 *head = conn->partial;
    if (conn->rest_len == 0)
        return false;
    if (head == NULL) {
        head = &conn->loop->head;
        srv_head1_init(head);
    }
    switch (srv_head1_feed(head, conn->rest, conn->rest_len)) {
    case SRV_HEAD1_MORE: keep_partial(conn); break;
    case SRV_HEAD1_REJECTED: reject(conn, head->status, head->reason); break;
    case SRV_HEAD1_DONE: start(conn, head); return true;
    }
    return false;
}

/* Receives clear text behind the rest. False when nothing has come; then the connection may be
 * closed. */
static bool receive(struct srv_conn *conn)
{
    char *to = conn->loop->scratch;
    if (conn->rest_len > 0) {
        h2o_buffer_consume(&conn->held, (size_t)(conn->rest - conn->held->bytes));
        to = h2o_buffer_reserve(&conn->held, SRV_READ_BYTES).base;
        conn->rest = conn->held->bytes;
    }
    ssize_t n = recv(h2o_socket_get_fd(conn->sock), to, SRV_READ_BYTES, MSG_DONTWAIT);
    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            srv_gate_h1_close(conn);
        return false;
    }
    if (conn->rest_len > 0)
        conn->held->size += (size_t)n;
    else
        conn->rest = to;
    conn->rest_len += (size_t)n;
    return true;
}

static void on_readable(h2o_socket_t *sock, const char *err)
{
    struct srv_conn *conn = sock->on_close.data;
    if (conn->ex != NULL) {
        /* Told to stop only now that something has come: most clients wait for their answer. */
        h2o_socket_read_stop(sock);
        return;
    }
    if (err != NULL) {
        srv_gate_h1_close(conn);
        return;
    }
    if (conn->is_tls)
        srv_conn_take_tls(conn);
    else if (!receive(conn))
        return;
    feed(conn);
}

/* ---- From one request to the next ---- */

void srv_gate_h1_next(struct srv_conn *conn)
{
    end_exchange(conn);
    if (conn->is_tls)
        srv_conn_take_tls(conn);
    if (conn->sock->_cb.read != on_readable)
        h2o_socket_read_start(conn->sock, on_readable);
    if (conn->rest_len == 0)
        srv_conn_set_timer(conn, SRV_TIMEOUT_IDLE, on_timeout);
    else
        srv_conn_queue_after(conn);
}

/* Notices what was sent while a handler was on the stack, and starts what is held. A response that
 * has more pieces has its next turn in the next round. */
static enum srv_after after(struct srv_conn *conn)
{
    bool goes_on = true;
    for (int i = 0; goes_on && conn->sock != NULL && !conn->is_closing && i < 2 * PIPELINED_MAX;
         i++) {
        if (conn->ex == NULL)
            goes_on = feed(conn);
        else
            goes_on = srv_out1_look(conn->ex) && conn->ex == NULL;
    }
    return SRV_AFTER_IDLE;
}

/* Whose handshake was all it had to say. */
static void on_silence(h2o_timeout_entry_t *entry)
{
    struct srv_conn *conn = H2O_STRUCT_FROM_MEMBER(struct srv_conn, timer, entry);
    SRV_COUNT(conn->loop, connections_silent, 1);
    srv_gate_h1_close(conn);
}

void srv_gate_h1_start(struct srv_conn *conn)
{
    h2o_mem_init_pool(&conn->pool);
    conn->after = after;
    h2o_socket_read_start(conn->sock, on_readable);
    srv_conn_set_timer(conn, SRV_TIMEOUT_IDLE, on_silence);
    if (conn->refusal != 0)
        reject(conn, conn->refusal, srv_conn_refusal_text(conn->refusal));
    else
        feed(conn);
}
