#include "server/h2o_glue.h"

#include <string.h>

#include <h2o/http2_internal.h>

#include "server/chars.h"
#include "server/exchange_run.h"
#include "server/status.h"

/* Heads of HTTP/2 responses. The encoder stands in front of libh2o's own of the same name, which
 * costs a third of a small hit: it searches a table for every field, keeps what was sent in there
 * and Huffman-codes each octet. Fields are sent here as they are, so that a head is some 150 bytes
 * longer and the client's table stays empty. Were libh2o's called instead, all would work the same.
 */

enum {
    FRAME_HEAD = 9,
    OWN_BYTES_MAX = 128, /* status, server, date, length */
    LENGTH_BYTES_MAX = 6,
    /* First octets (RFC 7541, 6): an entry of the static table; a literal with its name from there,
     * or spelt out. */
    INDEXED = 0x80,
    LITERAL = 0x00,
    /* Entries of the static table (RFC 7541, appendix A). */
    ENTRY_STATUS = 8,
    ENTRY_CONTENT_LENGTH = 28,
    ENTRY_DATE = 33,
    ENTRY_SERVER = 54,
};

/* ---- What libh2o keeps until the head is sent ---- */

void srv_h2_head_set(struct srv_exchange *ex, const struct srv_response *response,
                     uint64_t announced_length)
{
    h2o_req_t *req = ex->req;
    size_t n = response->n_fields, bytes = n * sizeof(h2o_iovec_t);
    for (size_t i = 0; i < n; i++)
        bytes += response->fields[i].name.len + response->fields[i].value.len;
    h2o_iovec_t *names = h2o_mem_alloc_pool(&req->pool, bytes);
    char *to = (char *)(names + n);
    h2o_vector_reserve(&req->pool, &req->res.headers, n);
    for (size_t i = 0; i < n; i++) {
        const struct srv_field *field = &response->fields[i];
        char *value = to + field->name.len;
        names[i] = h2o_iovec_init(to, field->name.len);
        srv_lower(to, field->name.base, field->name.len); /* as HTTP/2 wants them */
        memcpy(value, field->value.base, field->value.len);
        to = value + field->value.len;
        req->res.headers.entries[i] =
            (h2o_header_t){.name = &names[i], .value = h2o_iovec_init(value, field->value.len)};
    }
    req->res.headers.size = n;
    req->res.status = response->status;
    req->res.reason = srv_status_reason(response->status);
    req->res.content_length =
        announced_length == SRV_LENGTH_UNKNOWN ? SIZE_MAX : (size_t)announced_length;
}

/* ---- Encoding ---- */

/* An integer behind the bits of `first` (RFC 7541, 5.1). */
static uint8_t *put_integer(uint8_t *at, unsigned first, unsigned prefix_max, size_t n)
{
    if (n < prefix_max) {
        *at++ = (uint8_t)(first | n);
        return at;
    }
    *at++ = (uint8_t)(first | prefix_max);
    for (n -= prefix_max; n >= 0x80; n >>= 7)
        *at++ = (uint8_t)(0x80 | (n & 0x7f));
    *at++ = (uint8_t)n;
    return at;
}

static uint8_t *put_string(uint8_t *at, const char *bytes, size_t len)
{
    at = put_integer(at, 0, 0x7f, len);
    memcpy(at, bytes, len);
    return at + len;
}

static uint8_t *put_entry(uint8_t *at, unsigned entry, const char *value, size_t len)
{
    return put_string(put_integer(at, LITERAL, 0x0f, entry), value, len);
}

static uint8_t *put_decimal(uint8_t *at, unsigned entry, size_t n)
{
    char digits[20];
    size_t len = 0;
    do {
        digits[sizeof digits - ++len] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    return put_entry(at, entry, digits + sizeof digits - len, len);
}

static uint8_t *put_status(uint8_t *at, int status)
{
    static const int indexed[] = {200, 204, 206, 304, 400, 404, 500}; /* from ENTRY_STATUS on */
    for (unsigned i = 0; i < sizeof indexed / sizeof indexed[0]; i++) {
        if (indexed[i] == status) {
            *at++ = (uint8_t)(INDEXED | (ENTRY_STATUS + i));
            return at;
        }
    }
    return put_decimal(at, ENTRY_STATUS, (size_t)status);
}

static uint8_t *put_fields(uint8_t *at, const h2o_res_t *res)
{
    for (size_t i = 0; i < res->headers.size; i++) {
        const h2o_header_t *header = &res->headers.entries[i];
        *at++ = LITERAL;
        at = put_string(at, header->name->base, header->name->len);
        at = put_string(at, header->value.base, header->value.len);
    }
    return at;
}

static size_t block_bound(const h2o_res_t *res)
{
    size_t bytes = OWN_BYTES_MAX;
    for (size_t i = 0; i < res->headers.size; i++)
        bytes += res->headers.entries[i].name->len + res->headers.entries[i].value.len + 1 +
                 2 * LENGTH_BYTES_MAX;
    return bytes;
}

/* Cuts a block of `len` bytes, which lies behind the room for one frame's head, into frames; there
 * must be room for their heads. Returns their bytes in all. */
static size_t frame_block(uint8_t *at, size_t len, size_t frame_max, uint32_t stream)
{
    size_t n_frames = len == 0 ? 1 : (len + frame_max - 1) / frame_max;
    for (size_t i = n_frames; i-- > 0;) {
        size_t off = i * frame_max;
        size_t n = i == n_frames - 1 ? len - off : frame_max;
        uint8_t *frame = at + off + i * FRAME_HEAD;
        if (i > 0)
            memmove(frame + FRAME_HEAD, at + FRAME_HEAD + off, n);
        h2o_http2_encode_frame_header(
            frame, n, i == 0 ? H2O_HTTP2_FRAME_TYPE_HEADERS : H2O_HTTP2_FRAME_TYPE_CONTINUATION,
            i == n_frames - 1 ? H2O_HTTP2_FRAME_FLAG_END_HEADERS : 0, (int32_t)stream);
    }
    return len + n_frames * FRAME_HEAD;
}

/* Whether a response is another server's, whose Date stays. */
static bool is_relayed(const h2o_res_t *res)
{
    for (size_t i = 0; i < res->headers.size; i++) {
        const h2o_iovec_t *name = res->headers.entries[i].name;
        if (name->len == 4 && memcmp(name->base, "date", 4) == 0)
            return true;
    }
    return false;
}

/* libh2o calls this by its name. */
void h2o_hpack_flatten_response(h2o_buffer_t **buf, h2o_hpack_header_table_t *header_table,
                                uint32_t stream_id, size_t max_frame_size, h2o_res_t *res,
                                h2o_timestamp_t *ts, const h2o_iovec_t *server_name,
                                size_t content_length)
{
    size_t bound = block_bound(res);
    size_t room = bound + (bound / max_frame_size + 1) * FRAME_HEAD;
    uint8_t *start = (uint8_t *)h2o_buffer_reserve(buf, room).base;
    uint8_t *at = put_status(start + FRAME_HEAD, res->status);
    (void)header_table;
    if (!is_relayed(res)) {
        at = put_entry(at, ENTRY_SERVER, server_name->base, server_name->len);
        at = put_entry(at, ENTRY_DATE, ts->str->rfc1123, H2O_TIMESTR_RFC1123_LEN);
    }
    at = put_fields(at, res);
    if (content_length != SIZE_MAX)
        at = put_decimal(at, ENTRY_CONTENT_LENGTH, content_length);
    (*buf)->size +=
        frame_block(start, (size_t)(at - start) - FRAME_HEAD, max_frame_size, stream_id);
}
