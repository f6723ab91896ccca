/* Cache directives of a request or a response (RFC 9111, 5.2; RFC 5861), read from Cache-Control or
 * from the first targeted field that counts (RFC 9213).
 *
 * Lends:   names of fields point into the fields given.
 * Threads: any. Blocks: never. Allocates: nothing.
 *
 * Where directives contradict each other the more restrictive one counts (RFC 9111, 4.2.1); of one
 * that is repeated the first. A number that is none makes stale, never fresher.
 */
#pragma once

#include "server/http/fields.h"

enum {
    SRV_CC_NO_STORE = 1 << 0,
    SRV_CC_NO_CACHE = 1 << 1, /* without names */
    SRV_CC_PRIVATE = 1 << 2,  /* without names */
    SRV_CC_PUBLIC = 1 << 3,
    SRV_CC_MUST_REVALIDATE = 1 << 4,
    SRV_CC_PROXY_REVALIDATE = 1 << 5,
    SRV_CC_MUST_UNDERSTAND = 1 << 6,
    SRV_CC_ONLY_IF_CACHED = 1 << 7,
    SRV_CC_MAX_AGE = 1 << 8, /* these have a number in `seconds` */
    SRV_CC_S_MAXAGE = 1 << 9,
    SRV_CC_MIN_FRESH = 1 << 10,
    SRV_CC_MAX_STALE = 1 << 11, /* without a number: SRV_CC_FOREVER_S */
    SRV_CC_WHILE_REVALIDATE = 1 << 12,
    SRV_CC_IF_ERROR = 1 << 13,
};

/* Largest delta-seconds (RFC 9111, 1.2.2): what is longer is as long. */
#define SRV_CC_FOREVER_S INT64_C(2147483648)

enum srv_cc_number {
    SRV_CC_N_MAX_AGE,
    SRV_CC_N_S_MAXAGE,
    SRV_CC_N_MIN_FRESH,
    SRV_CC_N_MAX_STALE,
    SRV_CC_N_WHILE_REVALIDATE,
    SRV_CC_N_IF_ERROR,
    SRV_CC_NUMBERS,
};

struct srv_http_directives {
    unsigned present; /* SRV_CC_* */
    int64_t seconds[SRV_CC_NUMBERS];
    struct srv_str no_cache_names; /* of no-cache="a, b": comma-separated; empty: none */
    struct srv_str private_names;
    bool is_targeted; /* Cache-Control and Expires do not count */
};

/* Reads digits into seconds, clamped to SRV_CC_FOREVER_S. False, and 0, for anything else. */
bool srv_http_seconds(struct srv_str text, int64_t *seconds_out);

/* Cache-Control of a request; without one, Pragma: no-cache (RFC 9111, 5.4). */
void srv_http_request_directives(struct srv_http_fields fields,
                                 struct srv_http_directives *directives_out);

/* Of a response. `targets` names fields in the order in which they are preferred, separated by
 * commas and in lower case, such as "cdn-cache-control". */
void srv_http_response_directives(struct srv_http_fields fields, struct srv_str targets,
                                  struct srv_http_directives *directives_out);

/* Reads a structured dictionary (RFC 9651, 3.2) of directives over all lines of `name`. False, with
 * nothing in *directives_out, when there is no such field, it does not parse or is empty. */
bool srv_http_targeted_directives(struct srv_http_fields fields, struct srv_str name,
                                  struct srv_http_directives *directives_out);

/* ---- For targeted.c ---- */

/* What a directive's argument is. */
enum srv_cc_argument {
    SRV_CC_NO_ARGUMENT,
    SRV_CC_TEXT,    /* a token or quoted string, without its quotes */
    SRV_CC_INVALID, /* of no use: a number is then as restrictive as can be */
};

/* The last of a key counts in a dictionary. */
void srv_http_directive_forget(struct srv_http_directives *directives, struct srv_str name);
void srv_http_directive_add(struct srv_http_directives *directives, struct srv_str name,
                            enum srv_cc_argument kind, struct srv_str argument);
