/* An S3 request that needs worker threads: its memory, and who frees it.
 *
 *   CREATED -> WORKING [srv_s3_task_submit] -> CREATED [next(task) on the loop] -> ...
 *   CREATED -> freed [the exchange ends]
 *   WORKING -> ORPHANED [the exchange ends] -> freed [the job is done; next is not called]
 *
 * Owns:    a task owns itself: it is freed once the exchange has ended and no job is out, after
 *          `fini` has released what the handler put into it.
 * Threads: `work` on a worker; everything else on the exchange's loop.
 * Blocks:  `work` may; nothing else.
 */
#pragma once

#include "server/job.h"
#include "server/s3/call.h"
#include "server/s3/change.h"
#include "server/s3/names.h"

struct srv_s3_task {
    struct srv_s3_call call; /* its exchange and request must not be touched by `work` */
    struct srv_job job_;
    struct srv_loop *loop_;  /* the exchange's, which may go first */
    struct srv_conn *share_; /* of what one connection may have under way */
    struct srv_names_note note_;
    struct srv_s3_stored stored_; /* what is to be confirmed before `next_` */
    enum srv_s3_code *verdict_;   /* where that goes: into the task */
    void (*work_)(struct srv_s3_task *task);
    void (*next_)(struct srv_s3_task *task);
    void (*fini_)(struct srv_s3_task *task);
    bool is_working; /* a job is out: what it uses belongs to it */
    bool is_gone_;
};

/* A zeroed block of `size` bytes that begins with a task for a copy of `call`, attached to the
 * exchange. `fini` (may be NULL) runs on the loop before it is freed. NULL out of memory, or when
 * too much is under way for its connection; the request was then answered. */
void *srv_s3_task_create(const struct srv_s3_call *call, size_t size,
                         void (*fini)(struct srv_s3_task *task));

/* The task is now another thread's, which gives it back with srv_s3_task_arrive: then `next` runs
 * on the loop, unless the request is gone. _unawait: that thread was not to be had. */
void srv_s3_task_await(struct srv_s3_task *task, void (*next)(struct srv_s3_task *task));
void srv_s3_task_arrive(struct srv_s3_task *task);
void srv_s3_task_unawait(struct srv_s3_task *task);

/* Runs `work` on a worker, then `next` on the loop unless the exchange has ended. False, and
 * nothing done, when the pool is full. */
bool srv_s3_task_submit(struct srv_s3_task *task, void (*work)(struct srv_s3_task *task),
                        void (*next)(struct srv_s3_task *task));

/* As srv_s3_task_submit for the later jobs of an admitted request: never refused. */
void srv_s3_task_submit_admitted(struct srv_s3_task *task, void (*work)(struct srv_s3_task *task),
                                 void (*next)(struct srv_s3_task *task));

/* Submits the first job or answers SlowDown; the task may be gone when this returns. */
void srv_s3_task_run(struct srv_s3_task *task, void (*work)(struct srv_s3_task *task),
                     void (*next)(struct srv_s3_task *task));

/* Releases what the handler has put into the task, before an answer that its client may take long
 * to want: `fini` runs now, and not once more. */
void srv_s3_task_empty(struct srv_s3_task *task);

/* As the last step of `work`: `next` runs once lists show what the index was told to have changed.
 */
void srv_s3_task_await_lists(struct srv_s3_task *task);
/* The same for an object that was stored under the call's name. Its bucket may have been removed by
 * another process meanwhile: then *verdict, inside the task, says so when `next` runs. */
void srv_s3_task_await_stored(struct srv_s3_task *task, const struct srv_s3_stored *stored,
                              enum srv_s3_code *verdict);

/* In `next`, for a task that was only to do something before the request is handled: frees it, as
 * if the request had just come; the call is copied. */
void srv_s3_task_end(struct srv_s3_task *task, struct srv_s3_call *call_out);
