/* An exchange's insides. Part of h2o_glue.h, which is to be included.
 *
 * Owns:    an exchange is memory of its pool, which is libh2o's request's over HTTP/2 and its
 * connection's over HTTP/1, and dies with it.
 * Threads: the exchange's loop.
 */
#pragma once

#include "server/h2o_glue.h"

/* The receiving half of an exchange. */
struct srv_body_in {
    void (*on_body)(void *ctx, enum srv_body_event event,
                    struct srv_buf *buf); /* NULL: not asked */
    struct srv_buf *buf;                  /* being filled */
    struct srv_h2_body *h2; /* HTTP/2: what the filter holds for it; NULL without a body */
    uint64_t left;          /* HTTP/1 with a length: bytes to come */
    struct srv_chunked chunked;
    uint64_t buf_started_ms;
    uint64_t seen; /* bytes received when the timer was set */
    uint64_t discard_until_ms;
    uint64_t n_dropped; /* bytes that came for nobody */
    size_t budget;      /* bytes that may still be received in this turn */
    h2o_timeout_entry_t timer;
    bool is_chunked;
    bool is_ended;      /* framing complete */
    bool is_failed;     /* an error was reported; nothing more is read */
    bool is_discarding; /* answered; what still comes is dropped */
    bool owes_continue; /* `Expect: 100-continue` not answered */
    bool is_fast;       /* the last buffer filled quickly: use large ones */
    bool is_streamed;   /* what has come is handed over, be it little */
    bool is_pumping;    /* the pump is on the stack */
};

/* How far HTTP/1 output that was begun has come. */
enum srv_out1 {
    SRV_OUT1_IDLE,    /* none was */
    SRV_OUT1_SENDING, /* the socket has not taken all of it */
    SRV_OUT1_SENT,    /* to be noticed once no handler is on the stack */
    SRV_OUT1_BROKEN,  /* the same: the connection is to be closed */
};

enum { SRV_OUT1_FRAME_MAX = 24 }; /* a line end, a chunk's size, a line end; or the last chunk */

struct srv_exchange {
    struct srv_request request;
    h2o_req_t *req;       /* HTTP/2 */
    h2o_mem_pool_t *pool; /* what is allocated here lives as long as the exchange */
    struct srv_conn *conn;
    struct srv_loop *loop;
    void *ctx;
    void (*gone)(void *ctx);
    struct srv_body_in in;
    /* The sending half. */
    h2o_generator_t generator; /* HTTP/2 */
    struct srv_source *source;
    struct iovec bytes; /* a body that is in memory as a whole, instead of `source` */
    void *owned;        /* it, if it was handed over */
    size_t head_kept;   /* counted by srv_conn_keep: the head, */
    size_t body_kept;   /* the response's body, */
    size_t work_kept;   /* and what the handler says */
    h2o_iovec_t out[2]; /* HTTP/1: head, or a chunk's frame, and piece, as far as they are not
                           sent */
    char frame[SRV_OUT1_FRAME_MAX]; /* HTTP/1: of the chunk under way */
    enum srv_out1 out1;             /* HTTP/1 */
    h2o_iovec_t interim;            /* HTTP/1: what the socket has not taken of 1xx responses */
    uint64_t out_left;              /* bytes the source still owes */
    h2o_timeout_entry_t timer;      /* send stall; abort */
    uint64_t sent_seen;             /* HTTP/2: body bytes sent, when the stall timer was set */
    uint64_t acked;                 /* of the TCP connection, when the stall timer was set */
    uint64_t begun_ns;              /* monotonic */
    uint64_t first_ns;              /* when the response began, if the access log is on; else 0 */
    uint64_t n_body_in;             /* bytes of the request's body that the handler got */
    const char *user;               /* who asks, as the handler said; NULL: unknown */
    uint64_t n_body_out;            /* bytes of the response's body that were handed over */
    int status;                     /* 0 before the response */
    enum srv_result said;           /* what the handler said of the result */
    unsigned operation;             /* 1 the role's first; 0: not named */
    bool is_responded;
    bool is_head_sent;
    bool is_all_sent; /* all bytes there are have been handed over */
    bool is_final;    /* and nothing more will happen: HTTP/2 when libh2o knows it, HTTP/1 when they
                         are sent */
    bool is_waiting;  /* the source said WAIT */
    bool is_in_next;  /* source->next is on the stack */
    bool is_woken;    /* srv_source_wake came while it was */
    bool is_unbounded; /* the source says where the body ends */
    bool is_chunked;   /* HTTP/1: pieces are framed */
    bool is_early;     /* HTTP/1: answered before the body had been read */
    bool is_writing;   /* an interim response is being written through TLS */
    bool must_close;
    bool is_logged; /* the access log was on when the request came */
};
