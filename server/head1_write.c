#include "server/head1_write.h"

#include <string.h>

#include "server/http_date.h"
#include "server/status.h"

enum {
    OWN_BYTES_MAX = 256, /* status line and the fields written here; reason phrases are short */
    DECIMAL_MAX = 20,
};

#define PUT_LITERAL(at, literal) put_bytes((at), (literal), sizeof(literal) - 1)

static inline char *put_bytes(char *at, const char *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

static char *put_decimal(char *at, uint64_t n)
{
    char digits[DECIMAL_MAX];
    size_t len = 0;
    do {
        digits[DECIMAL_MAX - ++len] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    return put_bytes(at, digits + DECIMAL_MAX - len, len);
}

size_t srv_head1_write_bound(const struct srv_head1_answer *answer)
{
    size_t bytes = OWN_BYTES_MAX;
    for (size_t i = 0; i < answer->n_fields; i++)
        bytes += answer->fields[i].name.len + answer->fields[i].value.len + 4;
    return bytes;
}

static char *put_status_line(char *at, int status)
{
    const char *reason = srv_status_reason(status);
    if (status == 200)
        return PUT_LITERAL(at, "HTTP/1.1 200 OK\r\n");
    at = PUT_LITERAL(at, "HTTP/1.1 ");
    at = put_decimal(at, (uint64_t)status);
    *at++ = ' ';
    at = put_bytes(at, reason, strlen(reason));
    return PUT_LITERAL(at, "\r\n");
}

size_t srv_head1_write(const struct srv_head1_answer *answer, char *to)
{
    char *at = put_status_line(to, answer->status);
    if (!answer->is_relayed) {
        at = PUT_LITERAL(at, "Date: ");
        at = put_bytes(at, answer->date, SRV_HTTP_DATE_LEN);
        at = PUT_LITERAL(at, "\r\nServer: Gyre\r\n");
    }
    if (!answer->is_interim)
        at = answer->keeps_connection ? PUT_LITERAL(at, "Connection: keep-alive\r\n")
                                      : PUT_LITERAL(at, "Connection: close\r\n");
    if (answer->content_length != SRV_LENGTH_UNKNOWN) {
        at = PUT_LITERAL(at, "Content-Length: ");
        at = put_decimal(at, answer->content_length);
        at = PUT_LITERAL(at, "\r\n");
    }
    if (answer->is_chunked)
        at = PUT_LITERAL(at, "Transfer-Encoding: chunked\r\n");
    for (size_t i = 0; i < answer->n_fields; i++) {
        const struct srv_field *field = &answer->fields[i];
        at = put_bytes(at, field->name.base, field->name.len);
        at = PUT_LITERAL(at, ": ");
        at = put_bytes(at, field->value.base, field->value.len);
        at = PUT_LITERAL(at, "\r\n");
    }
    return (size_t)(PUT_LITERAL(at, "\r\n") - to);
}
