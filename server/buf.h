/* Pooled buffers for bodies, under one budget for the whole process.
 *
 * Owns:    the pool owns the memory; a holder owns a buffer until srv_buf_release.
 * Threads: all functions on any thread.
 * Blocks:  never.
 * Allocates: from free lists of two sizes (64 KiB and 1 MiB, page aligned); grows up to the budget,
 * then refuses. Of what comes back at most 32 MiB are kept for the next bodies.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct srv_buf_pool;

struct srv_buf {
    uint8_t *base;
    size_t len;      /* bytes filled */
    size_t capacity; /* bytes */
    struct srv_buf_pool *pool_;
    _Atomic size_t *share_;
    struct srv_buf *next_;
};

/* A pool that never holds more than `budget_bytes`; NULL out of memory. */
struct srv_buf_pool *srv_buf_pool_create(size_t budget_bytes);
/* All buffers must have come back. */
void srv_buf_pool_destroy(struct srv_buf_pool *pool);
/* Bounds what one holder of a share may have at a time; before the pool is used. Without a bound
 * shares are only counted. */
void srv_buf_pool_limit_share(struct srv_buf_pool *pool, size_t bytes);
size_t srv_buf_pool_share_bytes(const struct srv_buf_pool *pool);
/* A buffer of at least `min(want_bytes, 1 MiB)` capacity, empty; NULL when the budget is spent. */
struct srv_buf *srv_buf_acquire(struct srv_buf_pool *pool, size_t want_bytes);
/* The same on behalf of somebody, whose `share` counts his bytes and must live until they are given
 * back (NULL: nobody's); NULL also when his share is spent. */
struct srv_buf *srv_buf_acquire_for(struct srv_buf_pool *pool, _Atomic size_t *share,
                                    size_t want_bytes);
/* Counts `bytes` of memory that is not the pool's against the budget, and against `share` as above;
 * false, with nothing counted, when there is no room. srv_buf_unreserve, with the same arguments,
 * gives the room back. */
bool srv_buf_reserve(struct srv_buf_pool *pool, _Atomic size_t *share, size_t bytes);
void srv_buf_unreserve(struct srv_buf_pool *pool, _Atomic size_t *share, size_t bytes);
/* Gives a buffer back; NULL is allowed. */
void srv_buf_release(struct srv_buf *buf);
/* Bytes that may be handed out. */
size_t srv_buf_pool_budget_bytes(const struct srv_buf_pool *pool);
/* Bytes handed out or reserved now. */
size_t srv_buf_pool_used_bytes(const struct srv_buf_pool *pool);
