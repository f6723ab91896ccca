#include "server/s3/multi_delete.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/s3/body_task.h"
#include "server/s3/buckets.h"
#include "server/s3/change.h"
#include "server/s3/delete_list.h"
#include "server/s3/meta.h"
#include "server/s3/names_row.h"
#include "server/xml.h"

/* The longest body: keys of 1024 characters that are all written as references. */
enum { BODY_MAX = 8 << 20, ATTEMPTS = 8 };

struct multi_delete {
    struct srv_s3_body_task body;
    struct srv_xml xml;
};

static void fini(struct srv_s3_body_task *task)
{
    srv_xml_fini(&((struct multi_delete *)task)->xml);
}

/* ---- One object ---- */

static bool is_conditional(const struct srv_delete_item *item)
{
    return item->etag.base != NULL || item->has_size || item->has_modified;
}

static bool holds(const struct srv_delete_item *item, const struct gyre_handle *handle)
{
    struct srv_s3_meta meta;
    size_t len;
    const void *bytes = gyre_handle_meta(handle, &len);

    if (!srv_s3_meta_decode(bytes, len, &meta))
        return false; /* what another program stored has no ETag and no date */
    bool any_etag = item->etag.len == 1 && item->etag.base[0] == '*';
    bool same_etag = item->etag.len == meta.etag.len &&
                     memcmp(item->etag.base, meta.etag.base, meta.etag.len) == 0;
    return (item->etag.base == NULL || any_etag || same_etag) &&
           (!item->has_size || item->size == gyre_handle_info(handle)->length) &&
           (!item->has_modified || item->modified_s == meta.modified_ms / 1000);
}

/* Deletes if the object is still the one with `serial`, or in any case if that is 0. */
static gyre_err delete_now(struct srv_s3_task *task, const struct srv_delete_item *item,
                           const struct gyre_key *digest, uint64_t serial)
{
    struct srv_s3 *s3 = task->call.s3;
    struct srv_s3_change change;

    srv_s3_change_begin_delete(&change, s3->names);
    gyre_err err =
        gyre_delete(s3->store, digest, serial != 0 ? GYRE_IF_SERIAL : GYRE_ALWAYS, serial, 0);
    srv_s3_change_end(&change, task->call.route.bucket, item->key, err == GYRE_OK ? digest : NULL);
    return err;
}

static enum srv_s3_code delete_if(struct srv_s3_task *task, const struct srv_delete_item *item,
                                  const struct gyre_key *digest)
{
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        struct gyre_handle *handle;
        gyre_err err = gyre_get(task->call.s3->store, digest, (uint32_t)time(NULL),
                                GYRE_GET_HEAD | GYRE_GET_NO_COUNT, &handle);
        if (err != GYRE_OK)
            return err == GYRE_NOT_FOUND || err == GYRE_EXPIRED ? SRV_S3_NONE : srv_s3_code_of(err);
        uint64_t serial = gyre_handle_info(handle)->serial;
        bool may_go = holds(item, handle);
        gyre_release(handle);
        if (!may_go)
            return SRV_S3_PRECONDITION_FAILED;
        err = delete_now(task, item, digest, serial);
        if (err != GYRE_CHANGED)
            return err == GYRE_NOT_FOUND ? SRV_S3_NONE : srv_s3_code_of(err);
    }
    return SRV_S3_CONDITIONAL_CONFLICT;
}

static enum srv_s3_code delete_item(struct srv_s3_task *task, const struct srv_delete_item *item)
{
    if (item->code != SRV_S3_NONE)
        return item->code;
    struct gyre_key digest = srv_name_key(task->call.route.bucket, item->key);
    if (is_conditional(item))
        return delete_if(task, item, &digest);
    gyre_err err = delete_now(task, item, &digest, 0);
    return err == GYRE_NOT_FOUND || err == GYRE_EXPIRED ? SRV_S3_NONE : srv_s3_code_of(err);
}

/* ---- All of them ---- */

static void write_item(struct srv_xml *xml, const struct srv_delete_item *item,
                       enum srv_s3_code code)
{
    const char *name = code == SRV_S3_NONE ? "Deleted" : "Error";

    srv_xml_open(xml, name);
    srv_xml_element(xml, "Key", item->key);
    if (item->version.base != NULL)
        srv_xml_element(xml, "VersionId", item->version);
    if (code != SRV_S3_NONE) {
        srv_xml_element_z(xml, "Code", srv_s3_code_name(code));
        srv_xml_element_z(xml, "Message", srv_s3_code_message(code));
    }
    srv_xml_close(xml, name);
}

static void delete_all(struct multi_delete *request, const struct srv_delete_list *list)
{
    struct srv_xml *xml = &request->xml;

    srv_xml_init(xml);
    srv_xml_open(xml, "DeleteResult" SRV_S3_XMLNS);
    for (size_t i = 0; i < list->n; i++) {
        enum srv_s3_code code = delete_item(&request->body.task, &list->items[i]);
        if (code != SRV_S3_NONE || !list->is_quiet)
            write_item(xml, &list->items[i], code);
    }
    srv_xml_close(xml, "DeleteResult");
}

static void work(struct srv_s3_body_task *task)
{
    struct srv_delete_list *list = calloc(1, sizeof *list);

    task->code = SRV_S3_SLOW_DOWN;
    if (list == NULL)
        return;
    task->code = srv_delete_list_init(list, task->bytes, task->len, time(NULL));
    bool is_read = task->code == SRV_S3_NONE;
    if (is_read)
        delete_all((struct multi_delete *)task, list);
    srv_delete_list_fini(list);
    free(list);
    if (is_read)
        srv_s3_task_await_lists(&task->task);
}

static void on_worked(struct srv_s3_body_task *task)
{
    struct multi_delete *request = (struct multi_delete *)task;
    struct srv_xml xml = request->xml;
    struct srv_s3_head head;

    request->xml = (struct srv_xml){0}; /* the answer ends it, and may end the task */
    srv_s3_head_init(&head, &task->task.call);
    srv_s3_answer_xml(&task->task.call, &head, &xml);
}

void srv_s3_multi_delete(const struct srv_s3_call *call)
{
    if (!srv_s3_bucket_exists(call->s3->buckets, call->route.bucket)) {
        srv_s3_fail(call, SRV_S3_NO_SUCH_BUCKET, NULL);
        return;
    }
    struct multi_delete *request = srv_s3_body_task_create(call, sizeof *request, fini);
    if (request != NULL)
        srv_s3_body_task_receive(&request->body, BODY_MAX, work, on_worked);
}
