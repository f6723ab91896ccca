/* Changing and removing buckets: each step is a new version of the bucket's document, put
 * in place of the one that was known, so that of two processes one goes first. */
#include <string.h>
#include <time.h>

#include "server/s3/bucket_table.h"
#include "server/s3/bucket_uploads.h"
#include "server/s3/meta.h"
#include "server/s3/names_scan.h"

enum { ATTEMPTS = 8 }; /* when others change the document meanwhile */

/* ---- Facts ---- */

/* NOT_FOUND: it was removed by another process; CHANGED: changed by one. */
static gyre_err store_facts(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                            enum srv_s3_fact fact, struct srv_str value)
{
    pthread_rwlock_rdlock(&buckets->lock);
    uint64_t serial = bucket->serial;
    struct srv_s3_facts *facts = srv_s3_facts_acquire(bucket->facts);
    struct srv_s3_bucket_doc doc = {.created_ms = bucket->created_ms};
    pthread_rwlock_unlock(&buckets->lock);
    gyre_err err = GYRE_NO_MEMORY;

    doc.facts = srv_s3_facts_with(facts, fact, value);
    if (doc.facts != NULL)
        err = srv_s3_bucket_doc_put(buckets->store, srv_s3_bucket_name(bucket), &doc, serial,
                                    &doc.serial);
    if (err == GYRE_OK)
        srv_s3_bucket_take(buckets, bucket, &doc);
    srv_s3_facts_release(doc.facts);
    srv_s3_facts_release(facts);
    return err;
}

static enum srv_s3_code change_inside(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                                      enum srv_s3_fact fact, struct srv_str value)
{
    gyre_err err = store_facts(buckets, bucket, fact, value);

    for (int i = 0; i < ATTEMPTS && err == GYRE_CHANGED; i++) {
        err = srv_s3_bucket_refresh(buckets, srv_s3_bucket_name(bucket));
        if (err == GYRE_OK)
            err = store_facts(buckets, bucket, fact, value);
    }
    if (err == GYRE_CHANGED)
        return SRV_S3_OPERATION_ABORTED;
    return err == GYRE_NOT_FOUND ? SRV_S3_NO_SUCH_BUCKET : srv_s3_code_of(err);
}

enum srv_s3_code srv_s3_bucket_change(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                                      enum srv_s3_fact fact, struct srv_str value)
{
    pthread_mutex_lock(&bucket->change_lock);
    enum srv_s3_code code = srv_s3_bucket_enter(buckets, bucket);
    if (code == SRV_S3_NONE) {
        code = change_inside(buckets, bucket, fact, value);
        srv_s3_bucket_leave(bucket, NULL);
    }
    pthread_mutex_unlock(&bucket->change_lock);
    return code;
}

/* ---- Removing ---- */

/* LIVE -> CLOSING, unless an object is just being committed. */
static enum srv_s3_code begin_remove(struct srv_s3_buckets *buckets, struct srv_str name,
                                     struct srv_s3_bucket **bucket_out)
{
    enum srv_s3_code code = SRV_S3_NONE;

    pthread_rwlock_wrlock(&buckets->lock);
    struct srv_s3_bucket *bucket = srv_s3_bucket_find_locked(buckets, name);
    if (bucket == NULL)
        code = SRV_S3_NO_SUCH_BUCKET;
    else if (bucket->state != SRV_S3_BUCKET_LIVE)
        code = SRV_S3_OPERATION_ABORTED;
    else if (atomic_load_explicit(&bucket->committing, memory_order_acquire) > 0)
        code = SRV_S3_BUCKET_NOT_EMPTY;
    else {
        bucket->state = SRV_S3_BUCKET_CLOSING;
        atomic_fetch_add_explicit(&bucket->refs, 1, memory_order_relaxed);
    }
    pthread_rwlock_unlock(&buckets->lock);
    *bucket_out = code == SRV_S3_NONE ? bucket : NULL;
    return code;
}

struct search {
    struct srv_str bucket;
    bool found;
};

static bool search_one(void *data, const struct gyre_handle *handle)
{
    struct search *search = data;
    size_t len;
    const void *bytes = gyre_handle_meta(handle, &len);
    struct srv_s3_meta meta;

    search->found = srv_s3_meta_decode(bytes, len, &meta) &&
                    meta.bucket.len == search->bucket.len &&
                    memcmp(meta.bucket.base, search->bucket.base, meta.bucket.len) == 0;
    return !search->found;
}

/* Asks the index, which by then was told of all that was stored in a bucket nobody is in any more.
 * False if it cannot tell. */
static bool ask_index(struct srv_s3_buckets *buckets, struct srv_str name, uint32_t now,
                      bool *holds_out)
{
    struct srv_names_scan scan;
    struct srv_name_row row;

    *holds_out = false;
    if (!srv_names_lists(buckets->names, name))
        return false;
    srv_names_settle(buckets->names);
    if (srv_names_scan_begin(buckets->names, name, now, SIZE_MAX, &scan) != SRV_NAMES_FOUND)
        return false;
    enum srv_names_found found = srv_names_scan_seek(&scan, (struct srv_str){"", 0}, false);
    if (found == SRV_NAMES_FOUND)
        found = srv_names_scan_next(&scan, &row);
    srv_names_scan_end(&scan);
    *holds_out = found == SRV_NAMES_FOUND;
    return found == SRV_NAMES_FOUND || found == SRV_NAMES_END;
}

/* Whether a bucket that is SRV_S3_BUCKET_CLOSING holds an object; the cheap answers come first. */
static gyre_err holds_objects(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                              bool *holds_out)
{
    struct srv_str name = srv_s3_bucket_name(bucket);

    *holds_out = false;
    pthread_mutex_lock(&bucket->key_lock);
    uint64_t commits = bucket->commits;
    struct gyre_key key = bucket->last_key;
    pthread_mutex_unlock(&bucket->key_lock);
    uint32_t now = (uint32_t)time(NULL);
    if (commits > 0 && gyre_exists(buckets->store, &key, now, GYRE_STRICT) == GYRE_OK) {
        *holds_out = true;
        return GYRE_OK;
    }
    if (ask_index(buckets, name, now, holds_out))
        return GYRE_OK;
    struct search search = {name, false};
    gyre_err err = gyre_each(buckets->store, GYRE_POOL_MAIN, search_one, &search);
    *holds_out = search.found;
    return err;
}

/* One attempt: the document says that the bucket is being looked through, then whoever commits
 * makes it say otherwise, or is found. CHANGED: somebody did. */
static gyre_err remove_if_empty(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket,
                                bool *holds_out, uint64_t *serial_out)
{
    struct srv_str name = srv_s3_bucket_name(bucket);
    uint64_t serial;

    *holds_out = false;
    *serial_out = 0;
    pthread_rwlock_rdlock(&buckets->lock);
    uint64_t known = *serial_out = bucket->serial;
    struct srv_s3_bucket_doc doc = {.created_ms = bucket->created_ms,
                                    .is_closing = true,
                                    .facts = srv_s3_facts_acquire(bucket->facts)};
    pthread_rwlock_unlock(&buckets->lock);
    gyre_err err = srv_s3_bucket_doc_put(buckets->store, name, &doc, known, &serial);
    if (err != GYRE_OK)
        goto out;
    *serial_out = serial;
    err = holds_objects(buckets, bucket, holds_out);
    if (err == GYRE_OK && !*holds_out) {
        err = srv_s3_bucket_doc_delete(buckets->store, name, serial);
        goto out;
    }
    doc.is_closing = false;
    gyre_err undone = srv_s3_bucket_doc_put(buckets->store, name, &doc, serial, &doc.serial);
    if (undone == GYRE_OK)
        srv_s3_bucket_take(buckets, bucket, &doc);
    else if (undone != GYRE_CHANGED && err == GYRE_OK) /* CHANGED: somebody else did so */
        err = undone;
out:
    srv_s3_facts_release(doc.facts);
    return err;
}

/* CLOSING -> none or LIVE. `serial` is the version that is gone: another process may have made the
 * bucket anew, and somebody here noticed. */
static void end_remove(struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket, bool is_gone,
                       uint64_t serial)
{
    pthread_rwlock_wrlock(&buckets->lock);
    if (bucket->state == SRV_S3_BUCKET_CLOSING) { /* else somebody noticed already */
        if (is_gone && bucket->serial <= serial)
            srv_s3_bucket_remove_locked(buckets, bucket);
        else
            bucket->state = SRV_S3_BUCKET_LIVE;
    }
    pthread_rwlock_unlock(&buckets->lock);
    srv_s3_bucket_release(bucket);
}

enum srv_s3_code srv_s3_buckets_remove(struct srv_s3_buckets *buckets, struct srv_str name)
{
    struct srv_s3_bucket *bucket;
    uint64_t serial;
    bool holds;

    enum srv_s3_code code = begin_remove(buckets, name, &bucket);
    if (code != SRV_S3_NONE)
        return code;
    gyre_err err = remove_if_empty(buckets, bucket, &holds, &serial);
    for (int i = 0; i < ATTEMPTS && err == GYRE_CHANGED; i++) {
        err = srv_s3_bucket_refresh(buckets, name);
        if (err == GYRE_OK)
            err = remove_if_empty(buckets, bucket, &holds, &serial);
    }
    bool is_gone = !holds && (err == GYRE_OK || err == GYRE_NOT_FOUND);
    if (is_gone)
        srv_s3_bucket_uploads_abort(buckets->store, name);
    end_remove(buckets, bucket, is_gone, serial);
    if (holds)
        return SRV_S3_BUCKET_NOT_EMPTY;
    if (err == GYRE_NOT_FOUND) /* another process was faster */
        return SRV_S3_NO_SUCH_BUCKET;
    return err == GYRE_CHANGED ? SRV_S3_OPERATION_ABORTED : srv_s3_code_of(err);
}
