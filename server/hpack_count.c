#include "server/hpack_count.h"

#include <string.h>

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
    /* Indexes of names: `:scheme` in the static table, and the first of the client's own table. */
    SCHEME_FIRST = 6,
    SCHEME_LAST = 7,
    OWN_FIRST = 62,
    ADDED_MAX = 512, /* fields of one block that are added to the client's table; more are unread */
};

struct cursor {
    const uint8_t *at, *end;
};

/* What is known of a block while it is looked through. */
struct look {
    struct cursor c;
    srv_hpack_is_scheme *is_scheme;
    const void *table;
    bool is_odd; /* a `:scheme` with a value that is none */
    size_t n_added;
    bool added[ADDED_MAX]; /* whether a field that this block adds is called `:scheme`, oldest first
                            */
};

struct text {
    const uint8_t *base;
    size_t len;
    bool is_huffman;
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

static bool take_string(struct cursor *c, struct text *text_out)
{
    uint64_t len;
    text_out->is_huffman = c->at < c->end && (*c->at & 0x80) != 0;
    if (!take_integer(c, STRING_BITS, &len) || len > (uint64_t)(c->end - c->at))
        return false;
    text_out->base = c->at;
    text_out->len = (size_t)len;
    c->at += len;
    return true;
}

/* Whether the text is `plain`, as it is or in Huffman's code, where it is `coded`. */
static bool is_text(const struct text *text, const char *plain, const char *coded)
{
    const char *want = text->is_huffman ? coded : plain;
    return text->len == strlen(want) && memcmp(text->base, want, text->len) == 0;
}

static bool is_known_scheme(const struct text *value)
{
    return is_text(value, "http", "\x9d\x29\xaf") || is_text(value, "https", "\x9d\x29\xad\x1f");
}

/* Whether the name at `index` is `:scheme`. The newest field of the client's table comes first. */
static bool names_scheme(const struct look *look, uint64_t index)
{
    if (index < OWN_FIRST)
        return index >= SCHEME_FIRST && index <= SCHEME_LAST;
    uint64_t i = index - OWN_FIRST;
    if (i < look->n_added)
        return look->added[look->n_added - 1 - i];
    return look->is_scheme != NULL && look->is_scheme(look->table, (size_t)(i - look->n_added));
}

static bool take_literal(struct look *look, bool is_kept)
{
    uint64_t index;
    struct text name, value;
    if (!take_integer(&look->c, is_kept ? KEPT_BITS : LITERAL_BITS, &index))
        return false;
    if (index == 0 && !take_string(&look->c, &name))
        return false;
    bool is_scheme =
        index == 0 ? is_text(&name, ":scheme", "\xb8\x82\x4e\x5a\x4b") : names_scheme(look, index);
    if (!take_string(&look->c, &value))
        return false;
    if (is_kept && look->n_added < ADDED_MAX)
        look->added[look->n_added++] = is_scheme;
    look->is_odd |= is_scheme && !is_known_scheme(&value);
    return true;
}

/* One representation; false at a fault. */
static bool take_one(struct look *look, size_t *n)
{
    const uint8_t first = *look->c.at;
    uint64_t number;
    bool is_field = (first & (INDEXED | KEPT)) != 0 || (first & SIZE_UPDATE) == 0;
    bool ok = !is_field                ? take_integer(&look->c, SIZE_UPDATE_BITS, &number)
              : (first & INDEXED) != 0 ? take_integer(&look->c, INDEXED_BITS, &number)
                                       : take_literal(look, (first & KEPT) != 0);
    *n += ok && is_field;
    return ok;
}

size_t srv_hpack_count(const uint8_t *block, size_t len, srv_hpack_is_scheme *is_scheme,
                       const void *table, bool *has_odd_scheme_out)
{
    struct look look; /* filled by hand: what is added to it is written before it is read */
    size_t n = 0;
    look.c = (struct cursor){block, block + len};
    look.is_scheme = is_scheme;
    look.table = table;
    look.n_added = 0;
    look.is_odd = false;
    while (look.c.at < look.c.end && take_one(&look, &n))
        ;
    *has_odd_scheme_out = look.is_odd;
    return n;
}
