#include "server/s3/bucket.h"

#include <stdio.h>
#include <string.h>

#include "server/buf.h"
#include "server/s3/buckets.h"
#include "server/s3/location.h"
#include "server/s3/task.h"

struct bucket_task {
    struct srv_s3_task task;
    struct srv_s3_location location; /* of a CreateBucketConfiguration */
    enum srv_s3_code code;           /* the worker's answer */
};

void srv_s3_bucket_head(const struct srv_s3_call *call)
{
    struct srv_s3_head head;

    if (!srv_s3_bucket_exists(call->s3->buckets, call->route.bucket)) {
        srv_s3_fail(call, SRV_S3_NO_SUCH_BUCKET, NULL);
        return;
    }
    srv_s3_head_init(&head, call);
    srv_s3_head_add(&head, "x-amz-bucket-region", srv_s3_str(call->s3->region));
    srv_s3_answer_empty(call, 200, &head, 0);
}

/* ---- Create ---- */

static void make(struct srv_s3_task *task)
{
    struct bucket_task *t = (struct bucket_task *)task;
    t->code = srv_s3_buckets_make(task->call.s3->buckets, task->call.route.bucket);
}

static void on_made(struct srv_s3_task *task)
{
    struct bucket_task *t = (struct bucket_task *)task;
    const struct srv_s3_call *call = &task->call;
    bool is_first_region = strcmp(call->s3->region, "us-east-1") == 0;
    char location[SRV_S3_BUCKET_MAX + 1];
    struct srv_s3_head head;

    /* S3 answers so in its first region, and clients that make sure of their bucket rely on it. */
    if (t->code == SRV_S3_BUCKET_ALREADY_OWNED && is_first_region)
        t->code = SRV_S3_NONE;
    if (t->code != SRV_S3_NONE) {
        srv_s3_fail(call, t->code, NULL);
        return;
    }
    location[0] = '/';
    memcpy(location + 1, call->route.bucket.base, call->route.bucket.len);
    srv_s3_head_init(&head, call);
    srv_s3_head_add(&head, "Location", (struct srv_str){location, call->route.bucket.len + 1});
    srv_s3_answer_empty(call, 200, &head, 0);
}

static void on_create_body(void *ctx, enum srv_body_event event, struct srv_buf *buf)
{
    struct bucket_task *t = ctx;
    const struct srv_s3_call *call = &t->task.call;
    enum srv_s3_code code = SRV_S3_NONE;

    if (buf != NULL)
        srv_s3_location_feed(&t->location, (const char *)buf->base, buf->len);
    srv_buf_release(buf);
    switch (event) {
    case SRV_BODY_DATA: srv_body_read(call->ex, on_create_body); return;
    case SRV_BODY_END: code = srv_s3_location_check(&t->location); break;
    case SRV_BODY_MALFORMED: code = SRV_S3_INCOMPLETE_BODY; break;
    case SRV_BODY_STALLED: code = SRV_S3_REQUEST_TIMEOUT; break;
    case SRV_BODY_OVERLOAD: code = SRV_S3_SLOW_DOWN; break;
    }
    if (code != SRV_S3_NONE)
        srv_s3_fail(call, code, NULL);
    else
        srv_s3_task_run(&t->task, make, on_made);
}

void srv_s3_bucket_create(const struct srv_s3_call *call)
{
    struct bucket_task *t = srv_s3_task_create(call, sizeof *t, NULL);

    if (t == NULL)
        return;
    if (t->task.call.req->has_body)
        srv_body_read(call->ex, on_create_body);
    else
        srv_s3_task_run(&t->task, make, on_made);
}

/* ---- Delete ---- */

static void remove_bucket(struct srv_s3_task *task)
{
    struct bucket_task *t = (struct bucket_task *)task;
    t->code = srv_s3_buckets_remove(task->call.s3->buckets, task->call.route.bucket);
}

static void on_removed(struct srv_s3_task *task)
{
    struct bucket_task *t = (struct bucket_task *)task;
    struct srv_s3_head head;

    if (t->code != SRV_S3_NONE) {
        srv_s3_fail(&task->call, t->code, NULL);
        return;
    }
    srv_s3_head_init(&head, &task->call);
    srv_s3_answer_empty(&task->call, 204, &head, SRV_LENGTH_UNKNOWN);
}

void srv_s3_bucket_delete(const struct srv_s3_call *call)
{
    struct bucket_task *t = srv_s3_task_create(call, sizeof *t, NULL);

    if (t != NULL)
        srv_s3_task_run(&t->task, remove_bucket, on_removed);
}
