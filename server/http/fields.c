#include "server/http/fields.h"

#include <string.h>

#include "server/target.h"

bool srv_str_equal(struct srv_str a, struct srv_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.base, b.base, a.len) == 0);
}

bool srv_http_line(struct srv_http_fields fields, struct srv_str name, struct srv_http_lines *walk,
                   struct srv_str *value_out)
{
    *value_out = (struct srv_str){0};
    while (walk->next_ < fields.n) {
        const struct srv_field *field = &fields.at[walk->next_++];
        if (srv_str_equal(field->name, name)) {
            *value_out = field->value;
            return true;
        }
    }
    return false;
}

bool srv_http_first(struct srv_http_fields fields, struct srv_str name, struct srv_str *value_out)
{
    struct srv_http_lines walk = {0};
    return srv_http_line(fields, name, &walk, value_out);
}

bool srv_http_has(struct srv_http_fields fields, struct srv_str name)
{
    struct srv_str value;
    return srv_http_first(fields, name, &value);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct srv_str srv_http_trim(struct srv_str text)
{
    while (text.len > 0 && is_blank(text.base[0]))
        text = (struct srv_str){text.base + 1, text.len - 1};
    while (text.len > 0 && is_blank(text.base[text.len - 1]))
        text.len--;
    return text;
}

/* Bytes up to the first comma outside of a quoted string; a string that does not end takes all. */
static size_t member_len(struct srv_str text)
{
    bool is_quoted = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.base[i];
        if (is_quoted && c == '\\')
            i++;
        else if (c == '"')
            is_quoted = !is_quoted;
        else if (c == ',' && !is_quoted)
            return i;
    }
    return text.len;
}

bool srv_http_member(struct srv_str *rest, struct srv_str *member_out)
{
    *member_out = (struct srv_str){0};
    while (rest->len > 0) {
        size_t len = member_len(*rest);
        struct srv_str member = srv_http_trim((struct srv_str){rest->base, len});
        size_t taken = len < rest->len ? len + 1 : len;
        *rest = (struct srv_str){rest->base + taken, rest->len - taken};
        if (member.len > 0) {
            *member_out = member;
            return true;
        }
    }
    return false;
}

bool srv_http_next_member(struct srv_http_fields fields, struct srv_http_members *walk,
                          struct srv_str *member_out)
{
    while (!srv_http_member(&walk->rest_, member_out))
        if (!srv_http_line(fields, walk->name, &walk->lines_, &walk->rest_))
            return false;
    return true;
}

bool srv_http_names_hold(struct srv_str names, struct srv_str name)
{
    struct srv_str member;
    while (srv_http_member(&names, &member))
        if (srv_str_equal_nocase(member, name))
            return true;
    return false;
}
