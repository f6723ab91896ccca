/* An exchange from the front's side: its beginning, its two halves, its end.
 *
 * Threads: the exchange's loop. Blocks: never.
 *
 *   on_req [glue.c] -> body_in.c | h2_body.c <-> handler -> body_out.c -> dispose [glue.c]
 */
#pragma once

#include <stdbool.h>

#include "server/exchange.h"

struct srv_head1;
struct st_h2o_hostconf_t;

/* ---- glue.c ---- */

/* Registers the one h2o handler there is. */
void srv_glue_register(struct st_h2o_hostconf_t *host);

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
/* Reads the rest of the body and drops it, then calls srv_body_out_finish. */
void srv_body_in_discard(struct srv_exchange *ex);

/* ---- body_out.c ---- */

void srv_body_out_fini(struct srv_exchange *ex);
/* HTTP/1: the client is done sending; hands the connection back to libh2o. */
void srv_body_out_finish(struct srv_exchange *ex, bool may_keep);
/* The connection may be written to again after a 100 Continue. */
void srv_body_out_resume(struct srv_exchange *ex);
