/* What the steps of a stripe's recovery share. Private to recover.c, confirm.c, rollforward.c,
 * apply.c, rings.c.
 *
 * Threads: one. Blocks: for the disk. Keeps: E47, E48.
 */
#pragma once

#include "engine/directory.h"
#include "engine/recover.h"

/* What the documents of a segment told. */
struct eng_segment_seen {
    bool announced; /* may hold documents newer than the header */
    bool used;      /* a document that counts lies in it */
    uint8_t pool;
    uint64_t newest;     /* serial */
    uint64_t newest_end; /* units: end of that document's extent */
    uint64_t oldest_new; /* lowest serial newer than the header; UINT64_MAX: none */
    uint64_t new_end;    /* units: where the last document newer than the header ends */
};

struct eng_recovering {
    struct eng_stripe *stripe;
    const struct eng_stripe_header *header;
    enum eng_recovery how;
    struct eng_segment_seen *seen; /* [n_segments] */
    uint64_t max_serial;
    void (*progress)(void *data, const char *what, uint64_t done, uint64_t total);
    void *progress_data;
};

/* A document header whose checksum, lengths, pool, epoch and stripe are right, and where its key
 * belongs. */
struct eng_known_doc {
    struct eng_doc doc;
    struct eng_place place;
    uint64_t offset, units; /* in ENG_UNIT */
};

/* Reads the header at an offset; false if there is no such document. */
bool eng_known_doc_read(const struct eng_recovering *r, uint64_t offset_units,
                        struct eng_known_doc *known_out);
/* The same for a header in memory. */
bool eng_known_doc_check(const struct eng_recovering *r, const struct eng_doc *doc,
                         uint64_t offset_units, struct eng_known_doc *known_out);
/* Whether an entry in this slot can be the document's. */
bool eng_known_doc_owns(const struct eng_known_doc *known, uint32_t slot, uint64_t entry);
/* Kind of directory entry of a document type; EMPTY: it has none. */
enum eng_kind eng_kind_of_type(uint16_t type);
/* Notes a document that counts in what is known of its segment. */
void eng_segment_note(struct eng_recovering *r, const struct eng_known_doc *known);

/* Compares the entries of a segment with the headers they lead to: removes those that have none,
 * and gives the others their exact lengths. */
void eng_confirm_segment(struct eng_recovering *r, uint32_t segment);

/* Reads the announced segments whole. Entries there without an intact document go; intact parts
 * newer than the header are applied in the order of their serials, the other documents listed.
 * NO_MEMORY; *newer_out is the caller's either way. */
GYRE_MUST_USE gyre_err eng_roll_forward(struct eng_recovering *r, struct eng_newer *newer_out);

/* Enters an intact document, or makes a deletion again, unless the directory has a newer document
 * of the key, or it is a HEAD that lacks parts. Needs the alloc lock. */
void eng_apply(const struct eng_recovering *r, uint64_t offset_units);

/* Makes the rings from the segment table and what was seen. NO_MEMORY. */
GYRE_MUST_USE gyre_err eng_rings_build(struct eng_recovering *r);
