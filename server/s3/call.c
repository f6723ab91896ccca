#include "server/s3/call.h"

#include <string.h>

#include "server/check.h"
#include "server/loop.h"
#include "server/xml.h"

/* The route holds the names itself, so that the table may change afterwards. */
static void route_by_host(struct srv_s3_call *call)
{
    struct srv_s3 *s3 = call->s3;
    char scratch[SRV_S3_HOST_MAX];

    pthread_rwlock_rdlock(&s3->access_lock);
    struct srv_str bucket = srv_s3_hosts_bucket(&s3->hosts, call->req->authority,
                                                srv_exchange_label(call->ex), scratch);
    srv_s3_route(call->req, bucket, &call->route);
    pthread_rwlock_unlock(&s3->access_lock);
}

void srv_s3_call_init(struct srv_s3_call *call, struct srv_s3 *s3, struct srv_exchange *ex)
{
    call->s3 = s3;
    call->ex = ex;
    call->req = srv_exchange_request(ex);
    if (atomic_load_explicit(&s3->has_hosts, memory_order_relaxed))
        route_by_host(call);
    else
        srv_s3_route(call->req, (struct srv_str){NULL, 0}, &call->route);
}

void srv_s3_region(struct srv_s3 *s3, char region_out[SRV_S3_REGION_MAX])
{
    pthread_rwlock_rdlock(&s3->access_lock);
    memcpy(region_out, s3->region_, SRV_S3_REGION_MAX);
    pthread_rwlock_unlock(&s3->access_lock);
}

void srv_s3_call_copy(const struct srv_s3_call *call, struct srv_s3_call *call_out)
{
    call_out->s3 = call->s3;
    call_out->ex = call->ex;
    call_out->req = call->req;
    call_out->who = call->who;
    srv_s3_route_copy(&call->route, &call_out->route);
}

int64_t srv_s3_now_s(const struct srv_s3_call *call)
{
    return (int64_t)(srv_loop_now_ms(srv_exchange_loop(call->ex)) / 1000);
}

struct gyre_key srv_s3_object_key(const struct srv_s3_call *call)
{
    const struct srv_s3_route *route = &call->route;
    struct iovec parts[2] = {{(void *)route->bucket.base, route->bucket.len},
                             {(void *)route->key.base, route->key.len}};
    struct gyre_key key;

    /* A valid bucket name holds no zero byte, and the last part may. */
    SRV_CHECK(gyre_key_of_parts(GYRE_DOMAIN_S3, parts, 2, &key) == GYRE_OK);
    return key;
}

void srv_s3_head_init(struct srv_s3_head *head, const struct srv_s3_call *call)
{
    head->n = 0;
    srv_s3_head_add(head, "x-amz-request-id",
                    (struct srv_str){call->req->id, sizeof call->req->id - 1});
}

void srv_s3_answer_empty(const struct srv_s3_call *call, int status, const struct srv_s3_head *head,
                         uint64_t content_length)
{
    const struct srv_response res = {.status = status,
                                     .fields = head->fields,
                                     .n_fields = head->n,
                                     .content_length = content_length};
    srv_respond(call->ex, &res, NULL);
}

void srv_s3_answer_xml(const struct srv_s3_call *call, struct srv_s3_head *head,
                       struct srv_xml *xml)
{
    size_t len;
    char *document = srv_xml_take(xml, &len);

    if (document == NULL) {
        srv_s3_fail(call, SRV_S3_SLOW_DOWN, NULL);
    } else {
        srv_s3_head_add(head, "Content-Type", srv_s3_str("application/xml"));
        const struct srv_response res = {
            .status = 200, .fields = head->fields, .n_fields = head->n, .content_length = len};
        srv_respond_owned(call->ex, &res, document, len);
    }
    srv_xml_fini(xml);
}

void srv_s3_fail(const struct srv_s3_call *call, enum srv_s3_code code, const char *message)
{
    struct srv_s3_head head;

    srv_s3_head_init(&head, call);
    srv_s3_fail_with(call, code, message, &head, NULL, 0);
}

/* Fields that an error of this status has. */
static void add_error_fields(struct srv_s3_head *head, const struct srv_s3_call *call, int status)
{
    srv_s3_head_add(head, "x-amz-id-2", (struct srv_str){call->s3->host_id, SRV_S3_HOST_ID_LEN});
    if (status == 503)
        srv_s3_head_add(head, "Retry-After", srv_s3_str("1"));
    if (status == 405)
        srv_s3_head_add(head, "Allow", srv_s3_str("GET, HEAD, PUT, DELETE"));
}

void srv_s3_fail_with(const struct srv_s3_call *call, enum srv_s3_code code, const char *message,
                      struct srv_s3_head *head, const struct srv_s3_detail *details,
                      size_t n_details)
{
    int status = srv_s3_code_status(code);

    add_error_fields(head, call, status);
    if (call->req->method == SRV_HEAD) {
        srv_s3_answer_empty(call, status, head, 0);
        return;
    }
    struct srv_s3_error error = {
        .code = code,
        .message = message,
        .bucket = call->route.bucket,
        .key = call->route.key,
        .resource = call->req->path,
        .request_id = srv_s3_str(call->req->id),
        .host_id = srv_s3_str(call->s3->host_id),
        .details = details,
        .n_details = n_details,
    };
    struct srv_xml xml;
    srv_xml_init(&xml);
    srv_s3_error_write(&xml, &error);
    struct srv_str document = srv_xml_view(&xml); /* empty if memory ran out: the status remains */
    srv_s3_head_add(head, "Content-Type", srv_s3_str("application/xml"));
    const struct srv_response res = {.status = status,
                                     .fields = head->fields,
                                     .n_fields = head->n,
                                     .content_length = document.len};
    srv_respond_bytes(call->ex, &res, document.base, document.len);
    srv_xml_fini(&xml);
}

void srv_s3_fail_condition(const struct srv_s3_call *call, const char *field)
{
    struct srv_s3_detail detail = {"Condition", srv_s3_str(field != NULL ? field : "")};
    struct srv_s3_head head;

    srv_s3_head_init(&head, call);
    srv_s3_fail_with(call, SRV_S3_PRECONDITION_FAILED, NULL, &head, &detail, field != NULL);
}
