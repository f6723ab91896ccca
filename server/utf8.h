/* Strict UTF-8 (RFC 3629): no overlong forms, surrogates or values beyond U+10FFFF.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "server/exchange.h"

/* Length of the valid sequence at the front of `text`, 1 to 4; 0 when there is none. */
size_t srv_utf8_sequence(struct srv_str text);

/* Whether all of `text` is valid; true for the empty string. */
bool srv_utf8_valid(struct srv_str text);
