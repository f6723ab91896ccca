/* A fetch as its two sides know it: the loop that started it, and the fetcher's thread.
 *
 * Shared by fetch.c (the loop's side), fetch_curl.c (one transfer) and fetcher.c (the thread).
 */
#pragma once

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "server/http/fetch.h"
#include "server/job.h"

/* What a loop has asked the fetcher to do. */
enum {
    SRV_FETCH_DO_START = 1 << 0,
    SRV_FETCH_DO_RESUME = 1 << 1, /* room in the ring, or the next part of the request's body */
    SRV_FETCH_DO_CANCEL = 1 << 2,
};

/* [c] const after start  [w] under `lock`  [t] the fetcher's thread  [q] under the fetcher's lock
 */
struct srv_fetch {
    struct srv_fetcher *fetcher; /* [c] */
    struct srv_loop *loop;       /* [c] */
    void (*on_change)(void *data);
    void *data;
    _Atomic unsigned n_refs; /* the loop's, the fetcher's, that of a posted event */
    struct srv_job event;

    pthread_mutex_t lock;
    enum srv_fetch_state state;         /* [w] */
    enum srv_fetch_fault fault;         /* [w] */
    bool is_posted;                     /* [w] */
    bool is_let_go;                     /* [w] by the loop */
    bool is_going;                      /* [w] srv_fetch_go was called */
    bool is_read;                       /* [w] the body goes into the ring */
    bool is_complete;                   /* [w] the body's framing is at its end */
    struct srv_fetch_interim *interims; /* [w] in the order in which they came */
    unsigned n_interims;                /* [t] */
    struct srv_sink sink;               /* [w] until is_going, then [t] */
    char *ring;                         /* [w] SRV_FETCH_RING bytes; NULL until needed */
    size_t ring_start, ring_len;        /* [w] */
    struct srv_buf *given;              /* [w] of the request's body; NULL: none */
    size_t given_off;                   /* [t] */
    bool is_given_end;                  /* [w] */
    bool wants;                         /* [w] */

    struct srv_http_head head; /* [t] until ANSWERED, then const */
    int64_t requested_ms, received_ms;

    CURL *curl;                     /* [t] */
    struct curl_slist *fields;      /* [t] */
    char *method, *target, *url;    /* [c] */
    uint64_t content_length;        /* [c] */
    bool has_body;                  /* [c] */
    bool is_unattended;             /* [c] */
    uint64_t n_alone;               /* [t] bytes that came after it was let go */
    int64_t alone_until_ms;         /* [w] monotonic; then it is broken off; 0: not let go */
    bool is_paused;                 /* [t] curl waits for room */
    bool is_upload_paused;          /* [t] curl waits for the request's body */
    int64_t deadline_ms;            /* [t] monotonic; of whatever is awaited; 0: none */
    bool is_timeout;                /* [t] */
    unsigned todo;                  /* [q] SRV_FETCH_DO_* */
    struct srv_fetch *next_todo;    /* [q] */
    struct srv_fetch *next, **prev; /* [t] list of transfers */
};

/* ---- fetch.c ---- */

/* Any thread: something has changed; `lock` is held. */
void srv_fetch_tell_locked(struct srv_fetch *fetch);
void srv_fetch_unref(struct srv_fetch *fetch);

/* ---- fetcher.c ---- */

void srv_fetcher_ask(struct srv_fetch *fetch, unsigned todo);
const struct srv_fetch_limits *srv_fetcher_limits(const struct srv_fetcher *fetcher);
/* Monotonic milliseconds. */
int64_t srv_fetcher_now_ms(void);

/* ---- fetch_curl.c: on the fetcher's thread ---- */

/* Prepares the transfer; false without memory. */
bool srv_fetch_curl_open(struct srv_fetch *fetch);
void srv_fetch_curl_close(struct srv_fetch *fetch);
/* The transfer is over, with libcurl's result. */
void srv_fetch_curl_finish(struct srv_fetch *fetch, CURLcode result);
