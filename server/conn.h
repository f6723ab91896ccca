/* A connection's life and its input that waits, for the files that share h2o_glue.h.
 *
 * Owns:    a reference keeps the struct, not the socket: conn->sock is NULL once that has closed.
 * Threads: the connection's loop. Blocks: never.
 */
#pragma once

#include "server/h2o_glue.h"

enum {
    SRV_CONN_KEPT_MAX = 4 << 20, /* what goes beyond is the last answer that was let in */
    SRV_CONN_KEPT_FREE = 1 << 10,
    /* HTTP/2: what a stream takes that is not counted elsewhere, and how many of them, and how much
     * output of a connection, are part of what the connection costs. */
    SRV_CONN_STREAM_BYTES = 6 << 10,
    SRV_CONN_STREAMS_FREE = 8,
    SRV_CONN_OUTPUT_FREE = 160 << 10,
};

/* Requests that one connection may abandon. */
extern const struct srv_allowance_rate srv_conn_aborts;

/* What a connection that is refused is told. */
const char *srv_conn_refusal_text(int status);
/* The share of the receive buffers that its client has, or NULL. */
_Atomic size_t *srv_conn_share(struct srv_conn *conn);
/* No buffer could be had: counts it if the share was the reason. */
void srv_conn_count_share(struct srv_conn *conn);
/* Counts memory that the client makes us hold beside buffers: answers it has not taken yet, long
 * heads. False, and counted as a refusal, when the budget of buffers has no room; up to
 * SRV_CONN_KEPT_FREE bytes at a time are part of what any request costs, and not counted.
 * srv_conn_unkeep takes the same number back. */
bool srv_conn_keep(struct srv_conn *conn, size_t bytes);
void srv_conn_unkeep(struct srv_conn *conn, size_t bytes);
/* Counts an unfinished head or frame of `bytes`, instead of what was counted for it before; false,
 * with nothing counted, when there is no room. */
bool srv_conn_keep_head(struct srv_conn *conn, size_t bytes);
/* HTTP/2: whether another stream may begin; counts that it may not. */
bool srv_conn_has_room(struct srv_conn *conn);
/* Whether the connection has SRV_CONN_KEPT_MAX, so that it gets no more answers; counts that it was
 * asked for one. */
bool srv_conn_is_full(const struct srv_conn *conn);
/* Has the socket linger once it is closed (linger.h). */
void srv_conn_linger(struct srv_conn *conn);
/* A connection on an accepted socket. */
struct srv_conn *srv_conn_create(struct srv_loop *loop, struct srv_listener *listener, bool is_tls,
                                 h2o_socket_t *sock);
void srv_conn_ref(struct srv_conn *conn);
void srv_conn_unref(struct srv_conn *conn);
/* Has conn->after called when the present round of events is over; srv_conn_queue_again: after the
 * next one, whenever that is. */
void srv_conn_queue_after(struct srv_conn *conn);
void srv_conn_queue_again(struct srv_conn *conn);
/* Sets or clears the connection's timer. */
void srv_conn_set_timer(struct srv_conn *conn, enum srv_timeout which, h2o_timeout_cb cb);
void srv_conn_clear_timer(struct srv_conn *conn);
/* Ends the connection at the socket; whoever reads or writes then finds it closed. */
void srv_conn_shutdown(struct srv_conn *conn);
/* The same for a client that makes work for nothing; counts it, and nothing more is taken from it.
 */
void srv_conn_condemn(struct srv_conn *conn);
/* Moves what TLS has decrypted to the connection's rest, which must not be borrowed. */
void srv_conn_take_tls(struct srv_conn *conn);
/* Drops the first `n` bytes of the rest. */
void srv_conn_consume(struct srv_conn *conn, size_t n);
/* Copies a borrowed rest, so that the scratch may be used again. */
void srv_conn_settle(struct srv_conn *conn);
