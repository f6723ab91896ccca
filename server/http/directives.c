#include "server/http/directives.h"

#include "server/chars.h"
#include "server/target.h"

static const struct {
    struct srv_str name;
    unsigned bit;
    int number; /* enum srv_cc_number, or -1 */
} known[] = {
    {{"no-store", 8}, SRV_CC_NO_STORE, -1},
    {{"no-cache", 8}, SRV_CC_NO_CACHE, -1},
    {{"private", 7}, SRV_CC_PRIVATE, -1},
    {{"public", 6}, SRV_CC_PUBLIC, -1},
    {{"must-revalidate", 15}, SRV_CC_MUST_REVALIDATE, -1},
    {{"proxy-revalidate", 16}, SRV_CC_PROXY_REVALIDATE, -1},
    {{"must-understand", 15}, SRV_CC_MUST_UNDERSTAND, -1},
    {{"only-if-cached", 14}, SRV_CC_ONLY_IF_CACHED, -1},
    {{"max-age", 7}, SRV_CC_MAX_AGE, SRV_CC_N_MAX_AGE},
    {{"s-maxage", 8}, SRV_CC_S_MAXAGE, SRV_CC_N_S_MAXAGE},
    {{"min-fresh", 9}, SRV_CC_MIN_FRESH, SRV_CC_N_MIN_FRESH},
    {{"max-stale", 9}, SRV_CC_MAX_STALE, SRV_CC_N_MAX_STALE},
    {{"stale-while-revalidate", 22}, SRV_CC_WHILE_REVALIDATE, SRV_CC_N_WHILE_REVALIDATE},
    {{"stale-if-error", 14}, SRV_CC_IF_ERROR, SRV_CC_N_IF_ERROR},
};

bool srv_http_seconds(struct srv_str text, int64_t *seconds_out)
{
    int64_t value = 0;
    *seconds_out = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (!srv_is_digit((unsigned char)text.base[i]))
            return false;
        value = value * 10 + (text.base[i] - '0');
        if (value > SRV_CC_FOREVER_S)
            value = SRV_CC_FOREVER_S;
    }
    *seconds_out = value;
    return text.len > 0;
}

/* A number that cannot be read: lifetimes are 0, and so are the times that would allow staleness;
 * of min-fresh nothing is known, so nothing is fresh enough. */
static int64_t unreadable(enum srv_cc_number number)
{
    return number == SRV_CC_N_MIN_FRESH ? SRV_CC_FOREVER_S : 0;
}

static void add_number(struct srv_http_directives *directives, unsigned bit,
                       enum srv_cc_number number, enum srv_cc_argument kind,
                       struct srv_str argument)
{
    int64_t seconds = unreadable(number);
    if ((directives->present & bit) != 0)
        return;
    if (kind == SRV_CC_NO_ARGUMENT && number == SRV_CC_N_MAX_STALE)
        seconds = SRV_CC_FOREVER_S;
    else if (kind == SRV_CC_TEXT && !srv_http_seconds(argument, &seconds))
        seconds = unreadable(number);
    directives->present |= bit;
    directives->seconds[number] = seconds;
}

/* no-cache and private name fields, or mean all of the response. A second list makes it all, as
 * there is room for one. */
static void add_qualified(struct srv_http_directives *directives, unsigned bit,
                          struct srv_str *names, enum srv_cc_argument kind, struct srv_str argument)
{
    if (kind == SRV_CC_TEXT && argument.len > 0 && names->len == 0)
        *names = argument;
    else
        directives->present |= bit;
}

void srv_http_directive_add(struct srv_http_directives *directives, struct srv_str name,
                            enum srv_cc_argument kind, struct srv_str argument)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!srv_str_equal_nocase(known[i].name, name))
            continue;
        if (known[i].number >= 0)
            add_number(directives, known[i].bit, (enum srv_cc_number)known[i].number, kind,
                       argument);
        else if (known[i].bit == SRV_CC_NO_CACHE)
            add_qualified(directives, SRV_CC_NO_CACHE, &directives->no_cache_names, kind, argument);
        else if (known[i].bit == SRV_CC_PRIVATE)
            add_qualified(directives, SRV_CC_PRIVATE, &directives->private_names, kind, argument);
        else
            directives->present |= known[i].bit;
        return;
    }
}

void srv_http_directive_forget(struct srv_http_directives *directives, struct srv_str name)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!srv_str_equal(known[i].name, name))
            continue;
        directives->present &= ~known[i].bit;
        if (known[i].bit == SRV_CC_NO_CACHE)
            directives->no_cache_names = (struct srv_str){0};
        else if (known[i].bit == SRV_CC_PRIVATE)
            directives->private_names = (struct srv_str){0};
    }
}

/* Of one member: its name, and the argument behind '='. White space beside '=' is not allowed (RFC
 * 9110, 5.6.6): what is before or behind it then does not read as a name or a number. */
static void add_member(struct srv_http_directives *directives, struct srv_str member)
{
    size_t len = 0;
    while (len < member.len && member.base[len] != '=')
        len++;
    struct srv_str name = {member.base, len};
    if (len == member.len) {
        srv_http_directive_add(directives, name, SRV_CC_NO_ARGUMENT, (struct srv_str){0});
        return;
    }
    struct srv_str argument = {member.base + len + 1, member.len - len - 1};
    enum srv_cc_argument kind = SRV_CC_TEXT;
    struct srv_str bare = srv_http_trim(name);
    if (bare.len != name.len || argument.len == 0)
        kind = SRV_CC_INVALID;
    else if (argument.base[0] == '"') {
        bool ends = argument.len >= 2 && argument.base[argument.len - 1] == '"';
        argument = (struct srv_str){argument.base + 1, argument.len - 1 - ends};
        kind = ends ? SRV_CC_TEXT : SRV_CC_INVALID;
    }
    srv_http_directive_add(directives, bare, kind, argument);
}

static bool read_plain(struct srv_http_fields fields, struct srv_http_directives *directives)
{
    struct srv_http_members walk = {.name = SRV_STR("cache-control")};
    struct srv_str member;
    while (srv_http_next_member(fields, &walk, &member))
        add_member(directives, member);
    return walk.lines_.next_ > 0 && srv_http_has(fields, walk.name);
}

void srv_http_request_directives(struct srv_http_fields fields,
                                 struct srv_http_directives *directives_out)
{
    struct srv_http_members walk = {.name = SRV_STR("pragma")};
    struct srv_str member;
    *directives_out = (struct srv_http_directives){0};
    if (read_plain(fields, directives_out))
        return;
    while (srv_http_next_member(fields, &walk, &member))
        if (srv_str_equal_nocase(member, SRV_STR("no-cache")))
            directives_out->present |= SRV_CC_NO_CACHE;
}

void srv_http_response_directives(struct srv_http_fields fields, struct srv_str targets,
                                  struct srv_http_directives *directives_out)
{
    struct srv_str target;
    while (srv_http_member(&targets, &target))
        if (srv_http_targeted_directives(fields, target, directives_out))
            return;
    *directives_out = (struct srv_http_directives){0};
    read_plain(fields, directives_out);
}
