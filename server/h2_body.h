/* Request bodies over HTTP/2: where DATA waits until a handler takes it, and what it costs the
 * window.
 *
 * Owns:    a body owns its buffers until they are taken; a connection owns its bodies.
 * Threads: the connection's loop.
 * Allocates: buffers out of the front's pool; a body that gets none is answered 503.
 *
 *   OPENING -> BOUND [srv_gate_h2_bind] -> ENDED | BAD | OVERLOAD -> removed [srv_gate_h2_unbind]
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/allowance.h"
#include "server/h2_gate.h"
#include "server/h2o_glue.h"

struct srv_buf;
struct srv_conn;
struct srv_exchange;

enum { SRV_H2_RESETS_MAX = 64, SRV_H2_EARLY_MAX = 64 };

/* The body of one stream. */
struct srv_h2_body {
    uint32_t stream;
    struct srv_exchange *ex; /* NULL until libh2o has started the request */
    struct srv_h2_body *next;
    struct srv_buf *first; /* received and not taken; the last is being filled */
    struct srv_buf *last;
    uint64_t length;   /* announced, or SRV_LENGTH_UNKNOWN */
    uint64_t received; /* bytes */
    uint32_t credit;   /* bytes taken and not yet given back to the stream's window */
    bool is_ended;
    bool is_bad;      /* more or less than was announced */
    bool is_overload; /* no buffer could be had */
    bool owes_continue;
    bool sends_continue; /* at the next chance */
};

/* The frame filter of one connection. */
struct srv_h2 {
    struct srv_conn *conn;
    bool is_failed;            /* nothing more is taken */
    int error;                 /* why, as the client is told */
    h2o_timeout_entry_t timer; /* for a frame or a header block to end */
    struct srv_h2_body *bodies;
    struct srv_h2_body *opening; /* its header block is on the way to libh2o */
    uint32_t max_stream;         /* highest that a client has opened */
    unsigned n_turn;             /* requests begun in this turn */
    bool has_preface;
    bool is_in_block;   /* CONTINUATION must follow */
    size_t block_bytes; /* of the header block so far */
    uint32_t block_stream;
    bool is_refusing; /* the request of the header block under way, for want of memory */
    bool is_raised;   /* libh2o is made to believe that too many streams are open */
    /* The DATA frame being received. */
    struct srv_h2_body *target; /* NULL: dropped */
    uint32_t data_left;
    uint32_t pad_left;
    bool ends_stream;
    /* Flow control. */
    uint32_t window; /* bytes the client may still send */
    uint32_t credit; /* bytes to give back to the connection's window */
    uint64_t held;   /* bytes received and neither taken nor dropped */
    /* Streams answered before their body had come. They are reset, without an error, if the client
     * has not stopped by itself. */
    uint32_t resets[SRV_H2_RESETS_MAX];
    unsigned n_resets;
    bool is_reset_due;
    /* The last streams that were answered early: what comes for them is dropped without a word. */
    uint32_t early[SRV_H2_EARLY_MAX];
    unsigned n_early;
    struct srv_allowance floods[SRV_H2_N_FLOODS];
};

/* Notes `n` bytes to be given back to the connection's window, and has that done in time. */
void srv_h2_give_back(struct srv_conn *conn, size_t n);

/* Bytes of a window that are given back at a time. */
extern const uint32_t srv_h2_credit_step;

/* A body for a stream whose request is about to be passed on. */
struct srv_h2_body *srv_h2_body_create(struct srv_conn *conn, uint32_t stream);

/* Frees a body and what it holds. */
void srv_h2_body_remove(struct srv_conn *conn, struct srv_h2_body *body);

/* The body of `stream`, or NULL. */
struct srv_h2_body *srv_h2_body_find(const struct srv_h2 *h2, uint32_t stream);

/* Whether the stream is one of the last that were answered before their body had come. */
bool srv_h2_is_answered_early(const struct srv_h2 *h2, uint32_t stream);

/* Whether bytes that come for the body (NULL: none) are still of use. */
bool srv_h2_body_is_wanted(const struct srv_h2_body *body);

/* Keeps payload for the connection's target, as long as it wants any; the rest is given back. */
void srv_h2_body_keep(struct srv_conn *conn, const char *bytes, size_t n);

/* The stream has ended; NULL is allowed. */
void srv_h2_body_end(struct srv_conn *conn, struct srv_h2_body *body);
