/* Dates as HTTP and S3 write them, from and to Unix time; no time zone, locale or clock is
 * consulted.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/exchange.h"

enum {
    SRV_HTTP_DATE_LEN = 29, /* "Sun, 06 Nov 1994 08:49:37 GMT" */
    SRV_ISO_DATE_LEN = 24,  /* "1994-11-06T08:49:37.000Z" */
};

/* Largest time that can be written: the last second of the year 9999. */
#define SRV_DATE_MAX_S INT64_C(253402300799)

/* Writes an IMF-fixdate and a terminator. Times outside the years 1970 to 9999 are written as the
 * nearest one inside. */
void srv_http_date_write(int64_t unix_s, char text_out[SRV_HTTP_DATE_LEN + 1]);

/* Writes ISO 8601 with milliseconds in UTC and a terminator, within the same bounds. */
void srv_iso_date_write(int64_t unix_ms, char text_out[SRV_ISO_DATE_LEN + 1]);

/* Reads a date in one of the three forms of RFC 9110, 5.6.7: IMF-fixdate, RFC 850 (its two digits
 * are the year nearest to `now_s` that is at most 50 years ahead) and asctime. True with seconds in
 * *unix_s_out; false, and 0 there, for anything else. The day's name is checked for form but not
 * against the date. */
bool srv_http_date_parse(struct srv_str text, int64_t now_s, int64_t *unix_s_out);
