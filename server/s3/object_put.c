#include "server/s3/object_put.h"

#include "server/buf.h"
#include "server/s3/object_copy.h"
#include "server/s3/object_head.h"
#include "server/s3/put_work.h"
#include "server/s3/task.h"

/* At most one buffer is with a worker and one waits for it; the front is asked for another only
 * when none waits. That bounds a request's memory and is its backpressure. */
struct put {
    struct srv_s3_task task;
    struct srv_s3_put_work work; /* the worker's while a job is out */
    struct srv_buf *waiting;     /* may be NULL at the end of a body */
    bool is_waiting;
    bool is_waiting_last;
    bool is_admitted; /* the first job was accepted */
    bool is_answered;
};

static void on_body(void *ctx, enum srv_body_event event, struct srv_buf *buf);

static void fini(struct srv_s3_task *task)
{
    struct put *put = (struct put *)task;

    srv_buf_release(put->waiting);
    srv_s3_put_work_fini(&put->work);
}

/* Like every answer, the last thing done with the put: it may be gone afterwards. */
static void refuse(struct put *put, enum srv_s3_code code, const char *message)
{
    put->is_answered = true;
    srv_s3_fail(&put->task.call, code, message);
}

static void answer_stored(struct put *put)
{
    const struct srv_s3_put_work *work = &put->work;
    char etag[SRV_S3_ETAG_LEN_MAX + 2], value[SRV_S3_CHECKSUM_TEXT_MAX];
    char expiration[SRV_S3_EXPIRATION_MAX];
    struct srv_s3_head head;
    struct srv_s3_meta meta;

    put->is_answered = true;
    srv_s3_head_init(&head, &put->task.call);
    srv_s3_head_add(&head, "ETag", srv_s3_quote_etag(srv_s3_str(work->etag), etag));
    const char *type = work->is_part ? NULL : srv_s3_checksum_type(&work->checksum);
    srv_s3_head_add_checksum(&head, &work->checksum, type, value);
    if (!work->is_part && srv_s3_meta_decode(work->record, work->record_len, &meta)) {
        meta.modified_ms = work->modified_ms;
        srv_s3_head_add_expiration(&head, &put->task.call, &meta, work->stored_bytes, expiration);
    }
    srv_s3_answer_empty(&put->task.call, 200, &head, 0);
}

static void work(struct srv_s3_task *task)
{
    struct srv_s3_put_work *put_work = &((struct put *)task)->work;

    srv_s3_put_work_run(put_work);
    if (!put_work->is_last || put_work->code != SRV_S3_NONE || put_work->is_part)
        return;
    const struct srv_s3_stored stored = srv_s3_put_work_stored(put_work);
    srv_s3_task_await_stored(task, &stored, &put_work->code);
}

static void on_worked(struct srv_s3_task *task);

/* Hands bytes to a worker and asks for the next. */
static void feed(struct put *put, struct srv_buf *buf, bool is_last)
{
    put->work.buf = buf;
    put->work.is_last = is_last;
    if (put->is_admitted) {
        srv_s3_task_submit_admitted(&put->task, work, on_worked);
    } else if (!srv_s3_task_submit(&put->task, work, on_worked)) {
        refuse(put, SRV_S3_SLOW_DOWN, NULL);
        return;
    }
    put->is_admitted = true;
    if (!is_last)
        srv_body_read(put->task.call.ex, on_body);
}

static void on_worked(struct srv_s3_task *task)
{
    struct put *put = (struct put *)task;

    if (put->is_answered)
        return;
    if (put->work.code == SRV_S3_PRECONDITION_FAILED) {
        put->is_answered = true;
        srv_s3_fail_condition(&task->call, put->work.condition);
    } else if (put->work.code != SRV_S3_NONE) {
        refuse(put, put->work.code, put->work.message);
    } else if (put->work.is_last) {
        answer_stored(put);
    } else if (put->is_waiting) {
        struct srv_buf *buf = put->waiting;
        put->waiting = NULL;
        put->is_waiting = false;
        feed(put, buf, put->is_waiting_last);
    }
}

/* What a body that did not arrive answers. */
static enum srv_s3_code code_of_event(enum srv_body_event event)
{
    switch (event) {
    case SRV_BODY_STALLED: return SRV_S3_REQUEST_TIMEOUT;
    case SRV_BODY_OVERLOAD: return SRV_S3_SLOW_DOWN;
    case SRV_BODY_MALFORMED:
    case SRV_BODY_DATA:
    case SRV_BODY_END: break;
    }
    return SRV_S3_INCOMPLETE_BODY;
}

static void on_body(void *ctx, enum srv_body_event event, struct srv_buf *buf)
{
    struct put *put = ctx;
    bool is_last = event == SRV_BODY_END;

    if (put->is_answered) {
        srv_buf_release(buf);
        return;
    }
    if (event != SRV_BODY_DATA && event != SRV_BODY_END) {
        srv_buf_release(buf);
        refuse(put, code_of_event(event), NULL);
        return;
    }
    if (!put->task.is_working) {
        feed(put, buf, is_last);
        return;
    }
    put->waiting = buf;
    put->is_waiting = true;
    put->is_waiting_last = is_last;
}

/* Whether the conditions fail already, so that the body need not be sent. What is not in memory is
 * left to the worker, who decides in any case. */
static bool fails_early(struct put *put)
{
    const struct srv_s3_put_work *w = &put->work;
    enum srv_s3_code code;
    struct srv_s3_state state;

    if (!srv_s3_precondition_is_set(&w->precondition))
        return false;
    gyre_err err =
        srv_s3_precondition_decide(&w->precondition, w->store, &w->key,
                                   srv_s3_now_s(&put->task.call), GYRE_GET_NOWAIT, &code, &state);
    if (err == GYRE_WOULD_BLOCK || code == SRV_S3_NONE)
        return false;
    put->is_answered = true;
    if (code == SRV_S3_PRECONDITION_FAILED)
        srv_s3_fail_condition(&put->task.call, state.field);
    else
        srv_s3_fail(&put->task.call, code, NULL);
    return true;
}

static void receive(const struct srv_s3_call *call,
                    enum srv_s3_code (*init)(struct srv_s3_put_work *work,
                                             const struct srv_s3_call *call,
                                             const char **message_out))
{
    struct put *put = srv_s3_task_create(call, sizeof *put, fini);
    const char *message;

    if (put == NULL)
        return;
    enum srv_s3_code code = init(&put->work, &put->task.call, &message);
    if (code != SRV_S3_NONE) {
        refuse(put, code, message);
        return;
    }
    if (fails_early(put))
        return;
    if (put->task.call.req->has_body)
        srv_body_read(call->ex, on_body);
    else
        feed(put, NULL, true);
}

static bool is_copy(const struct srv_s3_call *call)
{
    return srv_request_field(call->req, "x-amz-copy-source", NULL) != NULL;
}

void srv_s3_object_put(const struct srv_s3_call *call)
{
    if (is_copy(call))
        srv_s3_object_copy(call);
    else
        receive(call, srv_s3_put_work_init);
}

void srv_s3_part_put(const struct srv_s3_call *call)
{
    if (is_copy(call))
        srv_s3_object_copy(call);
    else
        receive(call, srv_s3_put_work_init_part);
}
