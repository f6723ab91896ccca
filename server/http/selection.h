/* What of a stored response answers a request: all of it, a part, or word that the client has it
 * already (RFC 9110, 13 and 14; RFC 9111, 4.3.2).
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/http/facts.h"
#include "server/range.h"

struct srv_http_selection {
    int status;             /* of the answer: the stored one, 206, 304 or 416 */
    struct srv_range range; /* for 206 and 416 */
};

/* `fields` and `length` are those of the stored response, complete. */
struct srv_http_selection srv_http_select(const struct srv_http_facts *stored,
                                          struct srv_http_fields fields, uint64_t length,
                                          struct srv_http_fields request);

/* Whether a 304 carries the field `name` (RFC 9110, 15.4.5): those that keep what the client has
 * useful. */
bool srv_http_is_in_304(struct srv_str name);

/* ---- Partial responses ---- */

struct srv_http_part {
    uint64_t first, last; /* inclusive */
    uint64_t total;
};

/* Reads "bytes FIRST-LAST/TOTAL" (RFC 9110, 14.4). False for anything else, "*" included. */
bool srv_http_content_range(struct srv_str value, struct srv_http_part *part_out);
