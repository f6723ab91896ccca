#include "server/s3/object_look.h"

#include "server/s3/bucket_acl.h"
#include "server/s3/tagset_xml.h"

static void fini(struct srv_s3_task *task)
{
    srv_s3_source_close(&((struct srv_s3_look *)task)->source);
}

static void find(struct srv_s3_task *task)
{
    struct srv_s3_look *look = (struct srv_s3_look *)task;
    const struct srv_s3_call *call = &task->call;

    look->code_ = srv_s3_source_open(&look->source, call->s3->store, call->route.bucket,
                                     call->route.key, look->now_s_, &call->who, look->permission_);
}

static void on_found(struct srv_s3_task *task)
{
    struct srv_s3_look *look = (struct srv_s3_look *)task;

    if (look->code_ != SRV_S3_NONE)
        srv_s3_fail(&task->call, look->code_, NULL);
    else
        look->answer_(look);
}

void srv_s3_look(const struct srv_s3_call *call, enum srv_s3_permission permission,
                 void (*answer)(struct srv_s3_look *look))
{
    if (!srv_s3_bucket_exists(call->s3->buckets, call->route.bucket)) {
        srv_s3_fail(call, SRV_S3_NO_SUCH_BUCKET, NULL);
        return;
    }
    struct srv_s3_look *look = srv_s3_task_create(call, sizeof *look, fini);
    if (look == NULL)
        return;
    look->permission_ = permission;
    look->now_s_ = (uint32_t)srv_s3_now_s(call);
    look->answer_ = answer;
    srv_s3_task_run(&look->task, find, on_found);
}

static void answer_tags(struct srv_s3_look *look)
{
    struct srv_s3_head head;
    struct srv_xml xml;

    srv_xml_init(&xml);
    srv_s3_tags_write(&xml, look->source.meta.tags);
    srv_s3_head_init(&head, &look->task.call);
    srv_s3_answer_xml(&look->task.call, &head, &xml);
}

void srv_s3_object_tagging_get(const struct srv_s3_call *call)
{
    srv_s3_look(call, SRV_S3_ACL_READ, answer_tags);
}

static void answer_acl(struct srv_s3_look *look)
{
    srv_s3_answer_acl(&look->task.call, look->source.meta.owner, look->source.meta.acl);
}

void srv_s3_object_acl_get(const struct srv_s3_call *call)
{
    srv_s3_look(call, SRV_S3_ACL_READ_ACP, answer_acl);
}
