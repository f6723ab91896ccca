#include "server/s3/bucket_acl.h"

#include <stdlib.h>
#include <string.h>

#include "server/s3/acl_of_call.h"
#include "server/s3/acl_xml.h"
#include "server/s3/bucket_fact.h"

void srv_s3_answer_acl(const struct srv_s3_call *call, struct srv_str owner, struct srv_str acl)
{
    struct srv_s3_acl grants;
    struct srv_s3_head head;
    struct srv_xml xml;

    owner = srv_s3_owner_or_default(owner);
    if (!srv_s3_acl_decode(acl, owner, &grants)) {
        srv_s3_fail(call, SRV_S3_INTERNAL_ERROR, NULL);
        return;
    }
    srv_xml_init(&xml);
    srv_s3_acl_write(&xml, &grants, owner);
    srv_s3_head_init(&head, call);
    srv_s3_answer_xml(call, &head, &xml);
}

void srv_s3_bucket_acl_get(const struct srv_s3_call *call)
{
    struct srv_s3_facts *facts = srv_s3_facts_of_call(call);

    if (facts == NULL)
        return;
    srv_s3_answer_acl(call, facts->of[SRV_S3_FACT_OWNER], facts->of[SRV_S3_FACT_ACL]);
    srv_s3_facts_release(facts);
}

enum srv_s3_code srv_s3_acl_read_body(struct srv_s3_body_task *task, struct srv_str owner,
                                      uint8_t bytes_out[SRV_S3_ACL_BYTES_MAX], size_t *len_out)
{
    struct srv_s3 *s3 = task->task.call.s3;
    struct srv_xml_doc *doc = srv_xml_doc_create(task->bytes, task->len, 1000);
    struct srv_s3_acl acl;

    *len_out = 0;
    if (doc == NULL)
        return SRV_S3_MALFORMED_ACL;
    owner = srv_s3_owner_or_default(owner);
    pthread_rwlock_rdlock(&s3->access_lock);
    enum srv_s3_code code = srv_s3_acl_read(doc, s3->access, owner, &acl);
    if (code == SRV_S3_NONE)
        *len_out = srv_s3_acl_encode(&acl, owner, bytes_out);
    pthread_rwlock_unlock(&s3->access_lock);
    srv_xml_doc_destroy(doc);
    return code;
}

/* ---- Change ---- */

struct acl_task {
    struct srv_s3_body_task body; /* first */
    bool is_in_head;
    size_t len;
    uint8_t bytes[SRV_S3_ACL_BYTES_MAX];
};

static void store(struct srv_s3_body_task *body)
{
    struct acl_task *t = (struct acl_task *)body;
    const struct srv_s3_call *call = &body->task.call;
    struct srv_s3_buckets *buckets = call->s3->buckets;
    struct srv_s3_bucket *bucket = srv_s3_bucket_acquire(buckets, call->route.bucket);

    if (bucket == NULL) {
        body->code = SRV_S3_NO_SUCH_BUCKET;
        return;
    }
    struct srv_s3_facts *facts = srv_s3_bucket_facts(buckets, bucket);
    if (!t->is_in_head)
        body->code = srv_s3_acl_read_body(body, facts->of[SRV_S3_FACT_OWNER], t->bytes, &t->len);
    if (body->code == SRV_S3_NONE)
        body->code = srv_s3_bucket_change(
            buckets, bucket, SRV_S3_FACT_ACL,
            (struct srv_str){t->len > 0 ? (const char *)t->bytes : NULL, t->len});
    srv_s3_facts_release(facts);
    srv_s3_bucket_release(bucket);
}

static void on_stored(struct srv_s3_body_task *body)
{
    struct srv_s3_head head;

    srv_s3_head_init(&head, &body->task.call);
    srv_s3_answer_empty(&body->task.call, 200, &head, 0);
}

void srv_s3_bucket_acl_put(const struct srv_s3_call *call)
{
    struct srv_s3_facts *facts = srv_s3_facts_of_call(call);

    if (facts == NULL)
        return;
    struct acl_task *t = srv_s3_body_task_create(call, sizeof *t, NULL);
    if (t != NULL) {
        t->is_in_head = srv_s3_asks_for_acl(call->req);
        enum srv_s3_code code = srv_s3_acl_of_call(call, facts->of[SRV_S3_FACT_OWNER],
                                                   SRV_S3_ACL_OF_BUCKET, t->bytes, &t->len);
        if (code != SRV_S3_NONE)
            srv_s3_fail(call, code, NULL);
        else
            srv_s3_body_task_receive(&t->body, SRV_S3_ACL_BODY_MAX, store, on_stored);
    }
    srv_s3_facts_release(facts);
}
