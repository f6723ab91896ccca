/* The parts of the HTTP/2 gate, to each other: gate_h2.c owns the connection, h2_frames.c reads
 * what the client sends, h2_floods.c says how much of that there may be, h2_own.c writes what
 * libh2o would not.
 *
 * Threads: the connection's loop. Blocks: never.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct srv_conn;
struct srv_loop;
struct st_h2o_http2_conn_t;

/* Why a connection ends (RFC 9113, 7). */
enum srv_h2_error {
    SRV_H2_PROTOCOL_ERROR = 0x1,
    SRV_H2_FLOW_CONTROL_ERROR = 0x3,
    SRV_H2_STREAM_CLOSED = 0x5,
    SRV_H2_FRAME_SIZE_ERROR = 0x6,
    SRV_H2_ENHANCE_YOUR_CALM = 0xb,
};

enum srv_h2_flood {
#define X(name, burst, per_s, help) SRV_H2_FLOOD_##name,
#include "server/h2_floods.def"
#undef X
    SRV_H2_N_FLOODS,
};

/* ---- gate_h2.c ---- */

/* Ends the connection: tells the client why, reads on for a moment so that it may hear of it, and
 * takes nothing of what it sends. */
void srv_h2_fail(struct srv_conn *conn, enum srv_h2_error code);

/* ---- h2_floods.c ---- */

/* Fills the client's allowances. */
void srv_h2_floods_init(struct srv_conn *conn);
/* Charges a frame that makes work without asking for anything; false when the client has sent too
 * many, and is condemned. */
bool srv_h2_charge(struct srv_conn *conn, enum srv_h2_flood which);
/* Counts a connection that is lost to a flood. */
void srv_h2_count_flood(struct srv_loop *loop, enum srv_h2_flood which);
/* Lets the client send `n` more WINDOW_UPDATE. */
void srv_h2_earn_updates(struct srv_conn *conn, size_t n);

/* ---- h2_frames.c ---- */

/* Counts what the connection keeps of input that has no end yet, and of output beyond the usual. */
void srv_h2_count(struct srv_conn *conn);
/* Takes what it can of the connection's rest; the socket may be closed then. */
void srv_h2_filter(struct srv_conn *conn);
/* Whether libh2o takes input. It does not while much output is queued; nor once it has closed a
 * connection whose TLS has yet to say goodbye, and then nothing of it may be touched. */
bool srv_h2_is_open(const struct srv_conn *conn);

/* ---- h2_own.c ---- */

/* Writes what bodies have made due; true if anything was. */
bool srv_h2_emit(struct srv_conn *conn, struct st_h2o_http2_conn_t *h2o);

/* ---- h2_length.c ---- */

/* How many heads libh2o has answered by itself on this thread since it was asked last, because they
 * were malformed. */
unsigned srv_h2_take_malformed(void);
/* How many lengths were announced by the head that libh2o has read last on this thread. */
unsigned srv_h2_n_lengths(void);
