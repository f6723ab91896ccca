#include "server/hpack_count.h"

#include <stdbool.h>

enum {
    /* First octets of a representation, and how many of its bits an integer has. */
    INDEXED = 0x80,
    INDEXED_BITS = 7,
    KEPT = 0x40, /* a literal with incremental indexing */
    KEPT_BITS = 6,
    SIZE_UPDATE = 0x20,
    SIZE_UPDATE_BITS = 5,
    LITERAL_BITS = 4,
    STRING_BITS = 7,
    INTEGER_OCTETS_MAX = 5, /* beyond its first; decoders take no more */
};

struct cursor {
    const uint8_t *at, *end;
};

/* An integer (RFC 7541, 5.1). */
static bool take_integer(struct cursor *c, unsigned bits, uint64_t *n_out)
{
    const unsigned most = (1u << bits) - 1;
    if (c->at == c->end)
        return false;
    *n_out = *c->at++ & most;
    if (*n_out < most)
        return true;
    for (unsigned i = 0; i < INTEGER_OCTETS_MAX && c->at < c->end; i++) {
        uint8_t octet = *c->at++;
        *n_out += (uint64_t)(octet & 0x7f) << (7 * i);
        if ((octet & 0x80) == 0)
            return true;
    }
    return false;
}

static bool skip_string(struct cursor *c)
{
    uint64_t len;
    if (!take_integer(c, STRING_BITS, &len) || len > (uint64_t)(c->end - c->at))
        return false;
    c->at += len;
    return true;
}

static bool skip_literal(struct cursor *c, unsigned bits)
{
    uint64_t name;
    return take_integer(c, bits, &name) && (name != 0 || skip_string(c)) && skip_string(c);
}

size_t srv_hpack_count(const uint8_t *block, size_t len)
{
    struct cursor c = {block, block + len};
    size_t n = 0;
    uint64_t number;
    while (c.at < c.end) {
        const uint8_t first = *c.at;
        if ((first & INDEXED) == 0 && (first & KEPT) == 0 && (first & SIZE_UPDATE) != 0) {
            if (!take_integer(&c, SIZE_UPDATE_BITS, &number))
                return n;
            continue;
        }
        bool ok = (first & INDEXED) != 0
                      ? take_integer(&c, INDEXED_BITS, &number)
                      : skip_literal(&c, (first & KEPT) != 0 ? KEPT_BITS : LITERAL_BITS);
        if (!ok)
            return n;
        n++;
    }
    return n;
}
