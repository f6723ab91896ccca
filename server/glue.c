#include "server/h2o_glue.h"

#include <string.h>

#include "server/chars.h"
#include "server/check.h"
#include "server/target.h"
#include "server/conn.h"
#include "server/exchange_run.h"
#include "server/gates.h"

/* Of one connection. Streams are at most 100; the rest may be work for some that are gone. */
enum { ID_DIGITS = 16, WORKING_MAX = 128 };

/* ---- The end of an exchange ---- */

bool srv_glue_owes_bytes(const h2o_req_t *req)
{
    return req->res.content_length != SIZE_MAX &&
           !h2o_memis(req->input.method.base, req->input.method.len, H2O_STRLIT("HEAD")) &&
           req->bytes_sent < req->res.content_length;
}

/* Whether the exchange ends with work outstanding, that is without the client having been sent all
 * of its response. */
static bool is_aborted(const struct srv_exchange *ex)
{
    return !ex->is_final || (ex->req != NULL && srv_glue_owes_bytes(ex->req));
}

/* A client that opens requests and drops them makes work for nothing; it costs a connection each
 * time the budget is spent. */
void srv_glue_count_abort(struct srv_conn *conn)
{
    SRV_COUNT(conn->loop, requests_aborted, 1);
    if (conn->is_condemned ||
        srv_allowance_spend(&conn->aborts, srv_conn_aborts, h2o_now(conn->loop->ctx.loop)))
        return;
    SRV_COUNT(conn->loop, abort_floods, 1);
    srv_conn_condemn(conn);
}

void srv_glue_end(struct srv_exchange *ex)
{
    srv_body_in_fini(ex);
    srv_body_out_fini(ex);
    bool aborted = is_aborted(ex);
    srv_observe_end(ex, aborted);
    if (aborted)
        srv_glue_count_abort(ex->conn);
    srv_exchange_keep(ex, 0);
    srv_conn_unkeep(ex->conn, ex->head_kept);
    ex->head_kept = 0;
    if (ex->gone != NULL)
        ex->gone(ex->ctx);
}

/* libh2o releases the request's memory, for whatever reason. */
static void dispose(void *arg)
{
    struct srv_exchange *ex = arg;
    ex->conn->n_streams--;
    srv_glue_end(ex);
}

/* ---- Heads ---- */

static void make_id(struct srv_loop *loop, char id_out[ID_DIGITS + 1])
{
    uint64_t x = loop->id_seed +=
        0x9e3779b97f4a7c15; /* splitmix64: every value once before any comes again */
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    x ^= x >> 31;
    for (int i = 0; i < ID_DIGITS; i++, x <<= 4)
        id_out[i] = "0123456789ABCDEF"[x >> 60];
    id_out[ID_DIGITS] = '\0';
}

/* Copies a checked HTTP/1 head into the exchange's memory. */
static void take_head1(struct srv_exchange *ex, const struct srv_head1 *head, const char *from)
{
    struct srv_request *request = &ex->request;
    char *bytes = h2o_mem_alloc_pool(ex->pool, head->head_len);
    memcpy(bytes, from, head->head_len);
    struct srv_field *fields =
        h2o_mem_alloc_pool(ex->pool, (size_t)head->n_fields * sizeof *fields);
    for (int i = 0; i < head->n_fields; i++) {
        char *name = bytes + head->fields[i].name.off;
        srv_lower(name, name, head->fields[i].name.len);
        fields[i].name = srv_head1_str(bytes, head->fields[i].name);
        fields[i].value = srv_head1_str(bytes, head->fields[i].value);
    }
    request->method_name = srv_head1_str(bytes, head->method);
    request->method = srv_method_of(request->method_name);
    request->path = srv_head1_str(bytes, head->path);
    if (request->path.len == 0)
        request->path = (struct srv_str){"/", 1};
    request->query = srv_head1_str(bytes, head->query);
    request->authority = srv_head1_str(bytes, head->authority);
    request->fields = fields;
    request->n_fields = (size_t)head->n_fields;
    request->has_body = head->body != SRV_HEAD1_BODY_NONE;
    request->content_length =
        head->body == SRV_HEAD1_BODY_CHUNKED ? SRV_LENGTH_UNKNOWN : head->content_length;
    request->version = head->version;
}

static void append_field(struct srv_request *request, struct srv_field *fields, const char *name,
                         struct srv_str value)
{
    fields[request->n_fields].name = (struct srv_str){name, strlen(name)};
    fields[request->n_fields++].value = value;
}

static struct srv_str decimal(h2o_mem_pool_t *pool, uint64_t n)
{
    char *text = h2o_mem_alloc_pool(pool, sizeof H2O_UINT64_LONGEST_STR);
    int len = snprintf(text, sizeof H2O_UINT64_LONGEST_STR, "%llu", (unsigned long long)n);
    return (struct srv_str){text, (size_t)len};
}

/* Finds the authority, which Host stands for where there is no other (RFC 9113, 8.3.1). False when
 * there is none, or the fields name several. */
static bool take_authority(struct srv_exchange *ex)
{
    const h2o_req_t *req = ex->req;
    struct srv_str *authority = &ex->request.authority;
    const h2o_header_t *host = NULL;
    unsigned port = req->input.scheme == &H2O_URL_SCHEME_HTTPS ? 443 : 80;
    for (size_t i = 0; i < req->headers.size; i++) {
        if (req->headers.entries[i].name != &H2O_TOKEN_HOST->buf)
            continue;
        if (host != NULL)
            return false;
        host = &req->headers.entries[i];
    }
    /* Without :authority libh2o puts the configured host in. */
    if (req->input.authority.base != req->hostconf->authority.hostport.base)
        *authority = (struct srv_str){req->input.authority.base, req->input.authority.len};
    else if (host != NULL)
        *authority = (struct srv_str){host->value.base, host->value.len};
    if (!srv_authority_valid(*authority))
        return false;
    if (host == NULL)
        return true;
    struct srv_str value = {host->value.base, host->value.len};
    return srv_authority_valid(value) && srv_authority_same(value, *authority, port);
}

/* Takes over what libh2o has decoded; host, which it may not have, and content-length, which it
 * swallows, are put back. */
static void take_h2(struct srv_exchange *ex)
{
    h2o_req_t *req = ex->req;
    struct srv_request *request = &ex->request;
    struct srv_field *fields =
        h2o_mem_alloc_pool(&req->pool, (req->headers.size + 2) * sizeof *fields);
    request->fields = fields;
    bool has_authority = take_authority(ex);
    if (request->authority.len > 0)
        append_field(request, fields, "host", request->authority);
    for (size_t i = 0; i < req->headers.size; i++) {
        const h2o_header_t *header = &req->headers.entries[i];
        if (header->name == &H2O_TOKEN_HOST->buf)
            continue;
        fields[request->n_fields].name = (struct srv_str){header->name->base, header->name->len};
        fields[request->n_fields++].value = (struct srv_str){header->value.base, header->value.len};
    }
    request->method_name = (struct srv_str){req->input.method.base, req->input.method.len};
    request->method = srv_method_of(request->method_name);
    srv_target_split((struct srv_str){req->input.path.base, req->input.path.len}, &request->path,
                     &request->query);
    request->version = 20;
    srv_gate_h2_bind(ex);
    ex->in.is_failed |= !has_authority;
    if (request->has_body && request->content_length != SRV_LENGTH_UNKNOWN)
        append_field(request, fields, "content-length",
                     decimal(&req->pool, request->content_length));
}

/* Fields that are about an HTTP/1 connection and make an HTTP/2 request malformed (RFC
 * 9113, 8.2.2); libh2o knows the others. */
static bool is_of_connection(struct srv_str name)
{
    return h2o_memis(name.base, name.len, H2O_STRLIT("keep-alive")) ||
           h2o_memis(name.base, name.len, H2O_STRLIT("proxy-connection"));
}

static bool is_token(struct srv_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!srv_is_token((unsigned char)text.base[i]))
            return false;
    return text.len > 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* RFC 9113, 8.2.1: a value neither begins nor ends with white space. */
static bool is_padded(struct srv_str value)
{
    return value.len > 0 && (is_blank(value.base[0]) || is_blank(value.base[value.len - 1]));
}

/* What a head takes in memory: its strings, and each field twice, as libh2o's and as ours. */
static size_t head_bytes(const struct srv_request *request)
{
    size_t bytes = request->path.len + request->query.len + request->authority.len;
    for (size_t i = 0; i < request->n_fields; i++)
        bytes += request->fields[i].name.len + request->fields[i].value.len +
                 2 * sizeof request->fields[i];
    return bytes;
}

/* The status that an HTTP/2 head is answered with before any handler sees it; 0 if it is fine. What
 * libh2o checks itself (order and case of names, connection fields, control characters in values)
 * is not repeated. */
static int check_h2(const struct srv_request *request)
{
    bool is_asterisk =
        request->path.len == 1 && request->path.base[0] == '*' && request->method == SRV_OPTIONS;
    if (request->path.len + request->query.len > SRV_HEAD1_LINE_MAX)
        return 414;
    if (request->n_fields > SRV_HEAD1_FIELDS_MAX)
        return 431;
    if (request->path.len == 0 || (request->path.base[0] != '/' && !is_asterisk) ||
        !srv_target_valid(request->path) ||
        (request->query.len > 0 && !srv_target_valid(request->query)))
        return 400;
    if (!is_token(request->method_name))
        return 400;
    size_t bytes = request->path.len + request->query.len + request->authority.len;
    for (size_t i = 0; i < request->n_fields; i++) {
        const struct srv_field *field = &request->fields[i];
        bytes += field->name.len + field->value.len;
        if (field->name.len == 0 || is_of_connection(field->name) || is_padded(field->value))
            return 400;
    }
    if (bytes > SRV_HEAD1_BYTES_MAX)
        return 431;
    return h2o_memis(request->method_name.base, request->method_name.len, H2O_STRLIT("CONNECT"))
               ? 501
               : 0;
}

/* ---- Starting ---- */

static void answer(struct srv_exchange *ex, int status, const char *text)
{
    const struct srv_field fields[] = {
        {{"Content-Type", 12}, {"text/plain", 10}},
        {{"Retry-After", 11}, {"1", 1}},
    };
    struct srv_response response = {
        .status = status, .fields = fields, .n_fields = status == 503 ? 2 : 1};
    srv_respond_bytes(ex, &response, text, strlen(text));
}

static void init_exchange(struct srv_exchange *ex, struct srv_conn *conn, h2o_mem_pool_t *pool)
{
    memset(ex, 0, sizeof *ex);
    ex->conn = conn;
    ex->loop = conn->loop;
    ex->pool = pool;
    ex->request.is_tls = conn->is_tls;
    srv_observe_begin(ex);
    make_id(conn->loop, ex->request.id);
}

/* Whether the client asks more often than the listener lets it. */
static bool is_over_rate(const struct srv_exchange *ex)
{
    const struct srv_setting *setting = ex->loop->setting;
    if (!setting->has_rates || ex->conn->client == NULL)
        return false;
    const struct srv_setting_entry *entry = srv_setting_find(setting, ex->conn->listener);
    if (entry == NULL || entry->limits.requests_per_s == 0)
        return false;
    uint32_t per_s = entry->limits.requests_per_s, burst = entry->limits.requests_burst;
    return !srv_client_ask(ex->conn->client, h2o_now(ex->loop->ctx.loop) * 1000, per_s,
                           burst > 0 ? burst : per_s);
}

/* Whether there is room for the exchange's head and for an answer. */
static bool keep_head(struct srv_exchange *ex, size_t bytes)
{
    if (srv_conn_is_full(ex->conn) || !srv_conn_keep(ex->conn, bytes))
        return false;
    ex->head_kept = bytes;
    return true;
}

/* Hands the exchange to its handler. */
static void start(struct srv_exchange *ex)
{
    const struct srv_handler *handler = ex->conn->listener->config.handler;
    if (is_over_rate(ex)) {
        SRV_COUNT(ex->loop, requests_over_rate, 1);
        answer(ex, 503, "too many requests of this address");
        return;
    }
    SRV_COUNT(ex->loop, requests, 1);
    handler->start(handler->data, ex);
}

void srv_glue_start_h1(struct srv_conn *conn, const struct srv_head1 *head, const char *bytes)
{
    SRV_CHECK(conn->ex == NULL);
    struct srv_exchange *ex = h2o_mem_alloc_pool(&conn->pool, sizeof *ex);
    init_exchange(ex, conn, &conn->pool);
    conn->ex = ex;
    take_head1(ex, head, bytes);
    srv_body_in_init(ex, head);
    ex->must_close = !head->keep_alive;
    if (keep_head(ex, head->head_len))
        start(ex);
    else
        srv_body_out_refuse(ex);
}

static void reject_h2(struct srv_exchange *ex, int status)
{
    struct srv_conn *conn = ex->conn;
    answer(ex, status, "malformed request");
    srv_gate_h2_malformed(conn);
}

static int on_req(h2o_handler_t *self, h2o_req_t *req)
{
    (void)self;
    struct srv_conn *conn = req->conn->callbacks->get_socket(req->conn)->on_close.data;
    struct srv_exchange *ex = h2o_mem_alloc_shared(&req->pool, sizeof *ex, dispose);
    init_exchange(ex, conn, &req->pool);
    ex->req = req;
    take_h2(ex);
    conn->n_streams++;
    size_t stream_bytes = conn->n_streams > SRV_CONN_STREAMS_FREE ? SRV_CONN_STREAM_BYTES : 0;
    if (!keep_head(ex, head_bytes(&ex->request) + stream_bytes)) {
        srv_body_out_refuse(ex);
        return 0;
    }
    int refusal = conn->refusal != 0   ? conn->refusal
                  : conn->is_condemned ? 503
                  : ex->in.is_failed   ? 400
                                       : check_h2(&ex->request);
    if (refusal == 403 || refusal == 503)
        answer(ex, refusal, srv_conn_refusal_text(refusal));
    else if (refusal != 0)
        reject_h2(ex, refusal);
    else
        start(ex);
    return 0;
}

void srv_glue_register(h2o_hostconf_t *host)
{
    h2o_handler_t *handler = h2o_create_handler(&host->fallback_path, sizeof *handler);
    handler->on_req = on_req;
}

/* ---- What handlers see ---- */

const struct srv_request *srv_exchange_request(const struct srv_exchange *ex)
{
    return &ex->request;
}

struct srv_loop *srv_exchange_loop(const struct srv_exchange *ex)
{
    return ex->loop;
}

struct srv_str srv_exchange_label(const struct srv_exchange *ex)
{
    const struct srv_setting_entry *entry = srv_setting_find(ex->loop->setting, ex->conn->listener);
    bool has_label = entry != NULL && entry->label_len > 0;
    return (struct srv_str){has_label ? entry->label : NULL, has_label ? entry->label_len : 0};
}

struct srv_conn *srv_work_begin(struct srv_exchange *ex)
{
    struct srv_conn *conn = ex->conn;
    if (conn->n_working == WORKING_MAX) {
        SRV_COUNT(conn->loop, work_refused, 1);
        return NULL;
    }
    conn->n_working++;
    srv_conn_ref(conn);
    return conn;
}

void srv_work_end(struct srv_conn *work)
{
    if (work == NULL)
        return;
    work->n_working--;
    srv_conn_unref(work);
}

bool srv_exchange_keep(struct srv_exchange *ex, size_t bytes)
{
    srv_conn_unkeep(ex->conn, ex->work_kept);
    ex->work_kept = 0;
    if (!srv_conn_keep(ex->conn, bytes))
        return false;
    ex->work_kept = bytes;
    return true;
}

void srv_exchange_attach(struct srv_exchange *ex, void *ctx, void (*gone)(void *ctx))
{
    ex->ctx = ctx;
    ex->gone = gone;
}

void *srv_exchange_context(const struct srv_exchange *ex)
{
    return ex->ctx;
}

const struct srv_str *srv_request_field(const struct srv_request *req, const char *name,
                                        size_t *count_out)
{
    const struct srv_str *first = NULL;
    size_t count = 0;
    size_t len = strlen(name);
    for (size_t i = 0; i < req->n_fields; i++) {
        const struct srv_field *field = &req->fields[i];
        if (field->name.len != len || memcmp(field->name.base, name, len) != 0)
            continue;
        if (count++ == 0)
            first = &field->value;
        if (count_out == NULL)
            break;
    }
    if (count_out != NULL)
        *count_out = count;
    return first;
}
