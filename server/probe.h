/* Whether the store can be read and written, found out by doing both.
 *
 * Threads: any; one probe runs at a time, and who comes meanwhile waits for its result.
 * Blocks:  for the disk.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "api/gyre.h"

/* A good result holds for so long, so that those who ask often do not wear the disk; a bad one is
 * looked into again each time. */
enum { SRV_PROBE_HOLDS_MS = 5000 };

/* [w] under `lock` */
struct srv_probe {
    pthread_mutex_t lock;
    uint64_t good_until_ms; /* [w] CLOCK_MONOTONIC */
};

void srv_probe_init(struct srv_probe *probe_out);
void srv_probe_fini(struct srv_probe *probe);

/* Stores a few bytes under a key that is nobody's, has them brought to the disk, looks for them and
 * deletes them. Any error means that clients' requests fail, too, but those that say that there is
 * much to do (BUSY, NO_SPACE, QUOTA, NO_MEMORY), which are OK here. CLOSED when the store is being
 * closed. */
GYRE_MUST_USE gyre_err srv_probe_run(struct srv_probe *probe, struct gyre_store *store);
