/* An exchange from the front's side: its beginning, its two halves, its end.
 *
 * Threads: the exchange's loop. Blocks: never.
 *
 *   gate_h1.c | libh2o -> glue.c -> body_in.c | h2_body.c <-> handler -> body_out.c -> out_h1.c |
 *   libh2o -> glue.c
 */
#pragma once

#include <stdbool.h>

#include "server/exchange.h"

struct srv_conn;
struct srv_head1;
struct st_h2o_hostconf_t;
struct st_h2o_iovec_t;
struct st_h2o_req_t;

/* ---- glue.c ---- */

/* Registers the one h2o handler there is, which HTTP/2 requests come to. */
void srv_glue_register(struct st_h2o_hostconf_t *host);
/* HTTP/1: starts the request that the valid `head` at `bytes` is, in the connection's pool. */
void srv_glue_start_h1(struct srv_conn *conn, const struct srv_head1 *head, const char *bytes);
/* Counts a request that its client has abandoned; too many cost the connection. */
void srv_glue_count_abort(struct srv_conn *conn);
/* Whether the content of an HTTP/2 response that has begun was not handed to the client in full. */
bool srv_glue_owes_bytes(const struct st_h2o_req_t *req);
/* Ends an exchange; who owns its memory may then release it. */
void srv_glue_end(struct srv_exchange *ex);

/* ---- observe.c ---- */

/* What becomes of an exchange, for metrics and log. */
void srv_observe_begin(struct srv_exchange *ex);
/* The response begins; for exchanges that are logged. */
void srv_observe_answer(struct srv_exchange *ex);
void srv_observe_end(struct srv_exchange *ex, bool is_aborted);
/* A head that never became an exchange was answered. */
void srv_observe_rejected(struct srv_conn *conn, int status);

/* ---- body_in.c ---- */

void srv_body_in_init(struct srv_exchange *ex, const struct srv_head1 *head);
void srv_body_in_fini(struct srv_exchange *ex);
/* The response has begun: the handler is told nothing more. */
void srv_body_in_stop(struct srv_exchange *ex);
/* Reports an event to the handler, once; takes in->buf along with DATA and END. */
void srv_body_in_deliver(struct srv_exchange *ex, enum srv_body_event event);
/* Sets or clears the stall timer. */
void srv_body_in_arm(struct srv_exchange *ex);
void srv_body_in_disarm(struct srv_exchange *ex);
/* Whether what is left of an unread body is short enough to be dropped for the sake of the
 * connection. */
bool srv_body_in_is_short(const struct srv_exchange *ex);
/* Reads the rest of the body and drops it, then calls srv_out1_finish. */
void srv_body_in_discard(struct srv_exchange *ex);

/* ---- body_out.c ---- */

/* Answers 503 without a byte of a body, which might have to be kept. */
void srv_body_out_refuse(struct srv_exchange *ex);
/* Has `bytes` of the response's body counted; false when there is no room for them. */
bool srv_body_out_keep(struct srv_exchange *ex, size_t bytes);
void srv_body_out_fini(struct srv_exchange *ex);
/* Sets or clears the stall timer. */
void srv_body_out_arm(struct srv_exchange *ex);
void srv_body_out_disarm(struct srv_exchange *ex);
/* Sends the next of what the source has; what was handed over before must have been sent. */
void srv_body_out_more(struct srv_exchange *ex);
/* The connection may be written to again after an interim response. */
void srv_body_out_resume(struct srv_exchange *ex);

/* ---- out_h1.c ---- */

/* Writes the response's head to memory, with the bytes of a body that go with it. */
void srv_out1_head(struct srv_exchange *ex, const struct srv_response *response,
                   uint64_t announced_length);
/* Writes what waits of interim responses, unless some are being written. */
void srv_out1_interim(struct srv_exchange *ex);
/* Puts the frame of a chunk of `len` bytes (0: the last) before what is sent next. A piece is below
 * 4 GiB. */
void srv_out1_frame(struct srv_exchange *ex, size_t len);
/* Sends what there is of the head, then `piece` (NULL: nothing), which must stay as it is until
 * asked for more. */
void srv_out1_send(struct srv_exchange *ex, const struct st_h2o_iovec_t *piece);
/* Copies what is not sent of the piece, so that its owner may have it back. */
void srv_out1_own(struct srv_exchange *ex);
/* Has the connection closed, with the response cut short, once no handler is on the stack. */
void srv_out1_break(struct srv_exchange *ex);
/* Goes on if something was sent that nobody has noticed; false if there is nothing to do. The
 * exchange may be over then. */
bool srv_out1_look(struct srv_exchange *ex);
/* The client has its answer and is done sending: closes the connection, or goes on with it. */
void srv_out1_finish(struct srv_exchange *ex, bool may_keep);

/* ---- h2_head.c ---- */

/* Keeps the response's head with libh2o's request. */
void srv_h2_head_set(struct srv_exchange *ex, const struct srv_response *response,
                     uint64_t announced_length);
