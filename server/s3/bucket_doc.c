#include "server/s3/bucket_doc.h"

#include <endian.h>
#include <string.h>
#include <time.h>

#include "server/check.h"

enum { FLAGS_OFF = 4, CREATED_OFF = 8, NAME_OFF = 16, META_MAX = NAME_OFF + SRV_S3_BUCKET_MAX };
enum { IS_CLOSING = 1 };

static const char magic[4] = {'G', 'B', 'K', '1'};

static struct gyre_key key_of(struct srv_str name)
{
    struct iovec parts[2] = {{(void *)name.base, name.len}, {(void *)"", 0}};
    struct gyre_key key;

    SRV_CHECK(gyre_key_of_parts(GYRE_DOMAIN_S3, parts, 2, &key) == GYRE_OK);
    return key;
}

gyre_err srv_s3_bucket_doc_put(struct gyre_store *store, struct srv_str name,
                               const struct srv_s3_bucket_doc *doc, uint64_t serial,
                               uint64_t *serial_out)
{
    uint8_t meta[META_MAX];
    uint32_t flags = htole32(doc->is_closing ? IS_CLOSING : 0);
    uint64_t created = htole64((uint64_t)doc->created_ms);
    struct gyre_key key = key_of(name);
    struct gyre_put_options options;

    memcpy(meta, magic, sizeof magic);
    memcpy(meta + FLAGS_OFF, &flags, sizeof flags);
    memcpy(meta + CREATED_OFF, &created, sizeof created);
    memcpy(meta + NAME_OFF, name.base, name.len);
    gyre_put_options_init(&options);
    options.pool = GYRE_POOL_META;
    options.flags = GYRE_PUT_SYNC;
    options.created = (uint32_t)(doc->created_ms / 1000);
    options.meta = meta;
    options.meta_len = NAME_OFF + name.len;
    options.condition = serial != 0 ? GYRE_IF_SERIAL : GYRE_IF_ABSENT;
    options.if_serial = serial;
    return gyre_put(store, &key, &options, doc->facts->bytes, doc->facts->len, serial_out);
}

gyre_err srv_s3_bucket_doc_delete(struct gyre_store *store, struct srv_str name, uint64_t serial)
{
    struct gyre_key key = key_of(name);
    return gyre_delete(store, &key, GYRE_IF_SERIAL, serial,
                       GYRE_PUT_SYNC | GYRE_IN_POOL(GYRE_POOL_META));
}

static gyre_err open_doc(struct gyre_store *store, struct srv_str name, unsigned flags,
                         struct gyre_handle **handle_out)
{
    struct gyre_key key = key_of(name);
    return gyre_get(store, &key, (uint32_t)time(NULL),
                    flags | GYRE_GET_NO_COUNT | GYRE_IN_POOL(GYRE_POOL_META), handle_out);
}

gyre_err srv_s3_bucket_doc_peek(struct gyre_store *store, struct srv_str name, uint64_t *serial_out)
{
    struct gyre_handle *handle;

    *serial_out = 0;
    gyre_err err = open_doc(store, name, GYRE_GET_NOWAIT | GYRE_GET_HEAD, &handle);
    if (err == GYRE_OK) {
        *serial_out = gyre_handle_info(handle)->serial;
        gyre_release(handle);
    }
    return err;
}

/* The body of a meta object lies in one piece. */
static gyre_err read_facts(const struct gyre_handle *handle, struct srv_s3_facts **facts_out)
{
    uint64_t length = gyre_handle_info(handle)->length;
    struct gyre_piece piece = {.base = NULL};

    *facts_out = NULL;
    if (length <= SRV_S3_FACTS_BYTES_MAX &&
        (length == 0 || (gyre_handle_piece(handle, 0, &piece) == GYRE_OK && piece.len >= length)))
        *facts_out = srv_s3_facts_create(piece.base, length);
    if (*facts_out == NULL)
        *facts_out = srv_s3_facts_create(NULL, 0);
    return *facts_out != NULL ? GYRE_OK : GYRE_NO_MEMORY;
}

gyre_err srv_s3_bucket_doc_read(const struct gyre_handle *handle, struct srv_str *name_out,
                                struct srv_s3_bucket_doc *doc_out)
{
    size_t len;
    const uint8_t *meta = gyre_handle_meta(handle, &len);
    uint64_t created;
    uint32_t flags;

    *name_out = (struct srv_str){NULL, 0};
    *doc_out = (struct srv_s3_bucket_doc){.serial = gyre_handle_info(handle)->serial};
    if (len <= NAME_OFF || len > META_MAX || memcmp(meta, magic, sizeof magic) != 0)
        return GYRE_NOT_FOUND;
    *name_out = (struct srv_str){(const char *)meta + NAME_OFF, len - NAME_OFF};
    memcpy(&flags, meta + FLAGS_OFF, sizeof flags);
    doc_out->is_closing = (le32toh(flags) & IS_CLOSING) != 0;
    memcpy(&created, meta + CREATED_OFF, sizeof created);
    doc_out->created_ms = (int64_t)le64toh(created);
    return srv_s3_bucket_valid(*name_out) ? read_facts(handle, &doc_out->facts) : GYRE_NOT_FOUND;
}

gyre_err srv_s3_bucket_doc_get(struct gyre_store *store, struct srv_str name,
                               struct srv_s3_bucket_doc *doc_out)
{
    struct gyre_handle *handle;
    struct srv_str found;

    *doc_out = (struct srv_s3_bucket_doc){.facts = NULL};
    gyre_err err = open_doc(store, name, 0, &handle);
    if (err == GYRE_EXPIRED)
        err = GYRE_NOT_FOUND;
    if (err != GYRE_OK)
        return err;
    err = srv_s3_bucket_doc_read(handle, &found, doc_out);
    gyre_release(handle);
    return err;
}
