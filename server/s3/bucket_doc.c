#include "server/s3/bucket_doc.h"

#include <endian.h>
#include <string.h>

#include "server/check.h"

enum { CREATED_OFF = 8, NAME_OFF = 16, META_MAX = NAME_OFF + SRV_S3_BUCKET_MAX };

static const char magic[8] = {'G', 'B', 'K', '1'};

static struct gyre_key key_of(struct srv_str name)
{
    struct iovec parts[2] = {{(void *)name.base, name.len}, {(void *)"", 0}};
    struct gyre_key key;

    SRV_CHECK(gyre_key_of_parts(GYRE_DOMAIN_S3, parts, 2, &key) == GYRE_OK);
    return key;
}

gyre_err srv_s3_bucket_doc_put(struct gyre_store *store, struct srv_str name, int64_t created_ms,
                               const struct srv_s3_facts *facts)
{
    uint8_t meta[META_MAX];
    uint64_t created = htole64((uint64_t)created_ms);
    struct gyre_key key = key_of(name);
    struct gyre_put_options options;

    memcpy(meta, magic, sizeof magic);
    memcpy(meta + CREATED_OFF, &created, sizeof created);
    memcpy(meta + NAME_OFF, name.base, name.len);
    gyre_put_options_init(&options);
    options.pool = GYRE_POOL_META;
    options.flags = GYRE_PUT_SYNC;
    options.created = (uint32_t)(created_ms / 1000);
    options.meta = meta;
    options.meta_len = NAME_OFF + name.len;
    return gyre_put(store, &key, &options, facts->bytes, facts->len, NULL);
}

gyre_err srv_s3_bucket_doc_delete(struct gyre_store *store, struct srv_str name)
{
    struct gyre_key key = key_of(name);
    return gyre_delete(store, &key, GYRE_ALWAYS, 0, GYRE_PUT_SYNC);
}

/* The body of a meta object lies in one piece. */
static gyre_err read_facts(const struct gyre_handle *handle, struct srv_s3_facts **facts_out)
{
    uint64_t length = gyre_handle_info(handle)->length;
    struct gyre_piece piece = {.base = NULL};

    if (length > SRV_S3_FACTS_BYTES_MAX)
        return GYRE_DAMAGED;
    if (length > 0) {
        gyre_err err = gyre_handle_piece(handle, 0, &piece);
        if (err != GYRE_OK)
            return err;
        if (piece.len < length)
            return GYRE_DAMAGED;
    }
    *facts_out = srv_s3_facts_create(piece.base, length);
    return *facts_out != NULL ? GYRE_OK : GYRE_DAMAGED;
}

gyre_err srv_s3_bucket_doc_read(const struct gyre_handle *handle, struct srv_str *name_out,
                                int64_t *created_ms_out, struct srv_s3_facts **facts_out)
{
    size_t len;
    const uint8_t *meta = gyre_handle_meta(handle, &len);
    uint64_t created;

    *name_out = (struct srv_str){NULL, 0};
    *created_ms_out = 0;
    *facts_out = NULL;
    if (len <= NAME_OFF || len > META_MAX || memcmp(meta, magic, sizeof magic) != 0)
        return GYRE_NOT_FOUND;
    *name_out = (struct srv_str){(const char *)meta + NAME_OFF, len - NAME_OFF};
    memcpy(&created, meta + CREATED_OFF, sizeof created);
    *created_ms_out = (int64_t)le64toh(created);
    return srv_s3_bucket_valid(*name_out) ? read_facts(handle, facts_out) : GYRE_NOT_FOUND;
}
