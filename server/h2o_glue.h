/* What the files that speak libh2o share: loops, connections and exchanges with their insides. No
 * other file includes this.
 *
 * Owns:    a loop owns its connections; a connection lives until its socket has closed and the
 * last reference is gone; an exchange is memory of its pool, which is libh2o's request's over
 * HTTP/2 and its connection's over HTTP/1, and dies with it. Threads: everything on the loop's
 * thread, except where a field says [a] or [c]. Keeps:   no exchange is disposed of while one of
 * its handler's callbacks is on the stack.
 */
#pragma once

#include <h2o.h>
#include <h2o/http2.h>

#include <stdatomic.h>

#include "server/buf.h"
#include "server/chunked.h"
#include "server/exchange.h"
#include "server/front.h"
#include "server/head1.h"
#include "server/http_date.h"
#include "server/job.h"
#include "server/latency.h"
#include "server/listen.h"
#include "server/loop.h"
#include "server/loop_run.h"

enum {
    SRV_READ_BYTES =
        16 << 10, /* asked for when a head may come: what goes beyond it is copied once more */
    SRV_SCRATCH_BYTES = 256 << 10, /* a loop's receive scratch */
    SRV_SEND_CLEAR_BYTES = 1 << 20,
    SRV_SEND_TLS_BYTES = 256 << 10, /* all of one send is encrypted before any of it is written */
    SRV_ABORTS_MAX = 200,           /* requests one connection may abandon */
};

/* A list of timers that share one delay. */
enum srv_timeout {
    SRV_TIMEOUT_HANDSHAKE,
    SRV_TIMEOUT_HEAD,
    SRV_TIMEOUT_IDLE,
    SRV_TIMEOUT_BODY,
    SRV_TIMEOUT_SEND,
    SRV_TIMEOUT_LINGER,
    SRV_TIMEOUT_ACCEPT_PAUSE,
    SRV_N_TIMEOUTS,
};

/* What a connection speaks. */
enum srv_protocol {
    SRV_PROTOCOL_UNKNOWN, /* in its handshake, or silent */
    SRV_PROTOCOL_H1,
    SRV_PROTOCOL_H2,
};

/* What a look at a connection between two rounds of events has led to. */
enum srv_after {
    SRV_AFTER_IDLE,  /* nothing that would wait for the next round */
    SRV_AFTER_ACTED, /* perhaps a write: the next round must not sleep */
    SRV_AFTER_AGAIN, /* look again after the next round, whenever that is */
};

/* [c] const after create  [o] the loop's thread  [a] atomic */
struct srv_loop {
    h2o_context_t ctx;                      /* [o] */
    h2o_accept_ctx_t accept;                /* [c] */
    struct srv_loop_env *env;               /* [c] */
    unsigned index;                         /* [c] */
    h2o_socket_t *wake_sock;                /* [o] */
    int wake_fd;                            /* [c] */
    _Atomic(struct srv_job *) posted;       /* [a] newest first */
    _Atomic int n_expected;                 /* [a] completions that are still to be posted */
    _Atomic int wanted;                     /* [a] enum srv_loop_state */
    int state;                              /* [o] enum srv_loop_state, as far as acted upon */
    uint64_t drain_until_ms;                /* [o] */
    h2o_timeout_t timeouts[SRV_N_TIMEOUTS]; /* [o] */
    h2o_linklist_t conns;                   /* [o] every connection */
    size_t n_conns;                         /* [o] */
    struct srv_conn *after;           /* [o] to look at once the present round of events is over */
    bool must_not_sleep;              /* [o] */
    struct srv_listen_slot *slots;    /* [o] one for each listener */
    uint64_t id_seed;                 /* [o] request ids */
    struct srv_head1 head;            /* [o] for heads that come whole */
    char *scratch;                    /* [o] */
    uint64_t date_s;                  /* [o] the second that `date` is the text of */
    char date[SRV_HTTP_DATE_LEN + 1]; /* [o] */
    struct srv_latency latency;       /* [o], and read by others as it says */
#define SRV_LOOP(name, type, help) _Atomic uint64_t n_##name; /* [a] written by the loop only */
#include "server/counters.def"
};

/* Adds to one of this loop's own counters. */
#define SRV_COUNT(loop, name, n)                                                          \
    atomic_store_explicit(&(loop)->n_##name,                                              \
                          atomic_load_explicit(&(loop)->n_##name, memory_order_relaxed) + \
                              (uint64_t)(n),                                              \
                          memory_order_relaxed)

/* A connection from accept to the end of its socket.
 *
 *   UNKNOWN -> H1 | H2 [listen.c]
 */
struct srv_conn {
    h2o_socket_t *sock; /* NULL once closed */
    struct srv_loop *loop;
    const struct srv_listener *listener;
    unsigned refs;
    h2o_linklist_t link; /* loop->conns */
    struct srv_conn *after_next;
    bool is_queued_after;
    bool is_refused;   /* over the connection limit: answer 503 and close */
    bool is_condemned; /* too many aborted requests: nothing more is accepted */
    bool is_tls;
    bool is_closing; /* HTTP/1: the end has begun; TLS may have yet to say goodbye */
    enum srv_protocol protocol;
    enum srv_after (*after)(struct srv_conn *conn); /* once a round of events is over */
    h2o_socket_cb h2o_read;    /* HTTP/2: libh2o's own reader, which the gate stands in front of */
    h2o_timeout_entry_t timer; /* handshake, head, idle, linger */
    /* Input that nobody has taken yet: rest[0, rest_len), in `held` or borrowed from a scratch
     * until srv_conn_settle. */
    const char *rest;
    size_t rest_len;
    h2o_buffer_t *held;
    struct srv_head1 *partial; /* HTTP/1: state of an unfinished head */
    struct srv_exchange *ex;   /* HTTP/1: the request being answered */
    h2o_mem_pool_t pool;       /* HTTP/1: its memory; empty while there is none */
    struct srv_h2 *h2;         /* HTTP/2: the frame filter */
    char *answer;              /* HTTP/1: the gate's own response */
    size_t linger_left;        /* HTTP/1: bytes that are still read and dropped before the close */
    unsigned n_aborts;
};

/* The receiving half of an exchange. */
struct srv_body_in {
    void (*on_body)(void *ctx, enum srv_body_event event,
                    struct srv_buf *buf); /* NULL: not asked */
    struct srv_buf *buf;                  /* being filled */
    struct srv_h2_body *h2; /* HTTP/2: what the filter holds for it; NULL without a body */
    uint64_t left;          /* HTTP/1 with a length: bytes to come */
    struct srv_chunked chunked;
    uint64_t buf_started_ms;
    uint64_t discard_until_ms;
    size_t budget; /* bytes that may still be received in this turn */
    h2o_timeout_entry_t timer;
    bool is_chunked;
    bool is_ended;      /* framing complete */
    bool is_failed;     /* an error was reported; nothing more is read */
    bool is_discarding; /* answered; what still comes is dropped */
    bool owes_continue; /* `Expect: 100-continue` not answered */
    bool is_fast;       /* the last buffer filled quickly: use large ones */
    bool is_pumping;    /* the pump is on the stack */
};

/* How far HTTP/1 output that was begun has come. */
enum srv_out1 {
    SRV_OUT1_IDLE,    /* none was */
    SRV_OUT1_SENDING, /* the socket has not taken all of it */
    SRV_OUT1_SENT,    /* to be noticed once no handler is on the stack */
    SRV_OUT1_BROKEN,  /* the same: the connection is to be closed */
};

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
    struct iovec bytes;        /* a body that is in memory as a whole, instead of `source` */
    h2o_iovec_t out[2];        /* HTTP/1: head and piece, as far as they are not sent */
    enum srv_out1 out1;        /* HTTP/1 */
    uint64_t out_left;         /* bytes the source still owes */
    h2o_timeout_entry_t timer; /* send stall; abort */
    uint64_t acked;            /* of the TCP connection, when the stall timer was set */
    uint64_t begun_ns;         /* monotonic */
    uint64_t n_body_out;       /* bytes of the response's body that were handed over */
    int status;                /* 0 before the response */
    enum srv_result said;      /* what the handler said of the result */
    unsigned operation;        /* 1 the role's first; 0: not named */
    bool is_responded;
    bool is_head_sent;
    bool is_all_sent; /* all bytes there are have been handed over */
    bool is_final;    /* and nothing more will happen: HTTP/2 when libh2o knows it, HTTP/1 when they
                         are sent */
    bool is_waiting;  /* the source said WAIT */
    bool is_in_next;  /* source->next is on the stack */
    bool is_woken;    /* srv_source_wake came while it was */
    bool is_early;    /* HTTP/1: answered before the body had been read */
    bool is_writing;  /* 100 Continue is being written through TLS */
    bool must_close;
};
