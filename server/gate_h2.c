#include "server/h2o_glue.h"

#include <string.h>

void srv_gate_h2_start(struct srv_conn *conn)
{
    h2o_socket_t *sock = conn->sock;
    h2o_iovec_t to = h2o_buffer_reserve(&sock->input, conn->rest_len);
    memcpy(to.base, conn->rest, conn->rest_len);
    sock->input->size += conn->rest_len;
    conn->rest_len = 0;
    srv_conn_settle(conn);
    h2o_socket_dont_read(sock, 0);
    struct timeval now = *h2o_get_timestamp(&conn->loop->ctx, NULL, NULL);
    h2o_http2_accept(&conn->loop->accept, sock, now);
}
void srv_gate_h2_bind(struct srv_exchange *ex) { ex->in.is_ended = true; }
void srv_gate_h2_want(struct srv_exchange *ex) { srv_body_in_deliver(ex, SRV_BODY_END); }
void srv_gate_h2_unbind(struct srv_exchange *ex) { (void)ex; }
void srv_gate_h2_free(struct srv_conn *conn) { (void)conn; }
