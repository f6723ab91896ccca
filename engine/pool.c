#include "engine/pool.h"

#include <string.h>

#include "engine/ban.h"
#include "engine/base/check.h"
#include "engine/base/io.h"
#include "engine/base/step.h"
#include "engine/geometry.h"
#include "engine/locks.h"
#include "engine/seal.h"

bool eng_pool_is_for_small(const struct eng_store *store, uint8_t pool, uint16_t type,
                           uint64_t bytes)
{
    if (pool != ENG_POOL_MAIN || store->super.n_pools <= ENG_POOL_SMALL ||
        store->super.pools[ENG_POOL_SMALL].max_segments == 0)
        return false;
    return type == ENG_HEAD || type == ENG_VECTOR || (type == ENG_DOC && bytes <= ENG_SMALL_DOC);
}

gyre_err eng_pool_find(const struct eng_store *store, const char *name, uint8_t *pool_out)
{
    *pool_out = 0;
    for (uint8_t pool = 0; pool < store->super.n_pools; pool++) {
        const char *at = store->super.pools[pool].name;
        if (strlen(name) <= sizeof store->super.pools[pool].name &&
            strncmp(name, at, sizeof store->super.pools[pool].name) == 0) {
            *pool_out = pool;
            return GYRE_OK;
        }
    }
    return GYRE_NOT_FOUND;
}

uint64_t eng_pool_bytes(const struct eng_store *store, uint8_t pool)
{
    uint64_t units = 0;
    for (uint32_t i = 0; i < store->n_stripes; i++)
        units += atomic_load_explicit(&store->stripes[i].rt->pool_units[pool],
                                      memory_order_relaxed); /* statistics */
    return units << ENG_UNIT_SHIFT;
}

uint64_t eng_pool_kept_bytes(const struct eng_store *store, uint8_t pool)
{
    uint64_t units = 0;
    for (uint32_t i = 0; i < store->n_stripes; i++)
        units += atomic_load_explicit(&store->stripes[i].rt->kept_units[pool],
                                      memory_order_relaxed); /* statistics */
    return units << ENG_UNIT_SHIFT;
}

uint64_t eng_pool_capacity_bytes(const struct eng_store *store, uint8_t pool)
{
    uint64_t segments = 0;
    for (uint32_t i = 0; i < store->n_stripes; i++)
        segments += eng_pool_max_segments(&store->super, i, pool);
    return segments * store->super.segment_bytes;
}

gyre_err eng_pool_may_keep_locked(const struct eng_stripe *stripe, uint8_t pool, uint64_t units,
                                  bool held)
{
    const struct eng_store *store = stripe->store;
    uint64_t all =
        eng_pool_max_segments(&store->super, stripe->index, pool) * stripe->segment_units;
    uint64_t kept = atomic_load_explicit(&stripe->rt->kept_units[pool], memory_order_relaxed);
    if (eng_pool_never_evicts(store, pool))
        return GYRE_OK;
    return kept + units > all / (held ? 2 : 4) ? GYRE_QUOTA : GYRE_OK;
}

/* ---- The superblock ---- */

/* Reads the newest copy: another process may have written it since this one opened the store. */
static gyre_err read_newest(const struct eng_store *store, struct eng_superblock *super_out,
                            unsigned *copy_out)
{
    gyre_err err = GYRE_DAMAGED;

    *copy_out = 0;
    for (unsigned copy = 0; copy < 2; copy++) {
        struct eng_superblock at;
        gyre_err read = eng_pread(store->volume_fd, &at, sizeof at, eng_superblock_off(copy));
        if (read != GYRE_OK)
            return read;
        if (eng_superblock_check(&at, store->super.volume_bytes) != GYRE_OK ||
            (err == GYRE_OK && at.generation <= super_out->generation))
            continue;
        *super_out = at;
        *copy_out = copy;
        err = GYRE_OK;
    }
    return err;
}

/* Release: whoever looks in a pool's new place finds it so on disk, too. */
static void follow_locked(struct eng_store *store, const struct eng_superblock *super)
{
    struct eng_runtime_head *head = store->rt.head;
    for (uint32_t i = 0; i < ENG_MAX_POOLS; i++)
        atomic_store_explicit(&head->pool_epoch[i], super->pools[i].epoch, memory_order_release);
    atomic_store_explicit(&head->features, super->feature_compat, memory_order_release);
}

/* What a process was about to change when it died is on disk, or it is not; this run goes by that.
 */
void eng_facts_enter(struct eng_store *store)
{
    struct eng_superblock super;
    unsigned copy;
    bool orphaned;
    eng_facts_lock(store, &orphaned);
    if (likely(!orphaned))
        return;
    if (read_newest(store, &super, &copy) == GYRE_OK)
        follow_locked(store, &super);
    eng_bans_repair_locked(store);
}

void eng_facts_settle(struct eng_store *store)
{
    eng_facts_enter(store);
    eng_facts_unlock(store);
}

/* Makes a change durable: the copy that is not the newest is written, so one is whole at any
 * moment. Then this run follows, in all that another process may have changed as well. */
static gyre_err update_locked(struct eng_store *store,
                              void (*change)(struct eng_superblock *super, uint32_t what),
                              uint32_t what)
{
    struct eng_superblock super;
    unsigned copy;
    gyre_err err;

    TRY(read_newest(store, &super, &copy));
    change(&super, what);
    super.generation++;
    eng_superblock_seal(&super);
    TRY(eng_pwrite(store->volume_fd, &super, sizeof super, eng_superblock_off(1 - copy)));
    GYRE_STEP("pool.super.written");
    TRY(eng_sync_data(store->volume_fd));
    GYRE_STEP("pool.super.durable");
    follow_locked(store, &super);
out:
    return err;
}

static gyre_err update(struct eng_store *store,
                       void (*change)(struct eng_superblock *super, uint32_t what), uint32_t what)
{
    eng_facts_enter(store);
    gyre_err err = update_locked(store, change, what);
    eng_facts_unlock(store);
    return err;
}

static void raise_epoch(struct eng_superblock *super, uint32_t pool)
{
    super->pools[pool].epoch++;
}

gyre_err eng_pool_purge(struct eng_store *store, uint8_t pool)
{
    GYRE_CHECK(pool < store->super.n_pools);
    return update(store, raise_epoch, pool);
}

static void add_feature(struct eng_superblock *super, uint32_t feature)
{
    super->feature_compat |= feature;
}

gyre_err eng_feature_use(struct eng_store *store, enum eng_feature_compat feature)
{
    uint32_t now = atomic_load_explicit(&store->rt.head->features, memory_order_acquire);
    return likely((now & feature) != 0) ? GYRE_OK : update(store, add_feature, feature);
}
