#include "server/s3/object_delete.h"

#include <stdlib.h>
#include <time.h>

#include "server/http_date.h"
#include "server/s3/change.h"
#include "server/s3/numbers.h"
#include "server/s3/precondition.h"
#include "server/s3/task.h"

enum { ATTEMPTS = 8 }; /* while others change the object */

struct deletion {
    struct srv_s3_task task;
    struct gyre_key key;
    struct srv_s3_precondition precondition;
    bool has_size, has_modified; /* x-amz-if-match-size, x-amz-if-match-last-modified-time */
    uint64_t size;
    int64_t modified_s;
    enum srv_s3_code code; /* the worker's answer */
    const char *condition;
    bool is_changed; /* lists must show it */
};

static void fini(struct srv_s3_task *task)
{
    srv_s3_precondition_fini(&((struct deletion *)task)->precondition);
}

static bool is_conditional(const struct deletion *deletion)
{
    return srv_s3_precondition_is_set(&deletion->precondition) || deletion->has_size ||
           deletion->has_modified;
}

/* The two conditions that S3 has for deletions alone. */
static enum srv_s3_code check_state(struct deletion *deletion, const struct srv_s3_state *state)
{
    if (deletion->has_size && state->length != deletion->size)
        deletion->condition = "x-amz-if-match-size";
    else if (deletion->has_modified && state->modified_s != deletion->modified_s)
        deletion->condition = "x-amz-if-match-last-modified-time";
    else
        return SRV_S3_NONE;
    return SRV_S3_PRECONDITION_FAILED;
}

/* Deletes under a condition and tells the index. */
static gyre_err delete_object(struct deletion *deletion, enum gyre_condition condition,
                              uint64_t serial)
{
    const struct srv_s3_call *call = &deletion->task.call;
    struct srv_s3_change change;

    srv_s3_change_begin_delete(&change, call->s3->names);
    gyre_err err = gyre_delete(call->s3->store, &deletion->key, condition, serial, 0);
    deletion->is_changed = err == GYRE_OK;
    srv_s3_change_end(&change, call->route.bucket, call->route.key,
                      err == GYRE_OK ? &deletion->key : NULL);
    return err;
}

/* One try. False: the object was changed between the decision and the deletion. */
static bool delete_if(struct deletion *deletion)
{
    struct gyre_store *store = deletion->task.call.s3->store;
    struct srv_s3_state state;

    gyre_err err = srv_s3_precondition_decide(&deletion->precondition, store, &deletion->key,
                                              time(NULL), 0, &deletion->code, &state);
    if (err == GYRE_NOT_FOUND || err == GYRE_EXPIRED) {
        deletion->code = SRV_S3_NONE; /* what is to be gone is gone: S3 fails no condition for it */
        return true;
    }
    deletion->condition = state.field;
    if (deletion->code == SRV_S3_NONE)
        deletion->code = check_state(deletion, &state);
    if (deletion->code != SRV_S3_NONE)
        return true;
    err = delete_object(deletion, GYRE_IF_SERIAL, state.serial);
    deletion->code = err == GYRE_NOT_FOUND ? SRV_S3_NONE : srv_s3_code_of(err);
    return err != GYRE_CHANGED;
}

static void delete_now(struct deletion *deletion)
{
    if (!is_conditional(deletion)) {
        gyre_err err = delete_object(deletion, GYRE_ALWAYS, 0);
        bool is_gone = err == GYRE_NOT_FOUND || err == GYRE_EXPIRED;
        deletion->code = is_gone ? SRV_S3_NONE : srv_s3_code_of(err);
        return;
    }
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (delete_if(deletion))
            return;
    }
    deletion->code = SRV_S3_CONDITIONAL_CONFLICT;
}

static void work(struct srv_s3_task *task)
{
    struct deletion *deletion = (struct deletion *)task;

    delete_now(deletion);
    if (deletion->is_changed)
        srv_s3_task_await_lists(task);
}

static void on_worked(struct srv_s3_task *task)
{
    struct deletion *deletion = (struct deletion *)task;
    struct srv_s3_head head;

    if (deletion->code == SRV_S3_PRECONDITION_FAILED) {
        srv_s3_fail_condition(&task->call, deletion->condition);
    } else if (deletion->code != SRV_S3_NONE) {
        srv_s3_fail(&task->call, deletion->code, NULL);
    } else {
        srv_s3_head_init(&head, &task->call);
        srv_s3_answer_empty(&task->call, 204, &head, SRV_LENGTH_UNKNOWN);
    }
}

static enum srv_s3_code read_conditions(struct deletion *deletion)
{
    const struct srv_request *req = deletion->task.call.req;
    const struct srv_str *size = srv_request_field(req, "x-amz-if-match-size", NULL);
    const struct srv_str *modified =
        srv_request_field(req, "x-amz-if-match-last-modified-time", NULL);

    deletion->has_size = size != NULL;
    deletion->has_modified = modified != NULL;
    if (size != NULL && !srv_s3_parse_u64(*size, &deletion->size))
        return SRV_S3_INVALID_ARGUMENT;
    if (modified != NULL &&
        !srv_http_date_parse(*modified, srv_s3_now_s(&deletion->task.call), &deletion->modified_s))
        return SRV_S3_INVALID_ARGUMENT;
    return srv_s3_precondition_init(&deletion->precondition, req);
}

void srv_s3_object_delete(const struct srv_s3_call *from)
{
    struct deletion *deletion = srv_s3_task_create(from, sizeof *deletion, fini);

    if (deletion == NULL)
        return;
    const struct srv_s3_call *call = &deletion->task.call;
    if (!srv_s3_bucket_exists(call->s3->buckets, call->route.bucket)) {
        srv_s3_fail(call, SRV_S3_NO_SUCH_BUCKET, NULL);
        return;
    }
    enum srv_s3_code code = read_conditions(deletion);
    if (code != SRV_S3_NONE) {
        srv_s3_fail(call, code, NULL);
        return;
    }
    deletion->key = srv_s3_object_key(call);
    srv_s3_task_run(&deletion->task, work, on_worked);
}
