/* Writing documents: reserve under a short lock, fill without one, publish with one store.
 *
 *   PART:  NONE -> FILLING [eng_part_begin] -> FINISHED [eng_part_finish] -> LIVE [eng_commit]
 *          FILLING, FINISHED -> NONE [eng_part_abort]
 *
 * Threads: any; an eng_part belongs to one thread at a time. Blocks: writes into the page cache;
 * cleans up to a lap itself when the clean space is used up. Keeps: E8, E9, E11, E12.
 */
#pragma once

#include "engine/reader.h"

enum eng_condition { ENG_ALWAYS, ENG_IF_ABSENT, ENG_IF_SERIAL };

/* What a document's header says; the rest (serial, CRCs, epoch) is filled in here. */
struct eng_spec {
    const uint8_t *key; /* 32 bytes, borrowed for the call */
    uint16_t type, flags;
    uint64_t total_len, object_serial, etag_hash;
    uint32_t parts, created, expires, pin_until, alt_id;
    uint16_t tenant;
    uint8_t pool, retention;
    bool held;              /* PART: is kept until somebody lets go of it (hold.h) */
    const uint64_t *labels; /* by which it can be banned (ban.h); borrowed for the call */
    uint32_t n_labels;      /* at most ENG_DOC_LABELS_MAX */
    uint64_t stored_ticks;  /* filled in by eng_commit (ban.h) */
};

/* A stretch of log that belongs to one writer until it is published or aborted. */
struct eng_extent {
    struct eng_stripe *stripe; /* NULL: empty */
    uint64_t start, units;     /* whole pages */
    uint32_t reservation;
    uint8_t ring;
};

/* A PART being filled: page of header and chunk CRCs first, body behind. */
struct eng_part {
    struct eng_extent extent;
    uint8_t key[32]; /* derived */
    uint64_t body_capacity, body_len, serial;
    uint32_t crc, chunk_crc; /* of the whole chunks so far; of the chunk being filled */
    uint32_t n_chunks;
    uint8_t
        *pages; /* owned: the first page as it will be, then the bytes of a last, unfilled page */
    uint32_t part_no, attempt, sub;
    uint64_t epoch;         /* of its pool, when it was begun: where its key belongs */
    bool keep, held;        /* its entry says that it must not be evicted; as eng_spec.held */
    struct eng_slot record; /* FINISHED: what its slot will say */
    bool published;         /* was in the directory once */
};

/* A new object serial for `key`'s stripe. */
uint64_t eng_object_serial(struct eng_store *store, uint8_t pool, const uint8_t key[32]);
/* The directory key of a part. */
void eng_part_key(const uint8_t key[32], uint64_t object_serial, uint32_t part_no, uint32_t attempt,
                  uint32_t sub, uint8_t out[32]);

/* Longest body of one PART, and longest meta + body of a small document, in this store. */
uint64_t eng_part_max_bytes(const struct eng_store *store);
uint64_t eng_small_max_bytes(const struct eng_store *store);
/* Longest object that can be held at all. */
uint64_t eng_object_max_bytes(const struct eng_store *store);

/* Reserves room for a PART of up to `capacity` bytes, at most eng_part_max_bytes. NO_SPACE, BUSY,
 * IO, NO_MEMORY, TOO_LARGE. Empty unless OK. */
GYRE_MUST_USE gyre_err eng_part_begin(struct eng_store *store, const struct eng_spec *object,
                                      uint32_t part_no, uint32_t attempt, uint32_t sub,
                                      uint64_t capacity, struct eng_part *part_out);
/* Appends bytes, checksummed while hot in cache and written through. LENGTH beyond the capacity.
 * IO. */
GYRE_MUST_USE gyre_err eng_part_write(struct eng_part *part, const void *bytes, size_t len);
/* Pads the tail, writes header and chunk table, and gives back what was reserved too much: the
 * extent now holds a valid document that nothing refers to. part->crc is then that of the body. IO.
 */
GYRE_MUST_USE gyre_err eng_part_finish(struct eng_part *part, const struct eng_spec *object);
/* Gives the extent back; an empty part is allowed, and left. */
void eng_part_abort(struct eng_part *part);
/* Frees the memory of a part whose extent is a parent process's. */
void eng_part_forget(struct eng_part *part);

/* Everything one object's publication needs. */
struct eng_commit {
    struct eng_spec spec; /* DOC, HEAD or VECTOR */
    const void *meta;
    size_t meta_len;
    const void *body; /* the document's own body: the object's bytes, or a HEAD's part rows */
    size_t body_len;
    struct eng_part *parts; /* finished; published first, taken over (and emptied) on success */
    size_t n_parts;
    enum eng_condition condition;
    uint64_t if_serial;
    uint32_t now;    /* Unix seconds: an expired object counts as absent */
    uint64_t now_ms; /* for bans; 0: `now` */
    bool keeps_age;  /* spec.stored_ticks are given: the object was stored before */
    bool sync;
};

/* Writes the document, then publishes parts and document if the condition holds; the replaced
 * object's parts leave with it. On failure the parts are still the caller's to abort. OK, EXISTS,
 * CHANGED, NOT_FOUND, NO_SPACE, BUSY, IO, TOO_LARGE. IO after `sync`: published, but perhaps not
 * durable. */
GYRE_MUST_USE gyre_err eng_commit(struct eng_store *store, struct eng_commit *commit,
                                  uint64_t *serial_out);

/* Removes the object and its parts and records a tombstone. OK, NOT_FOUND, CHANGED, NO_SPACE, BUSY,
 * IO. */
GYRE_MUST_USE gyre_err eng_delete(struct eng_store *store, uint8_t pool, const uint8_t key[32],
                                  enum eng_condition condition, uint64_t if_serial, bool sync);
