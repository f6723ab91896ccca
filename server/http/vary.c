#include "server/http/vary.h"

#include <string.h>

#include "server/chars.h"
#include "server/target.h"

enum { NAMES_MAX = 32, MEMBERS_MAX = 32 };

bool srv_http_vary_is_any(struct srv_http_fields response)
{
    struct srv_http_members walk = {.name = SRV_STR("vary")};
    struct srv_str member;
    while (srv_http_next_member(response, &walk, &member))
        if (member.len == 1 && member.base[0] == '*')
            return true;
    return false;
}

static int compare_nocase(struct srv_str a, struct srv_str b)
{
    for (size_t i = 0; i < a.len && i < b.len; i++) {
        char x, y;
        srv_lower(&x, &a.base[i], 1);
        srv_lower(&y, &b.base[i], 1);
        if (x != y)
            return (unsigned char)x < (unsigned char)y ? -1 : 1;
    }
    return a.len < b.len ? -1 : a.len > b.len;
}

size_t srv_http_vary_names(struct srv_http_fields response, char names_out[SRV_HTTP_VARY_NAMES_MAX])
{
    struct srv_http_members walk = {.name = SRV_STR("vary")};
    struct srv_str member, names[NAMES_MAX];
    size_t n = 0, len = 0;
    while (srv_http_next_member(response, &walk, &member)) {
        size_t at = 0;
        int order = 1;
        while (at < n && (order = compare_nocase(names[at], member)) < 0)
            at++;
        if (at < n && order == 0)
            continue;
        if (n == NAMES_MAX)
            return SIZE_MAX;
        memmove(&names[at + 1], &names[at], (n - at) * sizeof names[0]);
        names[at] = member;
        n++;
    }
    for (size_t i = 0; i < n; i++) {
        if (len + names[i].len + 1 > SRV_HTTP_VARY_NAMES_MAX)
            return SIZE_MAX;
        if (i > 0)
            names_out[len++] = ',';
        srv_lower(names_out + len, names[i].base, names[i].len);
        len += names[i].len;
    }
    return len;
}

/* ---- Writing a form ---- */

struct form {
    char *at;
    size_t len;
    bool is_full;
};

static void put(struct form *form, const char *bytes, size_t len)
{
    if (len > SRV_HTTP_VARY_FORM_MAX - form->len)
        form->is_full = true;
    else {
        memcpy(form->at + form->len, bytes, len);
        form->len += len;
    }
}

/* A member of Accept-Language, and its weight in thousandths (RFC 9110, 12.4.2). */
struct member {
    struct srv_str text;
    int weight;
};

static int weight_of(struct srv_str member)
{
    const char *semicolon = memchr(member.base, ';', member.len);
    if (semicolon == NULL)
        return 1000;
    size_t at = (size_t)(semicolon - member.base) + 1;
    struct srv_str rest = srv_http_trim((struct srv_str){member.base + at, member.len - at});
    if (rest.len < 3 || (rest.base[0] | 0x20) != 'q' || rest.base[1] != '=')
        return 1000;
    if (rest.base[2] == '1')
        return 1000;
    int weight = 0, place = 100;
    for (size_t i = 4; i < rest.len && srv_is_digit((unsigned char)rest.base[i]); i++, place /= 10)
        weight += (rest.base[i] - '0') * place;
    return weight;
}

static size_t sort_members(struct srv_http_fields request, struct srv_str name,
                           struct member members[MEMBERS_MAX])
{
    struct srv_http_members walk = {.name = name};
    struct srv_str text;
    size_t n = 0;
    while (srv_http_next_member(request, &walk, &text)) {
        struct member member = {text, weight_of(text)};
        size_t at = 0;
        if (n == MEMBERS_MAX)
            return SIZE_MAX;
        while (at < n && (members[at].weight > member.weight ||
                          (members[at].weight == member.weight &&
                           compare_nocase(members[at].text, text) <= 0)))
            at++;
        memmove(&members[at + 1], &members[at], (n - at) * sizeof members[0]);
        members[at] = member;
        n++;
    }
    return n;
}

static void put_lower(struct form *form, struct srv_str text)
{
    size_t start = form->len;
    put(form, text.base, text.len);
    if (form->len > start)
        srv_lower(form->at + start, form->at + start, form->len - start);
}

static void put_languages(struct form *form, struct srv_http_fields request, struct srv_str name)
{
    struct member members[MEMBERS_MAX];
    size_t n = sort_members(request, name, members);
    if (n == SIZE_MAX)
        form->is_full = true;
    for (size_t i = 0; n != SIZE_MAX && i < n; i++) {
        put(form, ",", i > 0);
        put_lower(form, members[i].text);
    }
}

static void put_value(struct form *form, struct srv_http_fields request, struct srv_str name,
                      const struct srv_http_policy *policy)
{
    struct srv_http_members walk = {.name = name};
    struct srv_str member;
    bool is_language = srv_str_equal(name, SRV_STR("accept-language"));
    if (is_language && policy->sorts_languages) {
        put_languages(form, request, name);
        return;
    }
    for (size_t i = 0; srv_http_next_member(request, &walk, &member); i++) {
        put(form, ",", i > 0);
        if (is_language)
            put_lower(form, member);
        else
            put(form, member.base, member.len);
    }
}

size_t srv_http_vary_form(struct srv_str names, struct srv_http_fields request,
                          const struct srv_http_policy *policy,
                          char form_out[SRV_HTTP_VARY_FORM_MAX])
{
    struct form form = {.at = form_out};
    struct srv_str name;
    while (srv_http_member(&names, &name)) {
        put(&form, name.base, name.len);
        if (srv_http_has(request, name)) {
            put(&form, "=", 1);
            put_value(&form, request, name, policy);
        }
        put(&form, "", 1);
    }
    return form.is_full ? SIZE_MAX : form.len;
}
