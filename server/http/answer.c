/* Answers of a site: from the store, from the origin, or short ones of its own. */
#include <stdlib.h>
#include <string.h>

#include "server/check.h"
#include "server/http/follow.h"
#include "server/http/forwarding.h"
#include "server/http/selection.h"
#include "server/http/visit.h"
#include "server/http_date.h"
#include "server/stored.h"

enum { FIELDS_ADDED = 8 };

/* ---- Fields ---- */

static bool begin_fields(struct srv_visit *visit, size_t n)
{
    free(visit->fields);
    visit->fields = calloc(n + FIELDS_ADDED, sizeof *visit->fields);
    visit->n_fields = visit->text_len = 0;
    return visit->fields != NULL;
}

static void add(struct srv_visit *visit, struct srv_str name, struct srv_str value)
{
    visit->fields[visit->n_fields++] = (struct srv_field){name, value};
}

/* Copies `len` bytes for as long as the visit lives. */
static struct srv_str keep(struct srv_visit *visit, const char *text, size_t len)
{
    SRV_CHECK(len <= sizeof visit->text - visit->text_len);
    char *at = visit->text + visit->text_len;
    memcpy(at, text, len);
    visit->text_len += len;
    return (struct srv_str){at, len};
}

static void add_number(struct srv_visit *visit, struct srv_str name, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    add(visit, name, keep(visit, digits + at, sizeof digits - at));
}

static void add_own(struct srv_visit *visit)
{
    char text[SRV_HTTP_CACHE_STATUS_MAX];
    size_t len = srv_http_cache_status(&visit->handled, text);
    add(visit, SRV_STR("cache-status"), keep(visit, text, len));
    add(visit, SRV_STR("via"), SRV_STR("1.1 gyre"));
    add(visit, SRV_STR("x-request-id"), (struct srv_str){visit->req->id, strlen(visit->req->id)});
}

/* ---- From the store ---- */

static void add_stored(struct srv_visit *visit, struct srv_http_fields fields, int status)
{
    for (size_t i = 0; i < fields.n; i++) {
        struct srv_str name = fields.at[i].name;
        bool is_computed = srv_str_equal(name, SRV_STR("age")) ||
                           srv_str_equal(name, SRV_STR("content-length")) ||
                           (status == 206 && srv_str_equal(name, SRV_STR("content-range")));
        if (!is_computed && (status != 304 || srv_http_is_in_304(name)))
            add(visit, name, fields.at[i].value);
    }
}

/* The word for the log. What the origin has just validated is neither a hit nor stale. */
static void note_reused(struct srv_visit *visit, bool is_stale)
{
    if (visit->is_collapsed)
        srv_exchange_note_result(visit->ex, SRV_RESULT_COLLAPSED);
    else if (is_stale)
        srv_exchange_note_result(visit->ex, SRV_RESULT_STALE);
    else if (visit->handled.forward == SRV_HTTP_FORWARD_NONE)
        srv_exchange_note_result(visit->ex, SRV_RESULT_HIT);
}

static void send_stored(struct srv_visit *visit, const struct srv_response *response,
                        uint64_t offset)
{
    struct srv_source *source = NULL;
    bool has_body =
        visit->req->method != SRV_HEAD && response->status != 304 && response->content_length > 0;
    if (has_body)
        source = srv_stored_create(visit->ex, visit->site->pool, &visit->handle, offset,
                                   response->content_length);
    if (has_body && source == NULL) {
        srv_visit_fail(visit, 503, "out of memory\n");
        return;
    }
    visit->is_answered = true;
    srv_respond(visit->ex, response, source);
}

void srv_visit_answer_stored(struct srv_visit *visit, const struct srv_http_facts *facts,
                             struct srv_http_fields fields)
{
    char text[SRV_CONTENT_RANGE_MAX];
    if (visit->ex == NULL) {
        srv_visit_finish(visit);
        return;
    }
    uint64_t length = gyre_handle_info(visit->handle)->length, offset = 0, len = length;
    struct srv_http_selection selection = {.status = facts->status};
    if (visit->req->method == SRV_GET || visit->req->method == SRV_HEAD)
        selection = srv_http_select(facts, fields, length, visit->request);
    if (visit->req->method == SRV_HEAD && selection.status != 304)
        selection = (struct srv_http_selection){.status = facts->status};
    if (!begin_fields(visit, fields.n)) {
        srv_visit_fail(visit, 503, "out of memory\n");
        return;
    }
    int64_t age_s = srv_http_age_ms(facts, visit->now_ms) / 1000;
    visit->handled.ttl_s = facts->lifetime_s - age_s;
    add_stored(visit, fields, selection.status);
    add_number(visit, SRV_STR("age"), (uint64_t)age_s);
    if (selection.status != facts->status && selection.status != 304) {
        size_t n = srv_range_write(&selection.range, length, text);
        add(visit, SRV_STR("content-range"), keep(visit, text, n));
        offset = selection.range.first;
        len = selection.status == 206 ? selection.range.last - offset + 1 : 0;
    }
    add_own(visit);
    note_reused(visit, age_s >= facts->lifetime_s && visit->handled.forward_status != 304);
    const struct srv_response response = {.status = selection.status,
                                          .fields = visit->fields,
                                          .n_fields = visit->n_fields,
                                          .content_length =
                                              selection.status == 304 ? SRV_LENGTH_UNKNOWN : len,
                                          .is_relayed = true};
    send_stored(visit, &response, offset);
}

/* ---- From another's fetch ---- */

void srv_visit_answer_followed(struct srv_visit *visit)
{
    size_t len;
    const void *meta = gyre_follow_meta(visit->miss.follow, &len);
    uint64_t length = gyre_follow_info(visit->miss.follow)->length;
    struct srv_http_record *record = visit->record;
    bool is_response =
        srv_http_record_read(meta, len, record) && record->kind == SRV_HTTP_RECORD_RESPONSE;
    bool is_empty = length == 0;
    struct srv_source *source = NULL;
    if (!is_response || !begin_fields(visit, record->n_fields)) {
        srv_visit_unseek(visit); /* no response: what is stored decides */
        srv_visit_start(visit);
        return;
    }
    int64_t age_s = srv_http_age_ms(&record->facts, visit->now_ms) / 1000;
    visit->handled.is_collapsed = true;
    add_stored(visit, srv_http_record_fields(record), record->facts.status);
    add_number(visit, SRV_STR("age"), (uint64_t)age_s);
    add_own(visit);
    srv_exchange_note_result(visit->ex, SRV_RESULT_COLLAPSED);
    /* What the fields lie in is copied before what lends them may go. */
    const struct srv_response response = {
        .status = record->facts.status,
        .fields = visit->fields,
        .n_fields = visit->n_fields,
        .content_length = length == GYRE_LENGTH_UNKNOWN ? SRV_LENGTH_UNKNOWN : length,
        .is_relayed = true,
        .is_unbounded = length == GYRE_LENGTH_UNKNOWN};
    source =
        is_empty ? NULL : srv_follow_create(visit->ex, &visit->miss.follow, response.is_unbounded);
    if (!is_empty && source == NULL) {
        srv_visit_fail(visit, 503, "out of memory\n");
        return;
    }
    visit->is_answered = true;
    srv_respond(visit->ex, &response, source);
}

/* ---- From the origin ---- */

static struct srv_visit *visit_of(struct srv_source *source)
{
    return (struct srv_visit *)((char *)source - offsetof(struct srv_visit, source));
}

/* What is stored is there before the client has its last byte: what it asks next is a hit. */
static size_t held_back(const struct srv_visit *visit, enum srv_fetch_state state, size_t len)
{
    uint64_t length = srv_fetch_head(visit->fetch)->content_length;
    bool is_last = length != SRV_LENGTH_UNKNOWN && visit->n_relayed + len == length;
    return is_last && state != SRV_FETCH_ENDED ? 1 : 0;
}

static enum srv_source_state next(struct srv_source *self, size_t max, struct iovec *piece_out)
{
    struct srv_visit *visit = visit_of(self);
    const void *bytes;
    /* The piece lent before this call has been sent. */
    if (visit->source.lent > 0)
        srv_fetch_consume(visit->fetch, visit->source.lent);
    visit->source.lent = 0;
    /* The state first: what has come by the time of it is there to be read. */
    enum srv_fetch_state state = srv_fetch_state(visit->fetch);
    size_t len = srv_fetch_peek(visit->fetch, max, &bytes);
    len -= len > 0 ? held_back(visit, state, len) : 0;
    if (len > 0) {
        visit->n_relayed += len;
        visit->source.lent = len;
        *piece_out = (struct iovec){(void *)(uintptr_t)bytes, len};
        return SRV_SOURCE_READY;
    }
    uint64_t length = srv_fetch_head(visit->fetch)->content_length;
    if (state == SRV_FETCH_ENDED && length == SRV_LENGTH_UNKNOWN)
        return SRV_SOURCE_END;
    if (state == SRV_FETCH_ENDED)
        return SRV_SOURCE_FAILED; /* its framing was not what its length said */
    return state == SRV_FETCH_FAILED ? SRV_SOURCE_FAILED : SRV_SOURCE_WAIT;
}

/* The bytes are the fetch's, which ends with the visit. */
static void destroy(struct srv_source *self)
{
    (void)self;
}

static void add_date(struct srv_visit *visit, struct srv_http_fields fields)
{
    char date[SRV_HTTP_DATE_LEN + 1];
    if (srv_http_has(fields, SRV_STR("date")))
        return;
    srv_http_date_write(srv_fetch_received_ms(visit->fetch) / 1000, date);
    add(visit, SRV_STR("date"), keep(visit, date, SRV_HTTP_DATE_LEN));
}

void srv_visit_relay(struct srv_visit *visit)
{
    if (visit->ex == NULL) {
        srv_visit_finish(visit);
        return;
    }
    const struct srv_http_head *head = srv_fetch_head(visit->fetch);
    struct srv_http_fields fields = srv_http_head_fields(head);
    bool is_bodyless = visit->req->method == SRV_HEAD || head->status == 204 ||
                       head->status == 304 || head->content_length == 0;
    if (!begin_fields(visit, fields.n)) {
        srv_visit_fail(visit, 503, "out of memory\n");
        return;
    }
    for (size_t i = 0; i < fields.n; i++)
        if (!srv_http_is_hop(fields, fields.at[i].name) &&
            !srv_str_equal(fields.at[i].name, SRV_STR("content-length")))
            add(visit, fields.at[i].name, fields.at[i].value);
    add_date(visit, fields);
    visit->handled.forward_status = head->status;
    visit->handled.is_stored = visit->is_storing;
    add_own(visit);
    srv_exchange_note_result(visit->ex, visit->is_lookup ? SRV_RESULT_MISS : SRV_RESULT_UNKNOWN);
    visit->source = (struct srv_visit_source){{next, destroy}, 0};
    const struct srv_response response = {
        .status = head->status,
        .fields = visit->fields,
        .n_fields = visit->n_fields,
        .content_length = head->content_length,
        .is_relayed = true,
        .is_unbounded = head->content_length == SRV_LENGTH_UNKNOWN && !is_bodyless};
    visit->is_answered = true;
    srv_respond(visit->ex, &response, is_bodyless ? NULL : &visit->source.base);
}

/* ---- Our own ---- */

void srv_visit_fail(struct srv_visit *visit, int status, const char *text)
{
    if (visit->ex == NULL) {
        srv_visit_finish(visit);
        return;
    }
    visit->is_answered = true;
    if (!begin_fields(visit, 1)) {
        srv_respond_bytes(visit->ex, &(struct srv_response){.status = status}, NULL, 0);
        return;
    }
    add(visit, SRV_STR("content-type"), SRV_STR("text/plain"));
    add_own(visit);
    const struct srv_response response = {
        .status = status, .fields = visit->fields, .n_fields = visit->n_fields};
    srv_respond_bytes(visit->ex, &response, text, strlen(text));
}
