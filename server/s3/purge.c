#include "server/s3/purge.h"

#include <string.h>

#include "server/s3/change.h"
#include "server/s3/labels.h"
#include "server/s3/task.h"
#include "server/uri.h"

struct purge {
    struct srv_s3_task task; /* first */
    struct gyre_key key;     /* of one object */
    uint32_t n_labels;       /* of groups */
    uint64_t labels[SRV_S3_CACHE_TAGS_MAX + 1];
    enum srv_s3_code code; /* the worker's answer */
};

static void on_worked(struct srv_s3_task *task)
{
    const struct purge *purge = (const struct purge *)task;
    struct srv_s3_head head;

    if (purge->code != SRV_S3_NONE) {
        srv_s3_fail(&task->call, purge->code, NULL);
        return;
    }
    srv_s3_head_init(&head, &task->call);
    srv_s3_answer_empty(&task->call, 200, &head, 0);
}

static struct purge *create(const struct srv_s3_call *call)
{
    if (!srv_s3_bucket_exists(call->s3->buckets, call->route.bucket)) {
        srv_s3_fail(call, SRV_S3_NO_SUCH_BUCKET, NULL);
        return NULL;
    }
    return srv_s3_task_create(call, sizeof(struct purge), NULL);
}

/* ---- One object ---- */

static void remove_object(struct srv_s3_task *task)
{
    struct purge *purge = (struct purge *)task;
    const struct srv_s3_call *call = &task->call;
    struct srv_s3_change change;

    srv_s3_change_begin_delete(&change, call->s3->names);
    gyre_err err = gyre_delete(call->s3->store, &purge->key, GYRE_ALWAYS, 0, GYRE_PUT_SYNC);
    srv_s3_change_end(&change, call->route.bucket, call->route.key,
                      err == GYRE_OK ? &purge->key : NULL);
    purge->code = srv_s3_code_of(err);
    if (err == GYRE_OK)
        srv_s3_task_await_lists(task);
}

void srv_s3_purge_object(const struct srv_s3_call *call)
{
    struct purge *purge = create(call);

    if (purge == NULL)
        return;
    purge->key = srv_s3_object_key(call);
    srv_s3_task_run(&purge->task, remove_object, on_worked);
}

/* ---- Many ---- */

/* The index keeps rows of what is banned until somebody looks at them; none is listed. */
static void ban(struct srv_s3_task *task)
{
    struct purge *purge = (struct purge *)task;

    purge->code = SRV_S3_NONE;
    for (uint32_t i = 0; i < purge->n_labels && purge->code == SRV_S3_NONE; i++)
        purge->code = srv_s3_code_of(
            gyre_ban_label(task->call.s3->store, GYRE_POOL_MAIN, purge->labels[i], GYRE_PUT_SYNC));
}

static bool refuse(const struct srv_s3_call *call, const char *message)
{
    srv_s3_fail(call, SRV_S3_INVALID_REQUEST, message);
    return false;
}

static bool is_confirmed(const struct srv_s3_call *call)
{
    char name[SRV_S3_BUCKET_MAX];
    struct srv_str raw;
    size_t len;

    return srv_query_find(call->req->query, "confirm", &raw) &&
           srv_uri_decode(raw, true, name, sizeof name, &len) && len == call->route.bucket.len &&
           memcmp(name, call->route.bucket.base, len) == 0;
}

/* The folder that the query names, or the whole bucket. */
static bool take_prefix(struct purge *purge, struct srv_str raw)
{
    const struct srv_s3_call *call = &purge->task.call;
    char bytes[SRV_S3_KEY_MAX];
    size_t len;

    if (!srv_uri_decode(raw, true, bytes, sizeof bytes, &len))
        return refuse(call, "The prefix cannot be decoded, or is longer than a key.");
    if (len == 0 && !is_confirmed(call))
        return refuse(call, "An empty prefix means all of the bucket: to purge that, add confirm= "
                            "with the bucket's name.");
    if (!srv_s3_prefix_has_label((struct srv_str){bytes, len}))
        return refuse(call, "A prefix to purge ends with a slash, and has 15 of them at most.");
    purge->labels[purge->n_labels++] =
        srv_s3_label_of_prefix(call->route.bucket, (struct srv_str){bytes, len});
    return true;
}

/* The tags of the query and of the head. */
static bool take_tags(struct purge *purge)
{
    const struct srv_s3_call *call = &purge->task.call;
    char text[SRV_S3_CACHE_TAGS_BYTES], bytes[SRV_S3_CACHE_TAG_LEN_MAX];
    struct srv_str rest = call->req->query, name, raw, tag;
    size_t text_len = 0, len;
    bool ok = srv_s3_cache_tags_read(call->req, text, &text_len);

    while (ok && srv_query_next(&rest, &name, &raw))
        if (name.len == 3 && memcmp(name.base, "tag", 3) == 0)
            ok = srv_uri_decode(raw, true, bytes, sizeof bytes, &len) && len > 0 &&
                 srv_s3_cache_tags_add((struct srv_str){bytes, len}, text, &text_len);
    if (!ok)
        return refuse(call, "A tag to purge is 1 to 256 bytes long, and there are 16 at most.");
    rest = (struct srv_str){text, text_len};
    while (srv_s3_cache_tags_next(&rest, &tag))
        purge->labels[purge->n_labels++] = srv_s3_label_of_tag(call->route.bucket, tag);
    return true;
}

void srv_s3_purge_bucket(const struct srv_s3_call *call)
{
    struct purge *purge = create(call);
    struct srv_str prefix;

    if (purge == NULL || !take_tags(purge) ||
        (srv_query_find(call->req->query, "prefix", &prefix) && !take_prefix(purge, prefix)))
        return;
    if (purge->n_labels == 0)
        refuse(call, "Say what to purge: prefix=FOLDER/ or tag=NAME.");
    else
        srv_s3_task_run(&purge->task, ban, on_worked);
}
