#include "server/s3/task.h"

#include <stdlib.h>

#include "server/check.h"
#include "server/loop.h"

void srv_s3_task_empty(struct srv_s3_task *task)
{
    if (task->fini_ != NULL)
        task->fini_(task);
    task->fini_ = NULL;
}

static void destroy(struct srv_s3_task *task)
{
    srv_s3_task_empty(task);
    srv_work_end(task->share_);
    free(task);
}

static void on_gone(void *ctx)
{
    struct srv_s3_task *task = ctx;

    task->is_gone_ = true;
    if (!task->is_working)
        destroy(task);
}

static struct srv_s3_task *task_of(struct srv_job *job)
{
    return (struct srv_s3_task *)((char *)job - offsetof(struct srv_s3_task, job_));
}

static void on_run(struct srv_job *job)
{
    struct srv_s3_task *task = task_of(job);
    task->work_(task);
}

static void on_done(struct srv_job *job);

static void prepare(struct srv_s3_task *task, void (*work)(struct srv_s3_task *task),
                    void (*next)(struct srv_s3_task *task))
{
    SRV_CHECK(!task->is_working);
    task->job_ = (struct srv_job){.run = on_run, .done = on_done};
    task->work_ = work;
    task->next_ = next;
    task->is_working = true;
}

static void start_admitted(struct srv_s3_task *task, void (*work)(struct srv_s3_task *task),
                           void (*next)(struct srv_s3_task *task))
{
    prepare(task, work, next);
    srv_job_submit_admitted(task->call.s3->pool, task->loop_, &task->job_);
}

static void confirm(struct srv_s3_task *task)
{
    const struct srv_s3_call *call = &task->call;

    *task->verdict_ = srv_s3_change_confirm(call->s3->store, call->s3->names, call->s3->buckets,
                                            &task->stored_, call->route.bucket, call->route.key);
    task->stored_.bucket = NULL;
}

/* Also when nobody waits for an answer: the object must not stay in a bucket that is gone. */
static bool is_to_be_confirmed(struct srv_s3_task *task)
{
    struct srv_s3_bucket *bucket = task->stored_.bucket;

    return bucket != NULL && !srv_s3_bucket_is_undisturbed(task->call.s3->buckets, bucket);
}

static void on_done(struct srv_job *job)
{
    struct srv_s3_task *task = task_of(job);

    task->is_working = false;
    if (is_to_be_confirmed(task)) {
        start_admitted(task, confirm, task->next_);
        return;
    }
    task->stored_.bucket = NULL;
    if (task->is_gone_)
        destroy(task);
    else
        task->next_(task);
}

void *srv_s3_task_create(const struct srv_s3_call *call, size_t size,
                         void (*fini)(struct srv_s3_task *task))
{
    SRV_CHECK(size >= sizeof(struct srv_s3_task));
    struct srv_conn *share = srv_work_begin(call->ex);
    struct srv_s3_task *task = share == NULL ? NULL : calloc(1, size);
    if (task == NULL) {
        srv_work_end(share);
        srv_s3_fail(call, SRV_S3_SLOW_DOWN, NULL);
        return NULL;
    }
    srv_s3_call_copy(call, &task->call);
    task->loop_ = srv_exchange_loop(call->ex);
    task->fini_ = fini;
    task->share_ = share;
    srv_exchange_attach(call->ex, task, on_gone);
    return task;
}

void srv_s3_task_await(struct srv_s3_task *task, void (*next)(struct srv_s3_task *task))
{
    prepare(task, NULL, next);
    srv_loop_expect(task->loop_, 1);
}

void srv_s3_task_arrive(struct srv_s3_task *task)
{
    struct srv_loop *loop = task->loop_; /* the task may be gone once this is posted */

    srv_loop_post(loop, &task->job_);
    srv_loop_expect(loop, -1);
}

void srv_s3_task_unawait(struct srv_s3_task *task)
{
    task->is_working = false;
    srv_loop_expect(task->loop_, -1);
}

bool srv_s3_task_submit(struct srv_s3_task *task, void (*work)(struct srv_s3_task *task),
                        void (*next)(struct srv_s3_task *task))
{
    prepare(task, work, next);
    if (!srv_job_submit(task->call.s3->pool, task->loop_, &task->job_))
        task->is_working = false;
    return task->is_working;
}

void srv_s3_task_submit_admitted(struct srv_s3_task *task, void (*work)(struct srv_s3_task *task),
                                 void (*next)(struct srv_s3_task *task))
{
    start_admitted(task, work, next);
}

void srv_s3_task_run(struct srv_s3_task *task, void (*work)(struct srv_s3_task *task),
                     void (*next)(struct srv_s3_task *task))
{
    if (!srv_s3_task_submit(task, work, next))
        srv_s3_fail(&task->call, SRV_S3_SLOW_DOWN, NULL);
}

static void on_listed(struct srv_names_note *note)
{
    struct srv_s3_task *task =
        (struct srv_s3_task *)((char *)note - offsetof(struct srv_s3_task, note_));

    srv_job_finish(&task->job_);
}

void srv_s3_task_await_lists(struct srv_s3_task *task)
{
    if (!srv_names_lists(task->call.s3->names, task->call.route.bucket))
        return;
    srv_job_detach();
    task->note_ = (struct srv_names_note){.done = on_listed};
    srv_names_await(task->call.s3->names, &task->note_);
}

void srv_s3_task_await_stored(struct srv_s3_task *task, const struct srv_s3_stored *stored,
                              enum srv_s3_code *verdict)
{
    task->stored_ = *stored;
    task->verdict_ = verdict;
    srv_s3_task_await_lists(task);
}

void srv_s3_task_end(struct srv_s3_task *task, struct srv_s3_call *call_out)
{
    srv_s3_call_copy(&task->call, call_out);
    srv_exchange_attach(task->call.ex, NULL, NULL);
    destroy(task);
}
