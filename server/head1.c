#include "server/head1.h"

#include <string.h>

#include "server/chars.h"
#include "server/target.h"

enum stage {
    LEADING, /* nothing but perhaps one empty line */
    REQUEST_LINE,
    FIELDS,
    FINISHED,
};

enum { METHOD_MAX = 32 };

#define NAME_IS(name, literal) \
    srv_str_equal_nocase((name), (struct srv_str){literal, sizeof(literal) - 1})

void srv_head1_init(struct srv_head1 *h)
{
    /* The array is left as it is: n_fields says how much of it means anything, and clearing it
     * costs more than parsing. */
    memset(h, 0, offsetof(struct srv_head1, fields));
    h->content_length_at = h->transfer_encoding_at = h->expect_at = h->host_at = SRV_HEAD1_NO_FIELD;
    h->status = 0;
    h->reason = NULL;
    h->line_ = h->scanned_ = 0;
    h->stage_ = LEADING;
    h->close_ = h->wants_keep_ = h->is_absolute_ = false;
}

/* Always false, so that a check can end with it. */
static bool reject(struct srv_head1 *h, int status, const char *reason)
{
    h->status = status;
    h->reason = reason;
    return false;
}

static struct srv_head1_span span(size_t off, size_t len)
{
    return (struct srv_head1_span){(uint32_t)off, (uint32_t)len};
}

/* ---- Request line ---- */

static bool take_version(struct srv_head1 *h, struct srv_str text)
{
    if (text.len != 8 || memcmp(text.base, "HTTP/", 5) != 0 ||
        !srv_is_digit((unsigned char)text.base[5]) || text.base[6] != '.' ||
        !srv_is_digit((unsigned char)text.base[7]))
        return reject(h, 400, "malformed HTTP version");
    if (text.base[5] != '1' || text.base[7] > '1')
        return reject(h, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    h->version = text.base[7] == '1' ? 11 : 10;
    return true;
}

/* scheme://authority[path][?query]; `bytes` is the head, h->target lies in it. */
static bool take_absolute(struct srv_head1 *h, const char *bytes)
{
    struct srv_str target = srv_head1_str(bytes, h->target);
    size_t prefix = 0;
    if (target.len >= 7 && NAME_IS(((struct srv_str){target.base, 7}), "http://"))
        prefix = 7;
    else if (target.len >= 8 && NAME_IS(((struct srv_str){target.base, 8}), "https://"))
        prefix = 8;
    else
        return reject(h, 400, "request target is neither a path nor an http URL");
    size_t end = prefix;
    while (end < target.len && target.base[end] != '/' && target.base[end] != '?')
        end++;
    struct srv_str authority = {target.base + prefix, end - prefix};
    if (!srv_authority_valid(authority))
        return reject(h, 400, "malformed authority in the request target");
    h->is_absolute_ = true;
    h->authority = span(h->target.off + prefix, authority.len);
    h->path = span(h->target.off + end, target.len - end);
    return true;
}

static bool take_target(struct srv_head1 *h, const char *bytes)
{
    struct srv_str target = srv_head1_str(bytes, h->target);
    struct srv_str method = srv_head1_str(bytes, h->method);
    if (!srv_target_valid(target))
        return reject(h, 400, "malformed request target");
    h->path = h->target;
    if (target.base[0] == '*') {
        if (target.len != 1 || srv_method_of(method) != SRV_OPTIONS)
            return reject(h, 400, "the target * is for OPTIONS only");
    } else if (target.base[0] != '/' && !take_absolute(h, bytes)) {
        return false;
    }
    struct srv_str path, query;
    srv_target_split(srv_head1_str(bytes, h->path), &path, &query);
    h->path.len = (uint32_t)path.len;
    h->query = span(query.base == NULL ? 0 : (size_t)(query.base - bytes), query.len);
    return true;
}

/* `line` lies in `bytes`, without its CRLF. */
static bool take_request_line(struct srv_head1 *h, const char *bytes, struct srv_str line)
{
    size_t at = (size_t)(line.base - bytes);
    size_t n = 0;
    while (n < line.len && srv_is_token((unsigned char)line.base[n]))
        n++;
    if (n == 0 || n == line.len || line.base[n] != ' ')
        return reject(h, 400, "malformed method");
    if (n > METHOD_MAX)
        return reject(h, 501, "unknown method");
    h->method = span(at, n);
    const char *target = line.base + n + 1;
    size_t left = line.len - n - 1;
    const char *blank = memchr(target, ' ', left);
    if (blank == NULL)
        return reject(h, 400, "request line lacks the HTTP version");
    h->target = span(at + n + 1, (size_t)(blank - target));
    if (!take_version(h, (struct srv_str){blank + 1, left - h->target.len - 1}))
        return false;
    if (n == 7 && memcmp(line.base, "CONNECT", 7) == 0)
        return reject(h, 501, "CONNECT is not offered");
    return take_target(h, bytes);
}

/* ---- Fields ---- */

static bool take_host(struct srv_head1 *h, struct srv_str value, struct srv_head1_span where)
{
    if (h->host_at != SRV_HEAD1_NO_FIELD)
        return reject(h, 400, "Host given twice");
    if (!srv_authority_valid(value))
        return reject(h, 400, "malformed Host");
    h->host_at = h->n_fields;
    if (!h->is_absolute_)
        h->authority = where;
    return true;
}

static bool take_content_length(struct srv_head1 *h, struct srv_str value)
{
    if (h->content_length_at != SRV_HEAD1_NO_FIELD)
        return reject(h, 400, "Content-Length given twice");
    h->content_length_at = h->n_fields;
    uint64_t sum = 0;
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.base[i];
        if (!srv_is_digit(c))
            return reject(h, 400, "Content-Length is not a plain number");
        uint64_t digit = (uint64_t)(c - '0');
        if (sum > ((uint64_t)INT64_MAX - digit) / 10)
            return reject(h, 400, "Content-Length is too large");
        sum = sum * 10 + digit;
    }
    if (value.len == 0)
        return reject(h, 400, "Content-Length is empty");
    h->content_length = sum;
    h->body = SRV_HEAD1_BODY_LENGTH;
    return true;
}

/* The next element of a comma-separated list, trimmed; false at the end. *rest_inout shrinks from
 * the front. */
static bool list_next(struct srv_str *rest_inout, struct srv_str *item_out)
{
    if (rest_inout->base == NULL)
        return false;
    struct srv_str item = *rest_inout;
    const char *comma = item.len == 0 ? NULL : memchr(item.base, ',', item.len);
    if (comma == NULL) {
        *rest_inout = (struct srv_str){NULL, 0};
    } else {
        item.len = (size_t)(comma - item.base);
        *rest_inout = (struct srv_str){comma + 1, rest_inout->len - item.len - 1};
    }
    while (item.len > 0 && (item.base[0] == ' ' || item.base[0] == '\t'))
        item.base++, item.len--;
    while (item.len > 0 && (item.base[item.len - 1] == ' ' || item.base[item.len - 1] == '\t'))
        item.len--;
    *item_out = item;
    return true;
}

static bool take_transfer_encoding(struct srv_head1 *h, struct srv_str value)
{
    if (h->transfer_encoding_at != SRV_HEAD1_NO_FIELD)
        return reject(h, 400, "Transfer-Encoding given twice");
    h->transfer_encoding_at = h->n_fields;
    if (h->version < 11)
        return reject(h, 400, "Transfer-Encoding in an HTTP/1.0 request");
    struct srv_str item;
    unsigned n = 0, n_chunked = 0;
    bool last_chunked = false;
    for (struct srv_str rest = value; list_next(&rest, &item); n++) {
        last_chunked = NAME_IS(item, "chunked");
        n_chunked += last_chunked;
    }
    if (!last_chunked || n_chunked != 1)
        return reject(h, 400, "Transfer-Encoding does not end in one chunked");
    if (n != 1)
        return reject(h, 501, "no transfer coding but chunked is understood");
    h->body = SRV_HEAD1_BODY_CHUNKED;
    return true;
}

static bool take_expect(struct srv_head1 *h, struct srv_str value)
{
    if (h->expect_at != SRV_HEAD1_NO_FIELD || !NAME_IS(value, "100-continue"))
        return reject(h, 417, "the only expectation met here is 100-continue");
    h->expect_at = h->n_fields;
    return true;
}

static void take_connection(struct srv_head1 *h, struct srv_str value)
{
    struct srv_str item;
    for (struct srv_str rest = value; list_next(&rest, &item);) {
        h->close_ = h->close_ || NAME_IS(item, "close");
        h->wants_keep_ = h->wants_keep_ || NAME_IS(item, "keep-alive");
    }
}

/* Fields that decide about framing or routing; all others are only recorded. Sorted out by length
 * first: most names match none. */
static bool take_special(struct srv_head1 *h, struct srv_str name, struct srv_str value,
                         struct srv_head1_span where)
{
    switch (name.len) {
    case 4: return !NAME_IS(name, "host") || take_host(h, value, where);
    case 6: return !NAME_IS(name, "expect") || take_expect(h, value);
    case 10:
        if (NAME_IS(name, "connection"))
            take_connection(h, value);
        return true;
    case 14: return !NAME_IS(name, "content-length") || take_content_length(h, value);
    case 17: return !NAME_IS(name, "transfer-encoding") || take_transfer_encoding(h, value);
    default: return true;
    }
}

static bool take_field(struct srv_head1 *h, const char *bytes, struct srv_str line)
{
    size_t at = (size_t)(line.base - bytes);
    if (line.base[0] == ' ' || line.base[0] == '\t')
        return reject(h, 400, "folded header line");
    size_t n = 0;
    while (n < line.len && srv_is_token((unsigned char)line.base[n]))
        n++;
    if (n == 0 || n == line.len || line.base[n] != ':')
        return reject(h, 400, "malformed header name");
    if (h->n_fields == SRV_HEAD1_FIELDS_MAX)
        return reject(h, 431, "too many header fields");
    struct srv_str value = {line.base + n + 1, line.len - n - 1};
    while (value.len > 0 && (value.base[0] == ' ' || value.base[0] == '\t'))
        value.base++, value.len--;
    while (value.len > 0 && (value.base[value.len - 1] == ' ' || value.base[value.len - 1] == '\t'))
        value.len--;
    struct srv_head1_field *field = &h->fields[h->n_fields];
    field->name = span(at, n);
    field->value = span((size_t)(value.base - bytes), value.len);
    if (!take_special(h, (struct srv_str){line.base, n}, value, field->value))
        return false;
    h->n_fields++;
    return true;
}

/* What can only be said once all fields are known. */
static bool take_end(struct srv_head1 *h)
{
    if (h->host_at == SRV_HEAD1_NO_FIELD && h->version == 11)
        return reject(h, 400, "Host is missing");
    if (h->content_length_at != SRV_HEAD1_NO_FIELD && h->transfer_encoding_at != SRV_HEAD1_NO_FIELD)
        return reject(h, 400, "Content-Length together with Transfer-Encoding");
    /* An empty body is one, too: old botocore takes a final answer without a 100 for one that goes
     * for the next request of its connection as well. */
    bool sends_body =
        h->body == SRV_HEAD1_BODY_CHUNKED || h->content_length_at != SRV_HEAD1_NO_FIELD;
    h->expect_continue = h->expect_at != SRV_HEAD1_NO_FIELD && h->version == 11 && sends_body;
    h->keep_alive = !h->close_ && (h->version == 11 || h->wants_keep_);
    return true;
}

/* ---- Lines ---- */

/* `line` is whole, without its CRLF; it ends at bytes + end. */
static bool take_line(struct srv_head1 *h, const char *bytes, struct srv_str line, size_t end)
{
    if (h->stage_ == LEADING && line.len == 0) {
        h->stage_ = REQUEST_LINE;
        return true;
    }
    if (h->stage_ == FIELDS && line.len == 0) {
        h->stage_ = FINISHED;
        h->head_len = (uint32_t)end;
        return take_end(h);
    }
    if (h->stage_ == FIELDS)
        return take_field(h, bytes, line);
    h->stage_ = FIELDS;
    if (line.len > SRV_HEAD1_LINE_MAX)
        return reject(h, 414, "request target is too long");
    return take_request_line(h, bytes, line);
}

/* Looks for the end of the line that begins at h->line_. True with *end_out past its LF, or 0 if it
 * has not come yet; false when a byte that no head may hold was met. */
static bool scan_line(struct srv_head1 *h, const char *bytes, size_t len, size_t *end_out)
{
    *end_out = 0;
    size_t i = h->scanned_;
    while (i < len && srv_is_text((unsigned char)bytes[i]))
        i++;
    h->scanned_ = (uint32_t)i;
    if (i == len)
        return true;
    if (bytes[i] != '\r')
        return reject(h, 400,
                      bytes[i] == '\n' ? "line does not end in CRLF"
                                       : "control character in the head");
    if (i + 1 == len)
        return true;
    if (bytes[i + 1] != '\n')
        return reject(h, 400, "carriage return within a line");
    *end_out = i + 2;
    h->scanned_ = (uint32_t)(i + 2);
    return true;
}

/* Limits on what has come of an unfinished head. */
static bool within_limits(struct srv_head1 *h, size_t len)
{
    if (h->stage_ < FIELDS && len - h->line_ > SRV_HEAD1_LINE_MAX + 1)
        return reject(h, 414, "request target is too long");
    if (len >= SRV_HEAD1_BYTES_MAX)
        return reject(h, 431, "request head is too long");
    return true;
}

enum srv_head1_result srv_head1_feed(struct srv_head1 *h, const char *bytes, size_t len)
{
    size_t seen = len < SRV_HEAD1_BYTES_MAX ? len : SRV_HEAD1_BYTES_MAX;
    while (h->stage_ != FINISHED) {
        size_t end;
        if (!scan_line(h, bytes, seen, &end))
            return SRV_HEAD1_REJECTED;
        if (end == 0)
            return within_limits(h, seen) ? SRV_HEAD1_MORE : SRV_HEAD1_REJECTED;
        struct srv_str line = {bytes + h->line_, end - 2 - h->line_};
        h->line_ = (uint32_t)end;
        if (!take_line(h, bytes, line, end))
            return SRV_HEAD1_REJECTED;
    }
    return SRV_HEAD1_DONE;
}
