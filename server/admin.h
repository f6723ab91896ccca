/* The admin role of a listener: what operators and their tools ask.
 *
 *   /metrics  all numbers in Prometheus' text form
 *   /status   the same and more as JSON
 *   /healthz  200 while the event loops turn, else 503
 *   /readyz   200 while requests are served and the store takes writes, else 503 with the reason
 *
 * Owns:    struct srv_admin is the caller's and outlives the front; what it points to may come
 *          later and is lent until srv_admin_stop.
 * Threads: srv_admin_start on loop threads; the others on the main thread.
 * Blocks:  never; numbers are collected on a worker.
 */
#pragma once

#include <pthread.h>

#include "server/exchange.h"
#include "server/probe.h"
#include "server/snapshot.h"

/* A loop that has not looked for events for so long is stuck. */
enum { SRV_ADMIN_LAG_MAX_MS = 15000 };

/* [w] under `lock` */
struct srv_admin {
    pthread_mutex_t lock;
    struct srv_snapshot_sources sources; /* [w] */
    struct srv_pool *pool;               /* runs the jobs */
    struct srv_probe probe;              /* by locks of its own */
};

extern const struct srv_role srv_admin_role;

/* Without front and store, which srv_admin_set_... bring. */
void srv_admin_init(struct srv_admin *admin_out, struct srv_pool *pool,
                    const struct srv_access_log *access_log);
void srv_admin_fini(struct srv_admin *admin);

void srv_admin_set_front(struct srv_admin *admin, const struct srv_front *front);
/* NULL once the store is about to be closed. */
void srv_admin_set_store(struct srv_admin *admin, struct gyre_store *store);
/* A reload was taken, or refused. */
void srv_admin_count_reload(struct srv_admin *admin, bool is_taken);

/* Handles one request; `data` is the struct srv_admin (the `start` of a struct srv_handler). */
void srv_admin_start(void *data, struct srv_exchange *ex);
