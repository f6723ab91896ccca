/* One HTTP request on its way through the server, as its handler sees it: the seam between the
 * front (sockets, TLS, libh2o) and the handlers (S3, sites, admin). Nothing here depends on libh2o.
 *
 * Owns:    the front owns every srv_exchange; a handler owns the context it attaches.
 * Lends:   the request and its strings live until the exchange ends (the `gone` call).
 * Threads: every function and callback here runs on the exchange's own loop thread, unless said
 * otherwise.
 * Blocks:  never. Work that may block, or that hashes more than 64 KiB, goes to the pool of
 * server/job.h.
 *
 *   START -> BODY [srv_body_read] -> BODY ... -> ANSWERED [srv_respond] -> GONE
 *   START ----------------------------> ANSWERED  (body unread: the front drains or closes)
 *   any -> GONE                                   (client vanished, timeout, shutdown)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "server/outcome.h"

struct srv_conn;     /* front's own */
struct srv_buf;      /* server/buf.h: a pooled receive buffer */
struct srv_exchange; /* front's own */
struct srv_loop;     /* server/loop.h: one event loop and its thread */

#define SRV_LENGTH_UNKNOWN UINT64_MAX

/* A borrowed run of bytes, not terminated. */
struct srv_str {
    const char *base;
    size_t len;
};

/* One header field. Names are lower-case in requests; in responses they are sent as given. */
struct srv_field {
    struct srv_str name;
    struct srv_str value;
};

enum srv_method {
    SRV_GET,
    SRV_HEAD,
    SRV_PUT,
    SRV_POST,
    SRV_DELETE,
    SRV_OPTIONS,
    SRV_PURGE,
    SRV_METHOD_OTHER,
};

/* A request's head. Every field the client sent is in `fields`, Host, Content-Length,
 * Transfer-Encoding and Expect included. */
struct srv_request {
    enum srv_method method;
    struct srv_str method_name;
    struct srv_str path;      /* raw bytes up to '?', never decoded nor normalised */
    struct srv_str query;     /* raw bytes after '?'; empty when absent */
    struct srv_str authority; /* Host, or :authority */
    const struct srv_field *fields;
    size_t n_fields;
    uint64_t content_length; /* bytes; SRV_LENGTH_UNKNOWN for chunked or an HTTP/2 body without a
                                length; 0 without a body */
    bool has_body;           /* a body is announced, even one of length 0 */
    bool is_tls;
    int version; /* 10, 11, 20 */
    char id[17]; /* request id: 16 upper-case hex digits, unique to this process's life with high
                    probability */
};

/* A response's head. The front adds Connection and the framing, and Date and Server unless it is
 * relayed; handlers add everything else. */
struct srv_response {
    int status;
    const struct srv_field *fields; /* copied before srv_respond returns */
    size_t n_fields;
    uint64_t content_length; /* bytes of the (selected) body, also for HEAD; SRV_LENGTH_UNKNOWN
                                sends no Content-Length (304) */
    bool is_relayed;   /* another server's: Date is among `fields`, and Server if it has one */
    bool is_unbounded; /* content_length is unknown, and the source says where the body ends */
};

enum srv_body_event {
    SRV_BODY_DATA, /* `buf` holds the next bytes; ask again for more */
    SRV_BODY_END,  /* the framing is complete and valid; `buf` holds the last bytes, or is NULL */
    SRV_BODY_MALFORMED, /* bad chunk framing or length: answer 400 */
    SRV_BODY_STALLED,   /* the client sent nothing for too long: answer 408 */
    SRV_BODY_OVERLOAD,  /* no buffer within the budget: answer 503 */
};

/* Where a response's bytes come from. The front calls `next` each time it can send more. */
enum srv_source_state {
    SRV_SOURCE_READY,  /* *piece_out holds 1..max bytes, valid until the following `next` or
                          `destroy` */
    SRV_SOURCE_WAIT,   /* not in memory yet: the source will call srv_source_wake(ex) on this loop,
                          once */
    SRV_SOURCE_END,    /* the body of an unbounded response is over */
    SRV_SOURCE_FAILED, /* the rest cannot be had: the front aborts the connection, so that no client
                          takes it for success */
};

struct srv_source {
    enum srv_source_state (*next)(struct srv_source *self, size_t max, struct iovec *piece_out);
    /* Called exactly once, on the loop, when no lent byte is needed any more (sent, aborted or
     * never begun). */
    void (*destroy)(struct srv_source *self);
};

/* What a listener does with its requests. `start` runs once per request, before any body byte was
 * read. */
struct srv_handler {
    void *data;
    void (*start)(void *data, struct srv_exchange *ex);
    const struct srv_role *role; /* NULL: its requests are not told apart */
};

const struct srv_request *srv_exchange_request(const struct srv_exchange *ex);
struct srv_loop *srv_exchange_loop(const struct srv_exchange *ex);

/* What the configuration calls the listener that the request came by; NULL base: nothing. Lent
 * until `start` returns. */
struct srv_str srv_exchange_label(const struct srv_exchange *ex);

/* Attaches the handler's context. `gone(ctx)` runs exactly once, when the exchange has ended for
 * whatever reason; `ex` must not be touched from then on. Jobs still out keep the context alive:
 * the handler frees it after `gone` and the last job's `done`. */
void srv_exchange_attach(struct srv_exchange *ex, void *ctx, void (*gone)(void *ctx));
/* Begins work that may go on after the exchange has ended; NULL when so much is under way for its
 * connection that the answer is 503. srv_work_end, on the same loop, takes what this returns. */
struct srv_conn *srv_work_begin(struct srv_exchange *ex);
void srv_work_end(struct srv_conn *work);
void *srv_exchange_context(const struct srv_exchange *ex);
/* Counts `bytes` that the handler keeps for the request, instead of what it had counted before,
 * until the exchange ends. False, and nothing is counted, when the client may not have so much:
 * then the answer is 503. */
bool srv_exchange_keep(struct srv_exchange *ex, size_t bytes);

/* Notes, for metrics and access log, which of its role's operations the request is, and a result
 * that does not follow from the status. */
void srv_exchange_note(struct srv_exchange *ex, unsigned operation);
void srv_exchange_note_result(struct srv_exchange *ex, enum srv_result result);
/* Notes who asks, for the access log. Copied. */
void srv_exchange_note_user(struct srv_exchange *ex, struct srv_str user);

/* The value of the first field called `name` (lower-case), or NULL. `count_out`, if not NULL, gets
 * how many there are. */
const struct srv_str *srv_request_field(const struct srv_request *req, const char *name,
                                        size_t *count_out);

/* Asks for the next part of the body. `on_body(ctx, event, buf)` is called exactly once for it,
 * later or before this returns, with the attached context; ownership of `buf` passes to the
 * handler, who gives it back with srv_buf_release (any thread). The first call answers `Expect:
 * 100-continue`. Asking for one buffer while the previous one is being worked on is the intended
 * use: it overlaps receiving with hashing and writing, and not asking is the backpressure. Never
 * called after SRV_BODY_END or an error, nor after the response has begun. A read that is
 * outstanding when the response begins is dropped: its on_body is never called. */
void srv_body_read(struct srv_exchange *ex,
                   void (*on_body)(void *ctx, enum srv_body_event event, struct srv_buf *buf));

/* From now on what has come of the body is handed over as it comes, not only once a buffer is full:
 * for handlers that pass it on. */
void srv_body_stream(struct srv_exchange *ex);

/* Sends an interim response (1xx) ahead of the final one; nothing where the client could not tell
 * them apart (HTTP/1.0), or where libh2o has no place for it (HTTP/2). Not once srv_respond was
 * called. */
void srv_respond_interim(struct srv_exchange *ex, int status, const struct srv_field *fields,
                         size_t n_fields);

/* Sends the head and the source's bytes. Takes `source` (NULL: no body; for HEAD and 304 a source
 * is destroyed unread). The bytes must add up to content_length; fewer or more abort the
 * connection. Unbounded responses go in chunks, or with HTTP/1.0 up to the connection's end. At
 * most once per exchange. */
void srv_respond(struct srv_exchange *ex, const struct srv_response *res,
                 struct srv_source *source);

/* As srv_respond with a copy of `len` bytes, for short documents and objects; content_length is set
 * from `len`. Where no memory is left for what a slow client makes us keep, the answer is 503. */
void srv_respond_bytes(struct srv_exchange *ex, const struct srv_response *res, const void *bytes,
                       size_t len);

/* The same for long documents: takes `bytes`, which are from malloc. */
void srv_respond_owned(struct srv_exchange *ex, const struct srv_response *res, void *bytes,
                       size_t len);

/* Tells the front that a source which answered SRV_SOURCE_WAIT may be asked again. */
void srv_source_wake(struct srv_exchange *ex);
