#include "server/uri.h"

#include <string.h>

#include "server/chars.h"

bool srv_uri_decode(struct srv_str text, bool plus_is_space, char *bytes_out, size_t capacity,
                    size_t *len_out)
{
    *len_out = 0;
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.base[i];
        if (c == '%') {
            int high = text.len - i > 2 ? srv_hex_value((unsigned char)text.base[i + 1]) : -1;
            int low = text.len - i > 2 ? srv_hex_value((unsigned char)text.base[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        if (n == capacity)
            return false;
        bytes_out[n++] = c;
    }
    *len_out = n;
    return true;
}

bool srv_query_next(struct srv_str *rest_inout, struct srv_str *name_out, struct srv_str *value_out)
{
    struct srv_str rest = *rest_inout;
    *name_out = *value_out = (struct srv_str){NULL, 0};
    while (rest.len > 0 && rest.base[0] == '&')
        rest.base++, rest.len--;
    if (rest.len == 0) {
        *rest_inout = rest;
        return false;
    }
    const char *end = memchr(rest.base, '&', rest.len);
    struct srv_str item = {rest.base, end == NULL ? rest.len : (size_t)(end - rest.base)};
    *rest_inout = (struct srv_str){rest.base + item.len, rest.len - item.len};
    const char *equals = memchr(item.base, '=', item.len);
    *name_out = item;
    if (equals != NULL) {
        name_out->len = (size_t)(equals - item.base);
        *value_out = (struct srv_str){equals + 1, item.len - name_out->len - 1};
    }
    return true;
}

bool srv_query_find(struct srv_str query, const char *name, struct srv_str *value_out)
{
    struct srv_str item, value;
    struct srv_str rest = query;
    size_t want = strlen(name);
    char decoded[64];
    size_t len;
    while (srv_query_next(&rest, &item, &value)) {
        if (!srv_uri_decode(item, true, decoded, sizeof(decoded), &len) || len != want ||
            memcmp(decoded, name, want) != 0)
            continue;
        if (value_out != NULL)
            *value_out = value;
        return true;
    }
    if (value_out != NULL)
        *value_out = (struct srv_str){NULL, 0};
    return false;
}
