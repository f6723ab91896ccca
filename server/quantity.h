/* Numbers as people write them in options: sizes, durations, counts; and sizes as they read them.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SRV_SIZE_TEXT_MAX = 32 }; /* longest text of srv_size_write with its terminator */

/* Bytes: a number, perhaps with a fraction, and K, M, G, T or P for powers of 1024, in either case
 * and with "B" or "iB" after it if liked
 * ("10G", "512MiB", "1.5t", "4096"). False, and 0 in *bytes_out, for anything else, zero, or more
 * than INT64_MAX. */
bool srv_size_parse(const char *text, uint64_t *bytes_out);

/* Milliseconds: a number, perhaps with a fraction, and ms, s, m or h; s when there is none ("30",
 * "500ms", "1.5m"). Zero is allowed. False, and 0 in *ms_out, for anything else or more than ten
 * years. */
bool srv_duration_parse(const char *text, uint64_t *ms_out);

/* Plain digits up to `max`. False, and 0 in *count_out, for anything else. */
bool srv_count_parse(const char *text, uint64_t max, uint64_t *count_out);

/* Writes bytes with three digits and a unit ("10.0 GiB", "512 B"). */
void srv_size_write(uint64_t bytes, char text_out[SRV_SIZE_TEXT_MAX]);
