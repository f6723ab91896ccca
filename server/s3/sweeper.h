/* What goes through buckets with lifecycle rules from time to time and removes what has expired;
 * and looks at all buckets anew after some were changed.
 *
 * Owns:    a thread.
 * Threads: create and destroy on one thread; ask on any.
 * Blocks:  destroy, until the object that is looked at is done with.
 */
#pragma once

#include "api/gyre.h"

struct srv_names;
struct srv_s3_buckets;
struct srv_s3_sweeper;

struct srv_s3_sweeper_config {
    struct gyre_store *store;
    struct srv_s3_buckets *buckets;
    struct srv_names *names;
    uint32_t day_s; /* how long rules take a day for; 0: a day */
};

/* NO_MEMORY: no thread or no memory. */
GYRE_MUST_USE gyre_err srv_s3_sweeper_create(const struct srv_s3_sweeper_config *config,
                                             struct srv_s3_sweeper **sweeper_out);
/* Asks it to look at all buckets, within a second, so that requests need not look them up one by
 * one for long. Never blocks for long. */
void srv_s3_sweeper_ask(struct srv_s3_sweeper *sweeper);
/* NULL is allowed. */
void srv_s3_sweeper_destroy(struct srv_s3_sweeper *sweeper);
