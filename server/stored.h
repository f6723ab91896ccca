/* The bytes of a stored object on their way to a client, straight from the mapped file.
 *
 *   next -> READY      the bytes are in memory and verified
 *   next -> WAIT       they are not: the store brings a window in, then the front is woken
 *   next -> FAILED     what lies there is not what was stored, or cannot be read
 *
 * Owns:    a source owns its handle, and itself; both end at destroy, or when the job that is out
 *          then is done.
 * Threads: the exchange's loop; populating on the store's threads, or a worker when those have
 * much to do.
 * Blocks:  never on the loop.
 * Allocates: itself.
 */
#pragma once

#include "api/gyre.h"
#include "server/exchange.h"

struct srv_pool;

enum {
    SRV_STORED_SEND_MAX = 1 << 20,     /* longest piece lent at once: progress is seen this often */
    SRV_STORED_WINDOW_BYTES = 4 << 20, /* brought into memory by one job */
};

/* A source of body bytes [offset, offset + len) of `handle`, len > 0. On success the handle is
 * taken and *handle emptied; NULL without memory. */
struct srv_source *srv_stored_create(struct srv_exchange *ex, struct srv_pool *pool,
                                     struct gyre_handle **handle, uint64_t offset, uint64_t len);
