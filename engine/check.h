/* Walking a whole open store and asserting what must hold: the oracle of tests and of `gyre check`.
 *
 * Threads: any; one check at a time makes sense. Blocks: for the disk, and holds a stripe's locks
 * while its index, and then one segment after the other, is walked, so writes there wait.
 * Allocates: some bytes per document of a segment, and 40 per object stored in parts.
 */
#pragma once

#include "engine/store.h"

/* What was found. */
struct eng_check_report {
    uint64_t documents;          /* directory entries walked */
    uint64_t documents_bad;      /* of these, damaged: they read as misses */
    uint64_t objects;            /* whole, with all their parts */
    uint64_t objects_incomplete; /* lacking a part, as eviction leaves them: they read as misses */
    uint64_t live_bytes;         /* extents of the documents that are not damaged */
    uint64_t violations;         /* invariants of the index that do not hold: a fault of ours */
};

/* Checks index, rings and document headers, with `bodies` all checksums too. `say` gets a line for
 * each finding, at most some hundred (NULL: none). Damaged documents of objects stored in parts are
 * dropped on the way, as a reader would. OK: sound; objects may be incomplete. DAMAGED: documents
 * are, or invariants do not hold. NO_MEMORY. */
GYRE_MUST_USE gyre_err eng_check(struct eng_store *store, bool bodies,
                                 void (*say)(void *data, const char *line), void *data,
                                 struct eng_check_report *report_out);
