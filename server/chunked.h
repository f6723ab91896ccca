/* Strict, incremental decoder of the chunked transfer coding (RFC 9112, 7.1).
 *
 * Owns:    the caller owns struct srv_chunked; no byte is kept or copied.
 * Threads: one decoder is used by one thread at a time. Blocks: never. Allocates: nothing.
 *
 * Lines end in CRLF only. A size is 1 to 16 hex digits, with no sign, prefix or space. Extensions
 * must follow the grammar without white space and are then ignored, as the RFC demands, up to
 * SRV_CHUNKED_EXT_MAX bytes in the whole body. Trailer fields are checked and dropped. Anything
 * else is BAD: the connection has lost its framing and must be closed after the answer.
 *
 *   SIZE -> EXT* -> SIZE_LF -> DATA -> DATA_CR -> DATA_LF -> SIZE    [srv_chunked_feed]
 *   SIZE_LF -> TRAILER ... -> END                                    (chunk of size 0)
 *   any -> BAD
 */
#pragma once

#include "server/exchange.h"

enum {
    SRV_CHUNKED_EXT_MAX = 16 << 10,    /* extension bytes in one body */
    SRV_CHUNKED_TRAILER_MAX = 8 << 10, /* trailer bytes */
};

enum srv_chunked_result {
    SRV_CHUNKED_MORE, /* all input was used and the body goes on */
    SRV_CHUNKED_DATA, /* a run of body bytes was found; call again with what follows it */
    SRV_CHUNKED_END,  /* the body is complete; what follows belongs to the next request */
    SRV_CHUNKED_BAD,  /* `reason` says why; it stays BAD */
};

struct srv_chunked {
    uint64_t total;     /* body bytes found so far */
    const char *reason; /* static; set by BAD */
    uint64_t left_;
    uint32_t ext_bytes_;
    uint32_t trailer_bytes_;
    uint8_t digits_;
    uint8_t state_;
};

/* Makes `chunked` ready for the first byte of a body. */
void srv_chunked_init(struct srv_chunked *chunked);

/* Decodes the next bytes. *used_out gets how many of `bytes` were taken; with DATA *data_out is the
 * run, which lies in `bytes` and ends at bytes + *used_out, otherwise it is empty. MORE, DATA, END
 * or BAD. */
enum srv_chunked_result srv_chunked_feed(struct srv_chunked *chunked, const char *bytes, size_t len,
                                         size_t *used_out, struct srv_str *data_out);

/* Body bytes of the present chunk that are still to come, 0 if framing comes next. Received no
 * further than this, bytes are all data: the next feed returns exactly them, so they can be
 * received where they shall stay. */
uint64_t srv_chunked_left(const struct srv_chunked *chunked);
