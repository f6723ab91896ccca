/* An object on its way in.
 *
 *   STAGING -> SPILLING [enough bytes, or a known length from 64 KiB] -> gone [commit, abort]
 *   STAGING -> gone [commit: one small document; abort]
 *   any -> FAILED [an error of write, advance or reserve] -> gone [commit answers that error;
 * abort]
 *
 * Owns:    staged bytes, reserved parts, its metadata, and one claim on its store.
 * Threads: one at a time.
 */
#pragma once

#include "engine/upload.h"
#include "engine/writer.h"

#include "api/gyre.h"
#include "api/stage.h"

#define API_PUT_LIVE UINT32_C(0x50555431)
#define API_PUT_DEAD UINT32_C(0x50555430)
#define API_SPILL_BYTES (256u << 10) /* written at a time when an object is spilling */

/* What an alternate is to be in the vector of its parent. */
struct api_alternate {
    struct gyre_key parent;
    struct eng_vector_entry entry;
    uint8_t vary[]; /* entry.vary_len bytes */
};

struct gyre_put {
    uint32_t magic;
    uint32_t shard;
    uint32_t life; /* of the store, when it was begun */
    struct gyre_store *store;
    struct gyre_key key;
    struct eng_spec spec; /* spec.key is &key */
    enum eng_condition condition;
    uint64_t if_serial;
    bool sync;
    gyre_err failed;
    uint64_t announced; /* bytes, or GYRE_LENGTH_UNKNOWN */
    uint64_t accepted;  /* taken from the caller */
    uint64_t spilled;   /* of these, written into parts */
    const void *meta;
    size_t meta_len;
    void *meta_owned; /* NULL: `meta` is the caller's for as long as the put lasts */
    struct api_stage stage;
    struct eng_part *parts; /* the first n_parts are finished; one more when part_open */
    size_t n_parts, parts_capacity;
    bool part_open;
    struct eng_upload_record *upload; /* owned: a part of this upload, by `attempt`; else NULL */
    uint32_t attempt;
    struct api_alternate *alternate; /* owned: of a vector, under a derived key; else NULL */
    uint64_t *labels_owned; /* NULL: spec.labels are the caller's for as long as the put lasts */
    size_t lent;            /* bytes behind the stage's end that gyre_put_reserve handed out */
};

/* Checks and takes over what the options say; the metadata stays borrowed. INVALID, TOO_LARGE,
 * META_TOO_LARGE. */
GYRE_MUST_USE gyre_err api_put_init(struct gyre_put *put, struct gyre_store *store,
                                    const struct gyre_key *key,
                                    const struct gyre_put_options *options, uint64_t length);
/* Aborts whatever is reserved and frees all but the structure. */
void api_put_fini(struct gyre_put *put);

/* Appends, inside a call of the store. As gyre_put_write; the caller makes the failure stick. */
GYRE_MUST_USE gyre_err api_put_append(struct gyre_put *put, const uint8_t *bytes, size_t len);
/* Counts `len` bytes that were filled in place behind the stage's end. */
GYRE_MUST_USE gyre_err api_put_filled(struct gyre_put *put, size_t len);
/* Makes sure that the stage has room for at least one byte. */
GYRE_MUST_USE gyre_err api_put_make_room(struct gyre_put *put, size_t want);

/* gyre_put and gyre_put_commit inside a call. */
GYRE_MUST_USE gyre_err api_put_inside(struct gyre_store *store, const struct gyre_key *key,
                                      const struct gyre_put_options *options, const void *body,
                                      size_t len, uint64_t *serial_out);
GYRE_MUST_USE gyre_err api_put_commit_inside(struct gyre_put **put, uint64_t *serial_out);
/* Ends the last part, if there are parts and all bytes have come: what is left is to publish. As
 * gyre_put_write. */
GYRE_MUST_USE gyre_err api_put_settle(struct gyre_put *put);
/* Publishes; a small body not staged is given by the caller. As gyre_put_commit. */
GYRE_MUST_USE gyre_err api_put_publish(struct gyre_put *put, const void *small_body,
                                       uint64_t *serial_out);

/* ---- upload.c ---- */

/* Makes finished parts the part of an upload. As gyre_put_commit. */
GYRE_MUST_USE gyre_err api_upload_publish(struct gyre_put *put, const struct eng_part_row *rows,
                                          uint64_t *serial_out);

/* ---- vector.c ---- */

/* Stores an alternate and adds it to its vector. As gyre_put_commit. */
GYRE_MUST_USE gyre_err api_alternate_publish(struct gyre_put *put, uint64_t *serial_out);

/* ---- spill.c ---- */

/* Whether bytes go into parts from now on. */
bool api_put_spilling(const struct gyre_put *put);
/* Writes staged bytes into parts: whole pages only, or all of them when `final`. NO_SPACE, BUSY,
 * NO_MEMORY, IO. */
GYRE_MUST_USE gyre_err api_spill_stage(struct gyre_put *put, bool final);
/* Writes the caller's bytes into parts as far as whole pages or parts are filled. */
GYRE_MUST_USE gyre_err api_spill_direct(struct gyre_put *put, const uint8_t *bytes, size_t len,
                                        size_t *taken_out);
/* Ends the open part, if there is one. */
GYRE_MUST_USE gyre_err api_spill_finish(struct gyre_put *put);
