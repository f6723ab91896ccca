/* Which requests a stored response answers (RFC 9111, 4.1): the fields its Vary names, and a
 * request's values of them in one canonical form. Two requests are alike when their forms are the
 * same bytes.
 *
 * Two levels go by this form: variants that came from the origin, which are told apart by all of
 * it, and alternates made from one of them, of which a selector chooses among those whose origin
 * it is.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 *
 * Values are equal up to what their fields' syntax leaves open: lines of a field are one list,
 * white space around commas does not count (outside of quoted strings); in Accept-Language, which
 * has no case, neither does case, nor, if the site says so, the order of members of equal weight
 * (RFC 9110, 12.5.4).
 */
#pragma once

#include "server/http/facts.h"

enum {
    SRV_HTTP_VARY_NAMES_MAX = 512, /* bytes of canonical names */
    SRV_HTTP_VARY_FORM_MAX = 4096, /* bytes of a form; no variant is kept beyond */
};

/* Whether Vary holds "*" (RFC 9111, 4.1: never matches). */
bool srv_http_vary_is_any(struct srv_http_fields response);

/* Writes the names that Vary lists, in lower case, sorted, each once, with commas between. Returns
 * their length; 0: none. SIZE_MAX: longer than SRV_HTTP_VARY_NAMES_MAX. */
size_t srv_http_vary_names(struct srv_http_fields response,
                           char names_out[SRV_HTTP_VARY_NAMES_MAX]);

/* Writes the form of a request's values of `names`. Returns its length, or SIZE_MAX where it would
 * be longer than SRV_HTTP_VARY_FORM_MAX. Each name is followed by a zero byte if the field is
 * absent, else by an equals sign, the value and a zero byte. */
size_t srv_http_vary_form(struct srv_str names, struct srv_http_fields request,
                          const struct srv_http_policy *policy,
                          char form_out[SRV_HTTP_VARY_FORM_MAX]);
