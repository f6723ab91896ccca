/* Removing objects. */
#include "api/delete.h"

#include "engine/writer.h"

#include "api/handle.h"
#include "api/store.h"

_Static_assert((int)GYRE_ALWAYS == (int)ENG_ALWAYS && (int)GYRE_IF_ABSENT == (int)ENG_IF_ABSENT &&
                   (int)GYRE_IF_SERIAL == (int)ENG_IF_SERIAL,
               "conditions are handed on as they are");

bool api_delete_valid(const struct gyre_key *key, enum gyre_condition condition, unsigned flags)
{
    return key != NULL && (condition == GYRE_ALWAYS || condition == GYRE_IF_SERIAL) &&
           (flags & ~((unsigned)GYRE_PUT_SYNC | 0x1Fu << 24)) == 0;
}

static gyre_err delete_from(struct gyre_store *store, uint8_t pool, const struct gyre_key *key,
                            enum eng_condition condition, uint64_t if_serial, bool sync)
{
    if (pool == ENG_POOL_META)
        api_meta_begin(store);
    gyre_err err = eng_delete(store->engine, pool, key->bytes, condition, if_serial, sync);
    if (pool == ENG_POOL_META)
        api_meta_end(store);
    return err;
}

gyre_err api_delete_inside(struct gyre_store *store, const struct gyre_key *key,
                           enum gyre_condition condition, uint64_t if_serial, unsigned flags)
{
    enum eng_condition eng = (enum eng_condition)condition;
    bool sync = (flags & GYRE_PUT_SYNC) != 0;
    if (flags >= API_ONE_POOL) {
        uint8_t pool = (uint8_t)api_flags_pool(flags);
        if (!api_pool_usable(store, pool))
            return GYRE_INVALID;
        return delete_from(store, pool, key, eng, if_serial, sync);
    }
    gyre_err err = delete_from(store, ENG_POOL_MAIN, key, eng, if_serial, sync);
    if (api_meta_used(store) &&
        (err == GYRE_NOT_FOUND || (err == GYRE_OK && condition == GYRE_ALWAYS))) {
        gyre_err meta = delete_from(store, ENG_POOL_META, key, eng, if_serial, sync);
        if (err == GYRE_NOT_FOUND || meta != GYRE_NOT_FOUND)
            err = meta;
    }
    return err;
}

gyre_err gyre_delete(struct gyre_store *store, const struct gyre_key *key,
                     enum gyre_condition condition, uint64_t if_serial, unsigned flags)
{
    if (!api_delete_valid(key, condition, flags))
        return GYRE_INVALID;
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    err = api_delete_inside(store, key, condition, if_serial, flags);
    api_leave(store, shard);
    return err;
}
