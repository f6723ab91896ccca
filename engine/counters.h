/* What each process of a store counts, in shards that its threads are dealt out to.
 *
 * Threads: any; relaxed additions. Blocks: never.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define ENG_COUNTER_SHARDS 8

/* X(name) for each counter kept per process and thread shard. */
#define ENG_COUNTERS(X)    \
    X(hits)                \
    X(misses)              \
    X(puts)                \
    X(put_bytes)           \
    X(deletes)             \
    X(evictions)           \
    X(evicted_bytes)       \
    X(displacements)       \
    X(expirations)         \
    X(checksum_failures)   \
    X(tag_collisions)      \
    X(lookup_retries)      \
    X(laps)                \
    X(hops)                \
    X(promotions)          \
    X(copies)              \
    X(copied_bytes)        \
    X(ghost_finds)         \
    X(mode_switches)       \
    X(syncs)               \
    X(recovered_documents) \
    X(bans_met)            \
    X(lock_repairs)        \
    X(lock_timeouts)

struct eng_counters {
#define X(name) _Atomic uint64_t name;
    _Alignas(64) ENG_COUNTERS(X)
#undef X
};
