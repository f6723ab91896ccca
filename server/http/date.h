/* Dates and ages of responses, as a cache reads them.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/http/fields.h"

/* A date in one of the forms of RFC 9110, 5.6.7, with the names of days and months and GMT in any
 * case. False, and 0 there, for anything else. */
bool srv_http_date(struct srv_str text, int64_t now_s, int64_t *unix_s_out);

/* The first line of the field `name`, if it is a date. */
bool srv_http_date_field(struct srv_http_fields fields, struct srv_str name, int64_t now_s,
                         int64_t *unix_s_out);

/* The Age field's seconds: of its first member, if that is a number; otherwise 0 (RFC 9111, 5.1).
 */
int64_t srv_http_age_field(struct srv_http_fields fields);
