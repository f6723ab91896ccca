/* An object that is read to be stored again: the source of a copy, or the object itself when only
 * what is kept beside it changes.
 *
 * Owns:    the handle, between open and close.
 * Threads: read on the exchange's loop; the rest on one worker at a time.
 * Blocks:  open and pour: for cold data.
 */
#pragma once

#include "server/s3/put_work.h"
#include "server/s3/who.h"

enum { SRV_S3_POUR_BYTES = 16 << 20 }; /* by one job, so that others have their turn */

/* Where x-amz-copy-source points to, and what is asked of it. */
struct srv_s3_source_name {
    struct srv_str bucket;
    struct srv_str key;
    struct srv_s3_who who; /* what the caller may do in its bucket */
    char bucket_[SRV_S3_BUCKET_MAX];
    char key_[SRV_S3_KEY_MAX];
};

/* Reads x-amz-copy-source of the call. NONE; INVALID_ARGUMENT; NO_SUCH_VERSION; NO_SUCH_BUCKET. */
enum srv_s3_code srv_s3_source_read(const struct srv_s3_call *call,
                                    struct srv_s3_source_name *name_out);

struct srv_s3_source_object {
    struct gyre_handle *handle;
    struct srv_s3_meta meta; /* points into the handle */
    uint64_t offset;         /* of the next byte to pour */
    uint64_t end;
};

/* Finds it, if `permission` on it is given. NONE; NO_SUCH_KEY; ACCESS_DENIED: it is not given to
 * `who`, or they may not know whether there is one; what the store answers. */
enum srv_s3_code srv_s3_source_open(struct srv_s3_source_object *source, struct gyre_store *store,
                                    struct srv_str bucket, struct srv_str key, uint32_t now_s,
                                    const struct srv_s3_who *who,
                                    enum srv_s3_permission permission);
/* Allowed on a zeroed one. */
void srv_s3_source_close(struct srv_s3_source_object *source);

/* Stores up to SRV_S3_POUR_BYTES bytes more by `work`. True when there is nothing left to do: all
 * is stored, or work->code says why not. */
bool srv_s3_source_pour(struct srv_s3_source_object *source, struct srv_s3_put_work *work);
