/* One look for an object that may have to be fetched, and what it has to wait for.
 *
 *   api_seek_init -> api_seek_once -> [wait] -> api_seek_once -> ... -> api_leave
 *
 * Threads: one at a time. Blocks: as a get.
 */
#pragma once

#include "api/handle.h"
#include "api/miss.h"

#define API_SEEK_NS UINT64_C(50000000) /* between two looks whether the store is being closed */

enum api_wait {
    API_WAIT_NOT,
    API_WAIT_HERE,  /* for seek->flight, of which a reference is held */
    API_WAIT_THERE, /* for seek->row, of another process */
};

struct api_seek {
    struct gyre_store *store;
    uint32_t shard;
    struct gyre_key key;
    uint32_t now;
    unsigned flags;
    uint8_t pool;
    bool looked; /* before: then it does not count again */
    struct api_flight *flight;
    struct eng_flight_ref row;
};

/* Enters the store. INVALID, CLOSED. */
GYRE_MUST_USE gyre_err api_seek_init(struct api_seek *seek, struct gyre_store *store,
                                     const struct gyre_key *key, uint32_t now, unsigned flags);
/* OK and API_WAIT_NOT: *miss_out says what came of it. OK else: nothing yet. Errors as a get's, but
 * for a miss. */
GYRE_MUST_USE gyre_err api_seek_once(struct api_seek *seek, struct gyre_miss *miss_out,
                                     enum api_wait *wait_out);
/* How the flight that is waited for stands: OK, *miss_out says what comes of it; NOT_FOUND, it has
 * ended, look again; WOULD_BLOCK; NO_MEMORY. Holds its lock. */
GYRE_MUST_USE gyre_err api_seek_here_locked(struct api_seek *seek, struct gyre_miss *miss_out);
/* Ends that wait, without the lock. */
void api_seek_end_here(struct api_seek *seek, const struct gyre_miss *miss);
