/* The framing "aws-chunked" of request bodies, taken off piece by piece, with its signatures and
 * its trailer.
 *
 *   SIZE -> DATA -> DATA_END -> SIZE ...      SIZE (0) -> TRAILER -> ENDED
 *   any -> FAILED
 *
 * A chunk is `hex[;chunk-signature=64 hex digits] CRLF bytes CRLF`. The last one is of size 0 and
 * followed by lines `name:value`, each ended by CRLF or LF, and an empty line. When the trailer is
 * signed, its last line is x-amz-trailer-signature.
 *
 * Owns:    a decoder holds no memory but its own; it may be moved. It holds a signing key: wipe it.
 * Threads: one decoder, one thread at a time.
 * Blocks:  never, but hashes what it is given when chunks are signed.
 * Allocates: nothing.
 */
#pragma once

#include "server/s3/sigv4.h"

enum {
    SRV_AWS_CHUNKED_LINE_MAX = 256,     /* bytes of a line before a chunk or in a trailer */
    SRV_AWS_CHUNKED_TRAILER_MAX = 1024, /* bytes of all lines of a trailer */
    SRV_AWS_CHUNKED_SCOPE_MAX = 112,
};

/* What the request's head says of its body. */
struct srv_aws_framing {
    bool is_signed;   /* each chunk carries a signature, and so does a trailer */
    bool has_trailer; /* a trailer is announced */
    bool is_verified; /* signatures are compared; false without a key to do it with */
    uint64_t length;  /* decoded bytes; SRV_LENGTH_UNKNOWN when the head does not say */
    struct srv_hmac_key key;
    uint8_t seed[SRV_SHA256_LEN]; /* the signature of the head */
    char time[SRV_SIGV4_TIME_LEN + 1];
    char scope[SRV_AWS_CHUNKED_SCOPE_MAX];
    size_t scope_len;
};

enum srv_aws_chunked_state {
    SRV_AWS_SIZE,
    SRV_AWS_DATA,
    SRV_AWS_DATA_END,
    SRV_AWS_TRAILER,
    SRV_AWS_ENDED,
    SRV_AWS_FAILED,
};

struct srv_aws_chunked {
    struct srv_aws_framing framing;
    enum srv_aws_chunked_state state;
    uint64_t decoded; /* bytes given out */
    uint64_t left_;   /* of the chunk */
    struct srv_sha256 data_;
    uint8_t before_[SRV_SHA256_LEN]; /* the signature that the next one continues */
    uint8_t claimed_[SRV_SHA256_LEN];
    bool is_trailer_signed_; /* its signature was seen and is right */
    size_t line_len_;
    char line_[SRV_AWS_CHUNKED_LINE_MAX];
    size_t trailer_len; /* lines `name:value\n`, names in lower case, in `trailer` */
    char trailer[SRV_AWS_CHUNKED_TRAILER_MAX];
};

void srv_aws_chunked_init(struct srv_aws_chunked *chunked, const struct srv_aws_framing *framing);
/* Wipes the key. Allowed on a zeroed one. */
void srv_aws_chunked_fini(struct srv_aws_chunked *chunked);

/* Takes the framing off `bytes`: the decoded bytes are then at its front, *decoded_len_out of them.
 * NONE; INCOMPLETE_BODY: it is no such framing or too long; SIGNATURE_DIFFERS. After an error the
 * decoder has FAILED and gives the same answer again. */
enum srv_s3_code srv_aws_chunked_feed(struct srv_aws_chunked *chunked, char *bytes, size_t len,
                                      size_t *decoded_len_out);

/* Says that no byte follows. NONE when the body is whole; INCOMPLETE_BODY; SIGNATURE_DIFFERS: the
 * trailer's signature is missing. */
enum srv_s3_code srv_aws_chunked_finish(struct srv_aws_chunked *chunked);

/* The trailer's value of that name, which is in lower case; false when there is none. */
bool srv_aws_chunked_trailer(const struct srv_aws_chunked *chunked, const char *name,
                             struct srv_str *value_out);
