/* Finding a document and proving it is the one.
 *
 *   look up candidates -> pin one -> look at its entry again -> header -> key -> checksums, once
 *
 * Lends:   an eng_ref's pointers stay valid, and the bytes unchanged, until eng_ref_release.
 * Threads: any; an eng_ref belongs to one thread at a time.
 * Blocks:  on cold pages, unless ENG_NOWAIT.
 * Allocates: nothing. Keeps: E1, E5, E10, E13.
 */
#pragma once

#include "engine/directory.h"
#include "engine/doc.h"

enum {
    ENG_NOWAIT = 1,   /* WOULD_BLOCK instead of touching a page that may be absent */
    ENG_NO_COUNT = 2, /* no hit or miss is counted (maintenance, conditions) */
    ENG_ANY_AGE = 4,  /* expired documents too */
    ENG_HEADER = 8,   /* the header is enough: only a HEAD's body is looked at and verified */
};

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
    uint64_t verified_to; /* body bytes [0, verified_to) are verified by eng_verify on this ref */
    uint32_t slot, slot_word, pin;
    bool verified; /* body and meta checksums hold; always true without ENG_HEADER but for PARTs */
};

/* What a search saw: lets a writer find out under the lock whether the answer still stands. */
struct eng_seen {
    struct eng_stripe *stripe;
    struct eng_place place;
    struct eng_candidates candidates;
};

/* Finds, pins and checks. Documents other than PART are verified whole before this returns; PARTs
 * by eng_verify. A damaged document is removed, counted, and NOT_FOUND. OK, NOT_FOUND, EXPIRED
 * (`now` has reached doc->expires; the ref is empty), WOULD_BLOCK, BUSY (no pin is free). */
GYRE_MUST_USE gyre_err eng_find(struct eng_store *store, const struct eng_want *want, uint32_t now,
                                unsigned flags, struct eng_ref *ref_out);
/* The same, and what was seen. */
GYRE_MUST_USE gyre_err eng_find_seen(struct eng_store *store, const struct eng_want *want,
                                     uint32_t now, unsigned flags, struct eng_seen *seen_out,
                                     struct eng_ref *ref_out);
/* Gives the pin back; an empty ref is allowed. */
void eng_ref_release(struct eng_ref *ref);

/* Whether the directory has an entry that could be it: about 1 in 5,000 absent keys says yes. Never
 * touches data. */
bool eng_probable(struct eng_store *store, const struct eng_want *want);
/* Whether the very document that had `entry` is in the directory still and where it was. Never
 * touches data. A wrong yes needs another document of an equal tag, size class and serial at the
 * same offset. */
bool eng_holds(struct eng_store *store, const struct eng_want *want, uint64_t entry);
/* Removes the referenced document from the directory unless it was replaced meanwhile. */
void eng_drop(struct eng_ref *ref);

/* ---- Bodies (verify.c) ---- */

/* Whether body bytes [off, off + len) are in memory, without touching them. */
bool eng_resident(const struct eng_ref *ref, uint64_t off, uint64_t len);
/* Asks the disk for body bytes [off, off + len) and goes on. */
void eng_read_ahead(const struct eng_ref *ref, uint64_t off, uint64_t len);
/* Brings them in and maps them. IO. */
GYRE_MUST_USE gyre_err eng_populate(const struct eng_ref *ref, uint64_t off, uint64_t len);
/* Whether `bytes`, read from where chunk `chunk` of a PART lies, are what was stored there. */
bool eng_chunk_holds(const struct eng_ref *ref, uint64_t chunk, const void *bytes);
/* For a document whose bytes are not what was stored: counts and removes it. DAMAGED. */
GYRE_MUST_USE gyre_err eng_damaged(struct eng_ref *ref);
/* Checks what of a PART's chunks [off, off + len) touch and is not verified yet; marks the slot
 * verified once verified_to has reached the end. DAMAGED: the document was removed. RANGE. */
GYRE_MUST_USE gyre_err eng_verify(struct eng_ref *ref, uint64_t off, uint64_t len);
