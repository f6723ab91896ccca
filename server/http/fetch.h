/* Requests to an origin, carried out by a thread of their own (libcurl).
 *
 *   STARTED -> ANSWERED -> FLOWING [srv_fetch_go] -> ENDED
 *   any -> FAILED            the origin could not be reached, broke off or sent nonsense
 *   any -> let go            [srv_fetch_end]
 *
 * Nothing of the body is taken from the origin before srv_fetch_go has said where it goes: into a
 * store's put or fill, to whoever started the fetch, or both. Whoever reads slowly slows the origin
 * down: at most SRV_FETCH_RING bytes lie between the two. What was begun in the store is committed
 * once the last byte is there and the framing says that it is the last; otherwise it is dropped.
 * That is before ENDED is told.
 *
 * Owns:    whoever starts a fetch has it until srv_fetch_end. A sink handed over is the fetch's.
 * Lends:   the head and pieces of the body, until srv_fetch_end and srv_fetch_consume.
 * Threads: functions on the loop that started the fetch; the origin is spoken to on the fetcher's.
 * Blocks:  srv_fetcher_destroy only. The fetcher's thread writes to the store.
 * Allocates: a fetch, its request, its ring.
 */
#pragma once

#include "api/gyre.h"
#include "server/http/origin_head.h"
#include "server/http/sink.h"

struct srv_buf;
struct srv_fetch;
struct srv_fetcher;
struct srv_loop;

enum {
    SRV_FETCH_RING = 256 << 10,
    SRV_FETCH_INTERIMS_MAX = 16,
    SRV_FETCH_FINISH_MAX =
        64 << 20,                /* bytes, and milliseconds, for which a fetch goes on that has */
    SRV_FETCH_FINISH_MS = 60000, /* been let go: an endless body is nobody's */
};

/* How long to wait for an origin, in milliseconds. */
struct srv_fetch_limits {
    long connect_ms;
    long first_byte_ms; /* from the end of the request to the response's head */
    long between_ms;    /* from byte to byte, while bytes are wanted */
    long connections;   /* kept idle at most */
};

struct srv_fetch_request {
    const char *origin; /* "http://host:port" */
    struct srv_str method;
    struct srv_str target;    /* as sent by the client */
    struct srv_str authority; /* goes into Host */
    const struct srv_field *fields;
    size_t n_fields;
    bool is_unattended; /* nobody waits for it: it ends when the fetcher drains */
    bool has_body;
    uint64_t content_length; /* of the body; SRV_LENGTH_UNKNOWN: chunked */
};

enum srv_fetch_state {
    SRV_FETCH_STARTED,
    SRV_FETCH_ANSWERED, /* the head is there; srv_fetch_go is awaited */
    SRV_FETCH_FLOWING,
    SRV_FETCH_ENDED,  /* the whole body has come */
    SRV_FETCH_FAILED, /* what has come of the body is not all of it */
};

enum srv_fetch_fault {
    SRV_FETCH_FINE,
    SRV_FETCH_UNREACHABLE, /* no connection, or it broke before a head: 502 */
    SRV_FETCH_MALFORMED,   /* what came is no response: 502 */
    SRV_FETCH_TIMEOUT,     /* 504 */
    SRV_FETCH_BROKEN,      /* it broke off within the body */
};

/* A fetcher and its thread; NULL without memory or thread. */
struct srv_fetcher *srv_fetcher_create(const struct srv_fetch_limits *limits);
/* The end is near: breaks off at once what nobody waits for, and in `ms` milliseconds whatever is
 * under way by then or begins later. */
void srv_fetcher_drain(struct srv_fetcher *fetcher, uint64_t ms);
/* Breaks off what is under way; all fetches must have been let go. */
void srv_fetcher_destroy(struct srv_fetcher *fetcher);

/* Begins; what the request names is copied. `on_change(data)` is called on `loop` when state or
 * body have moved on, never once srv_fetch_end was called. NULL without memory. */
struct srv_fetch *srv_fetch_start(struct srv_fetcher *fetcher, struct srv_loop *loop,
                                  const struct srv_fetch_request *request,
                                  void (*on_change)(void *data), void *data);

enum srv_fetch_state srv_fetch_state(struct srv_fetch *fetch);
enum srv_fetch_fault srv_fetch_fault(struct srv_fetch *fetch);
/* From ANSWERED on. */
const struct srv_http_head *srv_fetch_head(const struct srv_fetch *fetch);
/* Wall clock in milliseconds: when the request was handed to libcurl, when the head was whole. */
int64_t srv_fetch_requested_ms(const struct srv_fetch *fetch);
int64_t srv_fetch_received_ms(const struct srv_fetch *fetch);

/* An interim response (1xx), with the fields that pass an intermediary. */
struct srv_fetch_interim {
    struct srv_fetch_interim *next_;
    int status;
    size_t n_fields;
    struct srv_field fields[];
};

/* The next interim response that has come and was not taken yet, to be freed with free(); NULL:
 * none. Those after the first SRV_FETCH_INTERIMS_MAX are dropped, and so is 100, which is between
 * the origin and the fetch. */
struct srv_fetch_interim *srv_fetch_take_interim(struct srv_fetch *fetch);

/* Once, when ANSWERED: lets the body come. What `sink` holds is taken; with `is_read` the body also
 * goes into the ring. */
void srv_fetch_go(struct srv_fetch *fetch, struct srv_sink *sink, bool is_read);

/* The bytes that can be read now, at most `max`; 0: none. They stay until srv_fetch_consume. */
size_t srv_fetch_peek(struct srv_fetch *fetch, size_t max, const void **bytes_out);
void srv_fetch_consume(struct srv_fetch *fetch, size_t len);

/* Whether the next part of the request's body is wanted; srv_fetch_give hands it over, with
 * `is_end` the last (`buf` may be NULL then). */
bool srv_fetch_wants(struct srv_fetch *fetch);
void srv_fetch_give(struct srv_fetch *fetch, struct srv_buf *buf, bool is_end);

/* Lets go: what is under way is broken off, unless it goes into a put and `finishes`. */
void srv_fetch_end(struct srv_fetch *fetch, bool finishes);
