/* A change of one object, from before the store is asked to after it answered: what keeps the table
 * of buckets and the index of names right. Whoever stores or deletes objects does it in between.
 *
 * Owns:    the caller owns struct srv_s3_change; each begin that answers NONE is ended once.
 * Threads: one at a time; usually a worker.
 * Blocks:  never for long.
 * Keeps:   S1, S4.
 */
#pragma once

#include "server/s3/buckets.h"
#include "server/s3/names.h"

struct srv_s3_change {
    struct srv_names *names;
    struct srv_s3_bucket *bucket; /* NULL for a deletion */
    unsigned turn;
};

/* An object that was stored, to be confirmed. */
struct srv_s3_stored {
    struct srv_s3_bucket *bucket; /* acquired; NULL: nothing was stored */
    struct gyre_key digest;
    uint64_t serial;
};

/* Begins to store an object in an acquired bucket. Results as srv_s3_bucket_enter. */
enum srv_s3_code srv_s3_change_begin(struct srv_s3_change *change, struct srv_names *names,
                                     struct srv_s3_buckets *buckets, struct srv_s3_bucket *bucket);
/* Begins to delete one, which needs no bucket to stay. */
void srv_s3_change_begin_delete(struct srv_s3_change *change, struct srv_names *names);

/* Ends it. `digest` is the object's key in the store if it was changed, NULL if nothing was. */
void srv_s3_change_end(struct srv_s3_change *change, struct srv_str bucket, struct srv_str key,
                       const struct gyre_key *digest);

/* Makes sure, once lists show what was stored and before anybody is told, that no other process has
 * removed the bucket meanwhile. NONE; NO_SUCH_BUCKET: the object was taken back; SLOW_DOWN and
 * others: nobody knows. Blocks. */
enum srv_s3_code srv_s3_change_confirm(struct gyre_store *store, struct srv_names *names,
                                       struct srv_s3_buckets *buckets,
                                       const struct srv_s3_stored *stored, struct srv_str bucket,
                                       struct srv_str key);
