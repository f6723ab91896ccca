#include "server/s3/s3.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/s3/attributes.h"
#include "server/s3/base64.h"
#include "server/s3/bucket.h"
#include "server/s3/bucket_acl.h"
#include "server/s3/bucket_lifecycle.h"
#include "server/s3/bucket_tagging.h"
#include "server/s3/buckets.h"
#include "server/s3/call.h"
#include "server/s3/multi_delete.h"
#include "server/s3/names.h"
#include "server/s3/object_amend.h"
#include "server/s3/object_delete.h"
#include "server/s3/object_get.h"
#include "server/s3/object_list.h"
#include "server/s3/object_look.h"
#include "server/s3/object_put.h"
#include "server/s3/purge.h"
#include "server/s3/setting.h"
#include "server/s3/stub.h"
#include "server/s3/sweeper.h"
#include "server/s3/task.h"
#include "server/s3/upload.h"
#include "server/s3/upload_complete.h"

static gyre_err create_names(const struct srv_s3_config *config, struct srv_names **names_out)
{
    char *unlisted = srv_s3_unlisted(config);
    const struct srv_names_config names = {.store = config->store, .unlisted = unlisted};

    *names_out = NULL;
    gyre_err err = unlisted != NULL ? srv_names_create(&names, names_out) : GYRE_NO_MEMORY;
    free(unlisted);
    return err;
}

gyre_err srv_s3_create(const struct srv_s3_config *config, struct srv_s3 **s3_out)
{
    uint8_t host_id[SRV_S3_HOST_ID_LEN / 2];

    *s3_out = NULL;
    if (config->region != NULL && strlen(config->region) >= SRV_S3_REGION_MAX)
        return GYRE_INVALID;
    struct srv_s3 *s3 = calloc(1, sizeof *s3);
    if (s3 == NULL)
        return GYRE_NO_MEMORY;
    gyre_err err = GYRE_NO_MEMORY;
    if (RAND_bytes(host_id, sizeof host_id) != 1)
        goto out;
    srv_hex_encode(host_id, sizeof host_id, s3->host_id);
    s3->store = config->store;
    s3->pool = config->pool;
    pthread_rwlock_init(&s3->access_lock, NULL);
    srv_s3_go_by(s3, config);
    err = create_names(config, &s3->names);
    if (err == GYRE_OK)
        err = srv_s3_buckets_create(config, s3->names, &s3->buckets);
    const struct srv_s3_sweeper_config sweeper = {config->store, s3->buckets, s3->names,
                                                  config->lifecycle_day_s};
    if (err == GYRE_OK)
        err = srv_s3_sweeper_create(&sweeper, &s3->sweeper);
    if (err != GYRE_OK) {
        srv_names_destroy(s3->names);
        srv_s3_buckets_destroy(s3->buckets);
        pthread_rwlock_destroy(&s3->access_lock);
    }
out:
    if (err != GYRE_OK)
        free(s3);
    else
        *s3_out = s3;
    return err;
}

void srv_s3_destroy(struct srv_s3 *s3)
{
    if (s3 == NULL)
        return;
    srv_s3_sweeper_destroy(s3->sweeper);
    srv_names_destroy(s3->names);
    srv_s3_buckets_destroy(s3->buckets);
    pthread_rwlock_destroy(&s3->access_lock);
    free(s3);
}

static void refuse(const struct srv_s3_call *call)
{
    const struct srv_s3_route *route = &call->route;
    char message[128];

    if (route->error != SRV_S3_NOT_IMPLEMENTED) {
        srv_s3_fail(call, route->error, NULL);
        return;
    }
    const char *sub = srv_s3_sub_name(route->sub);
    if (sub != NULL)
        snprintf(message, sizeof message,
                 "The sub-resource \"%s\" is not offered here in this way.", sub);
    else if (call->req->method == SRV_GET)
        snprintf(message, sizeof message, "Listing the objects of a bucket is not offered yet.");
    else
        snprintf(message, sizeof message, "%s",
                 "POST is not offered here: send objects one by one with PUT.");
    srv_s3_fail(call, route->error, message);
}

static void (*const handlers[])(const struct srv_s3_call *call) = {
#define X(name, method, place, sub, need, handler) handler,
#include "server/s3/operation.def"
#undef X
    refuse,
};

static const struct srv_operation operations[] = {
#define X(name, method, place, sub, need, handler)                   \
    {#name, (SRV_##method == SRV_GET || SRV_##method == SRV_HEAD) && \
                SRV_S3_##place == SRV_S3_OBJECT && SRV_S3_SUB_##sub == SRV_S3_SUB_NONE},
#include "server/s3/operation.def"
#undef X
    {"OTHER", false},
};

const struct srv_role srv_s3_role = {SRV_ROLE_S3, "s3", operations,
                                     sizeof operations / sizeof operations[0]};

static void handle(struct srv_s3_call *call)
{
    if (!srv_s3_admit(call))
        return;
    if (call->who.is_signed)
        srv_exchange_note_user(call->ex, srv_s3_who_id(&call->who));
    handlers[call->route.op](call);
}

/* ---- Buckets that were changed since they were last looked at ---- */

struct refresh {
    struct srv_s3_task task; /* first */
    bool is_of_all;
    gyre_err err;
};

/* Which of them the request asks about: all, or that of its target. */
static bool asks_about_all(const struct srv_s3_call *call)
{
    return call->route.op == SRV_S3_OP_LIST_BUCKETS ||
           srv_request_field(call->req, "x-amz-copy-source", NULL) != NULL;
}

static void refresh(struct srv_s3_task *task)
{
    struct refresh *r = (struct refresh *)task;
    struct srv_s3_buckets *buckets = task->call.s3->buckets;

    r->err = r->is_of_all ? srv_s3_buckets_refresh(buckets)
                          : srv_s3_bucket_refresh(buckets, task->call.route.bucket);
}

static void on_refreshed(struct srv_s3_task *task)
{
    const struct refresh *r = (const struct refresh *)task;
    struct srv_s3_call call;

    if (r->err != GYRE_OK) {
        srv_s3_fail(&task->call, srv_s3_code_of(r->err), NULL);
        return;
    }
    srv_s3_task_end(task, &call);
    handle(&call);
}

static void begin_refresh(const struct srv_s3_call *call, bool is_of_all)
{
    struct refresh *r = srv_s3_task_create(call, sizeof *r, NULL);

    if (r == NULL)
        return;
    r->is_of_all = is_of_all;
    srv_s3_task_run(&r->task, refresh, on_refreshed);
}

static bool is_current(const struct srv_s3_call *call, bool is_of_all)
{
    return !is_of_all && (call->route.bucket.base == NULL ||
                          srv_s3_buckets_is_current(call->s3->buckets, call->route.bucket));
}

void srv_s3_start(void *data, struct srv_exchange *ex)
{
    struct srv_s3 *s3 = data;
    struct srv_s3_call call;

    srv_s3_call_init(&call, s3, ex);
    srv_exchange_note(ex, call.route.op);
    if (srv_s3_buckets_is_settled(s3->buckets)) {
        handle(&call);
        return;
    }
    srv_s3_sweeper_ask(s3->sweeper);
    bool is_of_all = asks_about_all(&call);
    if (is_current(&call, is_of_all))
        handle(&call);
    else
        begin_refresh(&call, is_of_all);
}
