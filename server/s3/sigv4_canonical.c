/* The canonical request: what both sides sign. */
#include "server/s3/sigv4.h"

#include <stdlib.h>
#include <string.h>

#include "server/chars.h"
#include "server/uri.h"

enum { ITEMS_MAX = 256, NEAR_BYTES = 4096, GATHER_BYTES = 1024 };

/* Gathers small pieces, so that hashing is called for a few large ones. */
struct gather {
    void (*write)(void *data, const char *bytes, size_t len);
    void *data;
    size_t len;
    char bytes[GATHER_BYTES];
};

static void flush(struct gather *out)
{
    if (out->len > 0)
        out->write(out->data, out->bytes, out->len);
    out->len = 0;
}

static void put(struct gather *out, const char *bytes, size_t len)
{
    if (len > sizeof out->bytes - out->len)
        flush(out);
    if (len > sizeof out->bytes) {
        out->write(out->data, bytes, len);
        return;
    }
    if (len > 0)
        memcpy(out->bytes + out->len, bytes, len);
    out->len += len;
}

static void put_str(struct gather *out, struct srv_str text)
{
    put(out, text.base, text.len);
}

static void put_byte(struct gather *out, char c)
{
    put(out, &c, 1);
}

/* ---- Percent-encoding ---- */

static bool is_plain(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || srv_is_digit(c) || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

/* Writes one byte the way signatures want it, at most three characters. */
static size_t encode_byte(unsigned char c, bool keeps_slash, char *out)
{
    static const char digits[] = "0123456789ABCDEF";

    if (is_plain(c) || (c == '/' && keeps_slash)) {
        out[0] = (char)c;
        return 1;
    }
    out[0] = '%';
    out[1] = digits[c >> 4];
    out[2] = digits[c & 15];
    return 3;
}

/* Takes one byte off encoded text; a '%' that begins no triplet stands for itself. */
static unsigned char decode_byte(struct srv_str text, size_t *at_inout, bool plus_is_space)
{
    size_t at = *at_inout;
    unsigned char c = (unsigned char)text.base[at];

    *at_inout = at + 1;
    if (c == '+' && plus_is_space)
        return ' ';
    if (c != '%' || text.len - at < 3)
        return c;
    int high = srv_hex_value((unsigned char)text.base[at + 1]);
    int low = srv_hex_value((unsigned char)text.base[at + 2]);
    if (high < 0 || low < 0)
        return c;
    *at_inout = at + 3;
    return (unsigned char)(high << 4 | low);
}

static void put_path(struct gather *out, struct srv_str path)
{
    char encoded[3];

    if (path.len == 0)
        put_byte(out, '/');
    for (size_t at = 0; at < path.len;) {
        unsigned char c = decode_byte(path, &at, false);
        put(out, encoded, encode_byte(c, true, encoded));
    }
}

/* ---- Query ---- */

struct item {
    struct srv_str name; /* encoded anew */
    struct srv_str value;
};

static int compare(struct srv_str a, struct srv_str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len == 0 ? 0 : memcmp(a.base, b.base, len);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int by_name(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int order = compare(x->name, y->name);

    return order != 0 ? order : compare(x->value, y->value);
}

static struct srv_str recode(struct srv_str raw, char **to_inout)
{
    struct srv_str coded = {*to_inout, 0};
    char *to = *to_inout;

    for (size_t at = 0; at < raw.len;) {
        unsigned char c = decode_byte(raw, &at, true);
        to += encode_byte(c, false, to);
    }
    coded.len = (size_t)(to - *to_inout);
    *to_inout = to;
    return coded;
}

static bool is_signature(const struct srv_sigv4 *sig, struct srv_str name)
{
    static const char word[] = "X-Amz-Signature";
    return sig->form == SRV_SIGV4_QUERY && name.len == sizeof word - 1 &&
           memcmp(name.base, word, name.len) == 0;
}

/* Takes the query apart into `items`, whose bytes go to `to`. False for too many. */
static bool read_items(const struct srv_sigv4 *sig, struct srv_str query, char *to,
                       struct item items[ITEMS_MAX], size_t *n_out)
{
    struct srv_str name, value;

    *n_out = 0;
    while (srv_query_next(&query, &name, &value)) {
        struct item item;
        item.name = recode(name, &to);
        item.value = recode(value, &to);
        if (is_signature(sig, item.name))
            continue;
        if (*n_out == ITEMS_MAX)
            return false;
        items[(*n_out)++] = item;
    }
    return true;
}

static bool put_query(struct gather *out, const struct srv_sigv4 *sig, struct srv_str query)
{
    struct item items[ITEMS_MAX];
    char near_bytes[NEAR_BYTES];
    char *far_bytes = NULL;
    size_t n = 0;

    if (query.len == 0)
        return true;
    if (3 * query.len > sizeof near_bytes && (far_bytes = malloc(3 * query.len)) == NULL)
        return false;
    bool ok = read_items(sig, query, far_bytes != NULL ? far_bytes : near_bytes, items, &n);
    if (ok && n > 1)
        qsort(items, n, sizeof items[0], by_name);
    for (size_t i = 0; ok && i < n; i++) {
        if (i > 0)
            put_byte(out, '&');
        put_str(out, items[i].name);
        put_byte(out, '=');
        put_str(out, items[i].value);
    }
    free(far_bytes);
    return ok;
}

/* The query as it was sent, less the signature. */
static void put_query_as_sent(struct gather *out, const struct srv_sigv4 *sig, struct srv_str query)
{
    struct srv_str name, value;
    bool is_first = true;

    while (srv_query_next(&query, &name, &value)) {
        if (is_signature(sig, name))
            continue;
        if (!is_first)
            put_byte(out, '&');
        is_first = false;
        put_str(out, name);
        if (value.base != NULL) {
            put_byte(out, '=');
            put_str(out, value);
        }
    }
}

/* ---- Fields ---- */

/* A value without outer spaces, and with one space for each run of them. */
static void put_value(struct gather *out, struct srv_str value)
{
    size_t plain = 0;

    while (value.len > 0 && (value.base[0] == ' ' || value.base[0] == '\t'))
        value.base++, value.len--;
    while (value.len > 0 && (value.base[value.len - 1] == ' ' || value.base[value.len - 1] == '\t'))
        value.len--;
    for (size_t i = 1; i < value.len; i++) {
        if (value.base[i] == ' ' && value.base[i - 1] == ' ') {
            put(out, value.base + plain, i - plain);
            plain = i + 1;
        }
    }
    if (value.len > plain)
        put(out, value.base + plain, value.len - plain);
}

static bool same(struct srv_str a, struct srv_str b)
{
    return a.len == b.len && memcmp(a.base, b.base, a.len) == 0;
}

static void put_field(struct gather *out, const struct srv_request *req, struct srv_str name)
{
    static const struct srv_str host = {"host", 4};
    bool is_first = true;

    put_str(out, name);
    put_byte(out, ':');
    for (size_t i = 0; i < req->n_fields; i++) {
        if (!same(req->fields[i].name, name))
            continue;
        if (!is_first)
            put_byte(out, ',');
        is_first = false;
        put_value(out, req->fields[i].value);
    }
    if (is_first && same(name, host)) /* HTTP/2 has it among the pseudo fields */
        put_value(out, req->authority);
    put_byte(out, '\n');
}

/* Takes the next name off a list like "host;x-amz-date". */
static bool next_name(struct srv_str *rest, struct srv_str *name_out)
{
    if (rest->len == 0)
        return false;
    const char *end = memchr(rest->base, ';', rest->len);
    size_t len = end == NULL ? rest->len : (size_t)(end - rest->base);
    size_t step = end == NULL ? len : len + 1;
    *name_out = (struct srv_str){rest->base, len};
    *rest = (struct srv_str){rest->base + step, rest->len - step};
    return true;
}

bool srv_sigv4_signs(const struct srv_sigv4 *sig, struct srv_str name)
{
    struct srv_str rest = sig->signed_names, at;

    while (next_name(&rest, &at)) {
        if (same(at, name))
            return true;
    }
    return false;
}

struct srv_str srv_sigv4_unsigned_field(const struct srv_sigv4 *sig, const struct srv_request *req)
{
    static const struct srv_str host = {"host", 4}, payload = {"x-amz-content-sha256", 20};

    if (!srv_sigv4_signs(sig, host))
        return host;
    for (size_t i = 0; i < req->n_fields; i++) {
        struct srv_str name = req->fields[i].name;
        if (name.len > 6 && memcmp(name.base, "x-amz-", 6) == 0 && !same(name, payload) &&
            !srv_sigv4_signs(sig, name))
            return name;
    }
    return (struct srv_str){NULL, 0};
}

/* ---- All of it ---- */

/* What stands for the body when the request says nothing: a presigned one cannot know it, and old
 * versions of curl sign the hash of nothing. */
static struct srv_str payload_of(const struct srv_sigv4 *sig)
{
    static const char nothing[] =
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    static const char unsigned_payload[] = "UNSIGNED-PAYLOAD";

    if (sig->payload.base != NULL)
        return sig->payload;
    if (sig->form == SRV_SIGV4_QUERY)
        return (struct srv_str){unsigned_payload, sizeof unsigned_payload - 1};
    return (struct srv_str){nothing, sizeof nothing - 1};
}

bool srv_sigv4_canonical(const struct srv_sigv4 *sig, const struct srv_request *req,
                         enum srv_sigv4_target target,
                         void (*write)(void *data, const char *bytes, size_t len), void *data)
{
    struct gather out = {.write = write, .data = data};
    struct srv_str rest = sig->signed_names, name;
    bool ok = true;

    put_str(&out, req->method_name);
    put_byte(&out, '\n');
    if (target == SRV_SIGV4_AS_SENT)
        put_str(&out, req->path);
    else
        put_path(&out, req->path);
    put_byte(&out, '\n');
    if (target == SRV_SIGV4_AS_SENT)
        put_query_as_sent(&out, sig, req->query);
    else
        ok = put_query(&out, sig, req->query);
    put_byte(&out, '\n');
    while (next_name(&rest, &name))
        put_field(&out, req, name);
    put_byte(&out, '\n');
    put_str(&out, sig->signed_names);
    put_byte(&out, '\n');
    put_str(&out, payload_of(sig));
    flush(&out);
    return ok;
}
