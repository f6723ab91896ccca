/* The gates: what makes requests of a connection's input. HTTP/1 is spoken here; HTTP/2 by libh2o,
 * behind a filter.
 *
 * Threads: the connection's loop. Blocks: never.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct srv_conn;
struct srv_exchange;

/* Speaks HTTP/1 or HTTP/2 on a fresh connection whose first bytes are the rest. */
void srv_gate_h1_start(struct srv_conn *conn);
void srv_gate_h2_start(struct srv_conn *conn);
/* The same where the filter cannot be put in place (h2_probe.h): libh2o reads by itself, and keeps
 * bodies up to SRV_FRONT_H2_BUFFERED until they are complete. */
void srv_gate_h2_start_buffered(struct srv_conn *conn);
/* Closes the connection if it has no request, soon if it has begun with one. */
void srv_gate_h1_drain(struct srv_conn *conn);
/* Closes the connection and ends its exchange; no handler may be on the stack. */
void srv_gate_h1_close(struct srv_conn *conn);
/* The exchange has been answered in full, and the connection may be kept: goes on to the next. */
void srv_gate_h1_next(struct srv_conn *conn);
/* Finds the body the filter holds for a request, and what it knows of its length. */
void srv_gate_h2_bind(struct srv_exchange *ex);
/* The exchange wants the next buffer; `on_body` is set. */
void srv_gate_h2_want(struct srv_exchange *ex);
/* The exchange is over. */
void srv_gate_h2_unbind(struct srv_exchange *ex);
void srv_gate_h2_free(struct srv_conn *conn);
/* What has been received of the exchange's body is no longer wanted. */
void srv_gate_h2_stop(struct srv_exchange *ex);
/* Bytes of a response are about to be sent: the client may answer with as many updates of its
 * window as they ask for. */
void srv_gate_h2_sending(struct srv_conn *conn, size_t n_bytes);
/* Whether fewer than `least` bytes of the exchange's response were sent since it was last asked,
 * for want of room that only the client can give. */
bool srv_gate_h2_is_blocked(struct srv_exchange *ex, uint64_t least);
/* A head was malformed, and is answered: counts it, and the connection has so many of them. */
void srv_gate_h2_malformed(struct srv_conn *conn);
/* To be called after libh2o has been given something to write. */
void srv_gate_h2_check(struct srv_conn *conn);
