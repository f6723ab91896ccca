/* What the parts of a check share. Private to check.c, check_index.c, check_documents.c.
 *
 * Threads: one per check. Blocks: for the disk.
 */
#pragma once

#include "engine/check.h"
#include "engine/recover_internal.h"

/* The key of an object whose parts are to be looked up. */
struct eng_check_head {
    uint8_t key[32];
    uint8_t pool;
};

struct eng_checking {
    struct eng_store *store;
    bool bodies;
    void (*say)(void *data, const char *line);
    void *data;
    uint64_t said;
    struct eng_check_report *report;
    struct eng_check_head *heads;
    size_t n_heads, heads_capacity;
};

/* Reports a broken invariant by id, or a damaged document or object. `what` is a printf format. */
__attribute__((format(printf, 4, 5))) void eng_check_violated(struct eng_checking *c,
                                                              const struct eng_stripe *stripe,
                                                              const char *invariant,
                                                              const char *what, ...);
__attribute__((format(printf, 3, 4))) void eng_check_damaged(struct eng_checking *c,
                                                             const struct eng_stripe *stripe,
                                                             const char *what, ...);

/* Rings, segment table, runs, reservations, versions and slot lists of a stripe. Needs both its
 * locks. NO_MEMORY. */
GYRE_MUST_USE gyre_err eng_check_index(struct eng_checking *c, struct eng_stripe *stripe);
/* Every document of a stripe against its entry, its neighbours and, with bodies, its checksums.
 * Takes both locks for one segment at a time. NO_MEMORY. */
GYRE_MUST_USE gyre_err eng_check_documents(struct eng_checking *c, struct eng_stripe *stripe);
