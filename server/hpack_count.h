/* How many fields a header block spells out, told from its bytes without decoding them: one octet
 * may stand for a field of any length, and what a decoder makes of each costs memory.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Fields of a block of HPACK (RFC 7541, 6); of one that is malformed, those before the fault. */
size_t srv_hpack_count(const uint8_t *block, size_t len);
