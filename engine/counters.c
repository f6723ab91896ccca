#include "engine/store.h"

/* Threads are dealt out to the shards in turn; a shared line costs time, never a count. */
static _Atomic uint32_t threads_seen;
static _Thread_local uint32_t shard_plus_1;

struct eng_counters *eng_counters(struct eng_store *store)
{
    if (shard_plus_1 == 0)
        shard_plus_1 = 1 + atomic_fetch_add_explicit(&threads_seen, 1, memory_order_relaxed) %
                               ENG_COUNTER_SHARDS;
    return &store->process->counters[shard_plus_1 - 1];
}
