/* What the parts of one step of the hand share. Private to cleaner.c, judge.c, copy.c.
 *
 * Threads: one, which holds the clean lock. Keeps: E72.
 */
#pragma once

#include "engine/directory.h"
#include "engine/log.h"
#include "engine/pages.h"
#include "engine/policy.h"

#define ENG_GRANULE_UNITS (ENG_GRANULE / ENG_UNIT)
#define ENG_BATCH_UNITS ((UINT64_C(4) << 20) / ENG_UNIT)

/* Documents after which a step ends where it can; and those it has places for, since it cannot end
 * inside a slab, 256 KiB of documents of 128 bytes. */
enum { ENG_BATCH_ENOUGH = 128, ENG_BATCH_DOCUMENTS = 2560 };

enum eng_fate {
    ENG_FATE_GOES,
    ENG_FATE_STAYS,
    ENG_FATE_COPIED, /* to M; its old place is free then */
};

/* A document in the hand's way. */
struct eng_met {
    uint64_t offset, entry;
    uint32_t units, slot;
    uint8_t fate;  /* enum eng_fate */
    bool settled;  /* nobody is asked: it never leaves, or lies under a pin or a reservation */
    bool promoted; /* COPIED: from S */
    bool spent;    /* its time is over */
    bool in_main;
};

/* One step in progress. */
struct eng_batch {
    struct eng_stripe *stripe;
    struct eng_ring *ring;
    uint8_t ring_id;
    bool hard; /* nobody stays for being hit */
    uint32_t segment;
    uint64_t start, segment_end; /* units */
    uint64_t covered;            /* documents met end here or before */
    uint64_t end;                /* once known: no document lies across it */
    uint32_t n;
    uint32_t n_copied; /* documents to be copied */
    uint64_t evicted, evicted_units, hops, expired;
    uint32_t now;           /* Unix seconds */
    uint64_t settled_pages; /* busy, and waiting will not change it: slabs, documents that never
                               leave */
    struct eng_pages pages;
    struct eng_met met[ENG_BATCH_DOCUMENTS]; /* by offset */
};

/* Decides what becomes of all documents met: removes those that go from the directory, but for
 * PARTs, and marks the pages of those that stay. Pages of pins and reservations are marked before.
 * Needs the alloc lock too. */
void eng_judge_locked(struct eng_batch *batch);
/* Removes the PARTs that go, each after the HEAD that names it: nobody finds an object that is not
 * all there. The alloc lock must not be held. */
void eng_evict_parts(struct eng_batch *batch);

/* Copies the documents whose fate that is to M and gives their entries the new place. What cannot
 * be copied goes. The alloc lock must not be held; may clean M. */
void eng_copy_batch(struct eng_batch *batch);

/* Removes a document the hand takes and lets the ghost know. Needs the alloc lock. */
void eng_evict_locked(struct eng_batch *batch, const struct eng_met *met);
/* The same for a PART, and its HEAD before it; where the HEAD's stripe is not to be locked, because
 * a process was stopped in it, the PART stays for this lap. The alloc lock must not be held. */
void eng_evict_part(struct eng_batch *batch, const struct eng_met *met);

/* Gives documents that lie ahead of the hand their exact lengths, if they are worth keeping and
 * theirs are estimates. The alloc lock must not be held. */
void eng_measure(struct eng_stripe *stripe, uint64_t start, uint64_t end);
