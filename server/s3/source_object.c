#include "server/s3/source_object.h"

#include <string.h>

#include "server/uri.h"

/* ---- Its name ---- */

/* "bucket/key" or "/bucket/key", percent-encoded, perhaps with "?versionId=null". */
static enum srv_s3_code split(struct srv_str value, struct srv_s3_source_name *name)
{
    const char *question = value.len == 0 ? NULL : memchr(value.base, '?', value.len);
    struct srv_str query = {NULL, 0}, version;
    size_t len;

    if (question != NULL) {
        size_t before = (size_t)(question - value.base);
        query = (struct srv_str){question + 1, value.len - before - 1};
        value.len = before;
    }
    if (value.len > 0 && value.base[0] == '/')
        value = (struct srv_str){value.base + 1, value.len - 1};
    const char *slash = value.len == 0 ? NULL : memchr(value.base, '/', value.len);
    if (slash == NULL)
        return SRV_S3_INVALID_ARGUMENT;
    size_t before = (size_t)(slash - value.base);
    struct srv_str key = {slash + 1, value.len - before - 1};
    if (!srv_uri_decode((struct srv_str){value.base, before}, false, name->bucket_,
                        sizeof name->bucket_, &len))
        return SRV_S3_INVALID_ARGUMENT;
    name->bucket = (struct srv_str){name->bucket_, len};
    if (!srv_uri_decode(key, false, name->key_, sizeof name->key_, &len))
        return SRV_S3_INVALID_ARGUMENT;
    name->key = (struct srv_str){name->key_, len};
    if (!srv_s3_bucket_valid(name->bucket) || srv_s3_key_check(name->key) != SRV_S3_NONE)
        return SRV_S3_INVALID_ARGUMENT;
    if (query.len > 0 && srv_query_find(query, "versionId", &version) &&
        (version.len != 4 || memcmp(version.base, "null", 4) != 0))
        return SRV_S3_NO_SUCH_VERSION;
    return SRV_S3_NONE;
}

enum srv_s3_code srv_s3_source_read(const struct srv_s3_call *call,
                                    struct srv_s3_source_name *name_out)
{
    const struct srv_str *value = srv_request_field(call->req, "x-amz-copy-source", NULL);

    name_out->bucket = name_out->key = (struct srv_str){NULL, 0};
    if (value == NULL)
        return SRV_S3_INVALID_ARGUMENT;
    enum srv_s3_code code = split(*value, name_out);
    if (code != SRV_S3_NONE)
        return code;
    if (!srv_s3_bucket_exists(call->s3->buckets, name_out->bucket))
        return SRV_S3_NO_SUCH_BUCKET;
    srv_s3_who_in(call, name_out->bucket, &name_out->who);
    return SRV_S3_NONE;
}

/* ---- Its bytes ---- */

enum srv_s3_code srv_s3_source_open(struct srv_s3_source_object *source, struct gyre_store *store,
                                    struct srv_str bucket, struct srv_str key, uint32_t now_s,
                                    const struct srv_s3_who *who, enum srv_s3_permission permission)
{
    struct iovec parts[2] = {{(void *)(uintptr_t)bucket.base, bucket.len},
                             {(void *)(uintptr_t)key.base, key.len}};
    struct gyre_key digest;
    size_t len;

    source->handle = NULL;
    SRV_CHECK(gyre_key_of_parts(GYRE_DOMAIN_S3, parts, 2, &digest) == GYRE_OK);
    gyre_err err = gyre_get(store, &digest, now_s, GYRE_GET_LAZY, &source->handle);
    if (err == GYRE_NOT_FOUND || err == GYRE_EXPIRED)
        return srv_s3_may_know(who) ? SRV_S3_NO_SUCH_KEY : SRV_S3_ACCESS_DENIED;
    if (err != GYRE_OK)
        return srv_s3_code_of(err);
    const void *bytes = gyre_handle_meta(source->handle, &len);
    if (!srv_s3_meta_decode(bytes, len, &source->meta))
        return SRV_S3_NO_SUCH_KEY;
    source->offset = 0;
    source->end = gyre_handle_info(source->handle)->length;
    return srv_s3_may_use(who, source->meta.owner, source->meta.acl, permission)
               ? SRV_S3_NONE
               : SRV_S3_ACCESS_DENIED;
}

void srv_s3_source_close(struct srv_s3_source_object *source)
{
    gyre_release(source->handle);
    source->handle = NULL;
}

static gyre_err next_piece(struct srv_s3_source_object *source, struct gyre_piece *piece_out)
{
    uint64_t left = source->end - source->offset;
    uint64_t window = left < SRV_S3_POUR_BYTES ? left : SRV_S3_POUR_BYTES;

    gyre_err err = gyre_handle_piece(source->handle, source->offset, piece_out);
    if (err != GYRE_WOULD_BLOCK)
        return err;
    err = gyre_populate(source->handle, source->offset, window);
    return err == GYRE_OK ? gyre_handle_piece(source->handle, source->offset, piece_out) : err;
}

bool srv_s3_source_pour(struct srv_s3_source_object *source, struct srv_s3_put_work *work)
{
    uint64_t until = source->offset + SRV_S3_POUR_BYTES;
    struct gyre_piece piece;

    if (source->offset == source->end)
        srv_s3_put_work_feed(work, NULL, 0, true);
    while (source->offset < source->end && source->offset < until && work->code == SRV_S3_NONE) {
        uint64_t left = source->end - source->offset;
        gyre_err err = next_piece(source, &piece);
        if (err != GYRE_OK) {
            /* What cannot be read is a miss, as for a GET. */
            work->code = err == GYRE_DAMAGED ? SRV_S3_NO_SUCH_KEY : srv_s3_code_of(err);
            return true;
        }
        size_t len = piece.len < left ? piece.len : (size_t)left;
        source->offset += len;
        srv_s3_put_work_feed(work, piece.base, len, source->offset == source->end);
    }
    return work->code != SRV_S3_NONE || work->is_last;
}
