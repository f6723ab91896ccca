/* Bytes of a response that another request of this process is fetching, on their way to one more
 * client, as they come.
 *
 *   next -> READY      what has come
 *   next -> WAIT       nothing yet: the front is woken by whoever fetches
 *   next -> END        it was of unknown length, and is stored
 *   next -> FAILED     it will not go on
 *
 * Owns:    a source owns what it follows, and itself.
 * Threads: the exchange's loop. Blocks: never. Allocates: itself, 64 KiB.
 */
#pragma once

#include "api/gyre.h"
#include "server/exchange.h"

/* `is_unbounded`: the response says nothing of its length. NULL without memory; on success *follow
 * is taken and emptied. */
struct srv_source *srv_follow_create(struct srv_exchange *ex, struct gyre_follow **follow,
                                     bool is_unbounded);
