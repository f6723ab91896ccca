/* What is told from the bytes of a header block before anybody decodes it: how many fields it
 * spells out, since one octet may stand for a field of any length, and what a decoder makes of each
 * costs memory; and whether its scheme is one, which libh2o does not look at.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether entry `i` of the client's table (RFC 7541, 2.3.2), 0 being the newest, is `:scheme`. */
typedef bool srv_hpack_is_scheme(const void *table, size_t i);

/* Fields of a block of HPACK (RFC 7541, 6); of one that is malformed, those before the fault.
 * *has_odd_scheme_out: whether it spells out a `:scheme` that is neither http nor https. One that
 * is named by its index alone was spelt out before. */
size_t srv_hpack_count(const uint8_t *block, size_t len, srv_hpack_is_scheme *is_scheme,
                       const void *table, bool *has_odd_scheme_out);
