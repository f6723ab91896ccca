/* Finding a document and proving it is the one: the read path of engine/README.md.
 *
 * Lends:   an eng_ref's pointers stay valid until eng_ref_release.
 * Threads: any; an eng_ref belongs to one thread at a time.
 * Blocks:  on cold pages, unless ENG_NOWAIT.
 * Allocates: nothing.
 */
#pragma once

#include "engine/directory.h"

enum { ENG_NOWAIT = 1, ENG_NO_COUNT = 2 }; /* NO_COUNT: no hit is counted (maintenance, conditions) */

/* Which document under a key: the object itself, or one of its parts. */
struct eng_want {
    const uint8_t *key; /* 32 bytes: of the directory */
    uint8_t pool;
    bool part;              /* PART with object_serial, else DOC, HEAD or VECTOR */
    uint64_t object_serial; /* for parts */
};

/* A pinned document. */
struct eng_ref {
    struct eng_stripe *stripe; /* NULL: empty */
    const struct eng_doc *doc; /* in the mapping; its fields are checked */
    const uint8_t *meta, *body;
    uint64_t body_file_off; /* of the body in the stripe's data file */
    uint64_t entry;
    uint32_t slot, slot_word, pin;
    bool verified; /* body and meta checksums hold. A small document is always verified by eng_find */
};

/* Finds, pins and checks. Documents other than PART are verified whole before this returns; PARTs by eng_verify. A damaged document is
 * removed, counted, and NOT_FOUND. OK, NOT_FOUND, EXPIRED (`now` past doc->expires; the ref is empty), WOULD_BLOCK, BUSY. */
GYRE_MUST_USE gyre_err eng_find(struct eng_store *store, const struct eng_want *want, uint32_t now, unsigned flags,
                                struct eng_ref *ref_out);
void eng_ref_release(struct eng_ref *ref);

/* Whether body bytes [off, off + len) are in memory, without touching them. */
bool eng_resident(const struct eng_ref *ref, uint64_t off, uint64_t len);
/* Brings them in. IO. */
GYRE_MUST_USE gyre_err eng_populate(const struct eng_ref *ref, uint64_t off, uint64_t len);
/* Checks what of a PART's chunks [off, off + len) touch; marks the slot verified after a whole pass. DAMAGED: the document was removed. */
GYRE_MUST_USE gyre_err eng_verify(struct eng_ref *ref, uint64_t off, uint64_t len);
/* Whether the directory has an entry that could be it: about 1 in 5,000 absent keys says yes. Never touches data. */
bool eng_probable(struct eng_store *store, const struct eng_want *want);
/* Removes the referenced document from the directory unless it was replaced meanwhile. */
void eng_drop(struct eng_ref *ref);
