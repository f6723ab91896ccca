#include "server/s3/object_copy.h"

#include <stdlib.h>
#include <string.h>

#include "server/http_date.h"
#include "server/s3/numbers.h"
#include "server/s3/object_head.h"
#include "server/s3/put_head.h"
#include "server/s3/source_object.h"
#include "server/s3/task.h"
#include "server/s3/upload_record.h"
#include "server/target.h"
#include "server/xml.h"

struct copy {
    struct srv_s3_task task; /* first */
    struct srv_s3_source_name name;
    struct srv_s3_source_object source;
    struct srv_s3_precondition on_source;
    struct srv_s3_precondition on_target;
    struct srv_s3_put_work work;
    uint32_t now_s;
    bool replaces_meta, replaces_tags;
    enum srv_checksum checksum; /* asked for; NONE: that of the source */
    enum srv_s3_code code;      /* of the jobs before the work begins */
    const char *condition;
    const char *message;
    bool is_part;
    bool has_range;       /* of the source, for a part */
    uint64_t first, last; /* bytes of it, both inclusive */
    bool is_done;
    size_t asked_len; /* what the request itself says of the object, as a record */
    uint8_t asked[SRV_S3_META_RECORD_MAX];
};

static void fini(struct srv_s3_task *task)
{
    struct copy *copy = (struct copy *)task;

    srv_s3_put_work_fini(&copy->work);
    srv_s3_source_close(&copy->source);
    srv_s3_precondition_fini(&copy->on_source);
    srv_s3_precondition_fini(&copy->on_target);
}

/* ---- What is asked ---- */

/* COPY or REPLACE. False for anything else. */
static bool read_directive(const struct srv_request *req, const char *name, bool *replaces_out)
{
    const struct srv_str *value = srv_request_field(req, name, NULL);

    *replaces_out = value != NULL && srv_str_equal_nocase(*value, srv_s3_str("REPLACE"));
    return value == NULL || *replaces_out || srv_str_equal_nocase(*value, srv_s3_str("COPY"));
}

static bool same(struct srv_str a, struct srv_str b)
{
    return a.len == b.len && memcmp(a.base, b.base, a.len) == 0;
}

/* A copy onto itself that changes nothing is a mistake of the client's. */
static bool is_void(const struct copy *copy)
{
    const struct srv_s3_call *call = &copy->task.call;

    return same(copy->name.bucket, call->route.bucket) && same(copy->name.key, call->route.key) &&
           !copy->replaces_meta && !copy->replaces_tags &&
           srv_request_field(call->req, "x-amz-storage-class", NULL) == NULL &&
           srv_request_field(call->req, "x-amz-website-redirect-location", NULL) == NULL;
}

static enum srv_s3_code read_algorithm(struct copy *copy)
{
    const struct srv_str *name =
        srv_request_field(copy->task.call.req, "x-amz-checksum-algorithm", NULL);

    if (name == NULL)
        return SRV_S3_NONE;
    copy->checksum = srv_checksum_of_name(*name);
    return copy->checksum != SRV_CHECKSUM_NONE ? SRV_S3_NONE : SRV_S3_INVALID_REQUEST;
}

/* x-amz-copy-source-range: "bytes=FIRST-LAST", nothing less. */
static enum srv_s3_code read_range(struct copy *copy)
{
    static const char prefix[] = "bytes=";
    const struct srv_str *value =
        srv_request_field(copy->task.call.req, "x-amz-copy-source-range", NULL);

    if (value == NULL)
        return SRV_S3_NONE;
    struct srv_str text = *value;
    if (text.len < sizeof prefix || memcmp(text.base, prefix, sizeof prefix - 1) != 0)
        return SRV_S3_INVALID_ARGUMENT;
    text = (struct srv_str){text.base + sizeof prefix - 1, text.len - sizeof prefix + 1};
    const char *dash = memchr(text.base, '-', text.len);
    if (dash == NULL)
        return SRV_S3_INVALID_ARGUMENT;
    size_t len = (size_t)(dash - text.base);
    copy->has_range = true;
    return srv_s3_parse_u64((struct srv_str){text.base, len}, &copy->first) &&
                   srv_s3_parse_u64((struct srv_str){dash + 1, text.len - len - 1}, &copy->last) &&
                   copy->first <= copy->last
               ? SRV_S3_NONE
               : SRV_S3_INVALID_ARGUMENT;
}

/* What a part takes from the request, which the upload has for an object. */
static enum srv_s3_code read_part(struct copy *copy)
{
    const struct srv_s3_call *call = &copy->task.call;

    copy->work.is_part = true;
    enum srv_s3_code code = srv_s3_part_number_read(call->req, &copy->work.part_number);
    if (code == SRV_S3_NONE)
        code = srv_s3_upload_id_read(call->req, &copy->work.upload);
    if (code == SRV_S3_NONE)
        code = read_range(copy);
    return code == SRV_S3_NONE ? srv_s3_precondition_init_source(&copy->on_source, call->req)
                               : code;
}

static enum srv_s3_code read_head(struct copy *copy)
{
    const struct srv_s3_call *call = &copy->task.call;

    copy->message = srv_s3_put_head_refused(call->req);
    if (copy->message != NULL)
        return SRV_S3_NOT_IMPLEMENTED;
    if (!srv_s3_bucket_exists(call->s3->buckets, call->route.bucket))
        return SRV_S3_NO_SUCH_BUCKET;
    enum srv_s3_code code = srv_s3_source_read(call, &copy->name);
    if (code != SRV_S3_NONE)
        return code;
    if (copy->is_part)
        return read_part(copy);
    if (!read_directive(call->req, "x-amz-metadata-directive", &copy->replaces_meta) ||
        !read_directive(call->req, "x-amz-tagging-directive", &copy->replaces_tags))
        return SRV_S3_INVALID_ARGUMENT;
    if (is_void(copy)) {
        copy->message = "This copy request is illegal because it is trying to copy an object to "
                        "itself without changing the object's metadata, storage class, website "
                        "redirect location or encryption attributes.";
        return SRV_S3_INVALID_REQUEST;
    }
    code = read_algorithm(copy);
    if (code == SRV_S3_NONE)
        code = srv_s3_put_head_record(call, copy->asked, &copy->asked_len);
    if (code == SRV_S3_NONE)
        code = srv_s3_precondition_init_source(&copy->on_source, call->req);
    return code == SRV_S3_NONE ? srv_s3_precondition_init(&copy->on_target, call->req) : code;
}

/* ---- On a worker ---- */

/* The record of the copy: the source's, or the request's, with what a copy never takes over. */
static bool make_record(struct copy *copy, uint8_t record[SRV_S3_META_RECORD_MAX], size_t *len_out)
{
    struct srv_s3_meta asked, meta;

    if (!srv_s3_meta_decode(copy->asked, copy->asked_len, &asked))
        return false;
    meta = copy->replaces_meta ? asked : copy->source.meta;
    meta.tags = copy->replaces_tags ? asked.tags : copy->source.meta.tags;
    meta.bucket = asked.bucket;
    meta.key = asked.key;
    meta.owner = asked.owner;
    meta.acl = asked.acl;
    meta.storage_class = asked.storage_class;
    meta.redirect = asked.redirect;
    meta.checksum = meta.part_sums = meta.upload = (struct srv_str){NULL, 0};
    return srv_s3_meta_encode(&meta, record, SRV_S3_META_RECORD_MAX, len_out);
}

/* Which digests of the bytes must be computed; what the source has of them is kept. The ETag of an
 * upload is not one that its copy, which is no upload, could have. */
static void plan(struct copy *copy, struct srv_digest_plan *plan_out)
{
    const struct srv_s3_meta *meta = &copy->source.meta;
    struct srv_s3_checksum checksum;

    *plan_out = (struct srv_digest_plan){.checksum = copy->checksum};
    copy->work.keeps_etag = memchr(meta->etag.base, '-', meta->etag.len) == NULL;
    if (copy->work.keeps_etag)
        memcpy(copy->work.etag, meta->etag.base, meta->etag.len);
    else
        plan_out->wants_md5 = true;
    (void)srv_s3_checksum_decode(meta->checksum, &checksum);
    if (copy->checksum == SRV_CHECKSUM_NONE)
        plan_out->checksum = checksum.algorithm;
    if (plan_out->checksum == checksum.algorithm && !checksum.is_composite) {
        plan_out->checksum = SRV_CHECKSUM_NONE;
        copy->work.keeps_checksum = true;
        copy->work.checksum = checksum;
    }
}

/* The bytes that become a part, and how they are digested: its ETag is always of its bytes. */
static enum srv_s3_code open_part(struct copy *copy)
{
    const struct srv_digest_plan digests = {.wants_md5 = true};

    if (copy->has_range) {
        if (copy->last >= copy->source.end)
            return SRV_S3_INVALID_RANGE;
        copy->source.offset = copy->first;
        copy->source.end = copy->last + 1;
    }
    return srv_s3_put_work_init_inner(&copy->work, &copy->task.call, NULL, 0,
                                      copy->source.end - copy->source.offset, &digests);
}

static enum srv_s3_code open_source(struct copy *copy)
{
    const struct srv_s3_call *call = &copy->task.call;
    struct srv_digest_plan digests;
    uint8_t record[SRV_S3_META_RECORD_MAX];
    size_t len;

    enum srv_s3_code code =
        srv_s3_source_open(&copy->source, call->s3->store, copy->name.bucket, copy->name.key,
                           copy->now_s, &copy->name.who, SRV_S3_ACL_READ);
    if (code != SRV_S3_NONE)
        return code;
    struct srv_validators stored = {copy->source.meta.etag, copy->source.meta.modified_ms / 1000};
    if (!srv_s3_precondition_holds(&copy->on_source, &stored, copy->now_s, &copy->condition))
        return SRV_S3_PRECONDITION_FAILED;
    if (copy->is_part)
        return open_part(copy);
    if (!make_record(copy, record, &len))
        return SRV_S3_METADATA_TOO_LARGE;
    plan(copy, &digests);
    code = srv_s3_put_work_init_inner(&copy->work, call, record, len, copy->source.end, &digests);
    copy->work.precondition = copy->on_target;
    copy->work.precondition.req.fields = copy->work.precondition.fields;
    copy->on_target = (struct srv_s3_precondition){.bytes_ = NULL};
    return code;
}

static void pour(struct srv_s3_task *task)
{
    struct copy *copy = (struct copy *)task;

    if (copy->source.handle == NULL)
        copy->code = open_source(copy);
    if (copy->code != SRV_S3_NONE)
        return;
    copy->is_done = srv_s3_source_pour(&copy->source, &copy->work);
    copy->code = copy->work.code;
    copy->message = copy->work.message;
    copy->condition = copy->work.condition;
    if (!copy->is_done || copy->code != SRV_S3_NONE || copy->is_part)
        return;
    const struct srv_s3_stored stored = srv_s3_put_work_stored(&copy->work);
    srv_s3_task_await_stored(task, &stored, &copy->code);
}

/* ---- The answer ---- */

static void answer(const struct copy *copy)
{
    const struct srv_s3_put_work *work = &copy->work;
    char etag[SRV_S3_ETAG_LEN_MAX + 2], modified[SRV_ISO_DATE_LEN + 1];
    char sum[SRV_S3_CHECKSUM_TEXT_MAX];
    struct srv_s3_head head;
    struct srv_xml xml;

    srv_iso_date_write(work->modified_ms, modified);
    srv_xml_init(&xml);
    srv_xml_open(&xml,
                 copy->is_part ? "CopyPartResult" SRV_S3_XMLNS : "CopyObjectResult" SRV_S3_XMLNS);
    srv_xml_element_z(&xml, "LastModified", modified);
    srv_xml_element(&xml, "ETag", srv_s3_quote_etag(srv_s3_str(work->etag), etag));
    if (work->checksum.algorithm != SRV_CHECKSUM_NONE) {
        srv_xml_element(&xml, srv_checksum_element(work->checksum.algorithm),
                        srv_s3_checksum_text(&work->checksum, sum));
        if (!copy->is_part)
            srv_xml_element_z(&xml, "ChecksumType", srv_s3_checksum_type(&work->checksum));
    }
    srv_xml_close(&xml, copy->is_part ? "CopyPartResult" : "CopyObjectResult");
    srv_s3_head_init(&head, &copy->task.call);
    srv_s3_answer_xml(&copy->task.call, &head, &xml);
}

static void on_poured(struct srv_s3_task *task)
{
    struct copy *copy = (struct copy *)task;

    if (copy->code == SRV_S3_PRECONDITION_FAILED)
        srv_s3_fail_condition(&task->call, copy->condition);
    else if (copy->code != SRV_S3_NONE)
        srv_s3_fail(&task->call, copy->code, copy->message);
    else if (copy->is_done)
        answer(copy);
    else
        srv_s3_task_submit_admitted(task, pour, on_poured);
}

void srv_s3_object_copy(const struct srv_s3_call *call)
{
    struct copy *copy = srv_s3_task_create(call, sizeof *copy, fini);

    if (copy == NULL)
        return;
    copy->now_s = (uint32_t)srv_s3_now_s(call);
    copy->is_part = call->route.sub == SRV_S3_SUB_UPLOAD_ID;
    enum srv_s3_code code = read_head(copy);
    if (code != SRV_S3_NONE)
        srv_s3_fail(&copy->task.call, code, copy->message);
    else
        srv_s3_task_run(&copy->task, pour, on_poured);
}
