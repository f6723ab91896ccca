#include "server/s3/object_list.h"

#include <time.h>

#include "server/s3/buckets.h"
#include "server/s3/list_write.h"
#include "server/s3/names_scan.h"
#include "server/s3/task.h"
#include "server/uri.h"

/* Rows one page may find without objects, before it says how far it got: some 100 ms. */
enum { BUDGET = 200000 };

struct listing {
    struct srv_s3_task task;
    struct srv_list_query query;
    struct srv_list_page page;
    struct srv_list_writer writer;
    struct srv_xml xml;
    enum srv_s3_code code;
};

static void fini(struct srv_s3_task *task)
{
    struct listing *listing = (struct listing *)task;

    srv_xml_fini(&listing->xml);
    srv_list_writer_fini(&listing->writer);
    srv_list_query_fini(&listing->query);
}

/* ---- Rows from the index ---- */

struct reading {
    struct srv_names_scan scan;
    struct srv_name_row row;
};

static bool seek(void *data, struct srv_str key, bool is_after)
{
    struct reading *reading = data;

    return srv_names_scan_seek(&reading->scan, key, is_after) == SRV_NAMES_FOUND;
}

static enum srv_list_step next(void *data, const struct srv_name_row **row_out,
                               struct srv_str *key_out)
{
    struct reading *reading = data;
    enum srv_names_found found = srv_names_scan_next(&reading->scan, &reading->row);

    *row_out = &reading->row;
    *key_out = (struct srv_str){NULL, 0};
    if (found == SRV_NAMES_FOUND || found == SRV_NAMES_SPENT)
        *key_out = srv_names_scan_key(&reading->scan, &reading->row);
    switch (found) {
    case SRV_NAMES_FOUND: return SRV_LIST_ROW;
    case SRV_NAMES_END: return SRV_LIST_END;
    case SRV_NAMES_SPENT: return SRV_LIST_SPENT;
    case SRV_NAMES_NOT_NOW: break;
    }
    return SRV_LIST_FAILED;
}

/* ---- A request ---- */

static void work(struct srv_s3_task *task)
{
    struct listing *listing = (struct listing *)task;
    struct reading reading;
    const struct srv_list_rows rows = {&reading, seek, next};
    const struct srv_list_sink sink = srv_list_writer_sink(&listing->writer);
    const struct srv_list_page *page = &listing->page;

    listing->code = SRV_S3_SLOW_DOWN;
    if (srv_names_scan_begin(task->call.s3->names, task->call.route.bucket, (uint32_t)time(NULL),
                             BUDGET, &reading.scan) != SRV_NAMES_FOUND)
        return;
    srv_list_page(&listing->query, &rows, &sink, &listing->page);
    srv_names_scan_end(&reading.scan);
    /* Only a token can say that a page ended between two entries. For the others, rows without
     * objects are gone when they try again. */
    if (page->is_failed || (page->is_exact && listing->query.kind != SRV_LIST_V2))
        return;
    listing->code = SRV_S3_NONE;
    srv_list_writer_finish(&listing->writer, page, &listing->xml);
}

static void on_worked(struct srv_s3_task *task)
{
    struct listing *listing = (struct listing *)task;
    struct srv_xml xml = listing->xml;
    char region[SRV_S3_REGION_MAX];
    struct srv_s3_head head;

    if (listing->code != SRV_S3_NONE) {
        srv_s3_fail(&task->call, listing->code, "The index of names is being made; try again.");
        return;
    }
    srv_s3_region(task->call.s3, region);
    listing->xml = (struct srv_xml){0}; /* the answer ends it */
    srv_s3_task_empty(task);
    srv_s3_head_init(&head, &task->call);
    srv_s3_head_add(&head, "x-amz-bucket-region", srv_s3_str(region));
    srv_s3_answer_xml(&task->call, &head, &xml);
}

static void begin(const struct srv_s3_call *call, enum srv_list_kind kind)
{
    const char *message;

    if (!srv_s3_bucket_exists(call->s3->buckets, call->route.bucket)) {
        srv_s3_fail(call, SRV_S3_NO_SUCH_BUCKET, NULL);
        return;
    }
    if (!srv_names_lists(call->s3->names, call->route.bucket)) {
        srv_s3_fail(call, SRV_S3_NOT_IMPLEMENTED,
                    "This bucket keeps no index of names (index = off), so its objects cannot be "
                    "listed.");
        return;
    }
    struct listing *listing = srv_s3_task_create(call, sizeof *listing, fini);
    if (listing == NULL)
        return;
    enum srv_s3_code code = srv_list_query_init(&listing->query, kind, call->req->query, &message);
    if (code != SRV_S3_NONE) {
        srv_s3_fail(call, code, message);
        return;
    }
    srv_list_writer_init(&listing->writer, &listing->query, listing->task.call.route.bucket);
    srv_s3_task_run(&listing->task, work, on_worked);
}

void srv_s3_object_list_v1(const struct srv_s3_call *call)
{
    begin(call, SRV_LIST_V1);
}

void srv_s3_object_list_v2(const struct srv_s3_call *call)
{
    struct srv_str type;

    (void)srv_query_find(call->req->query, "list-type", &type);
    if (type.len != 1 || type.base[0] != '2')
        srv_s3_fail(call, SRV_S3_INVALID_ARGUMENT, "The only list-type there is is 2.");
    else
        begin(call, SRV_LIST_V2);
}

void srv_s3_object_list_versions(const struct srv_s3_call *call)
{
    begin(call, SRV_LIST_VERSIONS);
}
