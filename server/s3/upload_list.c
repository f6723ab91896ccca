/* ListParts and ListMultipartUploads. */
#include <stdlib.h>
#include <string.h>

#include "server/http_date.h"
#include "server/s3/base64.h"
#include "server/s3/buckets.h"
#include "server/s3/numbers.h"
#include "server/s3/object_head.h"
#include "server/s3/task.h"
#include "server/s3/upload.h"
#include "server/s3/upload_parts.h"
#include "server/s3/upload_record.h"
#include "server/s3/upload_page.h"
#include "server/uri.h"
#include "server/xml.h"

enum { PAGE_MAX = 1000 };

static bool read_number(struct srv_str query, const char *name, uint64_t otherwise, uint64_t max,
                        uint64_t *number_out)
{
    struct srv_str raw;

    *number_out = otherwise;
    if (!srv_query_find(query, name, &raw) || raw.len == 0)
        return true;
    if (!srv_s3_parse_u64(raw, number_out))
        return false;
    *number_out = *number_out < max ? *number_out : max;
    return true;
}

static void write_user(struct srv_xml *xml, const char *element, struct srv_str id)
{
    id = srv_s3_owner_or_default(id);
    srv_xml_open(xml, element);
    srv_xml_element(xml, "ID", id);
    srv_xml_element(xml, "DisplayName", id);
    srv_xml_close(xml, element);
}

/* ---- Parts ---- */

struct parts_task {
    struct srv_s3_task task; /* first */
    struct gyre_key key;
    struct gyre_upload_id id;
    uint64_t after, max;
    struct srv_s3_upload_parts parts; /* one more than asked for, to know whether there are more */
    struct gyre_handle *upload;
    struct srv_s3_upload_record record;
    struct srv_s3_meta meta; /* points into the upload */
    enum srv_s3_code code;
};

static void parts_fini(struct srv_s3_task *task)
{
    struct parts_task *t = (struct parts_task *)task;

    srv_s3_upload_parts_fini(&t->parts);
    gyre_release(t->upload);
}

static void collect_parts(struct srv_s3_task *task)
{
    struct parts_task *t = (struct parts_task *)task;
    struct gyre_store *store = task->call.s3->store;
    size_t len;

    gyre_err err = gyre_upload_get(store, &t->key, &t->id, &t->upload);
    if (err != GYRE_OK) {
        t->code = err == GYRE_NOT_FOUND ? SRV_S3_NO_SUCH_UPLOAD : srv_s3_code_of(err);
        return;
    }
    const void *bytes = gyre_handle_meta(t->upload, &len);
    if (!srv_s3_upload_record_decode(bytes, len, &t->record) ||
        !srv_s3_meta_decode(t->record.object.base, t->record.object.len, &t->meta))
        t->code = SRV_S3_NO_SUCH_UPLOAD;
    else
        t->code = srv_s3_upload_parts_collect(store, &t->key, &t->id, (uint32_t)t->after,
                                              t->max + 1, &t->parts);
}

static void write_part(struct srv_xml *xml, const struct srv_s3_upload_part *part)
{
    char date[SRV_ISO_DATE_LEN + 1], hex[33], quoted[SRV_S3_ETAG_LEN_MAX + 2];
    char sum[SRV_S3_CHECKSUM_TEXT_MAX];

    srv_iso_date_write((int64_t)part->created * 1000, date);
    srv_hex_encode(part->md5, sizeof part->md5, hex);
    srv_xml_open(xml, "Part");
    srv_xml_element_u64(xml, "PartNumber", part->number);
    srv_xml_element_z(xml, "LastModified", date);
    srv_xml_element(xml, "ETag", srv_s3_quote_etag(srv_s3_str(hex), quoted));
    srv_xml_element_u64(xml, "Size", part->length);
    if (part->checksum.algorithm != SRV_CHECKSUM_NONE)
        srv_xml_element(xml, srv_checksum_element(part->checksum.algorithm),
                        srv_s3_checksum_text(&part->checksum, sum));
    srv_xml_close(xml, "Part");
}

static void write_parts(struct srv_xml *xml, const struct parts_task *t)
{
    const struct srv_s3_call *call = &t->task.call;
    bool is_cut = t->parts.n > t->max;
    size_t n = is_cut ? (size_t)t->max : t->parts.n;
    char id[SRV_S3_UPLOAD_ID_LEN + 1];

    srv_s3_upload_id_write(&t->id, id);
    srv_xml_open(xml, "ListPartsResult" SRV_S3_XMLNS);
    srv_xml_element(xml, "Bucket", call->route.bucket);
    srv_xml_element(xml, "Key", call->route.key);
    srv_xml_element_z(xml, "UploadId", id);
    write_user(xml, "Initiator", t->meta.owner);
    write_user(xml, "Owner", t->meta.owner);
    srv_xml_element_z(xml, "StorageClass", "STANDARD");
    srv_xml_element_u64(xml, "PartNumberMarker", t->after);
    srv_xml_element_u64(xml, "NextPartNumberMarker", n > 0 ? t->parts.at[n - 1].number : 0);
    srv_xml_element_u64(xml, "MaxParts", t->max);
    srv_xml_element_z(xml, "IsTruncated", is_cut && n > 0 ? "true" : "false");
    if (t->record.checksum != SRV_CHECKSUM_NONE) {
        srv_xml_element_z(xml, "ChecksumAlgorithm", srv_checksum_name(t->record.checksum));
        srv_xml_element_z(xml, "ChecksumType",
                          t->record.is_composite ? "COMPOSITE" : "FULL_OBJECT");
    }
    for (size_t i = 0; i < n; i++)
        write_part(xml, &t->parts.at[i]);
    srv_xml_close(xml, "ListPartsResult");
}

static void on_parts(struct srv_s3_task *task)
{
    const struct parts_task *t = (const struct parts_task *)task;
    struct srv_s3_head head;
    struct srv_xml xml;

    if (t->code != SRV_S3_NONE) {
        srv_s3_fail(&task->call, t->code, NULL);
        return;
    }
    srv_xml_init(&xml);
    write_parts(&xml, t);
    srv_s3_task_empty(task);
    srv_s3_head_init(&head, &task->call);
    srv_s3_answer_xml(&task->call, &head, &xml);
}

void srv_s3_upload_parts(const struct srv_s3_call *call)
{
    struct srv_str query = call->req->query;
    struct parts_task *t = srv_s3_task_create(call, sizeof *t, parts_fini);

    if (t == NULL)
        return;
    call = &t->task.call;
    t->key = srv_s3_object_key(call);
    enum srv_s3_code code = srv_s3_upload_id_read(call->req, &t->id);
    if (!srv_s3_bucket_exists(call->s3->buckets, call->route.bucket))
        code = SRV_S3_NO_SUCH_BUCKET;
    if (code == SRV_S3_NONE &&
        (!read_number(query, "max-parts", PAGE_MAX, PAGE_MAX, &t->max) ||
         !read_number(query, "part-number-marker", 0, GYRE_UPLOAD_PARTS_MAX, &t->after)))
        code = SRV_S3_INVALID_ARGUMENT;
    if (code != SRV_S3_NONE)
        srv_s3_fail(call, code, NULL);
    else
        srv_s3_task_run(&t->task, collect_parts, on_parts);
}

/* ---- Uploads of a bucket ---- */

struct uploads_task {
    struct srv_s3_task task; /* first */
    struct srv_s3_upload_page page;
    enum srv_s3_code code;
};

static void uploads_fini(struct srv_s3_task *task)
{
    srv_s3_upload_page_fini(&((struct uploads_task *)task)->page);
}

static void collect_uploads(struct srv_s3_task *task)
{
    struct uploads_task *t = (struct uploads_task *)task;
    t->code = srv_s3_upload_page_collect(&t->page, task->call.s3->store, task->call.route.bucket);
}

static void on_uploads(struct srv_s3_task *task)
{
    struct uploads_task *t = (struct uploads_task *)task;
    struct srv_s3_head head;
    struct srv_xml xml;

    if (t->code != SRV_S3_NONE) {
        srv_s3_fail(&task->call, t->code, NULL);
        return;
    }
    srv_xml_init(&xml);
    srv_s3_upload_page_write(&t->page, &xml, task->call.route.bucket);
    srv_s3_task_empty(task);
    srv_s3_head_init(&head, &task->call);
    srv_s3_answer_xml(&task->call, &head, &xml);
}

void srv_s3_upload_list(const struct srv_s3_call *call)
{
    struct uploads_task *t = srv_s3_task_create(call, sizeof *t, uploads_fini);
    uint64_t max;

    if (t == NULL)
        return;
    call = &t->task.call;
    enum srv_s3_code code = SRV_S3_NO_SUCH_BUCKET;
    if (srv_s3_bucket_exists(call->s3->buckets, call->route.bucket)) {
        code = read_number(call->req->query, "max-uploads", PAGE_MAX, PAGE_MAX, &max)
                   ? srv_s3_upload_page_init(&t->page, call->req->query, (size_t)max)
                   : SRV_S3_INVALID_ARGUMENT;
    }
    if (code != SRV_S3_NONE)
        srv_s3_fail(call, code, NULL);
    else
        srv_s3_task_run(&t->task, collect_uploads, on_uploads);
}
