/* The head of an origin's response, read line by line and strictly (RFC 9112, 4 and 5).
 *
 * Owns:    a head owns its text and fields until srv_http_head_fini.
 * Threads: one at a time. Blocks: never. Allocates: up to SRV_HTTP_HEAD_MAX of text.
 *
 *   EMPTY -> OPEN [status line] -> OPEN [field line]... -> DONE [empty line]
 *   DONE -> OPEN [status line]   after an interim response (1xx), whose fields are dropped
 *   any -> BAD                   what is no response: answer 502
 *
 * Refused: a status line or field that does not follow the grammar, controls in values, names that
 * are no tokens, more than SRV_HTTP_FIELDS_MAX fields, a head longer than SRV_HTTP_HEAD_MAX,
 * several different Content-Lengths, a transfer coding that the request has not allowed and that
 * would have to be undone. A length beside a transfer coding does not count (RFC 9112, 6.3). Folded
 * lines are joined by a space (RFC 9112, 5.2).
 */
#pragma once

#include "server/http/fields.h"

enum { SRV_HTTP_HEAD_MAX = 64 << 10 };

enum srv_http_head_state {
    SRV_HTTP_HEAD_EMPTY,
    SRV_HTTP_HEAD_OPEN,
    SRV_HTTP_HEAD_DONE,
    SRV_HTTP_HEAD_BAD,
};

struct srv_http_head {
    enum srv_http_head_state state;
    int status;
    uint64_t content_length;  /* SRV_LENGTH_UNKNOWN without one */
    struct srv_field *fields; /* names lower-case; after DONE */
    size_t n_fields;
    char *text_;
    size_t len_, capacity_, room_;
    struct srv_http_place *places_;
};

/* Takes the next line, with or without its line end; an empty one ends the head. */
enum srv_http_head_state srv_http_head_line(struct srv_http_head *head, struct srv_str line);
static inline struct srv_http_fields srv_http_head_fields(const struct srv_http_head *head)
{
    return (struct srv_http_fields){head->fields, head->n_fields};
}
void srv_http_head_fini(struct srv_http_head *head);
