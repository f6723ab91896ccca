/* Looking in: counters, gauges, files, capacity. */
#include "api/store.h"

#include <string.h>

#include "engine/base/check.h"
#include "engine/directory.h"
#include "engine/geometry.h"
#include "engine/locks.h"
#include "engine/pin.h"
#include "engine/runtime.h"

/* What is guarded by the stripe's lock. */
static void add_stripe(struct eng_stripe *stripe, struct gyre_stats *stats)
{
    struct eng_stripe_rt *rt = stripe->rt;
    stats->live_bytes += atomic_load_explicit(&rt->live_units, memory_order_relaxed)
                         << ENG_UNIT_SHIFT;
    stats->documents += atomic_load_explicit(&rt->documents, memory_order_relaxed);
    stats->reserved_bytes += atomic_load_explicit(&rt->reserved_units, memory_order_relaxed)
                             << ENG_UNIT_SHIFT;
    stats->directory_slots += (uint64_t)stripe->n_buckets * ENG_BUCKET_ENTRIES;
    stats->segments += stripe->n_segments;
    if (eng_alloc_lock_bounded(stripe) != GYRE_OK)
        return; /* a gauge less, where a process was stopped inside */
    for (uint32_t i = 0; i < stripe->n_segments; i++)
        stats->segments_free += rt->segments[i].state == ENG_SEGMENT_FREE;
    eng_alloc_unlock(stripe);
}

/* Each process counts for itself, each thread in a shard. */
static void add_counters(struct eng_store *engine, struct gyre_stats *stats)
{
    const struct eng_process *processes =
        (const struct eng_process *)(const void *)((const uint8_t *)engine->rt.head +
                                                   engine->rt.head->process_off);
    for (size_t i = 0; i < ENG_PROCESSES; i++) {
        for (size_t shard = 0; shard < ENG_COUNTER_SHARDS; shard++) {
            const struct eng_counters *counters = &processes[i].counters[shard];
#define X(name) stats->name += atomic_load_explicit(&counters->name, memory_order_relaxed);
            ENG_COUNTERS(X)
#undef X
        }
    }
}

/* From the directory alone; bytes by the entries, which say a little too much. */
static void look_at_files(const struct eng_store *engine, struct gyre_stats *stats)
{
    for (uint32_t i = 0; i < engine->n_stripes; i++) {
        const struct eng_stripe *stripe = &engine->stripes[i];
        uint32_t n_slots = stripe->n_buckets * ENG_BUCKET_ENTRIES;
        for (uint32_t slot = 0; slot < n_slots; slot++) {
            uint64_t entry = eng_directory_entry(stripe, slot);
            stats->documents += entry != 0;
            if (entry != 0)
                stats->live_bytes += eng_entry_units_bound(entry) << ENG_UNIT_SHIFT;
        }
        stats->directory_slots += n_slots;
        stats->segments += stripe->n_segments;
    }
}

gyre_err gyre_stat(struct gyre_store *store, struct gyre_stats *stats_out)
{
    if (stats_out == NULL || stats_out->struct_size != sizeof *stats_out)
        return GYRE_INVALID;
    *stats_out = (struct gyre_stats){.struct_size = sizeof *stats_out};
    uint32_t shard;
    gyre_err err = api_enter_looking(store, &shard);
    if (err != GYRE_OK)
        return err;
    struct eng_store *engine = store->engine;
    stats_out->capacity_bytes = store->capacity_bytes;
    if (engine->read_only) {
        look_at_files(engine, stats_out);
        api_leave(store, shard);
        return GYRE_OK;
    }
    for (uint32_t i = 0; i < engine->n_stripes; i++)
        add_stripe(&engine->stripes[i], stats_out);
    add_counters(engine, stats_out);
    stats_out->pins = eng_pin_count(engine);
    api_leave(store, shard);
    return GYRE_OK;
}

gyre_err gyre_file_at(struct gyre_store *store, size_t index, struct gyre_file *file_out)
{
    if (file_out == NULL)
        return GYRE_INVALID;
    *file_out = (struct gyre_file){.fd = -1};
    uint32_t shard;
    gyre_err err = api_enter_looking(store, &shard);
    if (err != GYRE_OK)
        return err;
    struct eng_store *engine = store->engine;
    if (index == 0) {
        *file_out = (struct gyre_file){
            .path = engine->volume_path,
            .size_bytes = engine->super.volume_bytes,
            .base = engine->volume,
            .fd = engine->volume_fd,
        };
    } else if (index <= engine->n_stripes) {
        const struct eng_stripe *stripe = &engine->stripes[index - 1];
        *file_out = (struct gyre_file){
            .path = stripe->path,
            .size_bytes = ENG_DATA_START + stripe->area_bytes,
            .base = stripe->data,
            .base_offset = ENG_DATA_START,
            .fd = stripe->fd,
        };
    } else {
        err = GYRE_RANGE;
    }
    api_leave(store, shard);
    return err;
}

uint64_t gyre_meta_changes(const struct gyre_store *store)
{
    const struct eng_runtime_head *head = store->engine->rt.head;
    /* What came before this call in program order, such as a commit of the caller's, is seen by
     * whoever begins to change the pool after the number that is read here. */
    atomic_thread_fence(memory_order_seq_cst);
    if (head == NULL)
        return 0;
    /* Those that have ended first: one that ends in between seems to be under way. */
    uint64_t ended = atomic_load_explicit(&head->changes_ended, memory_order_seq_cst);
    uint64_t begun = atomic_load_explicit(&head->changes_begun, memory_order_seq_cst);
    return begun * 2 + (begun != ended);
}

uint64_t gyre_capacity_bytes(const struct gyre_store *store)
{
    return store->capacity_bytes;
}

uint64_t gyre_object_max_bytes(const struct gyre_store *store)
{
    return store->object_max_bytes;
}

uint64_t gyre_size_bytes(const struct gyre_store *store)
{
    const struct eng_superblock *super = &store->engine->super;
    uint64_t bytes = super->volume_bytes + eng_runtime_bytes(super);
    uint64_t dirs = 0;

    for (uint32_t i = 0; i < super->n_stripes; i++) {
        bytes += eng_data_file_bytes(super, i);
        dirs |= UINT64_C(1) << (super->stripes[i].data_dir % ENG_MAX_STRIPES);
    }
    return bytes + (uint64_t)__builtin_popcountll(dirs) * ENG_SMALL_FILES;
}
