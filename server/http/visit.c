#include "server/http/visit.h"

#include <stdlib.h>
#include <string.h>

#include "server/check.h"
#include "server/http/passed.h"
#include "server/http/refreshes.h"
#include "server/http/site.h"
#include "server/loop.h"

static const struct srv_operation operations[SRV_SITE_N_OPS] = {
    [SRV_SITE_OP_GET] = {"get", true},
    [SRV_SITE_OP_HEAD] = {"head", true},
    [SRV_SITE_OP_OTHER] = {"other", false},
};

const struct srv_role srv_site_role = {SRV_ROLE_SITE, "site", operations, SRV_SITE_N_OPS};

/* ---- A site ---- */

bool srv_site_origin_valid(const char *text)
{
    size_t skip = strncmp(text, "http://", 7) == 0 ? 7 : strncmp(text, "https://", 8) == 0 ? 8 : 0;
    const char *host = text + skip;
    return skip != 0 && *host != '\0' && strlen(host) < 256 && strpbrk(host, "/?#@ \t") == NULL;
}

struct srv_site *srv_site_create(const struct srv_site_config *config)
{
    struct srv_site *site = calloc(1, sizeof *site);
    if (site == NULL)
        return NULL;
    site->store = config->store;
    site->pool = config->pool;
    site->policy = srv_http_policy_default;
    site->origin = strdup(config->origin);
    site->fetcher = srv_fetcher_create(&config->limits);
    site->refreshes = srv_refreshes_create();
    site->passed = srv_passed_create();
    if (site->origin == NULL || site->fetcher == NULL || site->refreshes == NULL ||
        site->passed == NULL) {
        srv_site_destroy(site);
        return NULL;
    }
    return site;
}

void srv_site_drain(struct srv_site *site, uint64_t ms)
{
    if (site != NULL)
        srv_fetcher_drain(site->fetcher, ms);
}

void srv_site_destroy(struct srv_site *site)
{
    if (site == NULL)
        return;
    srv_fetcher_destroy(site->fetcher);
    srv_refreshes_destroy(site->refreshes);
    srv_passed_destroy(site->passed);
    free(site->origin);
    free(site);
}

/* ---- A visit's life ---- */

struct srv_visit *srv_visit_create(struct srv_site *site, struct srv_exchange *ex)
{
    struct srv_conn *share = site == NULL ? NULL : srv_work_begin(ex);
    struct srv_visit *visit = share == NULL ? NULL : calloc(1, sizeof *visit);
    struct srv_http_record *record = visit == NULL ? NULL : malloc(sizeof *record);
    if (record == NULL) {
        free(visit);
        srv_work_end(share);
        return NULL;
    }
    visit->site = site;
    visit->ex = ex;
    visit->loop = srv_exchange_loop(ex);
    visit->share = share;
    visit->record = record;
    visit->now_ms = visit->begun_ms = (int64_t)srv_loop_now_ms(visit->loop);
    return visit;
}

void srv_visit_discard(struct srv_visit *visit)
{
    if (visit == NULL)
        return;
    /* What is being stored goes on without its client. */
    srv_fetch_end(visit->fetch, visit->is_storing);
    srv_sink_drop(&visit->sink, GYRE_IO);
    srv_visit_unseek(visit);
    gyre_release(visit->handle);
    srv_work_end(visit->share);
    free(visit->record);
    free(visit->record_bytes);
    free(visit->index_names);
    free(visit->fields);
    free(visit->own_request);
    free(visit);
}

void srv_visit_finish(struct srv_visit *visit)
{
    SRV_CHECK(visit->ex == NULL && !visit->is_working_);
    srv_refresh_end(visit->site->refreshes, &visit->refreshed);
    srv_visit_discard(visit);
}

static void on_gone(void *ctx)
{
    struct srv_visit *visit = ctx;
    visit->is_gone_ = true;
    if (!visit->is_working_)
        srv_visit_discard(visit);
}

static struct srv_visit *visit_of(struct srv_job *job)
{
    return (struct srv_visit *)((char *)job - offsetof(struct srv_visit, job_));
}

static void on_run(struct srv_job *job)
{
    struct srv_visit *visit = visit_of(job);
    visit->work_(visit);
}

static void on_done(struct srv_job *job)
{
    struct srv_visit *visit = visit_of(job);
    visit->is_working_ = false;
    if (visit->is_gone_)
        srv_visit_discard(visit);
    else
        visit->next_(visit);
}

void srv_visit_work(struct srv_visit *visit, void (*work)(struct srv_visit *visit),
                    void (*next)(struct srv_visit *visit))
{
    SRV_CHECK(!visit->is_working_);
    visit->job_ = (struct srv_job){.run = on_run, .done = on_done};
    visit->work_ = work;
    visit->next_ = next;
    visit->is_working_ = true;
    srv_job_submit_admitted(visit->site->pool, visit->loop, &visit->job_);
}

/* ---- Deciding ---- */

void srv_visit_decide(struct srv_visit *visit)
{
    const struct srv_http_facts *stored = visit->has_stored ? &visit->record->facts : NULL;
    struct srv_http_decision decision = srv_http_decide(stored, &visit->asked, visit->now_ms);
    if (stored != NULL && visit->is_collapsed && srv_http_is_shared(stored, visit->begun_ms))
        decision = (struct srv_http_decision){SRV_HTTP_SERVE, SRV_HTTP_FORWARD_MISS};
    if (!visit->is_lookup) {
        bool is_read = visit->req->method == SRV_GET || visit->req->method == SRV_HEAD;
        decision = (struct srv_http_decision){SRV_HTTP_FETCH, is_read ? SRV_HTTP_FORWARD_REQUEST
                                                                      : SRV_HTTP_FORWARD_METHOD};
    } else if (decision.forward == SRV_HTTP_FORWARD_MISS && visit->generation != 0)
        decision.forward = SRV_HTTP_FORWARD_VARY_MISS;
    visit->handled =
        (struct srv_http_handled){.forward = decision.forward, .is_collapsed = visit->is_collapsed};
    switch (decision.action) {
    case SRV_HTTP_REFRESH:
        srv_visit_refresh(visit);
        visit->handled.forward = SRV_HTTP_FORWARD_NONE;
        /* fall through */
    case SRV_HTTP_SERVE:
    case SRV_HTTP_SERVE_STALE:
        srv_visit_answer_stored(visit, &visit->record->facts,
                                srv_http_record_fields(visit->record));
        break;
    case SRV_HTTP_REFUSE: srv_visit_fail(visit, 504, "nothing of use is stored\n"); break;
    case SRV_HTTP_FETCH: srv_visit_seek(visit); break;
    case SRV_HTTP_VALIDATE: srv_visit_ask(visit, visit->req->method == SRV_GET); break;
    }
}

static void find_later(struct srv_visit *visit)
{
    visit->err = srv_visit_find(visit, GYRE_GET_LAZY);
}

void srv_visit_start(struct srv_visit *visit)
{
    if (srv_visit_find(visit, GYRE_GET_LAZY | GYRE_GET_NOWAIT) == GYRE_WOULD_BLOCK)
        srv_visit_work(visit, find_later, srv_visit_decide);
    else
        srv_visit_decide(visit);
}

/* ---- Starting ---- */

static unsigned operation_of(enum srv_method method)
{
    return method == SRV_GET    ? SRV_SITE_OP_GET
           : method == SRV_HEAD ? SRV_SITE_OP_HEAD
                                : SRV_SITE_OP_OTHER;
}

static void answer_busy(struct srv_exchange *ex)
{
    static const struct srv_field fields[] = {{{"Retry-After", 11}, {"1", 1}}};
    srv_respond_bytes(ex, &(struct srv_response){.status = 503, .fields = fields, .n_fields = 1},
                      NULL, 0);
}

void srv_site_start(void *data, struct srv_exchange *ex)
{
    struct srv_site *site = data;
    const struct srv_request *req = srv_exchange_request(ex);
    srv_exchange_note(ex, operation_of(req->method));
    struct srv_visit *visit = srv_visit_create(site, ex);
    if (visit == NULL) {
        answer_busy(ex);
        return;
    }
    visit->req = req;
    visit->request = (struct srv_http_fields){req->fields, req->n_fields};
    /* Path and query lie beside each other, as they were sent. */
    visit->target = req->path;
    if (req->query.base == req->path.base + req->path.len + 1)
        visit->target.len = (size_t)(req->query.base + req->query.len - req->path.base);
    srv_exchange_attach(ex, visit, on_gone);
    srv_http_request_directives(visit->request, &visit->asked);
    visit->url_key = srv_visit_key(visit, visit->target);
    visit->is_lookup = srv_http_is_lookup(req->method, visit->request);
    if (visit->is_lookup)
        srv_visit_start(visit);
    else
        srv_visit_decide(visit);
}
