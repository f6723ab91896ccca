#include "server/http/forwarding.h"

static const struct srv_str hop_names[] = {
    {"connection", 10},
    {"keep-alive", 10},
    {"proxy-connection", 16},
    {"te", 2},
    {"trailer", 7},
    {"transfer-encoding", 17},
    {"upgrade", 7},
    {"proxy-authenticate", 18},
    {"proxy-authentication-info", 25},
    {"proxy-authorization", 19},
};

/* Written by the fetch itself. */
static const struct srv_str fetch_names[] = {{"host", 4}, {"content-length", 14}, {"expect", 6}};

static const struct srv_str condition_names[] = {
    {"if-none-match", 13}, {"if-modified-since", 17}, {"if-range", 8}, {"range", 5}};

static bool is_one_of(const struct srv_str *names, size_t n, struct srv_str name)
{
    for (size_t i = 0; i < n; i++)
        if (srv_str_equal(names[i], name))
            return true;
    return false;
}

#define IS_ONE_OF(names, name) is_one_of(names, sizeof names / sizeof names[0], name)

bool srv_http_is_hop(struct srv_http_fields fields, struct srv_str name)
{
    struct srv_http_lines walk = {0};
    struct srv_str line;
    if (IS_ONE_OF(hop_names, name))
        return true;
    while (srv_http_line(fields, SRV_STR("connection"), &walk, &line))
        if (srv_http_names_hold(line, name))
            return true;
    return false;
}

size_t srv_http_pass(struct srv_http_fields fields, struct srv_field *out)
{
    size_t n = 0;
    for (size_t i = 0; i < fields.n; i++)
        if (!srv_http_is_hop(fields, fields.at[i].name))
            out[n++] = fields.at[i];
    return n;
}

size_t srv_http_pass_request(struct srv_http_fields fields, bool is_conditional,
                             struct srv_field *out)
{
    size_t n = 0;
    for (size_t i = 0; i < fields.n; i++) {
        struct srv_str name = fields.at[i].name;
        if (!srv_http_is_hop(fields, name) && !IS_ONE_OF(fetch_names, name) &&
            !(is_conditional && IS_ONE_OF(condition_names, name)))
            out[n++] = fields.at[i];
    }
    return n;
}

size_t srv_http_pass_stored(struct srv_http_fields fields, struct srv_str no_cache_names,
                            struct srv_str private_names, struct srv_field *out)
{
    size_t n = 0;
    for (size_t i = 0; i < fields.n; i++) {
        struct srv_str name = fields.at[i].name;
        if (!srv_http_is_hop(fields, name) && !srv_http_names_hold(no_cache_names, name) &&
            !srv_http_names_hold(private_names, name))
            out[n++] = fields.at[i];
    }
    return n;
}
