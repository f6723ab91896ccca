/* Header fields as a cache reads them: found by name over all their lines, and split at commas.
 *
 * Lends:   results point into the fields given.
 * Threads: any. Blocks: never. Allocates: nothing.
 *
 * Names in struct srv_http_fields are lower-case.
 */
#pragma once

#include "server/exchange.h"

struct srv_http_fields {
    const struct srv_field *at;
    size_t n;
};

/* Lines of one field, in their order. Begin with {0}. */
struct srv_http_lines {
    size_t next_;
};

#define SRV_STR(text) ((struct srv_str){"" text, sizeof(text) - 1})

bool srv_str_equal(struct srv_str a, struct srv_str b);

/* The next line of the field called `name`; false after the last. */
bool srv_http_line(struct srv_http_fields fields, struct srv_str name, struct srv_http_lines *walk,
                   struct srv_str *value_out);
/* The first line; false, and an empty string, when there is none. */
bool srv_http_first(struct srv_http_fields fields, struct srv_str name, struct srv_str *value_out);
bool srv_http_has(struct srv_http_fields fields, struct srv_str name);

/* Takes the next member off the front of a list (RFC 9110, 5.6.1): what lies between commas outside
 * of quoted strings, without the white space around it; empty members are passed over. False at the
 * end. */
bool srv_http_member(struct srv_str *rest_inout, struct srv_str *member_out);

/* Members of all lines of a field, as if they were one list. Begin with {.name = ...}. */
struct srv_http_members {
    struct srv_str name;
    struct srv_str rest_;
    struct srv_http_lines lines_;
};
bool srv_http_next_member(struct srv_http_fields fields, struct srv_http_members *walk,
                          struct srv_str *member_out);

struct srv_str srv_http_trim(struct srv_str text);

/* Whether the comma-separated `names` hold `name`, without regard to case. */
bool srv_http_names_hold(struct srv_str names, struct srv_str name);
