/* Targeted cache control (RFC 9213): a dictionary of structured fields (RFC 9651, 3.2 and 4.2.2).
 * All of it must parse, or none of it counts. */
#include <string.h>

#include "server/chars.h"
#include "server/http/directives.h"

struct cursor {
    const char *at;
    const char *end;
};

static int peek(const struct cursor *cursor)
{
    return cursor->at < cursor->end ? (unsigned char)*cursor->at : -1;
}

static void skip_spaces(struct cursor *cursor)
{
    while (peek(cursor) == ' ')
        cursor->at++;
}

static void skip_blanks(struct cursor *cursor)
{
    while (peek(cursor) == ' ' || peek(cursor) == '\t')
        cursor->at++;
}

static bool is_lower(int c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_alpha(int c)
{
    return is_lower(c | 0x20);
}

static bool is_number(int c)
{
    return c >= '0' && c <= '9';
}

static bool read_key(struct cursor *cursor, struct srv_str *key_out)
{
    const char *start = cursor->at;
    int c = peek(cursor);
    if (!is_lower(c) && c != '*')
        return false;
    while (c = peek(cursor), is_lower(c) || is_number(c) || (c > 0 && strchr("_-.*", c) != NULL))
        cursor->at++;
    *key_out = (struct srv_str){start, (size_t)(cursor->at - start)};
    return true;
}

/* sf-integer and sf-decimal; *is_integer_out tells which. */
static bool read_number(struct cursor *cursor, bool *is_integer_out)
{
    size_t whole = 0, fraction = 0;
    if (peek(cursor) == '-')
        cursor->at++;
    for (; is_number(peek(cursor)); cursor->at++)
        whole++;
    *is_integer_out = peek(cursor) != '.';
    if (*is_integer_out)
        return whole > 0 && whole <= 15;
    for (cursor->at++; is_number(peek(cursor)); cursor->at++)
        fraction++;
    return whole > 0 && whole <= 12 && fraction > 0 && fraction <= 3;
}

static bool read_string(struct cursor *cursor)
{
    for (cursor->at++; peek(cursor) >= ' ' && peek(cursor) < 0x7f; cursor->at++) {
        if (peek(cursor) == '"') {
            cursor->at++;
            return true;
        }
        if (peek(cursor) == '\\') {
            cursor->at++;
            if (peek(cursor) != '"' && peek(cursor) != '\\')
                return false;
        }
    }
    return false;
}

static bool read_token(struct cursor *cursor)
{
    int c = peek(cursor);
    if (!is_alpha(c) && c != '*')
        return false;
    while (c = peek(cursor), c >= 0 && (srv_is_token((unsigned char)c) || c == ':' || c == '/'))
        cursor->at++;
    return true;
}

static bool read_bytes(struct cursor *cursor)
{
    cursor->at++;
    int c;
    while (c = peek(cursor), is_alpha(c) || is_number(c) || (c > 0 && strchr("+/=", c) != NULL))
        cursor->at++;
    if (peek(cursor) != ':')
        return false;
    cursor->at++;
    return true;
}

static bool read_boolean(struct cursor *cursor, bool *value_out)
{
    cursor->at++;
    *value_out = peek(cursor) == '1';
    if (peek(cursor) != '0' && peek(cursor) != '1')
        return false;
    cursor->at++;
    return true;
}

/* An item's value as a directive's argument. */
struct value {
    enum srv_cc_argument kind;
    struct srv_str text;
    bool is_false; /* ?0: as if the directive were not there */
};

static bool read_bare_item(struct cursor *cursor, struct value *value_out)
{
    const char *start = cursor->at;
    int c = peek(cursor);
    bool is_true = true, is_integer = false, ok;
    *value_out = (struct value){.kind = SRV_CC_INVALID};
    if (is_number(c) || c == '-') {
        ok = read_number(cursor, &is_integer);
        value_out->kind = is_integer ? SRV_CC_TEXT : SRV_CC_INVALID;
        value_out->text = (struct srv_str){start, (size_t)(cursor->at - start)};
    } else if (c == '"') {
        /* Of the directives those with names take strings; a number in one is of the wrong type. */
        ok = read_string(cursor);
        size_t len = (size_t)(cursor->at - start);
        value_out->text = ok ? (struct srv_str){start + 1, len - 2} : (struct srv_str){0};
    } else if (c == ':')
        ok = read_bytes(cursor);
    else if (c == '?') {
        ok = read_boolean(cursor, &is_true);
        value_out->kind = SRV_CC_NO_ARGUMENT;
        value_out->is_false = !is_true;
    } else
        ok = read_token(cursor);
    return ok;
}

/* Parameters are read and have no meaning here. */
static bool read_parameters(struct cursor *cursor)
{
    struct srv_str key;
    struct value value;
    while (peek(cursor) == ';') {
        cursor->at++;
        skip_spaces(cursor);
        if (!read_key(cursor, &key))
            return false;
        if (peek(cursor) == '=') {
            cursor->at++;
            if (!read_bare_item(cursor, &value))
                return false;
        }
    }
    return true;
}

static bool read_inner_list(struct cursor *cursor)
{
    struct value value;
    cursor->at++;
    for (;;) {
        skip_spaces(cursor);
        if (peek(cursor) == ')') {
            cursor->at++;
            return true;
        }
        if (!read_bare_item(cursor, &value) || !read_parameters(cursor))
            return false;
        if (peek(cursor) != ' ' && peek(cursor) != ')')
            return false;
    }
}

static bool read_member(struct cursor *cursor, struct srv_str *key_out, struct value *value_out)
{
    *value_out = (struct value){.kind = SRV_CC_NO_ARGUMENT};
    if (!read_key(cursor, key_out))
        return false;
    if (peek(cursor) == '=') {
        cursor->at++;
        bool is_list = peek(cursor) == '(';
        if (is_list ? !read_inner_list(cursor) : !read_bare_item(cursor, value_out))
            return false;
        if (is_list)
            value_out->kind = SRV_CC_INVALID;
    }
    return read_parameters(cursor);
}

/* A number of the wrong type is as if the directive were not there (RFC 9213, 2.1). */
static void add(struct srv_http_directives *directives, struct srv_str key,
                const struct value *value)
{
    bool takes_names =
        srv_str_equal(key, SRV_STR("no-cache")) || srv_str_equal(key, SRV_STR("private"));
    srv_http_directive_forget(directives, key);
    if (value->is_false)
        return;
    if (takes_names && value->text.base != NULL && value->kind == SRV_CC_INVALID)
        srv_http_directive_add(directives, key, SRV_CC_TEXT, value->text);
    else if (value->kind != SRV_CC_INVALID || takes_names)
        srv_http_directive_add(directives, key, value->kind, value->text);
}

static bool read_line(struct cursor *cursor, struct srv_http_directives *directives, size_t *n)
{
    struct srv_str key;
    struct value value;
    skip_spaces(cursor);
    while (cursor->at < cursor->end) {
        if (!read_member(cursor, &key, &value))
            return false;
        add(directives, key, &value);
        ++*n;
        skip_blanks(cursor);
        if (cursor->at == cursor->end)
            return true;
        if (peek(cursor) != ',')
            return false;
        cursor->at++;
        skip_blanks(cursor);
        if (cursor->at == cursor->end)
            return false; /* a comma at the end */
    }
    return true;
}

bool srv_http_targeted_directives(struct srv_http_fields fields, struct srv_str name,
                                  struct srv_http_directives *directives_out)
{
    struct srv_http_directives directives = {.is_targeted = true};
    struct srv_http_lines walk = {0};
    struct srv_str line;
    size_t n = 0;
    bool ok = true;
    while (ok && srv_http_line(fields, name, &walk, &line)) {
        line = srv_http_trim(line);
        struct cursor cursor = {line.base, line.base + line.len};
        ok = read_line(&cursor, &directives, &n);
    }
    ok = ok && n > 0;
    *directives_out = ok ? directives : (struct srv_http_directives){0};
    return ok;
}
