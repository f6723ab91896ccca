#include "server/s3/bucket_fact.h"

#include <stdlib.h>

struct fact_task {
    struct srv_s3_body_task body; /* first */
    enum srv_s3_fact fact;
    int status; /* when it went well */
    enum srv_s3_code (*encode)(struct srv_s3_body_task *task, uint8_t **bytes_out, size_t *len_out);
};

struct srv_s3_facts *srv_s3_facts_of_call(const struct srv_s3_call *call)
{
    struct srv_s3_buckets *buckets = call->s3->buckets;
    struct srv_s3_bucket *bucket = srv_s3_bucket_acquire(buckets, call->route.bucket);

    if (bucket == NULL) {
        srv_s3_fail(call, SRV_S3_NO_SUCH_BUCKET, NULL);
        return NULL;
    }
    struct srv_s3_facts *facts = srv_s3_bucket_facts(buckets, bucket);
    srv_s3_bucket_release(bucket);
    return facts;
}

static enum srv_s3_code change(const struct srv_s3_call *call, enum srv_s3_fact fact,
                               struct srv_str value)
{
    struct srv_s3_buckets *buckets = call->s3->buckets;
    struct srv_s3_bucket *bucket = srv_s3_bucket_acquire(buckets, call->route.bucket);

    if (bucket == NULL)
        return SRV_S3_NO_SUCH_BUCKET;
    enum srv_s3_code code = srv_s3_bucket_change(buckets, bucket, fact, value);
    srv_s3_bucket_release(bucket);
    return code;
}

static void work(struct srv_s3_body_task *body)
{
    struct fact_task *t = (struct fact_task *)body;
    uint8_t *bytes = NULL;
    size_t len = 0;

    if (t->encode != NULL)
        body->code = t->encode(body, &bytes, &len);
    if (body->code == SRV_S3_NONE)
        body->code = change(&body->task.call, t->fact, (struct srv_str){(const char *)bytes, len});
    free(bytes);
}

static void on_changed(struct srv_s3_body_task *body)
{
    const struct fact_task *t = (const struct fact_task *)body;
    struct srv_s3_head head;

    srv_s3_head_init(&head, &body->task.call);
    srv_s3_answer_empty(&body->task.call, t->status, &head,
                        t->status == 204 ? SRV_LENGTH_UNKNOWN : 0);
}

static void begin(const struct srv_s3_call *call, const struct fact_task *wanted, size_t limit)
{
    if (!srv_s3_bucket_exists(call->s3->buckets, call->route.bucket)) {
        srv_s3_fail(call, SRV_S3_NO_SUCH_BUCKET, NULL);
        return;
    }
    struct fact_task *t = srv_s3_body_task_create(call, sizeof *t, NULL);
    if (t == NULL)
        return;
    t->fact = wanted->fact;
    t->status = wanted->status;
    t->encode = wanted->encode;
    srv_s3_body_task_receive(&t->body, limit, work, on_changed);
}

void srv_s3_fact_delete(const struct srv_s3_call *call, enum srv_s3_fact fact)
{
    begin(call, &(struct fact_task){.fact = fact, .status = 204}, 0);
}

void srv_s3_fact_put(const struct srv_s3_call *call, enum srv_s3_fact fact, size_t limit,
                     int status,
                     enum srv_s3_code (*encode)(struct srv_s3_body_task *task, uint8_t **bytes_out,
                                                size_t *len_out))
{
    begin(call, &(struct fact_task){.fact = fact, .status = status, .encode = encode}, limit);
}
