#include "server/s3/change.h"

enum srv_s3_code srv_s3_change_begin(struct srv_s3_change *change, struct srv_names *names,
                                     struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket)
{
    enum srv_s3_code code = srv_s3_bucket_enter(buckets, bucket);

    *change = (struct srv_s3_change){.names = names, .bucket = bucket};
    if (code == SRV_S3_NONE)
        change->turn = srv_names_enter(names);
    return code;
}

void srv_s3_change_begin_delete(struct srv_s3_change *change, struct srv_names *names)
{
    *change = (struct srv_s3_change){.names = names, .turn = srv_names_enter(names)};
}

void srv_s3_change_end(struct srv_s3_change *change, struct srv_str bucket, struct srv_str key,
                       const struct gyre_key *digest)
{
    /* The index first: a bucket that nobody is in any more has told of all its objects. */
    if (digest != NULL && srv_names_lists(change->names, bucket))
        srv_names_changed(change->names, change->turn, bucket, key);
    else
        srv_names_leave(change->names, change->turn);
    if (change->bucket != NULL)
        srv_s3_bucket_leave(change->bucket, digest);
}

enum srv_s3_code srv_s3_change_confirm(struct gyre_store *store, struct srv_names *names,
                                       struct srv_s3_buckets *buckets,
                                       const struct srv_s3_stored *stored, struct srv_str bucket,
                                       struct srv_str key)
{
    enum srv_s3_code code = srv_s3_bucket_confirm(buckets, stored->bucket);
    struct srv_s3_change change;

    if (code != SRV_S3_NO_SUCH_BUCKET)
        return code;
    srv_s3_change_begin_delete(&change, names);
    gyre_err err = gyre_delete(store, &stored->digest, GYRE_IF_SERIAL, stored->serial, 0);
    srv_s3_change_end(&change, bucket, key, err == GYRE_OK ? &stored->digest : NULL);
    bool is_taken_back = err == GYRE_OK || err == GYRE_NOT_FOUND || err == GYRE_CHANGED;
    return is_taken_back ? code : srv_s3_code_of(err);
}
