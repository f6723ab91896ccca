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

gyre_err api_delete_inside(struct gyre_store *store, const struct gyre_key *key,
                           enum gyre_condition condition, uint64_t if_serial, unsigned flags)
{
    enum eng_condition eng = (enum eng_condition)condition;
    bool sync = (flags & GYRE_PUT_SYNC) != 0;
    if (flags >= API_ONE_POOL) {
        uint8_t pool = (uint8_t)api_flags_pool(flags);
        return api_pool_usable(store, pool)
                   ? eng_delete(store->engine, pool, key->bytes, eng, if_serial, sync)
                   : GYRE_INVALID;
    }
    gyre_err err = eng_delete(store->engine, ENG_POOL_MAIN, key->bytes, eng, if_serial, sync);
    if (api_meta_used(store) &&
        (err == GYRE_NOT_FOUND || (err == GYRE_OK && condition == GYRE_ALWAYS))) {
        gyre_err meta = eng_delete(store->engine, ENG_POOL_META, key->bytes, eng, if_serial, sync);
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
