/* A site's request to its origin: what is asked, and what becomes of the answer. */
#include <stdlib.h>
#include <string.h>

#include "server/buf.h"
#include "server/http/date.h"
#include "server/http/forwarding.h"
#include "server/http/passed.h"
#include "server/http/storing.h"
#include "server/http/validation.h"
#include "server/http/vary.h"
#include "server/http/visit.h"

/* ---- Storing ---- */

/* Without room for it the response is passed on all the same. */
static void begin_storing(struct srv_visit *visit)
{
    const struct srv_http_head *head = srv_fetch_head(visit->fetch);
    struct srv_sink *sink = &visit->sink;
    struct gyre_put_options options;
    gyre_put_options_init(&options);
    bool is_empty = head->status == 204;
    options.length = is_empty                                     ? 0
                     : head->content_length == SRV_LENGTH_UNKNOWN ? GYRE_LENGTH_UNKNOWN
                                                                  : head->content_length;
    options.meta = visit->record_bytes;
    options.meta_len = visit->record_len;
    bool is_awaited =
        visit->miss.fill != NULL && memcmp(&visit->sought, &visit->key, sizeof visit->key) == 0;
    if (is_awaited && srv_http_is_shared(&visit->facts, visit->begun_ms) &&
        gyre_fill_begin(visit->miss.fill, &options) == GYRE_OK) {
        sink->fill = visit->miss.fill;
        visit->miss.fill = NULL;
        srv_passed_forget(visit->site->passed, &visit->key);
    } else {
        srv_visit_pass(visit);
        if (gyre_put_begin(visit->site->store, &visit->key, &options, &sink->put) != GYRE_OK)
            sink->put = NULL;
    }
    visit->is_storing = srv_sink_is_open(sink);
}

static void on_failure(struct srv_visit *visit);

static void go_and_relay(struct srv_visit *visit)
{
    srv_visit_pass(visit); /* unless it is being stored for those who wait */
    srv_fetch_go(visit->fetch, &visit->sink, visit->ex != NULL);
    /* A response without bytes is stored before it is answered; so is one that nobody waits for. */
    const struct srv_http_head *head = srv_fetch_head(visit->fetch);
    bool is_empty = head->status == 204 || head->content_length == 0;
    bool waits = visit->is_storing && (is_empty || visit->ex == NULL);
    if (!waits)
        srv_visit_relay(visit);
    else if (srv_fetch_state(visit->fetch) == SRV_FETCH_FAILED)
        on_failure(visit); /* it was told while a worker had the visit */
}

static void put_and_relay(struct srv_visit *visit)
{
    if (visit->err == GYRE_OK)
        begin_storing(visit);
    go_and_relay(visit);
}

/* On a worker: the index that leads to variants. `record_bytes` is the response's. */
static void write_index(struct srv_visit *visit)
{
    char names[SRV_HTTP_VARY_NAMES_MAX];
    struct srv_field fields[SRV_VISIT_INDEX_MAX];
    const struct srv_http_facts none = {0};
    struct gyre_put_options options;
    size_t len, n = 1;
    size_t names_len =
        srv_http_vary_names(srv_http_head_fields(srv_fetch_head(visit->fetch)), names);
    struct srv_str own = {names, names_len};
    const char *other = visit->index_names;
    fields[0] = (struct srv_field){SRV_STR("vary"), own};
    for (size_t i = 0; i < visit->n_index_names; i++, other += strlen(other) + 1) {
        struct srv_str set = {other, strlen(other)};
        if (i == 0 && srv_str_equal(set, own))
            return; /* it says so already */
        if (!srv_str_equal(set, own) && n < SRV_VISIT_INDEX_MAX)
            fields[n++] = (struct srv_field){SRV_STR("vary"), set};
    }
    void *bytes = srv_http_record_write(SRV_HTTP_RECORD_INDEX, &none, visit->generation,
                                        (struct srv_http_fields){fields, n}, &len);
    gyre_put_options_init(&options);
    options.length = 0;
    options.meta = bytes;
    options.meta_len = len;
    struct gyre_fill *variant = srv_visit_take_variant(visit);
    visit->err = bytes == NULL
                     ? GYRE_NO_MEMORY
                     : gyre_put(visit->site->store, &visit->url_key, &options, NULL, 0, NULL);
    srv_visit_lead(visit, variant);
    free(bytes);
}

/* A number that no earlier index of this URL had: its variants are not found again. */
static uint64_t new_generation(const struct srv_visit *visit)
{
    uint64_t id = 0;
    memcpy(&id, visit->req->id, sizeof id);
    return (id ^ (uint64_t)visit->now_ms << 20) | 1;
}

static bool make_record(struct srv_visit *visit, struct srv_http_fields fields)
{
    struct srv_field *kept = calloc(fields.n + 1, sizeof *kept);
    if (kept == NULL)
        return false;
    size_t n =
        srv_http_pass_stored(fields, visit->told.no_cache_names, visit->told.private_names, kept);
    free(visit->record_bytes);
    visit->record_bytes =
        srv_http_record_write(SRV_HTTP_RECORD_RESPONSE, &visit->facts, 0,
                              (struct srv_http_fields){kept, n}, &visit->record_len);
    free(kept);
    return visit->record_bytes != NULL;
}

/* Stores the response while it is passed on. */
static void store(struct srv_visit *visit, struct srv_http_fields fields)
{
    char names[SRV_HTTP_VARY_NAMES_MAX];
    size_t len = srv_http_vary_names(fields, names);
    if (len == SIZE_MAX || !make_record(visit, fields)) {
        go_and_relay(visit);
        return;
    }
    visit->err = GYRE_OK;
    visit->key = visit->url_key;
    if (len == 0) {
        put_and_relay(visit);
        return;
    }
    if (visit->generation == 0)
        visit->generation = new_generation(visit);
    if (!srv_visit_variant_key(visit, visit->generation, (struct srv_str){names, len},
                               &visit->key)) {
        go_and_relay(visit);
        return;
    }
    srv_visit_work(visit, write_index, put_and_relay);
}

/* ---- Forgetting ---- */

/* On a worker. */
static void forget(struct srv_visit *visit)
{
    for (size_t i = 0; i < visit->n_doomed; i++) {
        gyre_err err = gyre_delete(visit->site->store, &visit->doomed[i], GYRE_ALWAYS, 0, 0);
        if (err != GYRE_OK && err != GYRE_NOT_FOUND)
            visit->err = err;
    }
}

static enum srv_http_storing may_store(struct srv_visit *visit, struct srv_http_fields fields)
{
    struct srv_str scheme = visit->req->is_tls ? SRV_STR("https") : SRV_STR("http");
    struct srv_str location, own;
    bool is_own = srv_http_first(fields, SRV_STR("content-location"), &location) &&
                  srv_http_own_target(location, scheme, visit->req->authority, &own) &&
                  srv_str_equal(own, visit->target);
    const struct srv_http_question question = {.method = visit->req->method,
                                               .request = visit->request,
                                               .asked = &visit->asked,
                                               .response = fields,
                                               .told = &visit->told,
                                               .facts = &visit->facts,
                                               .is_own_location = is_own};
    enum srv_http_storing storing = srv_http_may_store(&question, &visit->site->policy);
    /* Parts are passed on. */
    return storing == SRV_HTTP_STORE && visit->facts.status == 206 ? SRV_HTTP_STORE_NOT_USEFUL
                                                                   : storing;
}

static void relay_or_store(struct srv_visit *visit)
{
    struct srv_http_fields fields = srv_http_head_fields(srv_fetch_head(visit->fetch));
    if (may_store(visit, fields) == SRV_HTTP_STORE)
        store(visit, fields);
    else
        go_and_relay(visit);
}

/* What an answer makes invalid: the targets of RFC 9111, 4.4; and a stored response in whose place
 * one came that may not be stored. */
static void find_doomed(struct srv_visit *visit, struct srv_http_fields fields)
{
    struct srv_str scheme = visit->req->is_tls ? SRV_STR("https") : SRV_STR("http");
    struct srv_str targets[SRV_HTTP_INVALID_MAX];
    int status = srv_fetch_head(visit->fetch)->status;
    size_t n = srv_http_invalidates(visit->req->method_name, scheme, visit->req->authority,
                                    visit->target, status, fields, targets);
    visit->n_doomed = 0;
    for (size_t i = 0; i < n; i++)
        visit->doomed[visit->n_doomed++] = srv_visit_key(visit, targets[i]);
    if (!visit->has_stored || status >= 500)
        return;
    bool is_contradicted =
        visit->req->method == SRV_HEAD
            ? status == 200 && srv_http_head_says(srv_http_record_fields(visit->record),
                                                  gyre_handle_info(visit->handle)->length,
                                                  fields) == SRV_HTTP_REPLACE
            : status != 304 && status != 206 && may_store(visit, fields) != SRV_HTTP_STORE;
    if (is_contradicted)
        visit->doomed[visit->n_doomed++] = visit->key;
}

/* ---- Freshening ---- */

/* On a worker. What has to go to another place is fetched there by the next who asks. */
static void write_record(struct srv_visit *visit)
{
    if (visit->n_doomed > 0) {
        forget(visit);
        return;
    }
    struct gyre_change change;
    gyre_change_init(&change);
    change.what = GYRE_CHANGE_META;
    change.meta = visit->record_bytes;
    change.meta_len = visit->record_len;
    change.if_serial = gyre_handle_info(visit->handle)->serial;
    /* Somebody else has freshened or replaced it: theirs is as new. */
    visit->err = gyre_change(visit->site->store, &visit->key, &change, NULL);
}

static void answer_freshened(struct srv_visit *visit)
{
    static struct srv_http_fields const none = {0};
    if (!srv_http_record_read(visit->record_bytes, visit->record_len, visit->record))
        srv_visit_answer_stored(visit, &visit->facts, none);
    else
        srv_visit_answer_stored(visit, &visit->record->facts,
                                srv_http_record_fields(visit->record));
}

/* Whether what is stored would not be found by the fields it now has, or may not be kept. */
static bool is_misplaced(const struct srv_visit *visit, struct srv_http_fields stored,
                         struct srv_http_fields merged)
{
    char before[SRV_HTTP_VARY_NAMES_MAX], after[SRV_HTTP_VARY_NAMES_MAX];
    size_t n_before = srv_http_vary_names(stored, before);
    size_t n_after = srv_http_vary_names(merged, after);
    return (visit->told.present & (SRV_CC_NO_STORE | SRV_CC_PRIVATE)) != 0 ||
           srv_http_vary_is_any(merged) || n_after == SIZE_MAX || n_before != n_after ||
           memcmp(before, after, n_after) != 0;
}

static bool merge(struct srv_visit *visit, struct srv_http_fields answer)
{
    struct srv_http_fields stored = srv_http_record_fields(visit->record);
    const struct srv_http_times times = {srv_fetch_requested_ms(visit->fetch),
                                         srv_fetch_received_ms(visit->fetch)};
    struct srv_field *merged = calloc(stored.n + answer.n + 1, sizeof *merged);
    if (merged == NULL)
        return false;
    struct srv_http_fields fields = {merged, srv_http_update(stored, answer, merged)};
    srv_http_response_directives(fields, visit->site->policy.targets, &visit->told);
    srv_http_facts_of(visit->record->facts.status, fields, &visit->told, &times,
                      &visit->site->policy, &visit->facts);
    visit->n_doomed = 0;
    if (is_misplaced(visit, stored, fields))
        visit->doomed[visit->n_doomed++] = visit->key;
    bool ok = make_record(visit, fields);
    free(merged);
    return ok;
}

static void freshen(struct srv_visit *visit, struct srv_http_fields answer)
{
    struct srv_sink none = {0};
    visit->handled.forward_status = 304;
    srv_fetch_go(visit->fetch, &none, false);
    if (!merge(visit, answer)) {
        srv_visit_fail(visit, 503, "out of memory\n");
        return;
    }
    visit->now_ms =
        visit->facts.received_ms > visit->now_ms ? visit->facts.received_ms : visit->now_ms;
    srv_visit_work(visit, write_record, answer_freshened);
}

/* ---- The origin's answer ---- */

static void end_fetch(struct srv_visit *visit)
{
    srv_fetch_end(visit->fetch, false);
    visit->fetch = NULL;
    visit->is_head_seen = false;
}

static void stand_in(struct srv_visit *visit, int status)
{
    end_fetch(visit);
    visit->handled.forward_status = status;
    srv_visit_answer_stored(visit, &visit->record->facts, srv_http_record_fields(visit->record));
}

static void on_failure(struct srv_visit *visit)
{
    enum srv_fetch_fault fault = srv_fetch_fault(visit->fetch);
    bool is_read = visit->req->method == SRV_GET || visit->req->method == SRV_HEAD;
    if (is_read && visit->has_stored &&
        srv_http_may_stand_in(&visit->record->facts, &visit->asked, 0, visit->now_ms,
                              &visit->site->policy)) {
        stand_in(visit, 0);
        return;
    }
    end_fetch(visit);
    srv_visit_pass(visit);
    srv_visit_fail(visit, fault == SRV_FETCH_TIMEOUT ? 504 : 502,
                   fault == SRV_FETCH_TIMEOUT ? "the origin does not answer\n"
                                              : "the origin cannot be reached\n");
}

static void take_facts(struct srv_visit *visit, struct srv_http_fields fields)
{
    const struct srv_http_times times = {srv_fetch_requested_ms(visit->fetch),
                                         srv_fetch_received_ms(visit->fetch)};
    srv_http_response_directives(fields, visit->site->policy.targets, &visit->told);
    srv_http_facts_of(srv_fetch_head(visit->fetch)->status, fields, &visit->told, &times,
                      &visit->site->policy, &visit->facts);
}

/* RFC 9111, 4.3.5: a 200 to HEAD is news of the stored response. */
static bool is_head_update(const struct srv_visit *visit, struct srv_http_fields fields)
{
    return visit->has_stored && visit->req->method == SRV_HEAD &&
           srv_fetch_head(visit->fetch)->status == 200 && visit->record->facts.status == 200 &&
           srv_http_head_says(srv_http_record_fields(visit->record),
                              gyre_handle_info(visit->handle)->length, fields) == SRV_HTTP_FRESHEN;
}

static void on_head(struct srv_visit *visit)
{
    const struct srv_http_head *head = srv_fetch_head(visit->fetch);
    struct srv_http_fields fields = srv_http_head_fields(head);
    visit->is_head_seen = true;
    if (visit->has_stored && visit->req->method == SRV_GET) {
        int status = head->status == 304 && !visit->is_conditional ? 200 : head->status;
        switch (srv_http_validated(&visit->record->facts, srv_http_record_fields(visit->record),
                                   &visit->asked, status, fields, visit->now_ms,
                                   &visit->site->policy)) {
        case SRV_HTTP_FRESHEN: freshen(visit, fields); return;
        case SRV_HTTP_STAND_IN: stand_in(visit, head->status); return;
        case SRV_HTTP_AGAIN:
            end_fetch(visit);
            srv_visit_ask(visit, false);
            return;
        case SRV_HTTP_REPLACE: break;
        }
    }
    if (is_head_update(visit, fields) && merge(visit, fields)) {
        srv_visit_work(visit, write_record, go_and_relay);
        return;
    }
    take_facts(visit, fields);
    find_doomed(visit, fields);
    if (visit->n_doomed > 0)
        srv_visit_work(visit, forget, relay_or_store);
    else
        relay_or_store(visit);
}

/* ---- The request's body ---- */

static void on_change(void *data);

/* Whether an answer is to wait. Nothing can be read of a client that is being answered, so that
 * what the origin says to the head alone is passed on once it has the whole body; libcurl, which
 * goes on sending that long, does not come to an end otherwise. A refusal it takes for the end of
 * the body (statuses from 300 on), and so may the client. */
static bool owes_body(const struct srv_visit *visit)
{
    return !visit->is_body_given && srv_fetch_head(visit->fetch)->status < 300;
}

static void on_body(void *ctx, enum srv_body_event event, struct srv_buf *buf)
{
    struct srv_visit *visit = ctx;
    visit->is_body_asked = false;
    if (event == SRV_BODY_DATA || event == SRV_BODY_END) {
        visit->n_given += buf == NULL ? 0 : buf->len;
        visit->is_body_given =
            event == SRV_BODY_END || visit->n_given == visit->req->content_length;
        srv_fetch_give(visit->fetch, buf, visit->is_body_given);
        if (visit->is_body_given)
            on_change(visit); /* the answer may have waited for it */
        return;
    }
    end_fetch(visit);
    srv_visit_fail(visit,
                   event == SRV_BODY_MALFORMED ? 400
                   : event == SRV_BODY_STALLED ? 408
                                               : 503,
                   "the body did not come as announced\n");
}

static void pass_interims(struct srv_visit *visit)
{
    for (struct srv_fetch_interim *interim;
         (interim = srv_fetch_take_interim(visit->fetch)) != NULL; free(interim))
        if (visit->ex != NULL)
            srv_respond_interim(visit->ex, interim->status, interim->fields, interim->n_fields);
}

static void on_change(void *data)
{
    struct srv_visit *visit = data;
    if (!visit->is_answered)
        pass_interims(visit);
    enum srv_fetch_state state = srv_fetch_state(visit->fetch);
    if (visit->is_working_)
        return; /* what it does next looks again */
    if (!visit->is_head_seen && !visit->is_answered && state == SRV_FETCH_ANSWERED &&
        !owes_body(visit))
        on_head(visit);
    else if (!visit->is_answered && state == SRV_FETCH_FAILED)
        on_failure(visit);
    else if (!visit->is_answered && visit->is_head_seen && state == SRV_FETCH_ENDED)
        srv_visit_relay(visit);
    else if (visit->is_answered)
        srv_source_wake(visit->ex);
    else if (!visit->is_body_asked && srv_fetch_wants(visit->fetch)) {
        visit->is_body_asked = true;
        srv_body_stream(visit->ex);
        srv_body_read(visit->ex, on_body);
    }
}

/* ---- Asking ---- */

void srv_visit_ask(struct srv_visit *visit, bool is_conditional)
{
    struct srv_field *fields =
        calloc(visit->request.n + SRV_HTTP_CONDITIONS_MAX + 1, sizeof *fields);
    if (fields == NULL) {
        srv_visit_fail(visit, 503, "out of memory\n");
        return;
    }
    size_t n = srv_http_pass_request(visit->request, is_conditional || visit->is_again, fields);
    if (is_conditional)
        n += srv_http_conditions(srv_http_record_fields(visit->record), fields + n);
    fields[n++] = (struct srv_field){SRV_STR("via"), SRV_STR("1.1 gyre")};
    const struct srv_fetch_request request = {.origin = visit->site->origin,
                                              .method = visit->req->method_name,
                                              .target = visit->target,
                                              .authority = visit->req->authority,
                                              .fields = fields,
                                              .n_fields = n,
                                              .is_unattended = visit->ex == NULL,
                                              .has_body = visit->req->has_body,
                                              .content_length = visit->req->content_length};
    visit->is_conditional = is_conditional;
    visit->is_again = true;
    visit->is_body_given = !visit->req->has_body || visit->req->content_length == 0;
    visit->fetch = srv_fetch_start(visit->site->fetcher, visit->loop, &request, on_change, visit);
    free(fields);
    if (visit->fetch == NULL)
        srv_visit_fail(visit, 503, "out of memory\n");
}
