/* CreateMultipartUpload and AbortMultipartUpload. */
#include "server/s3/upload.h"

#include <stdlib.h>

#include "server/s3/buckets.h"
#include "server/s3/put_head.h"
#include "server/s3/task.h"
#include "server/s3/upload_record.h"
#include "server/xml.h"

struct upload_task {
    struct srv_s3_task task; /* first */
    struct gyre_key key;
    struct gyre_upload_id id;
    uint32_t now_s;
    enum srv_s3_code code;
    struct srv_s3_upload_record record;
    size_t len;
    uint8_t bytes[SRV_S3_UPLOAD_RECORD_MAX];
};

/* ---- Create ---- */

static void create(struct srv_s3_task *task)
{
    struct upload_task *t = (struct upload_task *)task;
    struct srv_s3_buckets *buckets = task->call.s3->buckets;
    struct srv_s3_bucket *bucket = srv_s3_bucket_acquire(buckets, task->call.route.bucket);
    struct gyre_upload_options options;

    if (bucket == NULL) {
        t->code = SRV_S3_NO_SUCH_BUCKET;
        return;
    }
    const struct srv_s3_bucket_rule rule = srv_s3_bucket_rule(buckets, bucket);
    srv_s3_bucket_release(bucket);
    gyre_upload_options_init(&options);
    options.tenant = rule.tenant;
    options.flags = rule.never_evicts ? GYRE_PUT_SYNC : 0;
    options.meta = t->bytes;
    options.meta_len = t->len;
    options.created = t->now_s;
    options.abandon_at = t->now_s + SRV_S3_UPLOAD_LIFE_S;
    t->code = srv_s3_code_of(gyre_upload_begin(task->call.s3->store, &t->key, &options, &t->id));
}

static void on_created(struct srv_s3_task *task)
{
    struct upload_task *t = (struct upload_task *)task;
    const struct srv_s3_call *call = &task->call;
    char id[SRV_S3_UPLOAD_ID_LEN + 1];
    struct srv_s3_head head;
    struct srv_xml xml;

    if (t->code != SRV_S3_NONE) {
        srv_s3_fail(call, t->code, NULL);
        return;
    }
    srv_s3_upload_id_write(&t->id, id);
    srv_xml_init(&xml);
    srv_xml_open(&xml, "InitiateMultipartUploadResult" SRV_S3_XMLNS);
    srv_xml_element(&xml, "Bucket", call->route.bucket);
    srv_xml_element(&xml, "Key", call->route.key);
    srv_xml_element_z(&xml, "UploadId", id);
    srv_xml_close(&xml, "InitiateMultipartUploadResult");
    srv_s3_head_init(&head, call);
    if (t->record.checksum != SRV_CHECKSUM_NONE) {
        srv_s3_head_add(&head, "x-amz-checksum-algorithm",
                        srv_s3_str(srv_checksum_name(t->record.checksum)));
        srv_s3_head_add(&head, "x-amz-checksum-type",
                        srv_s3_str(t->record.is_composite ? "COMPOSITE" : "FULL_OBJECT"));
    }
    srv_s3_answer_xml(call, &head, &xml);
}

static struct upload_task *begin(const struct srv_s3_call *call)
{
    if (!srv_s3_bucket_exists(call->s3->buckets, call->route.bucket)) {
        srv_s3_fail(call, SRV_S3_NO_SUCH_BUCKET, NULL);
        return NULL;
    }
    struct upload_task *t = srv_s3_task_create(call, sizeof *t, NULL);
    if (t != NULL) {
        t->key = srv_s3_object_key(call);
        t->now_s = (uint32_t)srv_s3_now_s(call);
    }
    return t;
}

void srv_s3_upload_create(const struct srv_s3_call *call)
{
    struct upload_task *t = begin(call);
    uint8_t object[SRV_S3_META_RECORD_MAX];
    size_t len;

    if (t == NULL)
        return;
    const char *message = srv_s3_put_head_refused(call->req);
    enum srv_s3_code code = message != NULL ? SRV_S3_NOT_IMPLEMENTED : SRV_S3_NONE;
    if (code == SRV_S3_NONE)
        code = srv_s3_upload_checksum_read(call->req, &t->record);
    if (code == SRV_S3_NONE)
        code = srv_s3_put_head_record(call, object, &len);
    if (code != SRV_S3_NONE) {
        srv_s3_fail(&t->task.call, code, message);
        return;
    }
    t->record.object = (struct srv_str){(const char *)object, len};
    t->len = srv_s3_upload_record_encode(&t->record, t->bytes);
    srv_s3_task_run(&t->task, create, on_created);
}

/* ---- Abort ---- */

static void abort_upload(struct srv_s3_task *task)
{
    struct upload_task *t = (struct upload_task *)task;

    gyre_err err = gyre_upload_abort(task->call.s3->store, &t->key, &t->id, 0);
    t->code = err == GYRE_NOT_FOUND ? SRV_S3_NO_SUCH_UPLOAD : srv_s3_code_of(err);
}

static void on_aborted(struct srv_s3_task *task)
{
    const struct upload_task *t = (const struct upload_task *)task;
    struct srv_s3_head head;

    if (t->code != SRV_S3_NONE) {
        srv_s3_fail(&task->call, t->code, NULL);
        return;
    }
    srv_s3_head_init(&head, &task->call);
    srv_s3_answer_empty(&task->call, 204, &head, SRV_LENGTH_UNKNOWN);
}

void srv_s3_upload_abort(const struct srv_s3_call *call)
{
    struct upload_task *t = begin(call);

    if (t == NULL)
        return;
    enum srv_s3_code code = srv_s3_upload_id_read(call->req, &t->id);
    if (code != SRV_S3_NONE)
        srv_s3_fail(&t->task.call, code, NULL);
    else
        srv_s3_task_run(&t->task, abort_upload, on_aborted);
}
