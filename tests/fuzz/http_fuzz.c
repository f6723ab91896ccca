/* Any bytes as fields of a request and of a response: what the cache makes of them holds together.
 * Lines "name: value"; an empty one ends the request, and the response follows as an origin sends
 * it. */
#include <stdlib.h>
#include <string.h>

#include "server/http/origin_head.h"
#include "server/http/record.h"
#include "server/http/reuse.h"
#include "server/http/selection.h"
#include "server/http/storing.h"
#include "server/http/validation.h"
#include "server/http/vary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW_MS INT64_C(1700000000000)

static void require(bool cond)
{
    if (!cond)
        abort();
}

/* Feeds lines up to an empty one; returns where the rest begins. */
static const char *read_head(struct srv_http_head *head, const char *at, const char *end)
{
    srv_http_head_line(head, SRV_STR("HTTP/1.1 200 OK"));
    while (at < end && head->state == SRV_HTTP_HEAD_OPEN) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((line != NULL ? line : end) - at);
        srv_http_head_line(head, (struct srv_str){at, len});
        at += len + (line != NULL);
    }
    if (head->state == SRV_HTTP_HEAD_OPEN)
        srv_http_head_line(head, (struct srv_str){0});
    return at;
}

static void check_vary(struct srv_http_fields request, struct srv_http_fields response)
{
    static char names[SRV_HTTP_VARY_NAMES_MAX], form[SRV_HTTP_VARY_FORM_MAX];
    size_t len = srv_http_vary_names(response, names);
    require(len == SIZE_MAX || len <= sizeof names);
    if (len == SIZE_MAX)
        return;
    size_t form_len =
        srv_http_vary_form((struct srv_str){names, len}, request, &srv_http_policy_default, form);
    require(form_len == SIZE_MAX || form_len <= sizeof form);
}

static void check_record(const struct srv_http_facts *facts, struct srv_http_fields response)
{
    static struct srv_http_record record;
    size_t len;
    void *bytes = srv_http_record_write(SRV_HTTP_RECORD_RESPONSE, facts, 1, response, &len);
    require(bytes != NULL && srv_http_record_read(bytes, len, &record));
    require(record.n_fields == response.n && record.facts.lifetime_s == facts->lifetime_s);
    free(bytes);
}

static void check(struct srv_http_fields request, struct srv_http_fields response)
{
    const struct srv_http_times times = {NOW_MS - 5, NOW_MS};
    const struct srv_http_policy *policy = &srv_http_policy_default;
    struct srv_http_directives asked, told;
    struct srv_http_facts facts;
    srv_http_request_directives(request, &asked);
    srv_http_response_directives(response, policy->targets, &told);
    srv_http_facts_of(200, response, &told, &times, policy, &facts);
    require(facts.lifetime_s >= 0 && facts.initial_age_ms >= 0);
    const struct srv_http_question question = {SRV_GET, request, &asked, response,
                                               &told,   &facts,  false};
    enum srv_http_storing storing = srv_http_may_store(&question, policy);
    require((told.present & SRV_CC_PRIVATE) == 0 || storing != SRV_HTTP_STORE);
    struct srv_http_decision decision = srv_http_decide(&facts, &asked, NOW_MS + 1000);
    require(decision.action != SRV_HTTP_SERVE || srv_http_fresh_ms(&facts, NOW_MS + 1000) > 0);
    struct srv_http_selection selection = srv_http_select(&facts, response, 1000, request);
    require(selection.status != 206 ||
            (selection.range.first <= selection.range.last && selection.range.last < 1000));
    struct srv_field *merged = calloc(request.n + response.n + 1, sizeof *merged);
    require(merged != NULL && srv_http_update(response, request, merged) <= request.n + response.n);
    free(merged);
    check_vary(request, response);
    check_record(&facts, response);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct srv_http_record record;
    struct srv_http_head request = {0}, response = {0};
    const char *at = (const char *)data, *end = at + size;
    srv_http_record_read(data, size, &record);
    at = read_head(&request, at, end);
    read_head(&response, at, end);
    if (request.state == SRV_HTTP_HEAD_DONE && response.state == SRV_HTTP_HEAD_DONE)
        check(srv_http_head_fields(&request), srv_http_head_fields(&response));
    srv_http_head_fini(&request);
    srv_http_head_fini(&response);
    return 0;
}
