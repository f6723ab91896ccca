#include "server/s3/bucket_uploads.h"

#include <string.h>

#include "server/log.h"
#include "server/s3/meta.h"
#include "server/s3/upload_record.h"

struct search {
    struct gyre_store *store;
    struct srv_str bucket;
};

static bool abort_one(void *data, const struct gyre_key *key, const struct gyre_upload_id *id,
                      const struct gyre_handle *handle)
{
    const struct search *search = data;
    struct srv_s3_upload_record record;
    struct srv_s3_meta meta;
    size_t len;

    const void *bytes = gyre_handle_meta(handle, &len);
    if (!srv_s3_upload_record_decode(bytes, len, &record) ||
        !srv_s3_meta_decode(record.object.base, record.object.len, &meta) ||
        meta.bucket.len != search->bucket.len ||
        memcmp(meta.bucket.base, search->bucket.base, meta.bucket.len) != 0)
        return true;
    gyre_err err = gyre_upload_abort(search->store, key, id, 0);
    if (err != GYRE_OK && err != GYRE_NOT_FOUND)
        srv_log(SRV_LOG_WARN, "an upload of a removed bucket stays for now: %s",
                gyre_err_text(err));
    return true;
}

void srv_s3_bucket_uploads_abort(struct gyre_store *store, struct srv_str bucket)
{
    struct search search = {store, bucket};

    gyre_err err = gyre_each_upload(store, abort_one, &search);
    if (err != GYRE_OK)
        srv_log(SRV_LOG_WARN, "the uploads of a removed bucket cannot be looked through: %s",
                gyre_err_text(err));
}
