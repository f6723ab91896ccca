/* The role of a listener that stands in front of an origin: a cache after RFC 9111.
 *
 * Owns:    a site owns its fetcher. Store and pool are the caller's and outlive it.
 * Threads: srv_site_start on loops; the rest on the main thread.
 * Blocks:  srv_site_destroy, for the fetcher's thread.
 */
#pragma once

#include "server/exchange.h"
#include "server/http/fetch.h"

struct gyre_store;
struct srv_pool;
struct srv_site;

struct srv_site_config {
    struct gyre_store *store;
    struct srv_pool *pool;
    const char *origin; /* "http://host:port" */
    struct srv_fetch_limits limits;
};

extern const struct srv_role srv_site_role;

/* Whether `text` is http or https, "://", a host and perhaps a port, and nothing else. */
bool srv_site_origin_valid(const char *text);

/* NULL without memory or thread. */
struct srv_site *srv_site_create(const struct srv_site_config *config);
/* The server ends in `ms` milliseconds: what is asked of the origin is broken off by then, what
 * nobody waits for at once. NULL is allowed. */
void srv_site_drain(struct srv_site *site, uint64_t ms);
/* NULL is allowed. All exchanges must have ended. */
void srv_site_destroy(struct srv_site *site);

/* struct srv_handler.start; `site` is NULL as long as the store is opened. */
void srv_site_start(void *site, struct srv_exchange *ex);
