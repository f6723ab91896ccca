/* Uploads: an object that arrives in numbered parts, in any order, from any thread or process, over
 * any time, and becomes visible in one step. Included by gyre.h.
 *
 *   nothing -> OPEN [gyre_upload_begin] -> gone, the object is there [gyre_upload_complete]
 *              OPEN -> gone [gyre_upload_abort, or `abandon_at` has passed]
 *
 * An upload and its parts survive restarts. Parts are never evicted while it is open, and what they
 * take is bounded: half of each stripe's main pool, then QUOTA. Completing copies no bytes: the
 * parts become the object's. What the object does not name is freed.
 *
 * Threads: any. Blocks: as gyre_put and gyre_delete.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Which upload of a key; made at random. */
struct gyre_upload_id {
    uint8_t bytes[16];
};

#define GYRE_UPLOAD_PARTS_MAX 10000u     /* parts are numbered from 1 to here */
#define GYRE_UPLOAD_META_MAX (32u << 10) /* longest metadata of an upload, bytes */
#define GYRE_PART_META_MAX 1024u         /* longest metadata of a part, bytes */

/* Fill with gyre_upload_options_init. */
struct gyre_upload_options {
    size_t struct_size;
    const void *meta; /* the caller's own record, given back by gyre_upload_get; copied */
    size_t meta_len;
    uint32_t created;    /* Unix seconds; 0: now */
    uint32_t abandon_at; /* from this second on the upload counts as aborted; 0: never */
    uint16_t tenant;     /* the object's, too */
    uint8_t retention;   /* the object's, too */
    uint8_t zero_;
    unsigned flags; /* GYRE_PUT_SYNC */
};

GYRE_API void gyre_upload_options_init(struct gyre_upload_options *options);

/* Begins one. INVALID, META_TOO_LARGE, NO_SPACE (the meta pool is full), QUOTA, IO, CLOSED. */
GYRE_MUST_USE GYRE_API gyre_err gyre_upload_begin(struct gyre_store *store,
                                                  const struct gyre_key *key,
                                                  const struct gyre_upload_options *options,
                                                  struct gyre_upload_id *id_out);

/* The upload's record: a handle of which gyre_handle_meta gives the caller's metadata and
 * gyre_handle_info the times (`expires` is `abandon_at`). NOT_FOUND: no such upload is open. */
GYRE_MUST_USE GYRE_API gyre_err gyre_upload_get(struct gyre_store *store,
                                                const struct gyre_key *key,
                                                const struct gyre_upload_id *id,
                                                struct gyre_handle **handle_out);

/* Begins part `number` of `length` bytes (or GYRE_LENGTH_UNKNOWN; 0 is allowed). The put is used as
 * any other: gyre_put_write, gyre_put_reserve, gyre_put_commit, gyre_put_abort. Its metadata
 * (gyre_put_set_meta, at most GYRE_PART_META_MAX; etag hash and expiry are not used) stays with the
 * part as long as the upload is open. Commit makes it the part of that number and frees the one
 * there was; its serial names this attempt. NOT_FOUND: no such upload, which commit can answer too.
 * INVALID, TOO_LARGE, CLOSED, NO_MEMORY. `flags`: GYRE_PUT_SYNC. */
GYRE_MUST_USE GYRE_API gyre_err gyre_upload_put(struct gyre_store *store,
                                                const struct gyre_key *key,
                                                const struct gyre_upload_id *id, uint32_t number,
                                                uint64_t length, unsigned flags,
                                                struct gyre_put **put_out);

/* Notes the MD5 of a part's bytes, to be kept with it and in the object's table of parts. STATE:
 * the put is not of a part, or has failed. */
GYRE_MUST_USE GYRE_API gyre_err gyre_put_set_md5(struct gyre_put *put, const uint8_t md5[16]);

/* A part: of an upload, or of an object that was completed from one. */
struct gyre_part {
    uint32_t number;
    uint32_t crc32c; /* of its bytes */
    uint64_t length;
    uint64_t offset;  /* in the object; 0 for an upload's */
    uint64_t serial;  /* which attempt; 0 for an object's */
    uint32_t created; /* Unix seconds; 0 for an object's */
    uint8_t md5[16];  /* zeros if none was noted */
    const void *meta; /* lent for the call that shows it; NULL for an object's */
    size_t meta_len;
};

/* Calls `visit` for each part above `after`, in rising order, until it returns false. NOT_FOUND: no
 * such upload. Blocks for cold data. */
GYRE_MUST_USE GYRE_API gyre_err gyre_upload_each_part(
    struct gyre_store *store, const struct gyre_key *key, const struct gyre_upload_id *id,
    uint32_t after, bool (*visit)(void *data, const struct gyre_part *part), void *data);

/* Calls `visit` for each open upload of the store, in no order, until it returns false. The handle
 * is as of gyre_upload_get and lent for the call. */
GYRE_MUST_USE GYRE_API gyre_err gyre_each_upload(struct gyre_store *store,
                                                 bool (*visit)(void *data,
                                                               const struct gyre_key *key,
                                                               const struct gyre_upload_id *id,
                                                               const struct gyre_handle *handle),
                                                 void *data);

/* Names a part for completion. */
struct gyre_part_choice {
    uint32_t number;
    uint32_t zero_;
    uint64_t serial; /* of the attempt that is meant; 0: whichever is there */
};

/* Makes the object of the chosen parts, in the order given, under the condition in `options` (of
 * which length, pool, tenant and retention are not used), and ends the upload. Results as
 * gyre_put_commit, and NOT_FOUND (no such upload: perhaps it was completed already), RANGE (a
 * chosen part is not there), CHANGED (a chosen attempt was replaced, or GYRE_IF_SERIAL does not
 * hold), INVALID (numbers do not rise). Unless OK the upload is as before. */
GYRE_MUST_USE GYRE_API gyre_err gyre_upload_complete(
    struct gyre_store *store, const struct gyre_key *key, const struct gyre_upload_id *id,
    const struct gyre_part_choice *choices, size_t n_choices,
    const struct gyre_put_options *options, uint64_t *serial_out);

/* Ends an upload and frees its parts; `flags`: GYRE_PUT_SYNC. NOT_FOUND, NO_SPACE, IO, CLOSED. */
GYRE_MUST_USE GYRE_API gyre_err gyre_upload_abort(struct gyre_store *store,
                                                  const struct gyre_key *key,
                                                  const struct gyre_upload_id *id, unsigned flags);

/* Frees what uploads past their `abandon_at` and puts of dead processes hold; the store does so
 * itself at opening and about once a minute. BUSY: an object is just being pinned; call again.
 * CLOSED, NO_MEMORY, IO. */
GYRE_MUST_USE GYRE_API gyre_err gyre_upload_sweep(struct gyre_store *store, uint32_t now);

/* The n-th numbered part of an object completed from an upload, in object order. RANGE past the
 * last; an object that was put in one go has none. */
GYRE_MUST_USE GYRE_API gyre_err gyre_handle_part(const struct gyre_handle *handle, uint32_t index,
                                                 struct gyre_part *part_out);

#ifdef __cplusplus
}
#endif
