/* A stripe without files: directory, slots, pins and locks in anonymous memory, for tests of what
 * never touches data. */
#pragma once

#include <sys/mman.h>

#include "engine/directory.h"
#include "engine/locks.h"
#include "engine/parent.h"
#include "tests/harness/test.h"

struct bare {
    struct eng_store *store;
    struct eng_stripe *stripe;
};

static inline void *bare_memory(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

static inline struct bare bare_create(uint32_t n_buckets, uint64_t area_bytes, uint32_t n_segments)
{
    struct bare bare = {.store = bare_memory(sizeof(struct eng_store))};
    struct eng_stripe *stripe = bare.stripe = &bare.store->stripes[0];
    bare.store->n_stripes = 1;
    bare.store->lock_wait_ns = UINT64_C(60000000000);
    bare.store->rt.head = bare_memory(sizeof(struct eng_runtime_head));
    bare.store->process = bare_memory(sizeof(struct eng_process));
    bare.store->pins = bare_memory(ENG_PINS * sizeof(struct eng_pin));
    bare.store->tenants = bare_memory(ENG_TENANTS * sizeof(struct eng_tenant));
    bare.store->bans = bare_memory(sizeof(struct eng_bans));
    stripe->store = bare.store;
    stripe->rt = bare_memory(sizeof(struct eng_stripe_rt));
    stripe->buckets = bare_memory(n_buckets * sizeof(struct eng_bucket));
    stripe->slots = bare_memory((size_t)n_buckets * ENG_BUCKET_ENTRIES * sizeof(struct eng_slot));
    stripe->granules = bare_memory(area_bytes / ENG_GRANULE * sizeof(uint32_t));
    for (uint64_t i = 0; i < area_bytes / ENG_GRANULE; i++)
        atomic_init(&stripe->granules[i], ENG_NO_SLOT);
    stripe->parents = bare_memory(area_bytes / ENG_PARENT_BYTES * sizeof(uint64_t));
    stripe->n_ghost = eng_ghost_places((uint64_t)n_buckets * ENG_BUCKET_ENTRIES);
    stripe->ghost = bare_memory(stripe->n_ghost * sizeof(uint16_t));
    stripe->n_buckets = n_buckets;
    stripe->n_segments = n_segments;
    stripe->area_bytes = area_bytes;
    stripe->segment_units = area_bytes / n_segments / ENG_UNIT;
    CHECK_OK(eng_mutex_init(&stripe->rt->alloc_lock, ENG_RANK_ALLOC));
    CHECK_OK(eng_mutex_init(&stripe->rt->clean_lock, ENG_RANK_CLEAN));
    return bare;
}
