/* Uploads in progress: facts of the meta pool that say which parts belong to an object to come.
 *
 *   upload: nothing -> OPEN [eng_upload_begin] -> COMPLETING [eng_upload_complete] -> gone
 *           COMPLETING -> OPEN [a condition did not hold; or a minute after the process died]
 *           OPEN -> gone [eng_upload_end]
 *
 * An upload is one document, each of its parts another, under keys that follow from the object's
 * key, the upload's id and the part's number; the bytes are PART documents of the main pool with
 * the keep bit (keep.h). A part's bytes are entered before its record, an object's HEAD before the
 * records go: so a crash leaves kept parts that no record names, or records of parts that an object
 * has already; a sweep settles the first, comparing with the object's table the second.
 *
 * Threads: any. Blocks: as writer.h. Keeps: E85, E86.
 */
#pragma once

#include <sys/uio.h>

#include "engine/writer.h"

#define ENG_UPLOAD_NUMBERS 10000u /* parts are numbered from 1 to here */

/* The body of an upload's document, and of each part's, where `n_rows` rows follow. 128 bytes. */
struct eng_upload_record {
    uint8_t key[32]; /* of the object */
    uint8_t id[16];
    uint64_t object_serial; /* that its parts carry */
    uint64_t length;        /* of the part */
    uint8_t md5[16];
    uint32_t number; /* 0: the upload itself */
    uint32_t n_rows;
    uint32_t completing_until; /* Unix seconds: COMPLETING before it */
    uint32_t crc;              /* of the part's bytes */
    uint16_t tenant;
    uint8_t retention, zero_[29];
};

/* Key of the record of a part; number 0: of the upload. */
void eng_upload_key(const uint8_t key[32], const uint8_t id[16], uint32_t number, uint8_t out[32]);
/* Whether a document is such a record; *record_out is a copy. */
bool eng_upload_read(const struct eng_ref *ref, struct eng_upload_record *record_out);

/* Writes the record of a new upload. `record` has key, id, tenant and retention. */
GYRE_MUST_USE gyre_err eng_upload_begin(struct eng_store *store, struct eng_upload_record *record,
                                        const struct iovec *meta, uint32_t created,
                                        uint32_t expires, uint64_t now_ms, bool sync);
/* Finds an upload or one of its parts, pinned. NOT_FOUND: it is not there, or its time is over. */
GYRE_MUST_USE gyre_err eng_upload_find(struct eng_store *store, const uint8_t key[32],
                                       const uint8_t id[16], uint32_t number, uint32_t now,
                                       struct eng_ref *ref_out,
                                       struct eng_upload_record *record_out);

/* A part that is ready: its PARTs are finished, `record` tells the rest. */
struct eng_upload_part {
    struct eng_upload_record record;
    struct iovec meta;
    struct eng_part *parts;
    const struct eng_part_row *rows; /* record.n_rows of them */
    uint64_t now_ms;
    bool sync;
};
/* Makes it the part of its number in place of the one there was, which is freed. Takes the parts
 * over when OK. NOT_FOUND: the upload is gone or being completed. NO_SPACE, QUOTA, BUSY, IO. */
GYRE_MUST_USE gyre_err eng_upload_put(struct eng_store *store, struct eng_upload_part *part,
                                      uint64_t *serial_out);

/* What an object is to consist of. */
struct eng_upload_choice {
    uint32_t number;
    uint64_t serial; /* 0: any */
};
/* Makes the object: `commit` has spec (key, times, labels), metadata, condition, now, now_ms and
 * sync. NOT_FOUND, RANGE (a part is not there), CHANGED, TOO_LARGE, and as eng_commit. */
GYRE_MUST_USE gyre_err eng_upload_complete(struct eng_store *store, const uint8_t id[16],
                                           const struct eng_upload_choice *choices, size_t n,
                                           struct eng_commit *commit, uint64_t *serial_out);
/* Ends an upload: its record goes first, then parts that no object has. NOT_FOUND, IO, NO_SPACE. */
GYRE_MUST_USE gyre_err eng_upload_end(struct eng_store *store, const uint8_t key[32],
                                      const uint8_t id[16], bool sync);
