/* Dates of ISO 8601 as S3 requests carry them: "2013-05-24", "2013-05-24T00:00:00.000Z",
 * "2013-05-24T02:00:00+02:00" and the short "20130524T000000Z" of signatures.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/exchange.h"

enum { SRV_ISO_SHORT_LEN = 16 };

/* Reads any of the forms above; a time without a zone is UTC. False, and 0 in *unix_s_out, for
 * anything else and for times outside of the years 1970 to 9999. Fractions of seconds are dropped.
 */
bool srv_iso_date_parse(struct srv_str text, int64_t *unix_s_out);

/* Writes the short form and a terminator; of times outside of those years the nearest. */
void srv_iso_short_write(int64_t unix_s, char text_out[SRV_ISO_SHORT_LEN + 1]);
