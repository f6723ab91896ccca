#include "server/s3/object_get.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/conditional.h"
#include "server/s3/buckets.h"
#include "server/s3/object_head.h"
#include "server/s3/override.h"
#include "server/s3/part_of.h"
#include "server/s3/task.h"
#include "server/stored.h"
#include "server/target.h"

/* Which bytes of the body an answer carries. */
struct selection {
    uint64_t first;
    uint64_t len;
};

/* Facts have other keys: what is missing is not looked for among them. */
enum { OBJECTS = GYRE_IN_POOL(GYRE_POOL_MAIN) };

/* A read that needs workers. */
struct get {
    struct srv_s3_task task;
    struct gyre_key key;
    uint32_t now_s;
    unsigned flags;
    struct gyre_handle *handle; /* the job's while one is out */
    gyre_err err;               /* of the last job */
    struct selection selection; /* UNREAD: what to read */
    bool is_read;               /* its first bytes are in memory, or all of them in `bytes` */
    uint8_t *bytes;             /* of a selection up to SRV_S3_COPY_MAX */
};

/* ---- Answers ---- */

/* Whether the client has no use for an answer of an origin, which is told from a missing object by
 * its status (RFC 9111, 5.2.1.7). */
static bool wants_cached(const struct srv_request *req)
{
    static const char ONLY[] = "only-if-cached";
    const struct srv_str *value = srv_request_field(req, "cache-control", NULL);

    if (value == NULL)
        return false;
    for (size_t i = 0; i + sizeof ONLY - 1 <= value->len; i++)
        if (strncasecmp(value->base + i, ONLY, sizeof ONLY - 1) == 0)
            return true;
    return false;
}

static void answer_missing(const struct srv_s3_call *call)
{
    struct srv_s3_head head;

    if (!srv_s3_may_know(&call->who)) {
        srv_s3_fail(call, SRV_S3_ACCESS_DENIED, NULL);
        return;
    }
    srv_s3_head_init(&head, call);
    if (call->req->method == SRV_HEAD)
        srv_s3_head_add(&head, "x-amz-delete-marker", srv_s3_str("false"));
    srv_s3_head_add(&head, "Cache-Status", srv_s3_str("gyre; detail=miss"));
    srv_s3_fail_with(call, wants_cached(call->req) ? SRV_S3_NOT_CACHED : SRV_S3_NO_SUCH_KEY, NULL,
                     &head, NULL, 0);
}

static void answer_error(const struct srv_s3_call *call, gyre_err err)
{
    /* A damaged object was dropped by whoever found it: what is left is a cache miss. */
    if (err == GYRE_NOT_FOUND || err == GYRE_EXPIRED || err == GYRE_DAMAGED)
        answer_missing(call);
    else
        srv_s3_fail(call, srv_s3_code_of(err), NULL);
}

static void answer_unsatisfiable(const struct srv_s3_call *call, const struct srv_range *range,
                                 uint64_t length)
{
    char size[24], value[SRV_CONTENT_RANGE_MAX];
    const struct srv_str *asked = srv_request_field(call->req, "range", NULL);
    struct srv_s3_head head;

    int size_len = snprintf(size, sizeof size, "%" PRIu64, length);
    struct srv_s3_detail details[] = {{"RangeRequested", *asked},
                                      {"ActualObjectSize", {size, (size_t)size_len}}};
    srv_s3_head_init(&head, call);
    size_t value_len = srv_range_write(range, length, value);
    srv_s3_head_add(&head, "Content-Range", (struct srv_str){value, value_len});
    srv_s3_fail_with(call, SRV_S3_INVALID_RANGE, NULL, &head, details, 2);
}

/* Sends a short selection. WOULD_BLOCK, with nothing sent, when it is not in memory. What is stored
 * with its metadata was read and verified with it. */
static gyre_err send_copy(const struct srv_s3_call *call, struct gyre_handle *handle,
                          const struct selection *selection, const struct srv_response *res)
{
    uint8_t bytes[SRV_S3_COPY_MAX];
    struct gyre_piece piece;
    size_t done = 0, n;
    gyre_err err = GYRE_OK;

    if (gyre_handle_info(handle)->parts == 0) {
        err = gyre_handle_piece(handle, selection->first, &piece);
        if (err == GYRE_OK && piece.len >= selection->len) {
            srv_respond_bytes(call->ex, res, piece.base, selection->len);
            return GYRE_OK;
        }
    }
    while (err == GYRE_OK && done < selection->len) {
        err = gyre_copy(handle, selection->first + done, bytes + done, selection->len - done,
                        GYRE_GET_NOWAIT, &n);
        done += n;
    }
    if (err == GYRE_OK)
        srv_respond_bytes(call->ex, res, bytes, done);
    return err;
}

/* Lends a long selection; takes the handle. */
static gyre_err send_source(const struct srv_s3_call *call, struct gyre_handle **handle,
                            const struct selection *selection, const struct srv_response *res)
{
    struct srv_source *source =
        srv_stored_create(call->ex, call->s3->pool, handle, selection->first, selection->len);
    if (source == NULL)
        return GYRE_NO_MEMORY;
    srv_respond(call->ex, res, source);
    return GYRE_OK;
}

/* Sends the body. `get` is NULL on the HIT path. WOULD_BLOCK: nothing was sent. */
static gyre_err send_body(const struct srv_s3_call *call, struct gyre_handle **handle,
                          struct get *get, const struct selection *selection,
                          const struct srv_response *res)
{
    bool is_read = get != NULL && get->is_read;
    uint64_t first_len =
        selection->len < SRV_STORED_SEND_MAX ? selection->len : SRV_STORED_SEND_MAX;

    if (selection->len > SRV_S3_COPY_MAX) {
        if (!is_read && !gyre_resident(*handle, selection->first, first_len))
            return GYRE_WOULD_BLOCK;
        return send_source(call, handle, selection, res);
    }
    if (!is_read)
        return send_copy(call, *handle, selection, res);
    uint8_t *bytes = get->bytes;
    get->bytes = NULL; /* the answer's */
    srv_respond_owned(call->ex, res, bytes, selection->len);
    return GYRE_OK;
}

/* Whether the client asks for checksums; they are of the whole object or of a part, never of any
 * other range. */
static bool wants_checksum(const struct srv_request *req)
{
    const struct srv_str *mode = srv_request_field(req, "x-amz-checksum-mode", NULL);
    return mode != NULL && srv_str_equal_nocase(*mode, srv_s3_str("ENABLED"));
}

/* Adds what only some requests ask for. */
static void add_extras(const struct srv_s3_call *call, const struct srv_s3_meta *meta,
                       const struct srv_s3_part *part, bool is_range,
                       struct srv_s3_object_head *object)
{
    struct srv_s3_checksum checksum;

    if (part->n_parts > 0 && part->is_asked) {
        int len = snprintf(object->n_parts, sizeof object->n_parts, "%" PRIu32, part->n_parts);
        srv_s3_head_add(&object->head, "x-amz-mp-parts-count",
                        (struct srv_str){object->n_parts, (size_t)len});
    }
    if (is_range || !wants_checksum(call->req))
        return;
    (void)srv_s3_checksum_decode(meta->checksum, &checksum);
    const char *type = srv_s3_checksum_type(&checksum);
    if (part->n_parts > 0 && part->is_asked)
        checksum = part->checksum;
    srv_s3_head_add_checksum(&object->head, &checksum, type, object->checksum);
}

/* The range that the request selects: a part, what Range says, or everything. */
static struct srv_range select_range(const struct srv_str *range_field,
                                     const struct srv_s3_part *part, uint64_t length)
{
    if (!part->is_asked || part->n_parts == 0)
        return srv_range_decide(range_field, length);
    if (part->length == 0)
        return (struct srv_range){.kind = SRV_RANGE_WHOLE};
    return (struct srv_range){SRV_RANGE_PART, part->offset, part->offset + part->length - 1};
}

/* Answers with what is stored. */
static gyre_err answer_stored(const struct srv_s3_call *call, struct gyre_handle **handle,
                              struct get *get, const struct srv_s3_meta *meta,
                              const struct srv_str *range_field, struct selection *selection_out)
{
    uint64_t length = gyre_handle_info(*handle)->length;
    struct srv_s3_object_head object;
    struct srv_s3_part part;

    *selection_out = (struct selection){0, length};
    enum srv_s3_code code = srv_s3_part_of(call->req, *handle, meta, &part);
    if (code != SRV_S3_NONE) {
        srv_s3_fail(call, code, NULL);
        return GYRE_OK;
    }
    struct srv_range range = select_range(range_field, &part, length);
    if (range.kind == SRV_RANGE_UNSATISFIABLE) {
        answer_unsatisfiable(call, &range, length);
        return GYRE_OK;
    }
    srv_s3_object_head_init(&object, call, meta);
    srv_s3_object_head_hit(&object, gyre_handle_info(*handle), srv_s3_now_s(call));
    srv_s3_object_head_describe(&object, meta);
    if (range.kind == SRV_RANGE_PART) {
        srv_s3_object_head_range(&object, &range, length);
        *selection_out = (struct selection){range.first, range.last - range.first + 1};
    } else if (part.is_asked && part.n_parts > 0) {
        *selection_out = (struct selection){0, 0};
    }
    srv_s3_head_add_expiration(&object.head, call, meta, length, object.expiration);
    add_extras(call, meta, &part, range.kind == SRV_RANGE_PART && !part.is_asked, &object);
    struct srv_response res = {.status = range.kind == SRV_RANGE_PART ? 206 : 200,
                               .fields = object.head.fields,
                               .n_fields = object.head.n,
                               .content_length = selection_out->len};
    if (call->req->method != SRV_HEAD && selection_out->len > 0)
        return send_body(call, handle, get, selection_out, &res);
    srv_respond(call->ex, &res, NULL);
    return GYRE_OK;
}

/* Answers from a handle, and may take it. WOULD_BLOCK: nothing was answered, and *selection_out
 * must be read first. */
static gyre_err answer(const struct srv_s3_call *call, struct gyre_handle **handle, struct get *get,
                       struct selection *selection_out)
{
    int64_t now_s = srv_s3_now_s(call);
    const struct srv_str *range_field = NULL;
    const char *condition;
    struct srv_s3_object_head object;
    char overrides[SRV_S3_OVERRIDE_BYTES];
    struct srv_s3_meta meta;
    size_t len;

    const void *bytes = gyre_handle_meta(*handle, &len);
    if (!srv_s3_meta_decode(bytes, len, &meta))
        return GYRE_NOT_FOUND; /* stored by another program: no S3 object */
    if (!srv_s3_may_use(&call->who, meta.owner, meta.acl, SRV_S3_ACL_READ)) {
        srv_s3_fail(call, SRV_S3_ACCESS_DENIED, NULL);
        return GYRE_OK;
    }
    if (call->req->query.len > 0) {
        enum srv_s3_code code = srv_s3_override(call->req->query, &meta, overrides);
        if (code != SRV_S3_NONE) {
            srv_s3_fail(call, code, NULL);
            return GYRE_OK;
        }
    }
    struct srv_validators stored = {meta.etag, meta.modified_ms / 1000};
    switch (srv_conditional_decide(call->req, &stored, now_s, &condition)) {
    case SRV_VERDICT_NOT_MODIFIED:
        srv_s3_object_head_init(&object, call, &meta);
        srv_s3_object_head_hit(&object, gyre_handle_info(*handle), now_s);
        srv_s3_answer_empty(call, 304, &object.head, SRV_LENGTH_UNKNOWN);
        return GYRE_OK;
    case SRV_VERDICT_FAILED:
    case SRV_VERDICT_MISSING: srv_s3_fail_condition(call, condition); return GYRE_OK;
    case SRV_VERDICT_PROCEED: break;
    }
    if (call->req->method == SRV_GET)
        range_field = srv_conditional_range(call->req, &stored, now_s);
    return answer_stored(call, handle, get, &meta, range_field, selection_out);
}

/* ---- Reads that need workers ---- */

static void fini(struct srv_s3_task *task)
{
    struct get *get = (struct get *)task;

    gyre_release(get->handle);
    free(get->bytes);
}

/* On a worker: reads what is to be sent first. */
static void read_selection(struct srv_s3_task *task)
{
    struct get *get = (struct get *)task;
    const struct selection *selection = &get->selection;
    size_t done = 0, n;

    if (selection->len > SRV_S3_COPY_MAX) {
        uint64_t len =
            selection->len < SRV_STORED_WINDOW_BYTES ? selection->len : SRV_STORED_WINDOW_BYTES;
        get->err = gyre_populate(get->handle, selection->first, len);
        return;
    }
    get->bytes = malloc(selection->len);
    get->err = get->bytes == NULL ? GYRE_NO_MEMORY : GYRE_OK;
    while (get->err == GYRE_OK && done < selection->len) {
        get->err = gyre_copy(get->handle, selection->first + done, get->bytes + done,
                             selection->len - done, 0, &n);
        done += n;
    }
}

static void on_read(struct srv_s3_task *task)
{
    struct get *get = (struct get *)task;
    struct selection selection;

    get->is_read = true;
    gyre_err err = get->err;
    if (err == GYRE_OK)
        err = answer(&task->call, &get->handle, get, &selection);
    if (err != GYRE_OK)
        answer_error(&task->call, err);
}

/* On a thread of the store's. */
static void arrived(void *data, gyre_err err)
{
    struct get *get = data;

    get->err = err;
    srv_s3_task_arrive(&get->task);
}

/* Has the beginning of a long selection brought in by the store, which keeps no worker; false for a
 * short one, or when the store has much to do. */
static bool read_long(struct get *get)
{
    const struct selection *selection = &get->selection;
    uint64_t len =
        selection->len < SRV_STORED_WINDOW_BYTES ? selection->len : SRV_STORED_WINDOW_BYTES;

    if (selection->len <= SRV_S3_COPY_MAX)
        return false;
    srv_s3_task_await(&get->task, on_read);
    if (gyre_populate_async(get->handle, selection->first, len, arrived, get) == GYRE_OK)
        return true;
    srv_s3_task_unawait(&get->task);
    return false;
}

/* On a worker: finds the object. */
static void find(struct srv_s3_task *task)
{
    struct get *get = (struct get *)task;
    get->err = gyre_get(task->call.s3->store, &get->key, get->now_s, get->flags, &get->handle);
}

static void on_found(struct srv_s3_task *task)
{
    struct get *get = (struct get *)task;
    gyre_err err = get->err;

    if (err == GYRE_OK)
        err = answer(&task->call, &get->handle, get, &get->selection);
    if (err == GYRE_WOULD_BLOCK && !read_long(get))
        srv_s3_task_submit_admitted(task, read_selection, on_read);
    else if (err != GYRE_OK && err != GYRE_WOULD_BLOCK)
        answer_error(&task->call, err);
}

/* Goes on with workers; `*handle` is the object if it is found already, and is taken. */
static void go_on_later(const struct srv_s3_call *call, const struct gyre_key *key,
                        struct gyre_handle **handle, const struct selection *selection)
{
    struct get *get = srv_s3_task_create(call, sizeof *get, fini);

    if (get == NULL)
        return;
    get->key = *key;
    get->now_s = (uint32_t)srv_s3_now_s(call);
    get->flags = OBJECTS | (call->req->method == SRV_HEAD ? GYRE_GET_HEAD : GYRE_GET_LAZY);
    get->handle = *handle;
    *handle = NULL;
    if (get->handle == NULL) {
        srv_s3_task_run(&get->task, find, on_found);
        return;
    }
    get->selection = *selection;
    if (!read_long(get))
        srv_s3_task_run(&get->task, read_selection, on_read);
}

void srv_s3_object_get(const struct srv_s3_call *call)
{
    struct gyre_handle *handle = NULL;
    struct selection selection;
    unsigned flags = GYRE_GET_NOWAIT | OBJECTS;

    if (call->req->query.len > 0 && srv_s3_has_override(call->req->query) &&
        !srv_s3_may_override(call)) {
        srv_s3_fail(call, SRV_S3_INVALID_REQUEST,
                    "Request specific response headers cannot be used for anonymous GET requests.");
        return;
    }
    if (!srv_s3_bucket_exists(call->s3->buckets, call->route.bucket)) {
        srv_s3_fail(call, SRV_S3_NO_SUCH_BUCKET, NULL);
        return;
    }
    struct gyre_key key = srv_s3_object_key(call);
    if (call->req->method == SRV_HEAD)
        flags |= GYRE_GET_HEAD;
    gyre_err err = gyre_get(call->s3->store, &key, (uint32_t)srv_s3_now_s(call), flags, &handle);
    if (err == GYRE_OK)
        err = answer(call, &handle, NULL, &selection);
    if (err == GYRE_WOULD_BLOCK)
        go_on_later(call, &key, &handle, &selection);
    else if (err != GYRE_OK)
        answer_error(call, err);
    gyre_release(handle);
}
