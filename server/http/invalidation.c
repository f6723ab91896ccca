#include "server/http/invalidation.h"

#include <string.h>

#include "server/target.h"

bool srv_http_is_safe(struct srv_str method)
{
    static const struct srv_str safe[] = {{"GET", 3},    {"HEAD", 4},     {"OPTIONS", 7},
                                          {"TRACE", 5},  {"PROPFIND", 8}, {"REPORT", 6},
                                          {"SEARCH", 6}, {"PRI", 3}};
    for (size_t i = 0; i < sizeof safe / sizeof safe[0]; i++)
        if (srv_str_equal(method, safe[i]))
            return true;
    return false;
}

static bool takes(struct srv_str *rest, struct srv_str prefix)
{
    if (rest->len < prefix.len ||
        !srv_str_equal_nocase((struct srv_str){rest->base, prefix.len}, prefix))
        return false;
    *rest = (struct srv_str){rest->base + prefix.len, rest->len - prefix.len};
    return true;
}

static struct srv_str without_fragment(struct srv_str target)
{
    const char *mark = target.len > 0 ? memchr(target.base, '#', target.len) : NULL;
    return mark == NULL ? target : (struct srv_str){target.base, (size_t)(mark - target.base)};
}

bool srv_http_own_target(struct srv_str reference, struct srv_str scheme, struct srv_str authority,
                         struct srv_str *target_out)
{
    struct srv_str rest = without_fragment(srv_http_trim(reference));
    *target_out = (struct srv_str){0};
    if (takes(&rest, scheme) && !takes(&rest, SRV_STR(":")))
        return false;
    if (takes(&rest, SRV_STR("//"))) {
        if (!takes(&rest, authority))
            return false;
        if (rest.len == 0)
            rest = SRV_STR("/");
    }
    if (rest.len == 0 || rest.base[0] != '/')
        return false;
    *target_out = rest;
    return true;
}

static size_t add(struct srv_str *out, size_t n, struct srv_str target)
{
    for (size_t i = 0; i < n; i++)
        if (srv_str_equal(out[i], target))
            return n;
    out[n] = target;
    return n + 1;
}

size_t srv_http_invalidates(struct srv_str method, struct srv_str scheme, struct srv_str authority,
                            struct srv_str target, int status, struct srv_http_fields answer,
                            struct srv_str out[SRV_HTTP_INVALID_MAX])
{
    static const struct srv_str names[] = {{"location", 8}, {"content-location", 16}};
    struct srv_str value, other;
    if (srv_http_is_safe(method) || status < 200 || status > 399)
        return 0;
    size_t n = add(out, 0, without_fragment(target));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (srv_http_first(answer, names[i], &value) &&
            srv_http_own_target(value, scheme, authority, &other))
            n = add(out, n, other);
    return n;
}
