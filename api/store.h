/* An open store as libgyre sees it: who is inside a call, who still holds something, and how it
 * ends.
 *
 *   FREE -> OPEN [gyre_open] -> CLOSING [gyre_close] -> ENDING [no call left] -> CLOSED [engine
 * shut] CLOSED -> FREE [no handle, no put left]
 *
 * A structure, once made, is never given back to the allocator, only used again for another store:
 * so whoever drops the last claim may still look at the flags behind it.
 *
 * Owns:    one reference to the engine's store, from OPEN to FREE.
 * Threads: any. `lock` guards [w]; the shards are atomic.
 * Blocks:  ending a store syncs.
 */
#pragma once

#include <stdatomic.h>

#include "engine/base/lock.h"
#include "engine/store.h"

#include "api/async.h"
#include "api/gyre.h"
#include "api/miss.h"

#define API_SHARDS 64u

/* Calls in progress in the low half, handles and puts that live in the high half. */
struct api_shard {
    _Alignas(64) _Atomic uint64_t word;
};

#define API_LOOKING 2u /* of gyre_store.closing: opened read-only */
#define API_ONE_CALL UINT64_C(1)
#define API_ONE_CLAIM (UINT64_C(1) << 32)

enum api_state { API_FREE, API_OPEN, API_CLOSING, API_ENDING, API_CLOSED };

struct gyre_store {
    struct api_shard shards[API_SHARDS];       /* [a] */
    _Atomic uint32_t closing;                  /* [a] 1: calls are refused, 2: but for looking */
    struct eng_store *engine;                  /* [c] from OPEN to FREE */
    uint64_t capacity_bytes, object_max_bytes; /* [c] */
    uint32_t life; /* [c] from OPEN to FREE in one process: another one in each child of fork */
    _Atomic uint32_t forked; /* [a] 1: opened by a parent; the first call joins as a process of its
                                own */
    struct eng_lock lock;
    struct eng_cond settled; /* something has left since CLOSING */
    enum api_state state;    /* [w] */
    bool closer_waits;       /* [w] gyre_close itself will end the store */
    struct api_pool async;
    struct api_misses misses;
    struct gyre_store *next_all, *next_free; /* [list lock] */
};

/* Whether a pool of that number is there and keys can be put into it. Inside a call. */
bool api_pool_usable(const struct gyre_store *store, unsigned pool);

/* Begins a call. OK: the caller leaves with api_leave, or turns the call into a claim. CLOSED. */
GYRE_MUST_USE gyre_err api_enter(struct gyre_store *store, uint32_t *shard_out);
/* The same for a call that only looks, which may be made on a store opened read-only too. */
GYRE_MUST_USE gyre_err api_enter_looking(struct gyre_store *store, uint32_t *shard_out);
void api_leave(struct gyre_store *store, uint32_t shard);

/* Inside a call: a handle or put begins to live. It keeps the files open until api_unclaim. */
void api_claim(struct gyre_store *store, uint32_t shard);
/* api_claim and api_leave in one. */
void api_leave_with_claim(struct gyre_store *store, uint32_t shard);
void api_unclaim(struct gyre_store *store, uint32_t shard);

/* A structure in state FREE, with all else reset; NULL without memory. Only gyre_open calls it. */
struct gyre_store *api_store_take(void);
/* Gives one back that never got as far as OPEN. */
void api_store_untake(struct gyre_store *store);
/* FREE -> OPEN. */
void api_store_opened(struct gyre_store *store, struct eng_store *engine, uint32_t async_threads);
/* OPEN -> ... as far as it gets by `deadline_ns`. Results as gyre_close. */
GYRE_MUST_USE gyre_err api_store_close(struct gyre_store *store, uint64_t deadline_ns);

/* Whether a handle or put was made in the process this one was forked from: then its pins and
 * extents are not ours. */
static inline bool api_is_inherited(const struct gyre_store *store, uint32_t life)
{
    return store->life != life;
}

/* Beginning and ending of what a forked child makes of its parent's stores; fork.c. */
void api_fork_register(void);
uint32_t api_next_life(void);
/* First call in a child: OK, the store is this process's too; CLOSED: it ended before; BUSY, IO,
 * NO_MEMORY, LOCKED. */
GYRE_MUST_USE gyre_err api_store_join(struct gyre_store *store);
/* Visits every store structure there is; the caller is the only thread, or holds the list. */
void api_stores_each(void (*visit)(struct gyre_store *store));
void api_stores_lock(void);
void api_stores_unlock(void);

/* Whether a key can be in the meta pool at all: most stores never use it, and then a miss is one
 * look-up. Why a stale answer is safe: the flag is raised before the first such put is begun and
 * never lowered, so who reads 0 came before that put ended. */
static inline bool api_meta_used(struct gyre_store *store)
{
    return atomic_load_explicit(&store->engine->rt.head->meta_used, memory_order_relaxed) != 0;
}

/* Around a change of the meta pool, so that others can tell that what they read is of before it, of
 * after it, or of either. A process that dies inside is counted out by whoever takes its slot back;
 * if it dies on the edge the numbers differ for good, and nobody trusts what he has read before. */
static inline void api_meta_begin(struct gyre_store *store)
{
    struct eng_runtime_head *head = store->engine->rt.head;
    atomic_fetch_add_explicit(&store->engine->process->changing, 1, memory_order_seq_cst);
    atomic_fetch_add_explicit(&head->changes_begun, 1, memory_order_seq_cst);
}

static inline void api_meta_end(struct gyre_store *store)
{
    struct eng_runtime_head *head = store->engine->rt.head;
    atomic_fetch_add_explicit(&head->changes_ended, 1, memory_order_seq_cst);
    atomic_fetch_sub_explicit(&store->engine->process->changing, 1, memory_order_seq_cst);
}
