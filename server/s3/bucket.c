#include "server/s3/bucket.h"

#include <stdio.h>
#include <string.h>

#include "server/buf.h"
#include "server/s3/acl_of_call.h"
#include "server/s3/buckets.h"
#include "server/s3/location.h"
#include "server/s3/task.h"

struct bucket_task {
    struct srv_s3_task task;
    struct srv_s3_location location; /* of a CreateBucketConfiguration */
    struct srv_s3_facts *facts;      /* of the new bucket */
    enum srv_s3_code code;           /* the worker's answer */
};

void srv_s3_bucket_head(const struct srv_s3_call *call)
{
    char region[SRV_S3_REGION_MAX];
    struct srv_s3_head head;

    if (!srv_s3_bucket_exists(call->s3->buckets, call->route.bucket)) {
        srv_s3_fail(call, SRV_S3_NO_SUCH_BUCKET, NULL);
        return;
    }
    srv_s3_region(call->s3, region);
    srv_s3_head_init(&head, call);
    srv_s3_head_add(&head, "x-amz-bucket-region", srv_s3_str(region));
    srv_s3_answer_empty(call, 200, &head, 0);
}

/* ---- Create ---- */

static void fini(struct srv_s3_task *task)
{
    srv_s3_facts_release(((struct bucket_task *)task)->facts);
}

static void replace_facts(struct bucket_task *t, struct srv_s3_facts *facts)
{
    srv_s3_facts_release(t->facts);
    t->facts = facts;
}

static void make(struct srv_s3_task *task)
{
    struct bucket_task *t = (struct bucket_task *)task;
    t->code = srv_s3_buckets_make(task->call.s3->buckets, task->call.route.bucket, t->facts);
}

static bool same(struct srv_str a, struct srv_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.base, b.base, a.len) == 0);
}

/* What making a bucket again answers. S3 answers the owner with 200 in its first region, and
 * clients that make sure of their bucket rely on it; but a request for another access control list
 * is not what is there. */
static enum srv_s3_code code_of_existing(struct bucket_task *t)
{
    const struct srv_s3_call *call = &t->task.call;
    struct srv_s3_bucket *bucket = srv_s3_bucket_acquire(call->s3->buckets, call->route.bucket);
    enum srv_s3_code code = SRV_S3_BUCKET_ALREADY_OWNED;
    char region[SRV_S3_REGION_MAX];

    if (bucket == NULL)
        return SRV_S3_OPERATION_ABORTED;
    srv_s3_region(call->s3, region);
    struct srv_s3_facts *facts = srv_s3_bucket_facts(call->s3->buckets, bucket);
    bool is_mine =
        call->who.is_open || same(facts->of[SRV_S3_FACT_OWNER], srv_s3_who_id(&call->who));
    bool is_like = same(facts->of[SRV_S3_FACT_ACL], t->facts->of[SRV_S3_FACT_ACL]);
    if (!is_mine || !is_like)
        code = SRV_S3_BUCKET_ALREADY_EXISTS;
    else if (strcmp(region, "us-east-1") == 0)
        code = SRV_S3_NONE;
    srv_s3_facts_release(facts);
    srv_s3_bucket_release(bucket);
    return code;
}

/* Owner and access control list of the new bucket. */
static enum srv_s3_code make_facts(struct bucket_task *t)
{
    uint8_t acl[SRV_S3_ACL_BYTES_MAX];
    size_t acl_len;
    struct srv_str owner = srv_s3_who_id(&t->task.call.who);

    enum srv_s3_code code =
        srv_s3_acl_of_call(&t->task.call, owner, SRV_S3_ACL_OF_BUCKET, acl, &acl_len);
    if (code != SRV_S3_NONE)
        return code;
    t->facts = srv_s3_facts_create(NULL, 0);
    if (t->facts != NULL && owner.base != NULL)
        replace_facts(t, srv_s3_facts_with(t->facts, SRV_S3_FACT_OWNER, owner));
    if (t->facts != NULL && acl_len > 0)
        replace_facts(t, srv_s3_facts_with(t->facts, SRV_S3_FACT_ACL,
                                           (struct srv_str){(const char *)acl, acl_len}));
    return t->facts != NULL ? SRV_S3_NONE : SRV_S3_SLOW_DOWN;
}

static void on_made(struct srv_s3_task *task)
{
    struct bucket_task *t = (struct bucket_task *)task;
    const struct srv_s3_call *call = &task->call;
    char location[SRV_S3_BUCKET_MAX + 1];
    struct srv_s3_head head;

    if (t->code == SRV_S3_BUCKET_ALREADY_OWNED)
        t->code = code_of_existing(t);
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

/* A region that is named when a bucket is made is shown as its own. */
static enum srv_s3_code take_location(struct bucket_task *t)
{
    enum srv_s3_code code = srv_s3_location_check(&t->location);

    if (code == SRV_S3_NONE && t->location.region.base != NULL)
        replace_facts(t, srv_s3_facts_with(t->facts, SRV_S3_FACT_LOCATION, t->location.region));
    return t->facts != NULL ? code : SRV_S3_SLOW_DOWN;
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
    case SRV_BODY_END: code = take_location(t); break;
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
    struct bucket_task *t = srv_s3_task_create(call, sizeof *t, fini);

    if (t == NULL)
        return;
    enum srv_s3_code code = make_facts(t);
    if (code != SRV_S3_NONE)
        srv_s3_fail(&t->task.call, code, NULL);
    else if (t->task.call.req->has_body)
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
