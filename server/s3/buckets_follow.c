/* What other processes, and this one, have done to buckets: the store counts changes of its meta
 * pool, and what was looked at as of the last of them needs no second look. */
#include <stdlib.h>
#include <string.h>

#include "server/s3/bucket_table.h"

bool srv_s3_buckets_is_settled(const struct srv_s3_buckets *buckets)
{
    return atomic_load_explicit(&buckets->settled, memory_order_acquire) ==
           gyre_meta_changes(buckets->store);
}

/* What was read while something was being changed may be of before that. */
static bool is_certain(uint64_t seen)
{
    return seen % 2 == 0;
}

/* Raises; a later look may have been noted first. */
static void note_seen(struct srv_s3_bucket *bucket, uint64_t seen)
{
    if (is_certain(seen) && seen > atomic_load_explicit(&bucket->seen, memory_order_relaxed))
        atomic_store_explicit(&bucket->seen, seen, memory_order_relaxed);
}

bool srv_s3_buckets_is_current(struct srv_s3_buckets *buckets, struct srv_str name)
{
    uint64_t serial, changes = gyre_meta_changes(buckets->store);
    bool is_current = true;

    if (atomic_load_explicit(&buckets->settled, memory_order_acquire) == changes)
        return true;
    pthread_rwlock_rdlock(&buckets->lock);
    struct srv_s3_bucket *bucket = srv_s3_bucket_find_locked(buckets, name);
    if (!srv_s3_bucket_is_seen(bucket)) {
        is_current = srv_s3_bucket_doc_peek(buckets->store, name, &serial) == GYRE_NOT_FOUND;
    } else if (atomic_load_explicit(&bucket->seen, memory_order_relaxed) != changes) {
        is_current = srv_s3_bucket_doc_peek(buckets->store, name, &serial) == GYRE_OK &&
                     serial == bucket->serial;
        if (is_current)
            note_seen(bucket, changes);
    }
    pthread_rwlock_unlock(&buckets->lock);
    return is_current;
}

/* ---- One bucket ---- */

/* Makes the table agree with a document that was read after change `seen`. */
static gyre_err take_found(struct srv_s3_buckets *buckets, struct srv_str name,
                           const struct srv_s3_bucket_doc *doc, uint64_t seen, uint64_t pass)
{
    gyre_err err = GYRE_OK;

    pthread_rwlock_wrlock(&buckets->lock);
    struct srv_s3_bucket *bucket = srv_s3_bucket_find_locked(buckets, name);
    if (bucket == NULL) {
        bucket = srv_s3_bucket_insert_locked(buckets, name, SRV_S3_BUCKET_LIVE, doc);
        if (bucket != NULL)
            srv_s3_facts_acquire(doc->facts);
        else
            err = GYRE_NO_MEMORY;
    } else {
        srv_s3_bucket_take_locked(buckets, bucket, doc);
        if (bucket->state == SRV_S3_BUCKET_CREATING) /* stored, by whomever */
            bucket->state = SRV_S3_BUCKET_LIVE;
    }
    if (bucket != NULL && bucket->serial == doc->serial) {
        note_seen(bucket, seen);
        bucket->pass = pass;
    }
    pthread_rwlock_unlock(&buckets->lock);
    return err;
}

/* There was no document when version `known` was what the table had. One that is just being made
 * has none yet. */
static void take_missing(struct srv_s3_buckets *buckets, struct srv_str name, uint64_t known)
{
    pthread_rwlock_wrlock(&buckets->lock);
    struct srv_s3_bucket *bucket = srv_s3_bucket_find_locked(buckets, name);
    if (srv_s3_bucket_is_seen(bucket) && bucket->serial == known)
        srv_s3_bucket_remove_locked(buckets, bucket);
    pthread_rwlock_unlock(&buckets->lock);
}

static gyre_err look(struct srv_s3_buckets *buckets, struct srv_str name,
                     struct srv_s3_bucket_doc *doc_out)
{
    uint64_t known = 0, seen = gyre_meta_changes(buckets->store);

    pthread_rwlock_rdlock(&buckets->lock);
    const struct srv_s3_bucket *bucket = srv_s3_bucket_find_locked(buckets, name);
    if (bucket != NULL)
        known = bucket->serial;
    pthread_rwlock_unlock(&buckets->lock);
    gyre_err err = srv_s3_bucket_doc_get(buckets->store, name, doc_out);
    if (err == GYRE_OK)
        err = take_found(buckets, name, doc_out, seen, 0);
    else if (err == GYRE_NOT_FOUND)
        take_missing(buckets, name, known);
    return err;
}

gyre_err srv_s3_bucket_refresh(struct srv_s3_buckets *buckets, struct srv_str name)
{
    struct srv_s3_bucket_doc doc;
    gyre_err err = look(buckets, name, &doc);

    srv_s3_facts_release(doc.facts);
    return err == GYRE_NOT_FOUND ? GYRE_OK : err;
}

/* ---- All buckets ---- */

struct pass {
    struct srv_s3_buckets *buckets;
    uint64_t seen, number;
    gyre_err err;
};

static bool take_one(void *data, const struct gyre_handle *handle)
{
    struct pass *pass = data;
    struct srv_s3_bucket_doc doc;
    struct srv_str name;

    gyre_err err = srv_s3_bucket_doc_read(handle, &name, &doc);
    if (err == GYRE_OK)
        err = take_found(pass->buckets, name, &doc, pass->seen, pass->number);
    srv_s3_facts_release(doc.facts);
    if (err != GYRE_NOT_FOUND)
        pass->err = err;
    return pass->err == GYRE_OK;
}

/* A bucket whose document the pass did not meet. */
static struct srv_s3_bucket *find_unmet(struct srv_s3_buckets *buckets, uint64_t number)
{
    struct srv_s3_bucket *found = NULL;

    pthread_rwlock_rdlock(&buckets->lock);
    for (size_t i = 0; i < SRV_S3_CHAINS && found == NULL; i++) {
        found = buckets->chains[i];
        while (found != NULL && (found->state != SRV_S3_BUCKET_LIVE || found->pass == number))
            found = found->next;
    }
    if (found != NULL)
        atomic_fetch_add_explicit(&found->refs, 1, memory_order_relaxed);
    pthread_rwlock_unlock(&buckets->lock);
    return found;
}

/* It is gone, or was made while the pass went on. */
static gyre_err look_at_unmet(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                              uint64_t number)
{
    gyre_err err = srv_s3_bucket_refresh(buckets, srv_s3_bucket_name(bucket));

    pthread_rwlock_wrlock(&buckets->lock);
    bucket->pass = number;
    pthread_rwlock_unlock(&buckets->lock);
    srv_s3_bucket_release(bucket);
    return err;
}

gyre_err srv_s3_buckets_refresh(struct srv_s3_buckets *buckets)
{
    struct srv_s3_bucket *bucket;

    pthread_mutex_lock(&buckets->pass_lock);
    struct pass pass = {buckets, gyre_meta_changes(buckets->store), ++buckets->pass, GYRE_OK};
    gyre_err err = gyre_each_meta(buckets->store, take_one, &pass);
    if (err == GYRE_OK)
        err = pass.err;
    while (err == GYRE_OK && (bucket = find_unmet(buckets, pass.number)) != NULL)
        err = look_at_unmet(buckets, bucket, pass.number);
    if (err == GYRE_OK && is_certain(pass.seen)) /* release: who reads it finds the table so */
        atomic_store_explicit(&buckets->settled, pass.seen, memory_order_release);
    pthread_mutex_unlock(&buckets->pass_lock);
    return err;
}

/* ---- Commits ---- */

bool srv_s3_bucket_is_undisturbed(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket)
{
    uint64_t changes = gyre_meta_changes(buckets->store);

    pthread_rwlock_rdlock(&buckets->lock);
    bool is_known = atomic_load_explicit(&bucket->seen, memory_order_relaxed) == changes ||
                    atomic_load_explicit(&buckets->settled, memory_order_acquire) == changes;
    bool is_undisturbed = is_known && bucket->state == SRV_S3_BUCKET_LIVE && !bucket->is_closing;
    pthread_rwlock_unlock(&buckets->lock);
    return is_undisturbed;
}

enum srv_s3_code srv_s3_bucket_confirm(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket)
{
    struct srv_str name = srv_s3_bucket_name(bucket);
    struct srv_s3_bucket_doc doc;
    gyre_err err;

    do {
        err = look(buckets, name, &doc);
        if (err == GYRE_OK && doc.is_closing) { /* it is not empty, and must not go */
            uint64_t serial = doc.serial;
            doc.is_closing = false;
            err = srv_s3_bucket_doc_put(buckets->store, name, &doc, serial, &doc.serial);
            if (err == GYRE_OK)
                err = take_found(buckets, name, &doc, 0, 0);
        }
        srv_s3_facts_release(doc.facts);
    } while (err == GYRE_CHANGED);
    return err == GYRE_NOT_FOUND ? SRV_S3_NO_SUCH_BUCKET : srv_s3_code_of(err);
}
