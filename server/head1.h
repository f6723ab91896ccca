/* Strict check of one HTTP/1 request head, on bytes alone and before anybody else reads them.
 *
 * Owns:    the caller owns struct srv_head1; it holds offsets only, so the bytes may move between
 * calls.
 * Threads: none of its own; one head is used by one thread at a time.
 * Blocks:  never.
 * Allocates: nothing.
 *
 * What is refused, beyond the limits below (RFC 9112 unless another is named):
 *   400  bare CR or LF, NUL and other controls, folded lines, space before the colon, names that
 * are no tokens, '#' or controls in the target, Host missing in 1.1, repeated or malformed,
 * Content-Length repeated or not plain digits, Content-Length together with Transfer-Encoding,
 * Transfer-Encoding in 1.0, repeated, or not ending in chunked 414  request line over the limit 431
 * head or number of fields over the limit 417  an Expect other than 100-continue (RFC 9110, 10.1.1)
 *   501  CONNECT, a method too long to be known, a transfer coding before chunked
 *   505  a well-formed version other than HTTP/1.0 and HTTP/1.1
 * What is let through on purpose: any token as method (the handler answers 405), bytes above 0x7f
 * and the marks "<>\^`{|} in the target (they are plain key bytes here), absolute form for http and
 * https, whose authority then replaces Host (RFC 9112, 3.2.2), one empty line before the request
 * line (2.2), Expect in a 1.0 request (ignored).
 */
#pragma once

#include "server/exchange.h"

enum {
    SRV_HEAD1_BYTES_MAX = 64 << 10, /* whole head, from the first byte to the empty line */
    SRV_HEAD1_LINE_MAX = 16 << 10,  /* request line */
    SRV_HEAD1_FIELDS_MAX = 100,
    SRV_HEAD1_NO_FIELD = -1,
};

/* A run of the head's bytes. */
struct srv_head1_span {
    uint32_t off;
    uint32_t len;
};

/* `name` as sent, in either case; `value` without the white space around it. */
struct srv_head1_field {
    struct srv_head1_span name;
    struct srv_head1_span value;
};

enum srv_head1_result {
    SRV_HEAD1_MORE,     /* valid so far; call again once more bytes have arrived */
    SRV_HEAD1_DONE,     /* a valid head of head_len bytes */
    SRV_HEAD1_REJECTED, /* answer `status` with `reason`, then close: nothing after this head can be
                           trusted */
};

enum srv_head1_body {
    SRV_HEAD1_BODY_NONE,    /* neither Content-Length nor Transfer-Encoding */
    SRV_HEAD1_BODY_LENGTH,  /* content_length bytes follow, possibly 0 */
    SRV_HEAD1_BODY_CHUNKED, /* server/chunked.h reads it */
};

/* Everything from `method` to `fields` is meaningful after DONE; `status` and `reason` after
 * REJECTED. */
struct srv_head1 {
    struct srv_head1_span method;
    struct srv_head1_span target; /* as sent */
    struct srv_head1_span
        path; /* up to '?'; empty for an absolute form without path: read it as "/" */
    struct srv_head1_span query; /* after '?' */
    struct srv_head1_span
        authority; /* Host, or the target's in absolute form; empty if a 1.0 request has neither */
    int version;   /* 10 or 11 */
    enum srv_head1_body body;
    uint64_t content_length; /* bytes, for SRV_HEAD1_BODY_LENGTH; at most INT64_MAX */
    bool keep_alive;         /* the client would keep the connection */
    bool expect_continue;    /* it waits for 100 before it sends the body */
    int content_length_at;   /* indexes into fields, or SRV_HEAD1_NO_FIELD, so that the names can be
                                overwritten in place */
    int transfer_encoding_at;
    int expect_at;
    int host_at;
    uint32_t head_len; /* bytes, the empty line included */
    int n_fields;
    struct srv_head1_field fields[SRV_HEAD1_FIELDS_MAX];

    int status;
    const char *reason; /* static, one short phrase */

    uint32_t line_;    /* where the first unfinished line starts */
    uint32_t scanned_; /* bytes looked at */
    uint8_t stage_;
    bool close_;
    bool wants_keep_;
    bool is_absolute_;
};

/* Makes `head` ready for the first byte of a request. */
void srv_head1_init(struct srv_head1 *head);

/* Looks at `bytes[0, len)`, which begin at the head's first byte and include all bytes given
 * before. Each byte is looked at about once however the head is split. MORE, DONE or REJECTED;
 * after the last two only srv_head1_init may follow. */
enum srv_head1_result srv_head1_feed(struct srv_head1 *head, const char *bytes, size_t len);

/* The bytes a span stands for. */
static inline struct srv_str srv_head1_str(const char *bytes, struct srv_head1_span span)
{
    return (struct srv_str){bytes + span.off, span.len};
}
