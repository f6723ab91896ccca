/* All numbers of a running server at one moment, and the two forms they are shown in.
 *
 * Owns:    the caller owns struct srv_snapshot; texts are malloc'd and the caller's.
 * Threads: a snapshot is taken on any thread, but may block: on a worker.
 * Blocks:  srv_snapshot_take for locks of the store; the writers never.
 */
#pragma once

#include <stdbool.h>

#include "server/front.h"
#include "server/latency.h"

#include "api/gyre.h"

struct srv_access_log;
struct srv_pool;

/* What the numbers are of; what is NULL is shown as zeros. */
struct srv_snapshot_sources {
    const struct srv_front *front;
    struct srv_pool *pool;
    struct gyre_store *store;
    const struct srv_access_log *access_log;
    uint64_t begun_ms; /* CLOCK_MONOTONIC */
    uint64_t reloads;
    uint64_t reloads_refused;
    bool is_failing;
};

struct srv_snapshot {
    struct srv_front_stats loops;
#define SRV_READ(name, type, help) uint64_t name;
#include "server/counters.def"
    struct gyre_stats store; /* zeros without one */
    struct gyre_pool_info pools[GYRE_POOLS_MAX];
    size_t n_pools;
    const char *state; /* static: "starting", "ready", "draining" or "failing" */
    const struct srv_front *front;
    struct gyre_store *store_handle; /* NULL: not open */
};

/* A row of the lists of counters. */
struct srv_number {
    const char *name;
    const char *help;
    bool is_counter;
    uint64_t value;
};

void srv_snapshot_take(const struct srv_snapshot_sources *sources,
                       struct srv_snapshot *snapshot_out);

enum srv_snapshot_state {
    SRV_STATE_STARTING,
    SRV_STATE_READY,
    SRV_STATE_DRAINING,
    SRV_STATE_FAILING
};

/* Which state a server is in, from what it takes no snapshot to know. */
enum srv_snapshot_state srv_snapshot_state(const struct srv_snapshot_sources *sources);
const char *srv_snapshot_state_name(enum srv_snapshot_state state);

/* Fills in the rows of counters.def in their order; returns how many there are. */
size_t srv_snapshot_numbers(const struct srv_snapshot *snapshot, struct srv_number *rows_out,
                            size_t max);
/* The same for the store's. */
size_t srv_snapshot_store_numbers(const struct srv_snapshot *snapshot, struct srv_number *rows_out,
                                  size_t max);
/* And those of one pool. */
size_t srv_snapshot_pool_numbers(const struct gyre_pool_info *pool, struct srv_number *rows_out,
                                 size_t max);

enum { SRV_NUMBERS_MAX = 256 };

/* Prometheus' text form (version 0.0.4), terminated; NULL without memory. */
char *srv_metrics_text(const struct srv_snapshot *snapshot, size_t *len_out);

/* The status document, terminated; NULL without memory. */
char *srv_status_text(const struct srv_snapshot *snapshot, size_t *len_out);
