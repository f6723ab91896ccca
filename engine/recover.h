/* Making a stripe usable after opening: runtime state from segment table and directory, and
 * documents that the directory on disk does not know yet.
 *
 * Every number read is checked first; bytes that make no sense lead to misses, never to an error.
 *
 * Threads: one; nothing else uses the stripe. Blocks: for the disk. Keeps: E47, E48.
 */
#pragma once

#include "engine/store.h"

/* What the last process left. */
enum eng_recovery {
    ENG_RECOVER_CLEAN,  /* it closed the store: header and directory are exact */
    ENG_RECOVER_KILLED, /* it died, the system went on: the page cache kept the directory exact, the
                           header is old */
    ENG_RECOVER_POWER, /* the system stopped: pages of directory and data are new or old, one by one
                        */
};

/* Documents newer than a stripe's header, in the order of their serials. */
struct eng_newer {
    uint64_t *offsets; /* units; owned */
    size_t n;
};

/* Rebuilds the stripe's runtime state; rt->segments holds the header's segment table. With POWER
 * the announced segments are read whole: parts newer than the header are found again, and objects
 * and deletions are listed in *newer_out, the caller's to hand on or to free. NO_MEMORY. */
GYRE_MUST_USE gyre_err eng_recover_stripe(
    struct eng_stripe *stripe, const struct eng_stripe_header *header, enum eng_recovery how,
    void (*progress)(void *data, const char *what, uint64_t done, uint64_t total), void *data,
    struct eng_newer *newer_out);
/* Enters the listed objects and makes the deletions again, once all stripes are recovered: a HEAD
 * that lacks a part leaves an older object where it is. Frees and empties the list. */
void eng_recover_objects(struct eng_stripe *stripe, struct eng_newer *newer);
