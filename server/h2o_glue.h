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

#include "server/allowance.h"
#include "server/buf.h"
#include "server/clients.h"
#include "server/chunked.h"
#include "server/exchange.h"
#include "server/front.h"
#include "server/head1.h"
#include "server/http_date.h"
#include "server/job.h"
#include "server/latency.h"
#include "server/listen.h"
#include "server/listener.h"
#include "server/loop.h"
#include "server/loop_run.h"

enum {
    SRV_READ_BYTES = 16 << 10,     /* when a head may come: what goes beyond is copied once more */
    SRV_SCRATCH_BYTES = 256 << 10, /* a loop's receive scratch */
    SRV_SEND_CLEAR_BYTES = 1 << 20,
    SRV_SEND_TLS_BYTES = 256 << 10, /* all of one send is encrypted before any of it is written */
    /* Once so much was sent in one round, others wait for it noticeably: pieces get smaller. */
    SRV_ROUND_BYTES = 4 << 20,
    SRV_SEND_CROWD_BYTES = 64 << 10,
};

/* A list of timers that share one delay. */
enum srv_timeout {
    SRV_TIMEOUT_HANDSHAKE,
    SRV_TIMEOUT_HEAD,
    SRV_TIMEOUT_IDLE,
    SRV_TIMEOUT_BODY,
    SRV_TIMEOUT_SEND,
    SRV_TIMEOUT_LINGER,
    SRV_TIMEOUT_REFUSED,
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
    const struct srv_setting *setting;      /* [o] */
    unsigned index;                         /* [c] */
    h2o_socket_t *wake_sock;                /* [o] */
    int wake_fd;                            /* [c] */
    _Atomic(struct srv_job *) posted;       /* [a] newest first */
    _Atomic int n_expected;                 /* [a] completions that are still to be posted */
    _Atomic int wanted;                     /* [a] enum srv_loop_state */
    _Atomic uint64_t turned_ms;             /* [a] wall clock; when it last looked for events */
    int state;                              /* [o] enum srv_loop_state, as far as acted upon */
    uint64_t drain_until_ms;                /* [o] */
    uint64_t idle_until_ms;                 /* [o] draining: then idle connections are closed */
    h2o_timeout_t timeouts[SRV_N_TIMEOUTS]; /* [o] */
    h2o_linklist_t conns;                   /* [o] every connection */
    size_t n_conns;                         /* [o] */
    size_t n_admin;                         /* [o] of them with an admin listener */
    h2o_linklist_t lingers;                 /* [o] sockets on their way out */
    size_t n_lingers;                       /* [o] */
    h2o_linklist_t refused;                 /* [o] connections that wait to be told so */
    struct srv_conn *after;           /* [o] to look at once the present round of events is over */
    bool must_not_sleep;              /* [o] */
    size_t round_bytes;               /* [o] of responses begun to be sent in this round */
    struct srv_listen_slot *slots;    /* [o] sockets it accepts from */
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
    struct srv_listener *listener; /* a reference */
    struct srv_client *client;     /* NULL without an address */
    unsigned refs;
    h2o_linklist_t link;         /* loop->conns */
    h2o_linklist_t refused_link; /* loop->refused */
    struct srv_conn *after_next;
    bool is_queued_after;
    int refusal;       /* status all requests are answered with before the connection closes; 0 */
    bool is_refused;   /* from the beginning, and not one of those the limit counts */
    bool is_ending;    /* it has been asked to end, and begun to wait for that */
    bool is_condemned; /* too many aborted requests: nothing more is accepted */
    bool is_tls;
    bool is_closing; /* HTTP/1: the end has begun; TLS may have yet to say goodbye */
    enum srv_protocol protocol;
    enum srv_after (*after)(struct srv_conn *conn); /* once a round of events is over */
    h2o_socket_cb h2o_read;    /* HTTP/2: libh2o's own reader, which the gate stands in front of */
    h2o_timeout_entry_t timer; /* handshake, head, idle, linger */
    int linger_fd;             /* the socket's, for when it is closed; -1: none */
    /* Input that nobody has taken yet: rest[0, rest_len), in `held` or borrowed from a scratch
     * until srv_conn_settle. */
    const char *rest;
    size_t rest_len;
    h2o_buffer_t *held;
    size_t kept_bytes;           /* counted by srv_conn_keep */
    size_t head_kept;            /* of them, for an unfinished head or frame */
    struct srv_head1 *partial;   /* HTTP/1: state of an unfinished head */
    struct srv_exchange *ex;     /* HTTP/1: the request being answered */
    h2o_mem_pool_t pool;         /* HTTP/1: its memory; empty while there is none */
    struct srv_h2 *h2;           /* HTTP/2: the frame filter */
    char *answer;                /* HTTP/1: the gate's own response */
    char peer[46];               /* its address as text, once that was wanted; else empty */
    unsigned n_streams;          /* HTTP/2: requests whose exchange has not ended */
    unsigned n_working;          /* handlers that are at work for it, gone requests' too */
    struct srv_allowance aborts; /* requests that may still be abandoned */
};

#include "server/exchange_own.h"
