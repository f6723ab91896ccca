#include "server/s3/object_amend.h"

#include <string.h>

#include "server/s3/acl_of_call.h"
#include "server/s3/bucket_acl.h"
#include "server/s3/buckets.h"
#include "server/s3/change.h"
#include "server/s3/source_object.h"
#include "server/s3/tagset_xml.h"

enum { BODY_MAX = 64 << 10, ATTEMPTS = 8 }; /* while others change the object */

struct amend {
    struct srv_s3_body_task body; /* first */
    struct srv_s3_bucket *bucket;
    uint32_t now_s;
    int status;                        /* when it went well */
    enum srv_s3_permission permission; /* that it takes */
    /* Puts what is new into `meta`, which is the object's. */
    enum srv_s3_code (*apply)(struct amend *amend, struct srv_s3_meta *meta);
    bool is_in_head; /* the list is in the request's head, not in its body */
    size_t acl_len;
    uint8_t acl[SRV_S3_ACL_BYTES_MAX];
    struct srv_s3_tagset tags;
};

/* ---- Changing the record ---- */

/* The record as it is to be. */
static enum srv_s3_code make_record(struct amend *amend, const struct srv_s3_meta *stored,
                                    uint8_t record[SRV_S3_META_RECORD_MAX], size_t *len_out)
{
    struct srv_s3_meta meta = *stored;

    *len_out = 0;
    enum srv_s3_code code = amend->apply(amend, &meta);
    if (code != SRV_S3_NONE)
        return code;
    return srv_s3_meta_encode(&meta, record, SRV_S3_META_RECORD_MAX, len_out)
               ? SRV_S3_NONE
               : SRV_S3_METADATA_TOO_LARGE;
}

/* The object's bytes, and the parts that they came in, stay as they are. */
static enum srv_s3_code change_record(struct amend *amend, const void *record, size_t len,
                                      uint64_t serial)
{
    const struct srv_s3_call *call = &amend->body.task.call;
    struct gyre_key key = srv_s3_object_key(call);
    struct srv_s3_change change;
    struct gyre_change what;

    gyre_change_init(&what);
    what.what = GYRE_CHANGE_META;
    what.meta = record;
    what.meta_len = len;
    what.if_serial = serial;
    if (srv_s3_bucket_rule(call->s3->buckets, amend->bucket).never_evicts)
        what.flags |= GYRE_PUT_SYNC;
    enum srv_s3_code code =
        srv_s3_change_begin(&change, call->s3->names, call->s3->buckets, amend->bucket);
    if (code != SRV_S3_NONE)
        return code;
    gyre_err err = gyre_change(call->s3->store, &key, &what, NULL);
    srv_s3_change_end(&change, call->route.bucket, call->route.key, err == GYRE_OK ? &key : NULL);
    return err == GYRE_CHANGED ? SRV_S3_CONDITIONAL_CONFLICT : srv_s3_code_of(err);
}

static enum srv_s3_code amend_once(struct amend *amend)
{
    const struct srv_s3_call *call = &amend->body.task.call;
    struct srv_s3_source_object object = {.handle = NULL};
    uint8_t record[SRV_S3_META_RECORD_MAX];
    size_t len;

    enum srv_s3_code code =
        srv_s3_source_open(&object, call->s3->store, call->route.bucket, call->route.key,
                           amend->now_s, &call->who, amend->permission);
    if (code == SRV_S3_NONE)
        code = make_record(amend, &object.meta, record, &len);
    if (code == SRV_S3_NONE)
        code = change_record(amend, record, len, gyre_handle_info(object.handle)->serial);
    srv_s3_source_close(&object);
    return code;
}

static void work(struct srv_s3_body_task *body)
{
    struct amend *amend = (struct amend *)body;

    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        body->code = amend_once(amend);
        if (body->code != SRV_S3_CONDITIONAL_CONFLICT)
            break;
    }
    if (body->code == SRV_S3_NONE)
        srv_s3_task_await_lists(&body->task);
}

static void on_worked(struct srv_s3_body_task *body)
{
    const struct amend *amend = (const struct amend *)body;
    struct srv_s3_head head;

    srv_s3_head_init(&head, &body->task.call);
    srv_s3_answer_empty(&body->task.call, amend->status, &head,
                        amend->status == 204 ? SRV_LENGTH_UNKNOWN : 0);
}

static void fini(struct srv_s3_body_task *body)
{
    srv_s3_bucket_release(((struct amend *)body)->bucket);
}

static struct amend *create(const struct srv_s3_call *call, int status,
                            enum srv_s3_permission permission,
                            enum srv_s3_code (*apply)(struct amend *amend,
                                                      struct srv_s3_meta *meta))
{
    struct amend *amend = srv_s3_body_task_create(call, sizeof *amend, fini);
    if (amend == NULL)
        return NULL;
    amend->bucket = srv_s3_bucket_acquire(call->s3->buckets, call->route.bucket);
    if (amend->bucket == NULL) {
        srv_s3_fail(call, SRV_S3_NO_SUCH_BUCKET, NULL);
        return NULL;
    }
    amend->now_s = (uint32_t)srv_s3_now_s(call);
    amend->status = status;
    amend->permission = permission;
    amend->apply = apply;
    return amend;
}

/* ---- Tags ---- */

static enum srv_s3_code apply_tags(struct amend *amend, struct srv_s3_meta *meta)
{
    srv_s3_tagset_init(&amend->tags, SRV_S3_TAGS_OBJECT_MAX);
    enum srv_s3_code code = srv_s3_tagset_read(amend->body.bytes, amend->body.len, &amend->tags);
    meta->tags = (struct srv_str){NULL, 0};
    if (amend->tags.len > 0)
        meta->tags = (struct srv_str){(const char *)amend->tags.bytes, amend->tags.len};
    return code;
}

void srv_s3_object_tagging_put(const struct srv_s3_call *call)
{
    struct amend *amend = create(call, 200, SRV_S3_ACL_WRITE, apply_tags);

    if (amend != NULL)
        srv_s3_body_task_receive(&amend->body, BODY_MAX, work, on_worked);
}

static enum srv_s3_code drop_tags(struct amend *amend, struct srv_s3_meta *meta)
{
    (void)amend;
    meta->tags = (struct srv_str){NULL, 0};
    return SRV_S3_NONE;
}

void srv_s3_object_tagging_delete(const struct srv_s3_call *call)
{
    struct amend *amend = create(call, 204, SRV_S3_ACL_WRITE, drop_tags);

    if (amend != NULL)
        srv_s3_body_task_receive(&amend->body, 0, work, on_worked);
}

/* ---- Access control lists ---- */

static enum srv_s3_code apply_acl(struct amend *amend, struct srv_s3_meta *meta)
{
    enum srv_s3_code code = SRV_S3_NONE;

    if (!amend->is_in_head)
        code = srv_s3_acl_read_body(&amend->body, meta->owner, amend->acl, &amend->acl_len);
    meta->acl = (struct srv_str){NULL, 0};
    if (amend->acl_len > 0)
        meta->acl = (struct srv_str){(const char *)amend->acl, amend->acl_len};
    return code;
}

void srv_s3_object_acl_put(const struct srv_s3_call *call)
{
    struct amend *amend = create(call, 200, SRV_S3_ACL_WRITE_ACP, apply_acl);

    if (amend == NULL)
        return;
    amend->is_in_head = srv_s3_asks_for_acl(call->req);
    /* Who changes the list need not own the object; a canned list means its owner, who is found
     * only later. Whoever may change the list and is not its owner gives it by grants or as a
     * document. */
    enum srv_s3_code code = srv_s3_acl_of_call(call, srv_s3_who_id(&call->who),
                                               SRV_S3_ACL_OF_OBJECT, amend->acl, &amend->acl_len);
    if (code != SRV_S3_NONE)
        srv_s3_fail(call, code, NULL);
    else
        srv_s3_body_task_receive(&amend->body, SRV_S3_ACL_BODY_MAX, work, on_worked);
}
