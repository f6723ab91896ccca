#include "server/admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/job.h"

enum operation { METRICS, STATUS, HEALTHZ, READYZ, OTHER, N_OPERATIONS };

static const struct srv_operation operations[N_OPERATIONS] = {
    [METRICS] = {"metrics", false}, [STATUS] = {"status", false}, [HEALTHZ] = {"healthz", false},
    [READYZ] = {"readyz", false},   [OTHER] = {"other", false},
};

const struct srv_role srv_admin_role = {SRV_ROLE_ADMIN, "admin", operations, N_OPERATIONS};

/* ---- What there is to look at ---- */

void srv_admin_init(struct srv_admin *admin, struct srv_pool *pool,
                    const struct srv_access_log *access_log)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *admin = (struct srv_admin){.pool = pool};
    admin->sources.pool = pool;
    admin->sources.access_log = access_log;
    admin->sources.begun_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    pthread_mutex_init(&admin->lock, NULL);
    srv_probe_init(&admin->probe);
}

void srv_admin_fini(struct srv_admin *admin)
{
    pthread_mutex_destroy(&admin->lock);
    srv_probe_fini(&admin->probe);
}

void srv_admin_set_front(struct srv_admin *admin, const struct srv_front *front)
{
    pthread_mutex_lock(&admin->lock);
    admin->sources.front = front;
    pthread_mutex_unlock(&admin->lock);
}

void srv_admin_set_store(struct srv_admin *admin, struct gyre_store *store)
{
    pthread_mutex_lock(&admin->lock);
    admin->sources.store = store;
    pthread_mutex_unlock(&admin->lock);
}

void srv_admin_count_reload(struct srv_admin *admin, bool is_taken)
{
    pthread_mutex_lock(&admin->lock);
    admin->sources.reloads += is_taken;
    admin->sources.reloads_refused += !is_taken;
    pthread_mutex_unlock(&admin->lock);
}

static struct srv_snapshot_sources look(struct srv_admin *admin)
{
    pthread_mutex_lock(&admin->lock);
    struct srv_snapshot_sources sources = admin->sources;
    pthread_mutex_unlock(&admin->lock);
    return sources;
}

/* Whether the store still works. */
static gyre_err probe(struct srv_admin *admin)
{
    struct gyre_store *store = look(admin).store;
    gyre_err err = store == NULL ? GYRE_OK : srv_probe_run(&admin->probe, store);
    pthread_mutex_lock(&admin->lock);
    admin->sources.is_failing = err != GYRE_OK;
    pthread_mutex_unlock(&admin->lock);
    return err;
}

/* ---- Answers ---- */

static void answer(struct srv_exchange *ex, int status, const char *type, const char *text,
                   size_t len)
{
    const struct srv_field fields[] = {
        {{"Content-Type", 12}, {type, strlen(type)}},
        {{"Cache-Control", 13}, {"no-store", 8}},
        {{"Allow", 5}, {"GET, HEAD", 9}},
    };
    const struct srv_response response = {
        .status = status, .fields = fields, .n_fields = status == 405 ? 3 : 2};
    srv_respond_bytes(ex, &response, text, len);
}

static void answer_line(struct srv_exchange *ex, int status, const char *text)
{
    answer(ex, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* ---- What has to be collected ---- */

/* One request while a worker collects its answer. Freed when the job is done and the exchange is
 * gone, whichever is last. */
struct visit {
    struct srv_job job; /* first */
    struct srv_admin *admin;
    struct srv_exchange *ex; /* NULL once gone */
    enum operation operation;
    bool is_done;
    char *text;
    size_t len;
    gyre_err err;
};

static void run(struct srv_job *job)
{
    struct visit *visit = (struct visit *)job;
    if (visit->operation == READYZ) {
        visit->err = probe(visit->admin);
        return;
    }
    struct srv_snapshot_sources sources = look(visit->admin);
    struct srv_snapshot snapshot;
    srv_snapshot_take(&sources, &snapshot);
    visit->text = visit->operation == METRICS ? srv_metrics_text(&snapshot, &visit->len)
                                              : srv_status_text(&snapshot, &visit->len);
}

static void answer_ready(struct visit *visit)
{
    char text[128];
    struct srv_snapshot_sources sources = look(visit->admin);
    enum srv_snapshot_state state = srv_snapshot_state(&sources);
    if (visit->err != GYRE_OK)
        snprintf(text, sizeof text, "failing: the store: %s\n", gyre_err_text(visit->err));
    else
        snprintf(text, sizeof text, "%s\n", srv_snapshot_state_name(state));
    answer_line(visit->ex, state == SRV_STATE_READY && visit->err == GYRE_OK ? 200 : 503, text);
}

static void done(struct srv_job *job)
{
    struct visit *visit = (struct visit *)job;
    visit->is_done = true;
    if (visit->ex == NULL)
        goto out;
    if (visit->operation == READYZ)
        answer_ready(visit);
    else if (visit->text == NULL)
        answer_line(visit->ex, 500, "out of memory\n");
    else
        answer(visit->ex, 200,
               visit->operation == METRICS ? "text/plain; version=0.0.4; charset=utf-8"
                                           : "application/json",
               visit->text, visit->len);
    return; /* the exchange's end frees it */
out:
    free(visit->text);
    free(visit);
}

static void gone(void *ctx)
{
    struct visit *visit = ctx;
    visit->ex = NULL;
    if (!visit->is_done)
        return;
    free(visit->text);
    free(visit);
}

static void collect(struct srv_admin *admin, struct srv_exchange *ex, enum operation operation)
{
    struct visit *visit = calloc(1, sizeof *visit);
    if (visit == NULL) {
        answer_line(ex, 500, "out of memory\n");
        return;
    }
    visit->job = (struct srv_job){.run = run, .done = done};
    visit->admin = admin;
    visit->ex = ex;
    visit->operation = operation;
    srv_exchange_attach(ex, visit, gone);
    /* Beyond the queue's limit: who wants to know why it is full must be told. */
    srv_job_submit_admitted(admin->pool, srv_exchange_loop(ex), &visit->job);
}

/* ---- Requests ---- */

static void answer_health(struct srv_admin *admin, struct srv_exchange *ex)
{
    struct srv_snapshot_sources sources = look(admin);
    bool is_stuck = srv_front_lag_ms(sources.front) > SRV_ADMIN_LAG_MAX_MS;
    answer_line(ex, is_stuck ? 503 : 200, is_stuck ? "an event loop is stuck\n" : "ok\n");
}

static enum operation operation_of(struct srv_str path)
{
    for (unsigned i = 0; i < OTHER; i++)
        if (path.len == strlen(operations[i].name) + 1 && path.base[0] == '/' &&
            memcmp(path.base + 1, operations[i].name, path.len - 1) == 0)
            return (enum operation)i;
    return OTHER;
}

void srv_admin_start(void *data, struct srv_exchange *ex)
{
    struct srv_admin *admin = data;
    const struct srv_request *request = srv_exchange_request(ex);
    enum operation operation = operation_of(request->path);
    srv_exchange_note(ex, operation);
    if (operation == OTHER)
        answer_line(ex, 404, "there are /metrics, /status, /healthz and /readyz\n");
    else if (request->method != SRV_GET && request->method != SRV_HEAD)
        answer_line(ex, 405, "only GET and HEAD\n");
    else if (operation == HEALTHZ)
        answer_health(admin, ex);
    else
        collect(admin, ex, operation);
}
