/* Bytes per tenant: what the documents of one bucket or site take in all stripes and pools, and
 * what they may.
 *
 * A tenant counts for whole extents, parts and padding included, from the moment a document is in
 * the directory until it leaves. Quotas are the caller's: they last as long as the runtime segment.
 *
 * Threads: any. Blocks: never. Allocates: nothing. Keeps: E80.
 */
#pragma once

#include "engine/store.h"

/* Adds units (modulo 2^64, so that it takes away as well); from slot.c alone, under a stripe's
 * lock.
 */
static inline void eng_tenant_count(struct eng_store *store, uint16_t tenant, uint64_t units)
{
    /* Relaxed: a sum that nothing else is read by. Numbers above the table, from stores made when
     * there was none, count for nobody. */
    if (likely(tenant < ENG_TENANTS))
        atomic_fetch_add_explicit(&store->tenants[tenant].units, units, memory_order_relaxed);
}

/* Bytes of the tenant's documents, and the most they may be; 0: no bound. INVALID: no such number.
 */
GYRE_MUST_USE gyre_err eng_tenant_bytes(const struct eng_store *store, uint32_t tenant,
                                        uint64_t *bytes_out, uint64_t *quota_bytes_out);
/* INVALID. */
GYRE_MUST_USE gyre_err eng_tenant_set_quota(struct eng_store *store, uint32_t tenant,
                                            uint64_t quota_bytes);

/* Whether the tenant has a quota at all, or a number that is refused. */
static inline bool eng_tenant_bounded(const struct eng_store *store, uint16_t tenant)
{
    return tenant >= ENG_TENANTS ||
           atomic_load_explicit(&store->tenants[tenant].quota_units, memory_order_relaxed) != 0;
}

/* Whether the tenant may have `units` more, when `leaving` of its units go at the same time. Puts
 * that ask at the same moment may be over by what they add. QUOTA. */
GYRE_MUST_USE gyre_err eng_tenant_admit(const struct eng_store *store, uint16_t tenant,
                                        uint64_t units, uint64_t leaving);
