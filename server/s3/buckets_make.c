/* Making buckets, each with a number that the store counts its bytes for. */
#include <time.h>

#include "server/log.h"
#include "server/s3/bucket_table.h"

enum { ATTEMPTS = 8 }; /* at a number of one's own */

/* Where the search for a number begins: two processes had better not begin at the same. */
static uint32_t salt_of(const struct timespec *now)
{
    return (uint32_t)now->tv_nsec / 1000;
}

/* The facts get a number: others, to be released if it returns true. */
static bool insert_locked(struct srv_s3_buckets *buckets, struct srv_str name,
                          struct srv_s3_bucket_doc *doc, uint32_t salt,
                          struct srv_s3_bucket **bucket_out)
{
    struct srv_s3_facts *facts = srv_s3_bucket_number_locked(buckets, doc->facts, salt);

    if (facts == NULL)
        return false;
    doc->facts = facts;
    *bucket_out = srv_s3_bucket_insert_locked(buckets, name, SRV_S3_BUCKET_CREATING, doc);
    if (*bucket_out == NULL) {
        srv_s3_facts_release(facts);
        return false;
    }
    srv_s3_facts_acquire(facts); /* one is the table's, one the caller's */
    atomic_fetch_add_explicit(&(*bucket_out)->refs, 1, memory_order_relaxed);
    return true;
}

static enum srv_s3_code begin_make(struct srv_s3_buckets *buckets, struct srv_str name,
                                   struct srv_s3_bucket_doc *doc, uint32_t salt,
                                   struct srv_s3_bucket **bucket_out)
{
    enum srv_s3_code code = SRV_S3_NONE;

    *bucket_out = NULL;
    pthread_rwlock_wrlock(&buckets->lock);
    struct srv_s3_bucket *found = srv_s3_bucket_find_locked(buckets, name);
    if (found != NULL)
        code = found->state == SRV_S3_BUCKET_LIVE ? SRV_S3_BUCKET_ALREADY_OWNED
                                                  : SRV_S3_OPERATION_ABORTED;
    else if (buckets->n >= SRV_S3_BUCKETS_MAX)
        code = SRV_S3_TOO_MANY_BUCKETS;
    else if (!insert_locked(buckets, name, doc, salt, bucket_out))
        code = SRV_S3_SLOW_DOWN;
    pthread_rwlock_unlock(&buckets->lock);
    return code;
}

/* `doc` NULL: it was not stored. Somebody who read the document may have been here first. */
static void end_make(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                     const struct srv_s3_bucket_doc *doc)
{
    pthread_rwlock_wrlock(&buckets->lock);
    if (bucket->state == SRV_S3_BUCKET_CREATING && doc != NULL) {
        srv_s3_bucket_take_locked(buckets, bucket, doc);
        bucket->state = SRV_S3_BUCKET_LIVE;
    } else if (bucket->state == SRV_S3_BUCKET_CREATING) {
        srv_s3_bucket_remove_locked(buckets, bucket);
    }
    pthread_rwlock_unlock(&buckets->lock);
}

/* ---- A number of its own ---- */

static bool is_shared(struct srv_s3_buckets *buckets, const struct srv_s3_bucket *bucket)
{
    pthread_rwlock_rdlock(&buckets->lock);
    uint16_t tenant = bucket->facts->tenant;
    bool is_shared = bucket->state == SRV_S3_BUCKET_LIVE && tenant != 0 &&
                     tenant < GYRE_TENANTS_MAX && buckets->users[tenant] > 1;
    pthread_rwlock_unlock(&buckets->lock);
    return is_shared;
}

static gyre_err change_number(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                              uint32_t salt)
{
    pthread_rwlock_rdlock(&buckets->lock);
    struct srv_s3_facts *facts = srv_s3_bucket_number_locked(buckets, bucket->facts, salt);
    pthread_rwlock_unlock(&buckets->lock);
    if (facts == NULL)
        return GYRE_NO_MEMORY;
    enum srv_s3_code code =
        srv_s3_bucket_change(buckets, bucket, SRV_S3_FACT_TENANT, facts->of[SRV_S3_FACT_TENANT]);
    srv_s3_facts_release(facts);
    /* Without the bucket, or when others change it, there is nothing to be settled here. */
    return code == SRV_S3_NONE ? GYRE_OK : GYRE_CHANGED;
}

/* Two processes may have chosen the same number at the same moment. The table was complete as of
 * change `before`; unless our own was the only one since, it is completed and looked at again, and
 * who finds his number shared takes another. */
static void settle_number(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                          uint64_t before, uint32_t salt)
{
    gyre_err err = GYRE_OK;

    for (uint32_t i = 2; i < ATTEMPTS && gyre_meta_changes(buckets->store) != before + 2; i++) {
        before = gyre_meta_changes(buckets->store);
        err = srv_s3_buckets_refresh(buckets);
        if (err != GYRE_OK || !is_shared(buckets, bucket))
            break;
        err = change_number(buckets, bucket, salt * i);
        if (err != GYRE_OK)
            break;
    }
    if (err != GYRE_OK || is_shared(buckets, bucket))
        srv_log(SRV_LOG_WARN, "the bucket %.*s may count for the quota of another: %s",
                (int)bucket->name_len, bucket->name, gyre_err_text(err));
}

static gyre_err store_new(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                          struct srv_s3_bucket_doc *doc, uint64_t before, uint32_t salt)
{
    gyre_err err =
        srv_s3_bucket_doc_put(buckets->store, srv_s3_bucket_name(bucket), doc, 0, &doc->serial);
    end_make(buckets, bucket, err == GYRE_OK ? doc : NULL);
    if (err == GYRE_OK)
        settle_number(buckets, bucket, before, salt);
    srv_s3_bucket_release(bucket);
    srv_s3_facts_release(doc->facts);
    return err;
}

enum srv_s3_code srv_s3_buckets_make(struct srv_s3_buckets *buckets, struct srv_str name,
                                     struct srv_s3_facts *facts)
{
    struct srv_s3_bucket_doc doc = {.facts = facts};
    struct srv_s3_bucket *bucket;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    doc.created_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    uint64_t before = gyre_meta_changes(buckets->store);
    gyre_err err = srv_s3_buckets_is_settled(buckets) ? GYRE_OK : srv_s3_buckets_refresh(buckets);
    if (err != GYRE_OK)
        return srv_s3_code_of(err);
    enum srv_s3_code code = begin_make(buckets, name, &doc, salt_of(&now), &bucket);
    if (code != SRV_S3_NONE)
        return code;
    err = store_new(buckets, bucket, &doc, before, salt_of(&now));
    if (err != GYRE_EXISTS)
        return srv_s3_code_of(err);
    err = srv_s3_bucket_refresh(buckets, name); /* another process made it meanwhile */
    return err == GYRE_OK ? SRV_S3_BUCKET_ALREADY_OWNED : srv_s3_code_of(err);
}
