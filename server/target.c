#include "server/target.h"

#include <string.h>

enum srv_method srv_method_of(struct srv_str name)
{
    static const struct {
        const char *name;
        enum srv_method method;
    } known[] = {
        {"GET", SRV_GET},       {"HEAD", SRV_HEAD},       {"PUT", SRV_PUT},     {"POST", SRV_POST},
        {"DELETE", SRV_DELETE}, {"OPTIONS", SRV_OPTIONS}, {"PURGE", SRV_PURGE},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (name.len == strlen(known[i].name) && memcmp(name.base, known[i].name, name.len) == 0)
            return known[i].method;
    return SRV_METHOD_OTHER;
}

void srv_target_split(struct srv_str target, struct srv_str *path_out, struct srv_str *query_out)
{
    const char *mark = target.len == 0 ? NULL : memchr(target.base, '?', target.len);
    *path_out = target;
    *query_out = (struct srv_str){NULL, 0};
    if (mark == NULL)
        return;
    path_out->len = (size_t)(mark - target.base);
    *query_out = (struct srv_str){mark + 1, target.len - path_out->len - 1};
}

bool srv_target_valid(struct srv_str target)
{
    for (size_t i = 0; i < target.len; i++) {
        unsigned char c = (unsigned char)target.base[i];
        if (c <= ' ' || c == 0x7f || c == '#')
            return false;
    }
    return target.len != 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_alnum(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* reg-name: unreserved, sub-delims and whole percent triplets. Covers IPv4 too. */
static bool name_valid(struct srv_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.base[i];
        if (c == '%') {
            if (name.len - i < 3 || !is_hex(name.base[i + 1]) || !is_hex(name.base[i + 2]))
                return false;
            i += 2;
        } else if (c == '\0' || (!is_alnum(c) && strchr("-._~!$&'()*+,;=", c) == NULL)) {
            return false;
        }
    }
    return name.len != 0;
}

/* What stands between the brackets. The digits' grouping is left to whoever resolves it: nothing
 * here connects to a Host. */
static bool ip6_valid(struct srv_str address)
{
    bool colon = false;
    for (size_t i = 0; i < address.len; i++) {
        char c = address.base[i];
        colon = colon || c == ':';
        if (!is_hex(c) && c != ':' && c != '.')
            return false;
    }
    return colon && address.len >= 2;
}

/* Empty (a bare colon is allowed by the grammar) or a number up to 65535. */
static bool port_valid(struct srv_str port)
{
    unsigned value = 0;
    if (port.len > 5)
        return false;
    for (size_t i = 0; i < port.len; i++) {
        if (!is_digit(port.base[i]))
            return false;
        value = value * 10 + (unsigned)(port.base[i] - '0');
    }
    return value <= 65535;
}

bool srv_authority_valid(struct srv_str authority)
{
    if (authority.len == 0)
        return false;
    struct srv_str host = authority;
    struct srv_str rest;
    bool ok;
    if (authority.base[0] == '[') {
        const char *end = memchr(authority.base, ']', authority.len);
        if (end == NULL)
            return false;
        host = (struct srv_str){authority.base + 1, (size_t)(end - authority.base) - 1};
        rest = (struct srv_str){end + 1, authority.len - host.len - 2};
        ok = ip6_valid(host);
    } else {
        const char *colon = memchr(authority.base, ':', authority.len);
        if (colon != NULL)
            host.len = (size_t)(colon - authority.base);
        rest = (struct srv_str){authority.base + host.len, authority.len - host.len};
        ok = name_valid(host);
    }
    if (!ok || rest.len == 0)
        return ok;
    return rest.base[0] == ':' && port_valid((struct srv_str){rest.base + 1, rest.len - 1});
}

/* Splits a valid authority; the port is `port` if there is none. */
static struct srv_str split_port(struct srv_str authority, unsigned *port)
{
    size_t n = authority.len;
    while (n > 0 && authority.base[n - 1] >= '0' && authority.base[n - 1] <= '9')
        n--;
    if (n == 0 || authority.base[n - 1] != ':')
        return authority;
    if (n < authority.len)
        *port = 0;
    for (size_t i = n; i < authority.len; i++)
        *port = *port * 10 + (unsigned)(authority.base[i] - '0');
    return (struct srv_str){authority.base, n - 1};
}

bool srv_authority_same(struct srv_str a, struct srv_str b, unsigned default_port)
{
    unsigned port_a = default_port, port_b = default_port;
    struct srv_str host_a = split_port(a, &port_a), host_b = split_port(b, &port_b);
    return port_a == port_b && srv_str_equal_nocase(host_a, host_b);
}

bool srv_str_equal_nocase(struct srv_str a, struct srv_str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++) {
        unsigned char x = (unsigned char)a.base[i];
        unsigned char y = (unsigned char)b.base[i];
        if (x >= 'A' && x <= 'Z')
            x = (unsigned char)(x + ('a' - 'A'));
        if (y >= 'A' && y <= 'Z')
            y = (unsigned char)(y + ('a' - 'A'));
        if (x != y)
            return false;
    }
    return true;
}
