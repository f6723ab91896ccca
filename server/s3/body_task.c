#include "server/s3/body_task.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "server/buf.h"
#include "server/s3/put_head.h"

enum { CAPACITY_MIN = 1024 };

static void on_body(void *ctx, enum srv_body_event event, struct srv_buf *buf);

static void fini(struct srv_s3_task *base)
{
    struct srv_s3_body_task *task = (struct srv_s3_body_task *)base;

    if (task->fini_ != NULL)
        task->fini_(task);
    if (task->framing_ != NULL)
        srv_aws_chunked_fini(task->framing_);
    free(task->framing_);
    free(task->bytes);
}

void *srv_s3_body_task_create(const struct srv_s3_call *call, size_t size,
                              void (*fini_of_task)(struct srv_s3_body_task *task))
{
    SRV_CHECK(size >= sizeof(struct srv_s3_body_task));
    struct srv_s3_body_task *task = srv_s3_task_create(call, size, fini);
    if (task != NULL)
        task->fini_ = fini_of_task;
    return task;
}

/* ---- Checking, on a worker ---- */

static enum srv_s3_code unframe(struct srv_s3_body_task *task)
{
    enum srv_s3_code code;

    if (task->framing_ == NULL)
        return SRV_S3_NONE;
    code = srv_aws_chunked_feed(task->framing_, task->bytes, task->len, &task->len);
    return code == SRV_S3_NONE ? srv_aws_chunked_finish(task->framing_) : code;
}

/* The trailer's checksum, if one was announced. */
static bool take_trailer(struct srv_s3_body_task *task, struct srv_digest *digest)
{
    struct srv_str value;

    if (!task->plan_.is_trailing)
        return true;
    return srv_aws_chunked_trailer(task->framing_, srv_checksum_field(task->plan_.checksum),
                                   &value) &&
           srv_digest_set_value(digest, value);
}

static enum srv_s3_code verify(struct srv_s3_body_task *task)
{
    struct srv_digest digest;
    uint8_t md5[16];

    enum srv_s3_code code = unframe(task);
    if (code != SRV_S3_NONE)
        return code;
    enum srv_digest_fault fault = srv_digest_init(&digest, &task->plan_);
    if (fault == SRV_DIGEST_FINE)
        fault = srv_digest_update(&digest, task->bytes, task->len);
    if (fault == SRV_DIGEST_FINE)
        fault =
            take_trailer(task, &digest) ? srv_digest_finish(&digest, md5) : SRV_DIGEST_BAD_CHECKSUM;
    srv_digest_fini(&digest);
    return srv_s3_put_head_fault(fault, &task->message);
}

static void work(struct srv_s3_task *base)
{
    struct srv_s3_body_task *task = (struct srv_s3_body_task *)base;

    task->code = verify(task);
    if (task->code == SRV_S3_NONE)
        task->work_(task);
}

static void on_worked(struct srv_s3_task *base)
{
    struct srv_s3_body_task *task = (struct srv_s3_body_task *)base;

    /* The client may take long to want its answer. */
    free(task->bytes);
    task->bytes = NULL;
    task->len = task->capacity_ = 0;
    srv_exchange_keep(base->call.ex, 0);
    if (task->code != SRV_S3_NONE)
        srv_s3_task_empty(base);
    if (task->code == SRV_S3_PRECONDITION_FAILED)
        srv_s3_fail_condition(&base->call, task->condition);
    else if (task->code != SRV_S3_NONE)
        srv_s3_fail(&base->call, task->code, task->message);
    else
        task->next_(task);
}

/* ---- Receiving ---- */

static bool append(struct srv_s3_body_task *task, const struct srv_buf *buf)
{
    size_t need = task->len + buf->len;

    if (need > task->capacity_) {
        size_t capacity = 2 * need < CAPACITY_MIN ? CAPACITY_MIN : 2 * need;
        if (!srv_exchange_keep(task->task.call.ex, capacity))
            return false;
        char *grown = realloc(task->bytes, capacity);
        if (grown == NULL)
            return false;
        task->bytes = grown;
        task->capacity_ = capacity;
    }
    if (buf->len > 0)
        memcpy(task->bytes + task->len, buf->base, buf->len);
    task->len = need;
    return true;
}

static enum srv_s3_code take(struct srv_s3_body_task *task, enum srv_body_event event,
                             const struct srv_buf *buf)
{
    /* Framing takes some bytes beside the body's own. */
    size_t limit = task->framing_ != NULL ? task->limit_ + task->limit_ / 8 + 4096 : task->limit_;

    switch (event) {
    case SRV_BODY_DATA:
    case SRV_BODY_END: break;
    case SRV_BODY_MALFORMED: return SRV_S3_INCOMPLETE_BODY;
    case SRV_BODY_STALLED: return SRV_S3_REQUEST_TIMEOUT;
    case SRV_BODY_OVERLOAD: return SRV_S3_SLOW_DOWN;
    }
    if (buf == NULL)
        return SRV_S3_NONE;
    if (buf->len > limit - task->len)
        return SRV_S3_MALFORMED_XML;
    return append(task, buf) ? SRV_S3_NONE : SRV_S3_SLOW_DOWN;
}

static void on_body(void *ctx, enum srv_body_event event, struct srv_buf *buf)
{
    struct srv_s3_body_task *task = ctx;

    enum srv_s3_code code = take(task, event, buf);
    srv_buf_release(buf);
    if (code != SRV_S3_NONE)
        srv_s3_fail(&task->task.call, code, NULL);
    else if (event == SRV_BODY_DATA)
        srv_body_read(task->task.call.ex, on_body);
    else
        srv_s3_task_run(&task->task, work, on_worked);
}

static enum srv_s3_code plan(struct srv_s3_body_task *task, enum srv_s3_body_sums sums)
{
    const struct srv_s3_call *call = &task->task.call;
    struct srv_aws_framing framing;
    bool is_framed;

    enum srv_s3_code code = srv_s3_framing_of(call, &framing, &is_framed, &task->message);
    if (code == SRV_S3_NONE && is_framed) {
        task->framing_ = malloc(sizeof *task->framing_);
        if (task->framing_ == NULL)
            code = SRV_S3_SLOW_DOWN;
        else
            srv_aws_chunked_init(task->framing_, &framing);
    }
    OPENSSL_cleanse(&framing.key, sizeof framing.key);
    if (code != SRV_S3_NONE)
        return code;
    enum srv_digest_fault fault = srv_digest_plan(call->req, false, is_framed, &task->plan_);
    if (sums == SRV_S3_BODY_SUMS_ARE_NOT_ITS_OWN) {
        task->plan_.checksum = SRV_CHECKSUM_NONE;
        task->plan_.has_value = task->plan_.is_trailing = false;
        if (fault == SRV_DIGEST_BAD_CHECKSUM || fault == SRV_DIGEST_MANY_CHECKSUMS ||
            fault == SRV_DIGEST_CHECKSUM_MISSING)
            fault = SRV_DIGEST_FINE;
    }
    return srv_s3_put_head_fault(fault, &task->message);
}

void srv_s3_body_task_receive(struct srv_s3_body_task *task, size_t limit,
                              void (*work_of_task)(struct srv_s3_body_task *task),
                              void (*next)(struct srv_s3_body_task *task))
{
    srv_s3_body_task_receive_of(task, limit, SRV_S3_BODY_SUMS_ARE_ITS_OWN, work_of_task, next);
}

void srv_s3_body_task_receive_of(struct srv_s3_body_task *task, size_t limit,
                                 enum srv_s3_body_sums sums,
                                 void (*work_of_task)(struct srv_s3_body_task *task),
                                 void (*next)(struct srv_s3_body_task *task))
{
    const struct srv_s3_call *call = &task->task.call;

    task->limit_ = limit;
    task->work_ = work_of_task;
    task->next_ = next;
    enum srv_s3_code code = plan(task, sums);
    if (code != SRV_S3_NONE)
        srv_s3_fail(call, code, task->message);
    else if (call->req->has_body)
        srv_body_read(call->ex, on_body);
    else
        srv_s3_task_run(&task->task, work, on_worked);
}
