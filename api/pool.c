/* Pools, tenants and bans: names for what the engine does. */
#include "engine/pool.h"

#include <string.h>

#include "engine/ban.h"
#include "engine/base/sys.h"
#include "engine/tenant.h"

#include "api/store.h"

_Static_assert((int)GYRE_LABEL_PREFIX == (int)ENG_BAN_PREFIX &&
                   (int)GYRE_LABEL_TAG == (int)ENG_BAN_TAG &&
                   GYRE_LABELS_MAX == ENG_DOC_LABELS_MAX && GYRE_TENANTS_MAX == ENG_TENANTS &&
                   GYRE_POOLS_MAX == ENG_MAX_POOLS,
               "numbers are handed on as they are");

gyre_err gyre_pool_find(struct gyre_store *store, const char *name, uint8_t *pool_out)
{
    if (name == NULL || pool_out == NULL)
        return GYRE_INVALID;
    *pool_out = 0;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    err = eng_pool_find(store->engine, name, pool_out);
    api_leave(store, shard);
    return err;
}

gyre_err gyre_pool_at(struct gyre_store *store, uint8_t pool, struct gyre_pool_info *info_out)
{
    if (info_out == NULL || info_out->struct_size != sizeof *info_out)
        return GYRE_INVALID;
    *info_out = (struct gyre_pool_info){.struct_size = sizeof *info_out};
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    const struct eng_store *engine = store->engine;
    if (pool < engine->super.n_pools) {
        memcpy(info_out->name, engine->super.pools[pool].name, sizeof info_out->name - 1);
        info_out->bytes = eng_pool_bytes(engine, pool);
        info_out->kept_bytes = eng_pool_kept_bytes(engine, pool);
        info_out->capacity_bytes = eng_pool_capacity_bytes(engine, pool);
        info_out->purges = eng_pool_epoch(engine, pool);
        info_out->never_evicts = eng_pool_never_evicts(engine, pool);
    } else {
        err = GYRE_RANGE;
    }
    api_leave(store, shard);
    return err;
}

bool api_pool_usable(const struct gyre_store *store, unsigned pool)
{
    return pool < store->engine->super.n_pools && pool != ENG_POOL_SMALL;
}

gyre_err gyre_purge_pool(struct gyre_store *store, uint8_t pool)
{
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    if (pool == GYRE_POOL_META)
        api_meta_begin(store);
    err = api_pool_usable(store, pool) ? eng_pool_purge(store->engine, pool) : GYRE_INVALID;
    if (pool == GYRE_POOL_META)
        api_meta_end(store);
    api_leave(store, shard);
    return err;
}

gyre_err gyre_tenant_bytes(struct gyre_store *store, uint16_t tenant, uint64_t *bytes_out,
                           uint64_t *quota_bytes_out)
{
    if (bytes_out == NULL || quota_bytes_out == NULL)
        return GYRE_INVALID;
    *bytes_out = *quota_bytes_out = 0;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    err = eng_tenant_bytes(store->engine, tenant, bytes_out, quota_bytes_out);
    api_leave(store, shard);
    return err;
}

gyre_err gyre_tenant_set_quota(struct gyre_store *store, uint16_t tenant, uint64_t quota_bytes)
{
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    err = eng_tenant_set_quota(store->engine, tenant, quota_bytes);
    api_leave(store, shard);
    return err;
}

/* ---- Bans ---- */

uint64_t gyre_label(enum gyre_label_kind kind, const void *bytes, size_t len)
{
    return eng_label_hash((enum eng_ban_kind)kind, bytes, len);
}

/* A full table is swept once: bans of which no document is left go. */
static gyre_err ban(struct gyre_store *store, uint8_t pool, enum eng_ban_kind kind, uint64_t hash,
                    unsigned flags)
{
    struct eng_store *engine = store->engine;
    bool sync = (flags & GYRE_PUT_SYNC) != 0;
    uint64_t now_ms = eng_clock_real_ns() / 1000000;
    if (!api_pool_usable(store, pool) || (flags & ~(unsigned)GYRE_PUT_SYNC) != 0)
        return GYRE_INVALID;
    gyre_err err = eng_ban_add(engine, pool, kind, hash, now_ms, sync);
    if (err != GYRE_NO_SPACE)
        return err;
    err = eng_ban_sweep(engine, (uint32_t)(now_ms / 1000));
    return err == GYRE_OK ? eng_ban_add(engine, pool, kind, hash, now_ms, sync) : err;
}

gyre_err gyre_ban_label(struct gyre_store *store, uint8_t pool, uint64_t label, unsigned flags)
{
    uint32_t shard;
    if (label == 0)
        return GYRE_INVALID;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    err = ban(store, pool, ENG_BAN_TAG, label, flags);
    api_leave(store, shard);
    return err;
}

gyre_err gyre_ban_key(struct gyre_store *store, uint8_t pool, const struct gyre_key *key,
                      unsigned flags)
{
    uint32_t shard;
    if (key == NULL)
        return GYRE_INVALID;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    err = ban(store, pool, ENG_BAN_KEY, eng_ban_key_hash(key->bytes), flags);
    api_leave(store, shard);
    return err;
}

gyre_err gyre_bans(struct gyre_store *store, uint32_t *count_out)
{
    if (count_out == NULL)
        return GYRE_INVALID;
    *count_out = 0;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    *count_out = eng_bans_count(store->engine);
    api_leave(store, shard);
    return GYRE_OK;
}
