/* Collapsed forwarding (RFC 9111, 4): who misses what another visit is fetching waits for that. In
 * this process it reads along, from another it is got once it is stored. What turns out not to be
 * shared releases all who wait, and is remembered. */
#include <string.h>

#include "server/check.h"
#include "server/http/passed.h"
#include "server/http/visit.h"
#include "server/loop.h"

/* Longer than that nobody waits for another's fetch, of which nothing has come. */
enum { WAIT_MS = 5000 };

void srv_visit_unseek(struct srv_visit *visit)
{
    gyre_release(visit->miss.handle);
    gyre_follow_end(visit->miss.follow);
    if (visit->miss.fill != NULL)
        gyre_fill_abort(&visit->miss.fill, GYRE_IO);
    visit->miss = (struct gyre_miss){0};
}

void srv_visit_pass(struct srv_visit *visit)
{
    if (visit->miss.fill == NULL)
        return;
    srv_passed_note(visit->site->passed, &visit->sought, visit->now_ms);
    gyre_fill_pass(&visit->miss.fill);
}

struct gyre_fill *srv_visit_take_variant(struct srv_visit *visit)
{
    struct gyre_miss variant;
    if (visit->miss.fill == NULL ||
        memcmp(&visit->sought, &visit->url_key, sizeof visit->sought) != 0 ||
        gyre_miss_get(visit->site->store, &visit->key, (uint32_t)(visit->now_ms / 1000),
                      GYRE_GET_LAZY, 0, &variant) != GYRE_OK)
        return NULL;
    gyre_release(variant.handle);
    gyre_follow_end(variant.follow);
    return variant.fill;
}

void srv_visit_lead(struct srv_visit *visit, struct gyre_fill *variant)
{
    if (variant == NULL)
        return;
    if (visit->err != GYRE_OK) {
        gyre_fill_pass(&variant);
        return;
    }
    /* They look again, and the first thing they find is the index. */
    gyre_fill_abort(&visit->miss.fill, GYRE_NOT_FOUND);
    visit->miss.fill = variant;
    visit->sought = visit->key;
}

/* ---- Seeking ---- */

static void look_again(struct srv_visit *visit)
{
    srv_visit_unseek(visit);
    visit->is_collapsed = true;
    srv_visit_start(visit);
}

static void take_miss(struct srv_visit *visit)
{
    visit->now_ms = (int64_t)srv_loop_now_ms(visit->loop);
    if (visit->err != GYRE_OK)
        srv_visit_ask(visit, false); /* that nobody may be waited for keeps nobody from asking */
    else if (visit->miss.kind == GYRE_MISS_HIT)
        look_again(visit);
    else if (visit->miss.kind == GYRE_MISS_FOLLOW)
        srv_visit_answer_followed(visit);
    else
        srv_visit_ask(visit, false);
}

static void on_taken(struct srv_job *job)
{
    struct srv_visit *visit = (struct srv_visit *)((char *)job - offsetof(struct srv_visit, job_));
    visit->is_working_ = false;
    if (visit->is_gone_)
        srv_visit_discard(visit);
    else
        take_miss(visit);
}

/* On a thread of the store's. */
static void on_sought(void *data, gyre_err err, const struct gyre_miss *miss)
{
    struct srv_visit *visit = data;
    struct srv_loop *loop = visit->loop; /* the visit may be gone once this is posted */
    visit->err = err;
    visit->miss = *miss;
    srv_loop_post(loop, &visit->job_);
    srv_loop_expect(loop, -1);
}

/* Where what is missing would lie: with what tells variants apart now, if they are known. */
static bool find_sought(struct srv_visit *visit)
{
    const char *names = visit->index_names;
    visit->sought = visit->url_key;
    return visit->generation == 0 ||
           (visit->n_index_names > 0 &&
            srv_visit_variant_key(visit, visit->generation, (struct srv_str){names, strlen(names)},
                                  &visit->sought));
}

void srv_visit_seek(struct srv_visit *visit)
{
    if (visit->has_stored || visit->ex == NULL || visit->n_sought >= SRV_VISIT_SOUGHT_MAX ||
        !srv_http_may_collapse(visit->req->method, visit->request, &visit->asked) ||
        !find_sought(visit) ||
        srv_passed_holds(visit->site->passed, &visit->sought, visit->now_ms)) {
        srv_visit_ask(visit, false);
        return;
    }
    SRV_CHECK(!visit->is_working_);
    visit->n_sought++;
    visit->job_ = (struct srv_job){.done = on_taken};
    visit->is_working_ = true;
    srv_loop_expect(visit->loop, 1);
    if (gyre_miss_get_async(visit->site->store, &visit->sought, (uint32_t)(visit->now_ms / 1000),
                            GYRE_GET_LAZY, WAIT_MS, on_sought, visit) == GYRE_OK)
        return;
    srv_loop_expect(visit->loop, -1);
    visit->is_working_ = false;
    srv_visit_ask(visit, false);
}
