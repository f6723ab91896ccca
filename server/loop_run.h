/* Making, running and stopping event loops: the front's side of server/loop.h.
 *
 * Owns:    the caller owns loops and their environment; the environment must outlive them.
 * Threads: _want and _add_stats on any thread; create and destroy on one thread; _run on the
 * thread that becomes the loop's.
 * Blocks:  srv_loop_run, until the loop has stopped.
 *
 *   WAIT -> RUN -> RETIRE -> DRAIN -> STOP [srv_loop_want; states may be left out]
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct srv_access_log;
struct srv_buf_pool;
struct srv_clients;
struct srv_front_config;
struct srv_front_stats;
struct srv_latency_total;
struct srv_loop;
struct srv_setting;
struct st_h2o_globalconf_t;

/* What all loops of a front share. [c] const while loops run, but for the atomic. */
struct srv_loop_env {
    const struct srv_setting *setting; /* what loops begin with */
    struct srv_buf_pool *bufs;
    struct srv_clients *clients;
    struct st_h2o_globalconf_t *h2o;
    unsigned n_loops;
    bool is_h2_buffered;               /* libh2o is not the one the gate was built for */
    struct srv_access_log *access_log; /* NULL: none */
    _Atomic size_t n_conns;            /* open, all loops, without the next */
    _Atomic size_t n_refused;          /* open only to be told that they are not wanted */
};

enum srv_loop_state {
    SRV_LOOP_WAIT, /* only admin listeners accept */
    SRV_LOOP_RUN,
    SRV_LOOP_RETIRE, /* the listening sockets are another process's; connections are asked to end */
    SRV_LOOP_DRAIN,  /* no new connections; ends when the last one has */
    SRV_LOOP_STOP,   /* ends at once */
};

/* Fills in env->h2o, and its release. */
void srv_loop_env_init_h2o(struct srv_loop_env *env, const struct srv_front_config *config);
void srv_loop_env_fini_h2o(struct srv_loop_env *env);

/* A loop that listens on its share of every listener; NULL without memory or descriptors. */
struct srv_loop *srv_loop_create(struct srv_loop_env *env, unsigned index);

/* Runs the loop until it stops. True when no connection was cut. */
bool srv_loop_run(struct srv_loop *loop);

/* One round of events, waiting up to `wait_ms` for them: for who runs a loop by hand. */
void srv_loop_turn(struct srv_loop *loop, int wait_ms);

/* Asks for a later state; asking for an earlier one changes nothing. */
void srv_loop_want(struct srv_loop *loop, enum srv_loop_state state);

/* Goes by another setting from now on; on the loop's thread. */
void srv_loop_follow(struct srv_loop *loop, const struct srv_setting *setting);

/* Milliseconds since the loop last looked for events; 0 before it runs. */
uint64_t srv_loop_lag_ms(const struct srv_loop *loop);

/* Delivers what is still posted, then frees the loop. */
void srv_loop_destroy(struct srv_loop *loop);

/* Adds what the loop has seen of one kind of request (server/latency.h). */
void srv_loop_add_latency(const struct srv_loop *loop, unsigned kind,
                          struct srv_latency_total *total_inout);

/* Adds this loop's counters. */
void srv_loop_add_stats(const struct srv_loop *loop, struct srv_front_stats *stats_inout);
