#include "server/http/selection.h"

#include <string.h>

#include "server/chars.h"
#include "server/etag_list.h"
#include "server/http/date.h"

/* Entity tags are compared without their quotes. */
static struct srv_str opaque_of(struct srv_str etag, bool *is_weak_out)
{
    *is_weak_out = etag.len >= 2 && etag.base[0] == 'W' && etag.base[1] == '/';
    if (*is_weak_out)
        etag = (struct srv_str){etag.base + 2, etag.len - 2};
    if (etag.len >= 2 && etag.base[0] == '"' && etag.base[etag.len - 1] == '"')
        etag = (struct srv_str){etag.base + 1, etag.len - 2};
    return etag;
}

/* RFC 9110, 13.1.2: weak comparison, any line. */
static bool is_listed(struct srv_http_fields fields, struct srv_http_fields request)
{
    struct srv_http_lines walk = {0};
    struct srv_str etag, line;
    bool is_weak;
    bool has_etag = srv_http_first(fields, SRV_STR("etag"), &etag);
    struct srv_str opaque = opaque_of(etag, &is_weak);
    while (srv_http_line(request, SRV_STR("if-none-match"), &walk, &line)) {
        enum srv_etag_match match = srv_etag_list_match(line, opaque, SRV_ETAG_WEAK);
        if (match == SRV_ETAG_MATCH_ANY || (has_etag && match == SRV_ETAG_MATCH_LISTED))
            return true;
    }
    return false;
}

/* RFC 9111, 4.3.2: Last-Modified, else Date, else the time of receipt. */
static bool is_unmodified(const struct srv_http_facts *stored, struct srv_http_fields fields,
                          struct srv_http_fields request)
{
    int64_t now_s = stored->received_ms / 1000, since_s, modified_s;
    if (!srv_http_date_field(request, SRV_STR("if-modified-since"), now_s, &since_s))
        return false;
    if (!srv_http_date_field(fields, SRV_STR("last-modified"), now_s, &modified_s))
        modified_s = stored->date_s;
    return modified_s <= since_s;
}

/* If-None-Match takes If-Modified-Since's place (RFC 9110, 13.2.2); both are for 200 and 206. */
static bool has_it(const struct srv_http_facts *stored, struct srv_http_fields fields,
                   struct srv_http_fields request)
{
    if (stored->status != 200 && stored->status != 206)
        return false;
    return srv_http_has(request, SRV_STR("if-none-match")) ? is_listed(fields, request)
                                                           : is_unmodified(stored, fields, request);
}

/* RFC 9110, 13.1.5: the same strong entity tag, or the very date of Last-Modified. */
static bool is_same(struct srv_http_fields fields, struct srv_http_fields request)
{
    struct srv_str condition, validator;
    int64_t wanted_s, modified_s;
    if (!srv_http_first(request, SRV_STR("if-range"), &condition))
        return true;
    condition = srv_http_trim(condition);
    if (condition.len > 0 && condition.base[0] == '"')
        return srv_http_first(fields, SRV_STR("etag"), &validator) &&
               srv_str_equal(condition, srv_http_trim(validator));
    return srv_http_date(condition, 0, &wanted_s) &&
           srv_http_date_field(fields, SRV_STR("last-modified"), 0, &modified_s) &&
           wanted_s == modified_s;
}

struct srv_http_selection srv_http_select(const struct srv_http_facts *stored,
                                          struct srv_http_fields fields, uint64_t length,
                                          struct srv_http_fields request)
{
    struct srv_http_selection selection = {.status = stored->status};
    struct srv_http_lines walk = {0};
    struct srv_str range, second;
    if (has_it(stored, fields, request)) {
        selection.status = 304;
        return selection;
    }
    bool has_range = srv_http_line(request, SRV_STR("range"), &walk, &range) &&
                     !srv_http_line(request, SRV_STR("range"), &walk, &second);
    if (stored->status != 200 || !has_range || !is_same(fields, request))
        return selection;
    selection.range = srv_range_decide(&range, length);
    if (selection.range.kind == SRV_RANGE_PART)
        selection.status = 206;
    else if (selection.range.kind == SRV_RANGE_UNSATISFIABLE)
        selection.status = 416;
    return selection;
}

bool srv_http_is_in_304(struct srv_str name)
{
    static const struct srv_str names[] = {
        {"etag", 4},           {"date", 4},
        {"cache-control", 13}, {"vary", 4},
        {"expires", 7},        {"content-location", 16},
        {"last-modified", 13}, {"cdn-cache-control", 17},
        {"set-cookie", 10},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (srv_str_equal(names[i], name))
            return true;
    return false;
}

/* ---- Partial responses ---- */

static bool take_number(struct srv_str *rest, uint64_t *value_out)
{
    uint64_t value = 0;
    size_t i = 0;
    for (; i < rest->len && srv_is_digit((unsigned char)rest->base[i]); i++) {
        if (value > (UINT64_MAX >> 1) / 10 - 1)
            return false;
        value = value * 10 + (uint64_t)(rest->base[i] - '0');
    }
    *rest = (struct srv_str){rest->base + i, rest->len - i};
    *value_out = value;
    return i > 0;
}

static bool take_byte(struct srv_str *rest, char c)
{
    if (rest->len == 0 || rest->base[0] != c)
        return false;
    *rest = (struct srv_str){rest->base + 1, rest->len - 1};
    return true;
}

bool srv_http_content_range(struct srv_str value, struct srv_http_part *part_out)
{
    static const char UNIT[] = "bytes ";
    struct srv_http_part part;
    *part_out = (struct srv_http_part){0};
    if (value.len < sizeof UNIT - 1 || memcmp(value.base, UNIT, sizeof UNIT - 1) != 0)
        return false;
    struct srv_str rest = {value.base + sizeof UNIT - 1, value.len - (sizeof UNIT - 1)};
    bool ok = take_number(&rest, &part.first) && take_byte(&rest, '-') &&
              take_number(&rest, &part.last) && take_byte(&rest, '/') &&
              take_number(&rest, &part.total) && rest.len == 0 && part.first <= part.last &&
              part.last < part.total;
    if (ok)
        *part_out = part;
    return ok;
}
