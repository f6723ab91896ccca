/* Looking at the medium: whether every byte that is stored is still what was stored. Included by
 * gyre.h.
 *
 * Threads: any; others go on meanwhile, and wait for nothing.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* How to look. Fill with gyre_verify_init. */
struct gyre_verify_options {
    size_t struct_size;
    uint64_t bytes_per_second;                    /* at most; 0: as fast as the disk */
    void (*report)(void *data, const char *line); /* a line for each damaged document, some hundred
                                                     at most; NULL: none */
    void (*progress)(void *data, const char *what, uint64_t done, uint64_t total); /* NULL: none */
    void *data;
};

GYRE_API void gyre_verify_init(struct gyre_verify_options *options);

/* What gyre_verify found. */
struct gyre_verify_report {
    size_t struct_size;     /* set by the caller */
    uint64_t documents;     /* read whole: objects and their parts */
    uint64_t documents_bad; /* of these, not what was stored: they read as misses */
    uint64_t unreadable;    /* of those, for an error of the disk */
    uint64_t gone;          /* left the store before they were judged */
    uint64_t bytes;         /* read from the disk */
};

/* Reads all documents from the disk, past the page cache where that can be, and compares their
 * checksums. OK: all are what was stored. DAMAGED: see the report; readers find out for themselves,
 * too. INVALID, CLOSED, NO_MEMORY, IO. Blocks for as long as that takes; works on a store opened
 * with GYRE_OPEN_READONLY. */
GYRE_MUST_USE GYRE_API gyre_err gyre_verify(struct gyre_store *store,
                                            const struct gyre_verify_options *options,
                                            struct gyre_verify_report *report_out);

#ifdef __cplusplus
}
#endif
