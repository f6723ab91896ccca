#include "engine/tenant.h"

#include "engine/base/bits.h"
#include "engine/base/check.h"

gyre_err eng_tenant_bytes(const struct eng_store *store, uint32_t tenant, uint64_t *bytes_out,
                          uint64_t *quota_bytes_out)
{
    *bytes_out = *quota_bytes_out = 0;
    if (tenant >= ENG_TENANTS)
        return GYRE_INVALID;
    const struct eng_tenant *at = &store->tenants[tenant];
    *bytes_out = atomic_load_explicit(&at->units, memory_order_relaxed) << ENG_UNIT_SHIFT;
    *quota_bytes_out = atomic_load_explicit(&at->quota_units, memory_order_relaxed)
                       << ENG_UNIT_SHIFT;
    return GYRE_OK;
}

gyre_err eng_tenant_set_quota(struct eng_store *store, uint32_t tenant, uint64_t quota_bytes)
{
    if (tenant >= ENG_TENANTS)
        return GYRE_INVALID;
    uint64_t units = quota_bytes >> ENG_UNIT_SHIFT;
    if (units == 0 && quota_bytes > 0)
        units = 1; /* less than any document, not unbounded */
    atomic_store_explicit(&store->tenants[tenant].quota_units, units, memory_order_relaxed);
    return GYRE_OK;
}

/* Why a stale answer is safe: a quota is a bound on what is kept, not a promise that something
 * fits; what slips through at its edge is counted, and refused the next time. */
gyre_err eng_tenant_admit(const struct eng_store *store, uint16_t tenant, uint64_t units,
                          uint64_t leaving)
{
    if (unlikely(tenant >= ENG_TENANTS))
        return GYRE_INVALID;
    const struct eng_tenant *at = &store->tenants[tenant];
    uint64_t quota = atomic_load_explicit(&at->quota_units, memory_order_relaxed);
    if (likely(quota == 0))
        return GYRE_OK;
    uint64_t now = atomic_load_explicit(&at->units, memory_order_relaxed) + units;
    return now - (leaving < now ? leaving : now) > quota ? GYRE_QUOTA : GYRE_OK;
}
