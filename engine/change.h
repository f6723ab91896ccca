/* Changing what is kept beside an object's bytes: the document with the metadata is written again,
 * the parts stay where they are.
 *
 * Threads: any. Blocks: as writer.h. Keeps: E87.
 */
#pragma once

#include "engine/writer.h"

enum {
    ENG_CHANGE_META = 1,
    ENG_CHANGE_ETAG = 2,
    ENG_CHANGE_EXPIRES = 4,
    ENG_CHANGE_PIN = 8,
    ENG_CHANGE_LABELS = 16,
};

/* What is to become of an object of a pool. Only the fields named in `what` count. */
struct eng_change {
    const uint8_t *key;
    uint8_t pool;
    unsigned what;
    const void *meta;
    size_t meta_len;
    uint64_t etag_hash;
    uint32_t expires, pin_until;
    const uint64_t *labels;
    uint32_t n_labels;
    uint64_t if_serial; /* 0: whichever object is there */
    uint64_t now_ms;
    bool sync;
};

/* Bans of before the change still match: an object is as old as its bytes. OK with a new serial,
 * NOT_FOUND, CHANGED, QUOTA (pinning), TOO_LARGE, STATE (a vector), and as eng_commit. */
GYRE_MUST_USE gyre_err eng_change(struct eng_store *store, const struct eng_change *change,
                                  uint64_t *serial_out);
