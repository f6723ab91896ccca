/* Visiting the objects of a pool, all of them or the newer ones.
 *
 * Threads: any. Blocks: for cold data. Allocates: offsets of one segment's documents.
 */
#pragma once

#include "engine/store.h"

#include "api/gyre.h"

/* What is new enough to be visited. */
struct api_newer {
    uint64_t serials[ENG_MAX_STRIPES]; /* documents up to here are not */
    /* Whether a segment of the main pool can have newer ones; the alloc lock is not held. */
    bool (*may_hold)(const struct api_newer *newer, const struct eng_stripe *stripe,
                     uint32_t segment);
};

/* Visits the records of uploads and of their parts. Inside a call. */
GYRE_MUST_USE gyre_err api_each_upload(struct gyre_store *store,
                                       bool (*visit)(void *data, const struct gyre_handle *handle),
                                       void *data);
/* gyre_each inside a call; `newer` NULL visits everything. */
GYRE_MUST_USE gyre_err api_each(struct gyre_store *store, enum gyre_pool pool,
                                const struct api_newer *newer,
                                bool (*visit)(void *data, const struct gyre_handle *handle),
                                void *data);
