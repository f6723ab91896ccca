#include "server/h2o_glue.h"

#include <string.h>
#include <unistd.h>

#include "server/check.h"
#include "server/conn.h"
#include "server/gates.h"
#include "server/h2_gate.h"
#include "server/linger.h"

enum { SHARE_STEP = 64 << 10 /* smallest buffer */ };

const struct srv_allowance_rate srv_conn_aborts = {.burst = 200, .per_s = 20};

/* ---- Life ---- */

const char *srv_conn_refusal_text(int status)
{
    return status == 400   ? "this port speaks TLS: ask with https"
           : status == 403 ? "this address may not connect"
                           : "too many connections";
}

_Atomic size_t *srv_conn_share(struct srv_conn *conn)
{
    return conn->client == NULL ? NULL : &conn->client->buffered_bytes;
}

void srv_conn_count_share(struct srv_conn *conn)
{
    size_t limit = srv_buf_pool_share_bytes(conn->loop->env->bufs);
    if (conn->client != NULL &&
        atomic_load_explicit(&conn->client->buffered_bytes, memory_order_relaxed) + SHARE_STEP >
            limit)
        SRV_COUNT(conn->loop, bodies_over_share, 1);
}

/* Whether memory for the connection is counted; the admin's clients are to be answered when nobody
 * else is. */
static bool is_counted(const struct srv_conn *conn, size_t bytes)
{
    return bytes > SRV_CONN_KEPT_FREE && !conn->listener->config.is_admin;
}

bool srv_conn_keep(struct srv_conn *conn, size_t bytes)
{
    if (!is_counted(conn, bytes))
        return true;
    if (!srv_buf_reserve(conn->loop->env->bufs, srv_conn_share(conn), bytes)) {
        SRV_COUNT(conn->loop, kept_refused, 1);
        return false;
    }
    conn->kept_bytes += bytes;
    SRV_COUNT(conn->loop, kept_bytes, bytes);
    return true;
}

void srv_conn_unkeep(struct srv_conn *conn, size_t bytes)
{
    if (!is_counted(conn, bytes))
        return;
    SRV_CHECK(conn->kept_bytes >= bytes);
    conn->kept_bytes -= bytes;
    SRV_COUNT(conn->loop, kept_bytes, -bytes);
    srv_buf_unreserve(conn->loop->env->bufs, srv_conn_share(conn), bytes);
}

bool srv_conn_keep_head(struct srv_conn *conn, size_t bytes)
{
    if (bytes == conn->head_kept)
        return true;
    srv_conn_unkeep(conn, conn->head_kept);
    conn->head_kept = 0;
    if (!srv_conn_keep(conn, bytes))
        return false;
    conn->head_kept = bytes;
    return true;
}

bool srv_conn_is_full(const struct srv_conn *conn)
{
    if (conn->kept_bytes < SRV_CONN_KEPT_MAX)
        return false;
    SRV_COUNT(conn->loop, kept_refused, 1);
    return true;
}

bool srv_conn_has_room(struct srv_conn *conn)
{
    if (conn->n_streams < SRV_CONN_STREAMS_FREE)
        return true;
    if (srv_conn_is_full(conn) || !srv_conn_keep(conn, SRV_CONN_STREAM_BYTES))
        return false;
    srv_conn_unkeep(conn, SRV_CONN_STREAM_BYTES);
    return true;
}

void srv_conn_linger(struct srv_conn *conn)
{
    if (conn->linger_fd == -1)
        conn->linger_fd = dup(h2o_socket_get_fd(conn->sock));
}

void srv_conn_ref(struct srv_conn *conn)
{
    conn->refs++;
}

void srv_conn_unref(struct srv_conn *conn)
{
    if (--conn->refs > 0)
        return;
    free(conn->partial);
    free(conn->answer);
    srv_listener_unref(conn->listener);
    free(conn);
}

void srv_conn_queue_again(struct srv_conn *conn)
{
    if (conn->is_queued_after)
        return;
    conn->is_queued_after = true;
    srv_conn_ref(conn);
    conn->after_next = conn->loop->after;
    conn->loop->after = conn;
}

void srv_conn_queue_after(struct srv_conn *conn)
{
    conn->loop->must_not_sleep = true;
    srv_conn_queue_again(conn);
}

void srv_conn_set_timer(struct srv_conn *conn, enum srv_timeout which, h2o_timeout_cb cb)
{
    h2o_timeout_unlink(&conn->timer);
    conn->timer.cb = cb;
    h2o_timeout_link(conn->loop->ctx.loop, &conn->loop->timeouts[which], &conn->timer);
}

void srv_conn_clear_timer(struct srv_conn *conn)
{
    h2o_timeout_unlink(&conn->timer);
}

void srv_conn_shutdown(struct srv_conn *conn)
{
    if (conn->sock != NULL)
        shutdown(h2o_socket_get_fd(conn->sock), SHUT_RDWR);
}

void srv_conn_condemn(struct srv_conn *conn)
{
    if (conn->is_condemned)
        return;
    conn->is_condemned = true;
    SRV_COUNT(conn->loop, connections_condemned, 1);
    if (conn->h2 != NULL)
        srv_h2_fail(conn, SRV_H2_ENHANCE_YOUR_CALM);
    else
        srv_conn_shutdown(conn);
}

/* The socket is gone, whoever closed it. */
static void on_close(void *arg)
{
    struct srv_conn *conn = arg;
    struct srv_loop *loop = conn->loop;
    conn->sock = NULL;
    srv_conn_clear_timer(conn);
    srv_conn_keep_head(conn, 0);
    srv_linger_start(loop, conn->linger_fd);
    if (conn->h2 != NULL)
        srv_gate_h2_free(conn);
    if (conn->held != NULL)
        h2o_buffer_dispose(&conn->held);
    conn->rest_len = 0;
    h2o_linklist_unlink(&conn->link);
    if (h2o_linklist_is_linked(&conn->refused_link))
        h2o_linklist_unlink(&conn->refused_link);
    loop->n_conns--;
    loop->n_admin -= conn->listener->config.is_admin;
    SRV_COUNT(loop, connections_open, -1);
    if (!conn->listener->config.is_admin)
        atomic_fetch_sub_explicit(conn->is_refused ? &loop->env->n_refused : &loop->env->n_conns, 1,
                                  memory_order_relaxed);
    if (conn->is_refused && conn->client != NULL)
        atomic_fetch_sub_explicit(&conn->client->n_refused, 1, memory_order_relaxed);
    srv_clients_leave(loop->env->clients, conn->client);
    srv_conn_unref(conn);
}

struct srv_conn *srv_conn_create(struct srv_loop *loop, struct srv_listener *listener, bool is_tls,
                                 h2o_socket_t *sock)
{
    struct srv_conn *conn = h2o_mem_alloc(sizeof *conn);
    *conn = (struct srv_conn){.sock = sock,
                              .loop = loop,
                              .listener = listener,
                              .refs = 1,
                              .is_tls = is_tls,
                              .linger_fd = -1};
    srv_listener_ref(listener);
    srv_allowance_init(&conn->aborts, srv_conn_aborts, h2o_now(loop->ctx.loop));
    sock->data = conn;
    sock->on_close.cb = on_close;
    sock->on_close.data = conn;
    h2o_linklist_insert(&loop->conns, &conn->link);
    loop->n_conns++;
    loop->n_admin += listener->config.is_admin;
    SRV_COUNT(loop, connections_open, 1);
    SRV_COUNT(loop, connections_accepted, 1);
    return conn;
}

/* ---- Input that waits ---- */

void srv_conn_consume(struct srv_conn *conn, size_t n)
{
    SRV_CHECK(n <= conn->rest_len);
    conn->rest += n;
    conn->rest_len -= n;
}

/* Whether the rest lies in memory of its own. */
static bool rest_is_held(const struct srv_conn *conn)
{
    return conn->held != NULL && conn->rest >= conn->held->bytes &&
           conn->rest <= conn->held->bytes + conn->held->size;
}

void srv_conn_settle(struct srv_conn *conn)
{
    if (conn->rest_len == 0) {
        if (conn->held != NULL)
            h2o_buffer_dispose(&conn->held);
        return;
    }
    if (rest_is_held(conn))
        return;
    /* Input is only received once what was held is used up, so nothing in there is wanted. */
    if (conn->held != NULL)
        h2o_buffer_dispose(&conn->held);
    h2o_buffer_init(&conn->held, &h2o_socket_buffer_prototype);
    h2o_iovec_t to = h2o_buffer_reserve(&conn->held, conn->rest_len);
    memcpy(to.base, conn->rest, conn->rest_len);
    conn->held->size = conn->rest_len;
    conn->rest = conn->held->bytes;
}

void srv_conn_take_tls(struct srv_conn *conn)
{
    h2o_buffer_t *input = conn->sock->input;
    size_t n = input->size;
    if (n == 0)
        return;
    if (conn->rest_len == 0) {
        srv_conn_settle(conn);
        conn->held = input;
        conn->rest = input->bytes;
        conn->rest_len = n;
        h2o_buffer_init(&conn->sock->input, &h2o_socket_buffer_prototype);
        return;
    }
    h2o_buffer_consume(&conn->held, (size_t)(conn->rest - conn->held->bytes));
    h2o_iovec_t to = h2o_buffer_reserve(&conn->held, n);
    memcpy(to.base, input->bytes, n);
    conn->held->size += n;
    conn->rest = conn->held->bytes;
    conn->rest_len = conn->held->size;
    h2o_buffer_consume(&conn->sock->input, n);
}
