/* Which number the store counts a bucket's bytes for, and how many there may be. Numbers are given
 * when buckets are made and stay in their documents, as objects have them in their headers. */
#include "server/log.h"
#include "server/s3/bucket_table.h"

void srv_s3_bucket_count_locked(struct srv_s3_buckets *buckets, const struct srv_s3_bucket *bucket,
                                int by)
{
    uint16_t tenant = bucket->facts->tenant;

    if (tenant != 0 && tenant < GYRE_TENANTS_MAX)
        buckets->users[tenant] = (uint16_t)(buckets->users[tenant] + by);
}

void srv_s3_bucket_bound_locked(const struct srv_s3_buckets *buckets,
                                const struct srv_s3_bucket *bucket)
{
    uint16_t tenant = bucket->facts->tenant;
    gyre_err err = GYRE_INVALID;

    if (tenant != 0)
        err = gyre_tenant_set_quota(buckets->store, tenant, bucket->rule.quota_bytes);
    if (err != GYRE_OK && err != GYRE_CLOSED && bucket->rule.quota_bytes != 0)
        srv_log(SRV_LOG_ERROR,
                "the bucket %.*s has no quota: its facts were lost, or it was made by an older "
                "version; make it anew",
                (int)bucket->name_len, bucket->name);
}

struct srv_s3_facts *srv_s3_bucket_number_locked(const struct srv_s3_buckets *buckets,
                                                 struct srv_s3_facts *facts, uint32_t salt)
{
    for (uint32_t i = 0; i < GYRE_TENANTS_MAX - 1; i++) {
        uint32_t tenant = 1 + (salt + i) % (GYRE_TENANTS_MAX - 1);
        const uint8_t bytes[2] = {(uint8_t)tenant, (uint8_t)(tenant >> 8)};
        if (buckets->users[tenant] == 0)
            return srv_s3_facts_with(facts, SRV_S3_FACT_TENANT,
                                     (struct srv_str){(const char *)bytes, sizeof bytes});
    }
    return srv_s3_facts_acquire(facts);
}
