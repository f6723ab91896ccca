#include "server/s3/task.h"

#include <stdlib.h>

#include "server/check.h"
#include "server/loop.h"

static void destroy(struct srv_s3_task *task)
{
    if (task->fini_ != NULL)
        task->fini_(task);
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

static void on_done(struct srv_job *job)
{
    struct srv_s3_task *task = task_of(job);

    task->is_working = false;
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
    task->fini_ = fini;
    task->share_ = share;
    srv_exchange_attach(call->ex, task, on_gone);
    return task;
}

static void prepare(struct srv_s3_task *task, void (*work)(struct srv_s3_task *task),
                    void (*next)(struct srv_s3_task *task))
{
    SRV_CHECK(!task->is_working && !task->is_gone_);
    task->job_ = (struct srv_job){.run = on_run, .done = on_done};
    task->work_ = work;
    task->next_ = next;
    task->is_working = true;
}

void srv_s3_task_await(struct srv_s3_task *task, void (*next)(struct srv_s3_task *task))
{
    prepare(task, NULL, next);
    srv_loop_expect(srv_exchange_loop(task->call.ex), 1);
    task->loop_ = srv_exchange_loop(task->call.ex);
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
    if (!srv_job_submit(task->call.s3->pool, srv_exchange_loop(task->call.ex), &task->job_))
        task->is_working = false;
    return task->is_working;
}

void srv_s3_task_submit_admitted(struct srv_s3_task *task, void (*work)(struct srv_s3_task *task),
                                 void (*next)(struct srv_s3_task *task))
{
    prepare(task, work, next);
    srv_job_submit_admitted(task->call.s3->pool, srv_exchange_loop(task->call.ex), &task->job_);
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
    srv_job_detach();
    task->note_ = (struct srv_names_note){.done = on_listed};
    srv_names_await(task->call.s3->names, &task->note_);
}
