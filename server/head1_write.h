/* Heads of HTTP/1 responses, as bytes.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/exchange.h"

/* What goes into a head beside the handler's fields, which follow in their order and spelling. */
struct srv_head1_answer {
    int status;
    const char *date; /* IMF-fixdate, SRV_HTTP_DATE_LEN bytes */
    bool keeps_connection;
    uint64_t content_length; /* SRV_LENGTH_UNKNOWN: not announced */
    bool is_chunked;
    bool is_relayed; /* neither Date nor Server is added */
    bool is_interim; /* nor Connection: a final response follows */
    const struct srv_field *fields;
    size_t n_fields;
};

/* At least as many bytes as the head will have. */
size_t srv_head1_write_bound(const struct srv_head1_answer *answer);

/* Writes the head with its empty line; returns its length in bytes. */
size_t srv_head1_write(const struct srv_head1_answer *answer, char *to);
