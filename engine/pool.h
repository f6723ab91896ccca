/* Pools: classes of documents with segments and keys of their own. Which ring a document goes to,
 * who is evicted, and forgetting a whole pool in one step.
 *
 * A pool's epoch is part of where its keys are looked for and stands in each document's header, so
 * raising it makes all its documents unfindable at once, in this run and after any crash. They
 * leave at the hand, or in a sweep.
 *
 * Threads: any. Blocks: eng_pool_purge, for the disk. Allocates: nothing. Keeps: E81.
 */
#pragma once

#include "engine/store.h"

/* The pool's epoch now. Why a stale answer is safe: who reads the old one began before the purge
 * ended, and is answered as if it had come first. */
static inline uint64_t eng_pool_epoch(const struct eng_store *store, uint8_t pool)
{
    return atomic_load_explicit(&store->rt.head->pool_epoch[pool], memory_order_acquire);
}

static inline bool eng_pool_never_evicts(const struct eng_store *store, uint8_t pool)
{
    return (store->super.pools[pool].flags & ENG_POOL_NEVER_EVICT) != 0;
}

/* The pool whose ring a document of this header lies in. Deletions lie in the main ring, so that a
 * pool that never evicts can always forget. */
static inline uint8_t eng_ring_pool_of(const struct eng_doc *doc)
{
    if (doc->flags & ENG_DOC_IN_SMALL)
        return ENG_POOL_SMALL;
    return doc->type == ENG_TOMBSTONE ? ENG_POOL_MAIN : doc->pool;
}

/* Whose documents a ring holds, before their headers are read. */
static inline uint8_t eng_pool_of_ring(uint8_t ring_pool)
{
    return ring_pool == ENG_POOL_SMALL ? ENG_POOL_MAIN : ring_pool;
}

/* Whether a document of the main pool goes to the ring for small things: vectors, HEADs, and bodies
 * up to ENG_SMALL_DOC with their metadata, where the store has such a ring. */
#define ENG_SMALL_DOC (4u << 10)
bool eng_pool_is_for_small(const struct eng_store *store, uint8_t pool, uint16_t type,
                           uint64_t bytes);

/* The pool of that name. NOT_FOUND. */
GYRE_MUST_USE gyre_err eng_pool_find(const struct eng_store *store, const char *name,
                                     uint8_t *pool_out);
/* Bytes of its documents, of those that may not be evicted, and the most it can hold. */
uint64_t eng_pool_bytes(const struct eng_store *store, uint8_t pool);
uint64_t eng_pool_kept_bytes(const struct eng_store *store, uint8_t pool);
uint64_t eng_pool_capacity_bytes(const struct eng_store *store, uint8_t pool);

/* Whether `units` more of the pool's documents in this stripe may be kept from eviction: a quarter
 * of its segments, or half for parts of uploads. QUOTA. */
GYRE_MUST_USE gyre_err eng_pool_may_keep_locked(const struct eng_stripe *stripe, uint8_t pool,
                                                uint64_t units, bool held);

/* Forgets all documents of a pool, durably, in one step. IO, DISK_FULL: nothing was forgotten, or
 * perhaps all after a power loss. */
GYRE_MUST_USE gyre_err eng_pool_purge(struct eng_store *store, uint8_t pool);

/* Notes durably that the store has something that later openings must know of. One load once it is
 * noted. IO. */
GYRE_MUST_USE gyre_err eng_feature_use(struct eng_store *store, enum eng_feature_compat feature);

/* Takes the lock of superblock and ban table, and settles what its last holder left if that died.
 */
void eng_facts_enter(struct eng_store *store);
/* That alone. */
void eng_facts_settle(struct eng_store *store);
