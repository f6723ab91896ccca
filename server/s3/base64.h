/* Base64 (RFC 4648, 4) of digests, read strictly: padded, no white space, no stray bits.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/exchange.h"

/* Characters that `len` bytes take, without a terminator. */
static inline size_t srv_base64_size(size_t len)
{
    return (len + 2) / 3 * 4;
}

/* Whether `text` is the base64 of exactly `len` bytes, which are then in `out`. */
bool srv_base64_decode(struct srv_str text, uint8_t *out, size_t len);

/* Writes srv_base64_size(len) characters and a terminator. */
void srv_base64_encode(const uint8_t *bytes, size_t len, char *out);

/* Writes 2 * len lower-case hex digits and a terminator. */
void srv_hex_encode(const uint8_t *bytes, size_t len, char *out);

/* Whether `text` is exactly 2 * len hex digits of either case, whose bytes are then in `out`. */
bool srv_hex_decode(struct srv_str text, uint8_t *out, size_t len);
