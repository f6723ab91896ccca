#include "server/h2o_glue.h"

#include <errno.h>
#include <string.h>

#include "server/check.h"
#include "server/status.h"
#include "server/conn.h"
#include "server/gates.h"

/* Every head is checked here and kept here. libh2o is given one of these in its place: it then has
 * nothing to misread, runs the handler before any body byte, and has no body to buffer. */
static const char STAND_IN_GET[] = "GET / HTTP/1.1\r\n\r\n";
static const char STAND_IN_HEAD[] = "HEAD / HTTP/1.1\r\n\r\n";

enum { REJECT_LINGER_BYTES = 1 << 20, ANSWER_BYTES = 512 };

static void on_readable(h2o_socket_t *sock, const char *err);

/* Has libh2o close the connection. Nothing of it may be used afterwards but what a reference keeps.
 */
static void close_conn(struct srv_conn *conn)
{
    conn->h2o_read(conn->sock, h2o_socket_error_closed);
}

void srv_gate_h1_put_stand_in(struct srv_conn *conn)
{
    const char *stand_in =
        conn->stand_in_len == sizeof STAND_IN_HEAD - 1 ? STAND_IN_HEAD : STAND_IN_GET;
    h2o_iovec_t to = h2o_buffer_reserve(&conn->sock->input, conn->stand_in_len);
    memcpy(to.base, stand_in, conn->stand_in_len);
    conn->sock->input->size += conn->stand_in_len;
}

/* ---- Rejecting ---- */

static void on_linger_timeout(h2o_timeout_entry_t *entry)
{
    struct srv_conn *conn = H2O_STRUCT_FROM_MEMBER(struct srv_conn, timer, entry);
    close_conn(conn);
}

/* Drops one batch of input; false at its end. */
static bool linger_receive(struct srv_conn *conn)
{
    size_t n;
    if (conn->is_tls) {
        n = conn->sock->input->size;
        if (n == 0)
            return true;
        h2o_buffer_consume(&conn->sock->input, n);
    } else {
        ssize_t got = recv(h2o_socket_get_fd(conn->sock), conn->loop->scratch, SRV_SCRATCH_BYTES,
                           MSG_DONTWAIT);
        if (got == -1 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (got <= 0)
            return false;
        n = (size_t)got;
    }
    if (n >= conn->linger_left)
        return false;
    conn->linger_left -= n;
    return true;
}

static void on_linger(h2o_socket_t *sock, const char *err)
{
    struct srv_conn *conn = sock->on_close.data;
    if (err == NULL && linger_receive(conn))
        return;
    close_conn(conn);
}

/* The answer is out. A close with unread input would reset the connection and could take the answer
 * with it, so the client gets a moment to read it and to stop sending. */
static void on_reject_written(h2o_socket_t *sock, const char *err)
{
    struct srv_conn *conn = sock->on_close.data;
    if (err != NULL) {
        close_conn(conn);
        return;
    }
    if (!conn->is_tls)
        shutdown(h2o_socket_get_fd(sock), SHUT_WR);
    conn->linger_left = REJECT_LINGER_BYTES;
    srv_conn_set_timer(conn, SRV_TIMEOUT_LINGER, on_linger_timeout);
    h2o_socket_read_start(sock, on_linger);
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
    srv_conn_clear_timer(conn);
    conn->rest_len = 0;
    srv_conn_settle(conn);
    h2o_socket_read_stop(conn->sock);
    h2o_iovec_t out = {conn->answer, (size_t)n};
    h2o_socket_write(conn->sock, &out, 1, on_reject_written);
}

/* ---- Heads ---- */

static void on_head_timeout(h2o_timeout_entry_t *entry)
{
    close_conn(H2O_STRUCT_FROM_MEMBER(struct srv_conn, timer, entry));
}

/* Keeps the state of an unfinished head with the connection. */
static void keep_partial(struct srv_conn *conn)
{
    if (conn->partial == NULL) {
        conn->partial = h2o_mem_alloc(sizeof *conn->partial);
        *conn->partial = conn->loop->head;
        srv_conn_set_timer(conn, SRV_TIMEOUT_HEAD, on_head_timeout);
    }
    srv_conn_settle(conn);
}

/* Hands a complete head to the glue, by way of libh2o. */
static void forward(struct srv_conn *conn, struct srv_head1 *head)
{
    struct srv_loop *loop = conn->loop;
    const char *bytes = conn->rest;
    srv_conn_clear_timer(conn);
    srv_conn_consume(conn, head->head_len);
    bool is_head = head->method.len == 4 && memcmp(bytes + head->method.off, "HEAD", 4) == 0;
    conn->stand_in_len = is_head ? sizeof STAND_IN_HEAD - 1 : sizeof STAND_IN_GET - 1;
    srv_gate_h1_put_stand_in(conn);
    loop->fed = (struct srv_fed_head){head, bytes};
    srv_conn_ref(conn);
    conn->h2o_read(conn->sock, NULL);
    loop->fed = (struct srv_fed_head){NULL, NULL};
    free(conn->partial);
    conn->partial = NULL;
    if (conn->sock != NULL)
        srv_conn_settle(conn);
    srv_conn_unref(conn);
}

/* Looks for a head in the rest. */
static void feed(struct srv_conn *conn)
{
    struct srv_head1 *head = conn->partial;
    if (conn->rest_len == 0)
        return;
    if (head == NULL) {
        head = &conn->loop->head;
        srv_head1_init(head);
    }
    switch (srv_head1_feed(head, conn->rest, conn->rest_len)) {
    case SRV_HEAD1_MORE: keep_partial(conn); break;
    case SRV_HEAD1_REJECTED: reject(conn, head->status, head->reason); break;
    case SRV_HEAD1_DONE: forward(conn, head); break;
    }
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
            close_conn(conn);
        return false;
    }
    if (conn->rest_len > 0)
        conn->held->size += (size_t)n;
    else
        conn->rest = to;
    conn->rest_len += (size_t)n;
    return true;
}

/* Stands in front of libh2o's reader while no request is being answered. */
static void on_readable(h2o_socket_t *sock, const char *err)
{
    struct srv_conn *conn = sock->on_close.data;
    if (err != NULL) {
        conn->h2o_read(sock, err);
        return;
    }
    if (conn->is_tls)
        srv_conn_take_tls(conn, 0);
    else if (!receive(conn))
        return;
    feed(conn);
}

/* libh2o has answered a request and put its own reader back; the gate goes in front of it again. */
static enum srv_after rearm(struct srv_conn *conn)
{
    if (conn->sock->_cb.read != conn->h2o_read)
        return SRV_AFTER_IDLE;
    conn->sock->_cb.read = on_readable;
    if (conn->loop->state != SRV_LOOP_RUN && conn->rest_len == 0) {
        close_conn(conn);
        return SRV_AFTER_ACTED;
    }
    if (conn->rest_len == 0)
        return SRV_AFTER_IDLE;
    feed(conn);
    return SRV_AFTER_ACTED;
}

void srv_gate_h1_start(struct srv_conn *conn)
{
    h2o_socket_t *sock = conn->sock;
    struct timeval now = *h2o_get_timestamp(&conn->loop->ctx, NULL, NULL);
    h2o_http1_accept(&conn->loop->accept, sock, now);
    conn->after = rearm;
    conn->h2o_read = sock->_cb.read;
    sock->_cb.read = on_readable;
    if (conn->is_refused)
        reject(conn, 503, "too many connections");
    else
        feed(conn);
}

/* ---- Ending ---- */

void srv_gate_h1_drain(struct srv_conn *conn)
{
    bool is_silent = conn->h2o_read == NULL && !conn->is_tls; /* has not said a byte yet */
    if (conn->sock == NULL || conn->rest_len > 0)
        return;
    if (is_silent)
        h2o_socket_close(conn->sock);
    else if (conn->sock->_cb.read == on_readable)
        close_conn(conn);
}

void srv_gate_h1_cut(struct srv_conn *conn)
{
    srv_conn_ref(conn);
    /* libh2o may have forgotten a connection whose TLS has yet to say goodbye. It has not while it
     * reads or answers. */
    if (conn->h2o_read == NULL)
        h2o_socket_close(conn->sock);
    else if (conn->ex != NULL || conn->sock->_cb.read != NULL)
        close_conn(conn);
    srv_conn_shutdown(conn);
    srv_conn_unref(conn);
}
