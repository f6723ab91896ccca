/* Calls that may block, off the calling thread; beside gyre_get_async, gyre_populate_async and
 * gyre_miss_get_async. Included by gyre.h.
 *
 * Unless the call itself fails (BUSY, CLOSED, NO_MEMORY, INVALID), `done` is called once, on a
 * thread of the library, with what the blocking form would have returned. Calls of one thread may
 * be done in any order. gyre_close waits for them, and so does gyre_drain.
 *
 * Threads: any. Blocks: never.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* gyre_put. The options are copied; the body, and the metadata and labels they name, are lent until
 * `done`. `serial` is 0 unless OK. */
GYRE_MUST_USE GYRE_API gyre_err
gyre_put_async(struct gyre_store *store, const struct gyre_key *key,
               const struct gyre_put_options *options, const void *body, size_t len,
               void (*done)(void *data, gyre_err err, uint64_t serial), void *data);
/* gyre_put_commit. The put is taken away, unless the call fails. */
GYRE_MUST_USE GYRE_API gyre_err gyre_put_commit_async(
    struct gyre_put **put, void (*done)(void *data, gyre_err err, uint64_t serial), void *data);
/* gyre_delete. */
GYRE_MUST_USE GYRE_API gyre_err gyre_delete_async(
    struct gyre_store *store, const struct gyre_key *key, enum gyre_condition condition,
    uint64_t if_serial, unsigned flags, void (*done)(void *data, gyre_err err), void *data);
/* gyre_exists, strict. */
GYRE_MUST_USE GYRE_API gyre_err gyre_exists_async(struct gyre_store *store,
                                                  const struct gyre_key *key, uint32_t now,
                                                  void (*done)(void *data, gyre_err err),
                                                  void *data);
/* gyre_sync. */
GYRE_MUST_USE GYRE_API gyre_err gyre_sync_async(struct gyre_store *store,
                                                void (*done)(void *data, gyre_err err), void *data);

#ifdef __cplusplus
}
#endif
