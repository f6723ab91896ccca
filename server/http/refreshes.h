/* Which stored responses are being refreshed by this process.
 *
 * Owns:    its entries, until srv_refresh_end.
 * Threads: any; a lock of its own. Blocks: never for long.
 * Allocates: an entry for each refresh under way.
 */
#pragma once

#include "api/gyre.h"

struct srv_refreshes;

/* NULL without memory. */
struct srv_refreshes *srv_refreshes_create(void);
/* NULL is allowed. All refreshes must have ended. */
void srv_refreshes_destroy(struct srv_refreshes *refreshes);

/* False if one of `key` is under way, or without memory: the caller starts none. Otherwise it calls
 * srv_refresh_end, whatever comes of it. */
bool srv_refresh_begin(struct srv_refreshes *refreshes, const struct gyre_key *key);
void srv_refresh_end(struct srv_refreshes *refreshes, const struct gyre_key *key);
