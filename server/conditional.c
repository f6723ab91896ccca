#include "server/conditional.h"

#include <string.h>

#include "server/etag_list.h"
#include "server/http_date.h"

static bool is_named(const struct srv_field *field, const char *name)
{
    return field->name.len == strlen(name) && memcmp(field->name.base, name, field->name.len) == 0;
}

/* The value of the only field of that name; NULL when there is none or several. */
static const struct srv_str *single_field(const struct srv_request *req, const char *name)
{
    const struct srv_str *found = NULL;
    for (size_t i = 0; i < req->n_fields; i++) {
        if (!is_named(&req->fields[i], name))
            continue;
        if (found != NULL)
            return NULL;
        found = &req->fields[i].value;
    }
    return found;
}

enum list_answer { LIST_ABSENT, LIST_MATCHES, LIST_DIFFERS };

/* Compares all fields of that name with what is stored. With nothing stored, no list matches. */
static enum list_answer ask_list(const struct srv_request *req, const char *name,
                                 const struct srv_validators *stored, enum srv_etag_compare compare)
{
    enum list_answer answer = LIST_ABSENT;
    for (size_t i = 0; i < req->n_fields; i++) {
        if (!is_named(&req->fields[i], name))
            continue;
        if (stored != NULL &&
            srv_etag_list_match(req->fields[i].value, stored->etag, compare) != SRV_ETAG_MATCH_NONE)
            return LIST_MATCHES;
        answer = LIST_DIFFERS;
    }
    return answer;
}

/* False when the field is absent or no date. */
static bool ask_date(const struct srv_request *req, const char *name, int64_t now_s,
                     int64_t *date_s_out)
{
    const struct srv_str *value = single_field(req, name);
    *date_s_out = 0;
    return value != NULL && srv_http_date_parse(*value, now_s, date_s_out);
}

enum srv_verdict srv_conditional_decide(const struct srv_request *req,
                                        const struct srv_validators *stored, int64_t now_s,
                                        const char **field_out)
{
    const char *ignored;
    const char **field = field_out != NULL ? field_out : &ignored;
    bool reads = req->method == SRV_GET || req->method == SRV_HEAD;
    int64_t date_s;

    *field = "If-Match";
    enum list_answer match = ask_list(req, "if-match", stored, SRV_ETAG_STRONG);
    if (match == LIST_DIFFERS)
        return stored == NULL ? SRV_VERDICT_MISSING : SRV_VERDICT_FAILED;

    *field = "If-Unmodified-Since";
    if (match == LIST_ABSENT && stored != NULL &&
        ask_date(req, "if-unmodified-since", now_s, &date_s) && stored->modified_s > date_s)
        return SRV_VERDICT_FAILED;

    *field = "If-None-Match";
    enum list_answer none_match = ask_list(req, "if-none-match", stored, SRV_ETAG_WEAK);
    if (none_match == LIST_MATCHES)
        return reads ? SRV_VERDICT_NOT_MODIFIED : SRV_VERDICT_FAILED;

    *field = "If-Modified-Since";
    if (none_match == LIST_ABSENT && reads && stored != NULL &&
        ask_date(req, "if-modified-since", now_s, &date_s) && stored->modified_s <= date_s)
        return SRV_VERDICT_NOT_MODIFIED;

    *field = NULL;
    return SRV_VERDICT_PROCEED;
}

const struct srv_str *srv_conditional_range(const struct srv_request *req,
                                            const struct srv_validators *stored, int64_t now_s)
{
    const struct srv_str *range = single_field(req, "range");
    if (range == NULL)
        return NULL;
    bool asked = false;
    for (size_t i = 0; i < req->n_fields; i++)
        asked = asked || is_named(&req->fields[i], "if-range");
    if (!asked)
        return range;
    const struct srv_str *value = single_field(req, "if-range");
    int64_t date_s;
    bool same = false;
    if (value == NULL || stored == NULL)
        same = false;
    else if (srv_http_date_parse(*value, now_s, &date_s))
        same = stored->modified_s == date_s;
    else
        same = srv_etag_list_match(*value, stored->etag, SRV_ETAG_STRONG) == SRV_ETAG_MATCH_LISTED;
    return same ? range : NULL;
}
