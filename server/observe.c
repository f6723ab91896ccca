#include "server/h2o_glue.h"

#include <netdb.h>
#include <string.h>
#include <time.h>

#include "server/access_log.h"
#include "server/exchange_run.h"

/* What becomes of exchanges: counted by the loop, without a lock and without printing. */

/* ---- Times ---- */

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

static bool is_logging(const struct srv_loop *loop)
{
    return loop->env->access_log != NULL && srv_access_log_on(loop->env->access_log);
}

void srv_observe_answer(struct srv_exchange *ex, int status)
{
    ex->status = status;
    if (is_logging(ex->loop))
        ex->first_ns = now_ns();
}

/* ---- The access log ---- */

/* The client's address as text, found out once for a connection. */
__attribute__((noinline, cold)) static const char *peer(struct srv_conn *conn)
{
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    if (conn->peer[0] != '\0' || conn->sock == NULL)
        return conn->peer[0] != '\0' ? conn->peer : "-";
    memset(&from, 0, sizeof from);
    if (getpeername(h2o_socket_get_fd(conn->sock), (struct sockaddr *)&from, &len) == 0 &&
        (from.ss_family == AF_INET || from.ss_family == AF_INET6) &&
        getnameinfo((struct sockaddr *)&from, len, conn->peer, sizeof conn->peer, NULL, 0,
                    NI_NUMERICHOST) == 0)
        return conn->peer;
    strcpy(conn->peer, from.ss_family == AF_UNIX ? "unix" : "-");
    return conn->peer;
}

void srv_observe_begin(struct srv_exchange *ex)
{
    ex->begun_ns = now_ns();
    ex->said = SRV_RESULT_UNKNOWN;
    if (is_logging(ex->loop))
        peer(ex->conn); /* at the end the socket may be gone */
}

static struct srv_access_bytes field(const struct srv_request *request, const char *name)
{
    const struct srv_str *value = srv_request_field(request, name, NULL);
    return value == NULL ? (struct srv_access_bytes){0}
                         : (struct srv_access_bytes){value->base, value->len};
}

/* Not inline: most requests are not logged, and shall not make room for it. */
__attribute__((noinline, cold)) static void log_exchange(struct srv_exchange *ex,
                                                         const struct srv_role *role,
                                                         const struct srv_operation *operation,
                                                         enum srv_result result, uint64_t ended_ns)
{
    const struct srv_request *request = &ex->request;
    const struct srv_access_entry entry = {
        .ended_ms = (int64_t)h2o_now(ex->loop->ctx.loop),
        .client = peer(ex->conn),
        .user = ex->user,
        .method = {request->method_name.base, request->method_name.len},
        .path = {request->path.base, request->path.len},
        .query = {request->query.base, request->query.len},
        .host = {request->authority.base, request->authority.len},
        .referer = field(request, "referer"),
        .agent = field(request, "user-agent"),
        .version = request->version,
        .is_tls = request->is_tls,
        .status = ex->status,
        .result = srv_result_name(result),
        .role = role == NULL ? "-" : role->name,
        .operation = operation == NULL ? "-" : operation->name,
        .id = request->id,
        .bytes_in = ex->n_body_in,
        .bytes_out = body_sent(ex),
        .first_byte_us = ex->first_ns == 0 ? 0 : (ex->first_ns - ex->begun_ns) / 1000,
        .total_us = (ended_ns - ex->begun_ns) / 1000,
    };
    srv_access_log_add(ex->loop->env->access_log, ex->loop->index, &entry);
}

void srv_observe_rejected(struct srv_conn *conn, int status)
{
    if (!is_logging(conn->loop))
        return;
    const struct srv_access_entry entry = {
        .ended_ms = (int64_t)h2o_now(conn->loop->ctx.loop),
        .client = peer(conn),
        .version = 11,
        .is_tls = conn->is_tls,
        .status = status,
        .result = srv_result_name(srv_result_of(NULL, status, false, SRV_RESULT_UNKNOWN)),
        .role = "-",
        .operation = "-",
        .id = "-",
    };
    srv_access_log_add(conn->loop->env->access_log, conn->loop->index, &entry);
}

/* ---- The end ---- */

void srv_observe_end(struct srv_exchange *ex, bool is_aborted)
{
    const struct srv_role *role = ex->conn->listener->config.handler->role;
    const struct srv_operation *operation =
        role == NULL || ex->operation == 0 ? NULL : &role->operations[ex->operation - 1];
    enum srv_result result = srv_result_of(operation, ex->status, is_aborted, ex->said);
    uint64_t ended_ns = now_ns();
    SRV_COUNT(ex->loop, response_bytes, body_sent(ex));
    if (role != NULL)
        srv_latency_add(&ex->loop->latency, srv_latency_kind(role->id, ex->operation, result),
                        ended_ns - ex->begun_ns);
    /* Not what watches us every few seconds. */
    if (is_logging(ex->loop) && !ex->conn->listener->config.is_admin)
        log_exchange(ex, role, operation, result, ended_ns);
}

void srv_exchange_note_user(struct srv_exchange *ex, struct srv_str user)
{
    if (!is_logging(ex->loop))
        return;
    char *copy = h2o_mem_alloc_pool(ex->pool, user.len + 1);
    memcpy(copy, user.base, user.len);
    copy[user.len] = '\0';
    ex->user = copy;
}

void srv_exchange_note(struct srv_exchange *ex, unsigned operation)
{
    ex->operation = operation + 1;
}

void srv_exchange_note_result(struct srv_exchange *ex, enum srv_result result)
{
    ex->said = result;
}
