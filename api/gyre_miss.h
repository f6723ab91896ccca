/* Misses that are fetched once: whoever misses an object first is to fetch it, everybody else gets
 * what is fetched. Included by gyre.h.
 *
 *   miss -> FILL [gyre_miss_get] -> begun [gyre_fill_begin] -> stored [gyre_fill_commit]
 *                                   FILL, begun -> passed on [gyre_fill_pass, gyre_fill_abort]
 *
 * Threads of the same process read along while the object arrives. Threads of other processes wait
 * until it is stored and then get it. When whoever fetches gives up, or its process dies, one of
 * those who wait is to fetch instead.
 *
 * Threads: any; a fill or a follower belongs to one thread at a time. A call that waits is woken by
 * gyre_close (CLOSED).
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct gyre_fill;
struct gyre_follow;

enum gyre_miss_kind {
    GYRE_MISS_NONE,   /* the call failed */
    GYRE_MISS_HIT,    /* `handle`: the object is there */
    GYRE_MISS_FILL,   /* `fill`: it is not, and the caller is to fetch it */
    GYRE_MISS_FOLLOW, /* `follow`: a thread of this process is fetching it */
    GYRE_MISS_PASS,   /* what was fetched is not to be shared: the caller fetches for itself */
};

/* What came of a look. The caller owns the one thing that `kind` names. */
struct gyre_miss {
    enum gyre_miss_kind kind;
    struct gyre_handle *handle;
    struct gyre_fill *fill;
    struct gyre_follow *follow;
};

/* As gyre_get of the main pool, or of the one `flags` names; where that would answer NOT_FOUND or
 * EXPIRED, see gyre_miss_kind. Waits up to `wait_ms` for another process's fetch, or until this
 * process's one has got as far as gyre_fill_begin: then TIMEOUT, or WOULD_BLOCK if `wait_ms` is 0.
 * Where more than some thousand objects are fetched at the same moment, two processes may fetch the
 * same one. */
GYRE_MUST_USE GYRE_API gyre_err gyre_miss_get(struct gyre_store *store, const struct gyre_key *key,
                                              uint32_t now, unsigned flags, uint32_t wait_ms,
                                              struct gyre_miss *miss_out);
/* The same off the calling thread; no thread is kept waiting. `done` is called once on a thread of
 * the library, unless the call itself fails (BUSY, CLOSED, NO_MEMORY), and owns what *miss names;
 * NOWAIT means LAZY here. */
GYRE_MUST_USE GYRE_API gyre_err gyre_miss_get_async(
    struct gyre_store *store, const struct gyre_key *key, uint32_t now, unsigned flags,
    uint32_t wait_ms, void (*done)(void *data, gyre_err err, const struct gyre_miss *miss),
    void *data);

/* Waits until nothing that was begun by gyre_miss_get in this process is left to be ended, and no
 * asynchronous call of the store is under way. Those that begin meanwhile count too. TIMEOUT. */
GYRE_MUST_USE GYRE_API gyre_err gyre_drain(struct gyre_store *store, uint32_t timeout_ms);

/* ---- Fetching ---- */

/* Says how the object will be stored, once; followers see its metadata from here on. The pool must
 * be the one that was looked in. Results as gyre_put_begin; STATE: it was begun already. After a
 * failure the fill is to be ended. */
GYRE_MUST_USE GYRE_API gyre_err gyre_fill_begin(struct gyre_fill *fill,
                                                const struct gyre_put_options *options);
/* As the calls of a put. Bytes can be read by followers once the call returns. STATE: not begun. */
GYRE_MUST_USE GYRE_API gyre_err gyre_fill_write(struct gyre_fill *fill, const void *bytes,
                                                size_t len);
GYRE_MUST_USE GYRE_API gyre_err gyre_fill_reserve(struct gyre_fill *fill, size_t *len_inout,
                                                  void **buffer_out);
GYRE_MUST_USE GYRE_API gyre_err gyre_fill_advance(struct gyre_fill *fill, size_t len);
/* Followers go on with the metadata they have. */
GYRE_MUST_USE GYRE_API gyre_err gyre_fill_set_meta(struct gyre_fill *fill, const void *meta,
                                                   size_t meta_len, uint64_t etag_hash,
                                                   uint32_t expires);

/* Each of these takes *fill away, whatever the result. */

/* Stores the object, as gyre_put_commit. Followers read to its end, whatever becomes of it. If that
 * fails the fill is aborted with the error. */
GYRE_MUST_USE GYRE_API gyre_err gyre_fill_commit(struct gyre_fill **fill, uint64_t *serial_out);
/* Nothing is stored; all who wait are told to fetch for themselves, and followers get STATE. */
GYRE_API void gyre_fill_pass(struct gyre_fill **fill);
/* Nothing is stored; one of those who wait fetches instead, and followers get `err`, which is not
 * OK. */
GYRE_API void gyre_fill_abort(struct gyre_fill **fill, gyre_err err);

/* ---- Reading along ---- */

/* What the fill was begun with; the length may be GYRE_LENGTH_UNKNOWN, and serial and place are 0.
 * Lent until gyre_follow_end. */
GYRE_API const struct gyre_info *gyre_follow_info(const struct gyre_follow *follow);
GYRE_API const void *gyre_follow_meta(const struct gyre_follow *follow, size_t *len_out);

/* Copies up to `len` bytes from `offset`, waiting up to `wait_ms` for the first of them. OK with
 * *copied_out 0: the object ends here. TIMEOUT (WOULD_BLOCK if `wait_ms` is 0); CLOSED; STATE, IO,
 * BUSY or what gyre_fill_abort was told: it will not go on. RANGE: past the end. */
GYRE_MUST_USE GYRE_API gyre_err gyre_follow_read(struct gyre_follow *follow, uint64_t offset,
                                                 void *buffer, size_t len, uint32_t wait_ms,
                                                 size_t *copied_out);
/* Calls `wake` once, as soon as bytes past `offset` are there or the fill has ended, perhaps at
 * once: on the thread that fills, so it must be short and may call nothing of this fill. One at a
 * time (STATE); gyre_follow_end takes it back. */
GYRE_MUST_USE GYRE_API gyre_err gyre_follow_notify(struct gyre_follow *follow, uint64_t offset,
                                                   void (*wake)(void *data), void *data);
/* NULL is allowed. Never blocks for long. */
GYRE_API void gyre_follow_end(struct gyre_follow *follow);

#ifdef __cplusplus
}
#endif
