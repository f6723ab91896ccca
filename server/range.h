/* What a Range field asks of a body of known length (RFC 9110, 14).
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 *
 * Only single byte ranges are answered with 206. A field that is malformed, names another unit or
 * lists several ranges is ignored and the whole body sent, as the RFC allows and S3 does. A suffix
 * of an empty body also gives the whole (empty) body: clients that read footers of possibly empty
 * objects break on anything else.
 */
#pragma once

#include "server/exchange.h"

enum srv_range_kind {
    SRV_RANGE_WHOLE,         /* no usable range: 200 */
    SRV_RANGE_PART,          /* 206 with first..last, even if that is all of it */
    SRV_RANGE_UNSATISFIABLE, /* 416 */
};

struct srv_range {
    enum srv_range_kind kind;
    uint64_t first; /* body offsets, both inclusive; 0 unless PART */
    uint64_t last;
};

enum { SRV_CONTENT_RANGE_MAX = 72 }; /* longest Content-Range value with its terminator */

/* Decides about the value of a Range field for a body of `length` bytes. `value` NULL (no field)
 * gives WHOLE. */
struct srv_range srv_range_decide(const struct srv_str *value, uint64_t length);

/* Writes a Content-Range value, with terminator: "bytes 0-4/9" for a PART, otherwise a star in
 * place of "0-4". Returns its length. */
size_t srv_range_write(const struct srv_range *range, uint64_t length,
                       char text_out[SRV_CONTENT_RANGE_MAX]);
