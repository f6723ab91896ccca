#include "server/s3/acl_of_call.h"

#include <string.h>

#include "server/s3/buckets.h"

/* The owner of the call's bucket, copied to `id`. */
static struct srv_str bucket_owner(const struct srv_s3_call *call, char id[SRV_S3_ID_MAX])
{
    struct srv_s3_bucket *bucket = srv_s3_bucket_acquire(call->s3->buckets, call->route.bucket);
    struct srv_str owner = srv_s3_owner_or_default((struct srv_str){NULL, 0});

    if (bucket == NULL)
        return owner;
    struct srv_s3_facts *facts = srv_s3_bucket_facts(call->s3->buckets, bucket);
    if (facts->of[SRV_S3_FACT_OWNER].base != NULL &&
        facts->of[SRV_S3_FACT_OWNER].len <= SRV_S3_ID_MAX) {
        owner = (struct srv_str){id, facts->of[SRV_S3_FACT_OWNER].len};
        memcpy(id, facts->of[SRV_S3_FACT_OWNER].base, owner.len);
    }
    srv_s3_facts_release(facts);
    srv_s3_bucket_release(bucket);
    return owner;
}

/* Nearly every request asks for nothing: not worth a look at the bucket. */
bool srv_s3_asks_for_acl(const struct srv_request *req)
{
    for (size_t i = 0; i < req->n_fields; i++) {
        struct srv_str name = req->fields[i].name;
        if (name.len >= 9 && (memcmp(name.base, "x-amz-acl", 9) == 0 ||
                              (name.len > 12 && memcmp(name.base, "x-amz-grant-", 12) == 0)))
            return true;
    }
    return false;
}

enum srv_s3_code srv_s3_acl_of_call(const struct srv_s3_call *call, struct srv_str owner,
                                    enum srv_s3_acl_place place,
                                    uint8_t bytes_out[SRV_S3_ACL_BYTES_MAX], size_t *len_out)
{
    char id[SRV_S3_ID_MAX];
    struct srv_s3_acl acl;
    bool is_set;

    *len_out = 0;
    if (!srv_s3_asks_for_acl(call->req))
        return SRV_S3_NONE;
    owner = srv_s3_owner_or_default(owner);
    struct srv_str of_bucket = place == SRV_S3_ACL_OF_OBJECT ? bucket_owner(call, id) : owner;
    pthread_rwlock_rdlock(&call->s3->access_lock);
    enum srv_s3_code code =
        srv_s3_acl_of_head(call->req, call->s3->access, owner, of_bucket, &acl, &is_set);
    /* Encoded while the users, whose names it may point to, are still there. */
    if (code == SRV_S3_NONE && is_set)
        *len_out = srv_s3_acl_encode(&acl, owner, bytes_out);
    pthread_rwlock_unlock(&call->s3->access_lock);
    return code;
}
