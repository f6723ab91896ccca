/* Numbers as requests carry them: plain decimal digits.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/exchange.h"

/* One digit at least, and nothing else. False, and 0 in *value_out, otherwise or beyond 64 bits. */
static inline bool srv_s3_parse_u64(struct srv_str text, uint64_t *value_out)
{
    uint64_t value = 0;

    *value_out = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.base[i] < '0' || text.base[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text.base[i] - '0'), &value))
            return false;
    }
    *value_out = value;
    return text.len > 0;
}
