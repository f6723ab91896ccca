/* Reading every document from the medium and comparing its checksums, beside whoever uses the
 * store: no lock is taken, nothing is written, and the page cache is gone past where the file
 * system lets us, because a scrub is about the medium and reads each byte once.
 *
 * Why no lock is needed: the bytes of a document do not change while its entry stands. Entries are
 * read from the directory, and one that is found damaged is looked at again before it is reported;
 * what has left meanwhile, or comes after the look at its bucket, is not judged.
 *
 * Threads: any. Blocks: for the disk. Allocates: 16 bytes a document of a stripe, and a buffer.
 */
#pragma once

#include "engine/store.h"

struct eng_scrub {
    void (*say)(void *data, const char *line); /* a line for each damaged one; NULL: none */
    void (*progress)(void *data, uint64_t done_bytes, uint64_t total_bytes); /* NULL: none */
    void *data;
    uint64_t bytes_per_second; /* at most; 0: as fast as the disk */
};

struct eng_scrub_report {
    uint64_t documents;     /* read whole and judged */
    uint64_t documents_bad; /* of these, damaged */
    uint64_t unreadable;    /* of those, for an error of the disk */
    uint64_t gone;          /* left or were replaced meanwhile, or belong to a purged pool */
    uint64_t bytes;         /* read */
};

/* OK: all that was judged is what was stored. DAMAGED. NO_MEMORY, IO (a data file cannot be opened
 * for reading). */
GYRE_MUST_USE gyre_err eng_scrub(struct eng_store *store, const struct eng_scrub *how,
                                 struct eng_scrub_report *report_out);
