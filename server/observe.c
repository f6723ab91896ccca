#include "server/h2o_glue.h"

#include <time.h>

#include "server/exchange_run.h"

/* What becomes of exchanges: counted by the loop, without a lock and without printing. */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Bytes of the response's body that the client's connection has taken. */
static uint64_t body_sent(const struct srv_exchange *ex)
{
    return ex->req != NULL ? ex->req->bytes_sent : ex->n_body_out - ex->out[1].len;
}

void srv_observe_begin(struct srv_exchange *ex)
{
    ex->begun_ns = now_ns();
    ex->said = SRV_RESULT_UNKNOWN;
}

void srv_observe_end(struct srv_exchange *ex, bool is_aborted)
{
    const struct srv_role *role = ex->conn->listener->config.handler->role;
    SRV_COUNT(ex->loop, response_bytes, body_sent(ex));
    if (role == NULL)
        return;
    const struct srv_operation *operation =
        ex->operation == 0 ? NULL : &role->operations[ex->operation - 1];
    enum srv_result result = srv_result_of(operation, ex->status, is_aborted, ex->said);
    srv_latency_add(&ex->loop->latency, srv_latency_kind(role->id, ex->operation, result),
                    now_ns() - ex->begun_ns);
}

void srv_exchange_note(struct srv_exchange *ex, unsigned operation)
{
    ex->operation = operation + 1;
}

void srv_exchange_note_result(struct srv_exchange *ex, enum srv_result result)
{
    ex->said = result;
}
