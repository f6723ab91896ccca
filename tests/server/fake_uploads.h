/* Uploads of a store that has none, behind the names of api/gyre_upload.h, for tests that link the
 * S3 role without the real store. Included by one file of a program.
 *
 * Threads: any. Blocks: never.
 */
#pragma once

#include "api/gyre.h"

void gyre_upload_options_init(struct gyre_upload_options *options)
{
    *options = (struct gyre_upload_options){.struct_size = sizeof *options};
}

gyre_err gyre_upload_begin(struct gyre_store *store, const struct gyre_key *key,
                           const struct gyre_upload_options *options, struct gyre_upload_id *id_out)
{
    (void)store, (void)key, (void)options;
    *id_out = (struct gyre_upload_id){{0}};
    return GYRE_NO_SPACE;
}

gyre_err gyre_upload_get(struct gyre_store *store, const struct gyre_key *key,
                         const struct gyre_upload_id *id, struct gyre_handle **handle_out)
{
    (void)store, (void)key, (void)id;
    *handle_out = NULL;
    return GYRE_NOT_FOUND;
}

gyre_err gyre_upload_put(struct gyre_store *store, const struct gyre_key *key,
                         const struct gyre_upload_id *id, uint32_t number, uint64_t length,
                         unsigned flags, struct gyre_put **put_out)
{
    (void)store, (void)key, (void)id, (void)number, (void)length, (void)flags;
    *put_out = NULL;
    return GYRE_NOT_FOUND;
}

gyre_err gyre_put_set_md5(struct gyre_put *p, const uint8_t md5[16])
{
    (void)p, (void)md5;
    return GYRE_STATE;
}

gyre_err gyre_upload_each_part(struct gyre_store *store, const struct gyre_key *key,
                               const struct gyre_upload_id *id, uint32_t after,
                               bool (*visit)(void *data, const struct gyre_part *part), void *data)
{
    (void)store, (void)key, (void)id, (void)after, (void)visit, (void)data;
    return GYRE_NOT_FOUND;
}

gyre_err gyre_each_upload(struct gyre_store *store,
                          bool (*visit)(void *data, const struct gyre_key *key,
                                        const struct gyre_upload_id *id,
                                        const struct gyre_handle *handle),
                          void *data)
{
    (void)store, (void)visit, (void)data;
    return GYRE_OK;
}

gyre_err gyre_upload_complete(struct gyre_store *store, const struct gyre_key *key,
                              const struct gyre_upload_id *id,
                              const struct gyre_part_choice *choices, size_t n_choices,
                              const struct gyre_put_options *options, uint64_t *serial_out)
{
    (void)store, (void)key, (void)id, (void)choices, (void)n_choices, (void)options;
    (void)serial_out;
    return GYRE_NOT_FOUND;
}

gyre_err gyre_upload_abort(struct gyre_store *store, const struct gyre_key *key,
                           const struct gyre_upload_id *id, unsigned flags)
{
    (void)store, (void)key, (void)id, (void)flags;
    return GYRE_NOT_FOUND;
}

gyre_err gyre_handle_part(const struct gyre_handle *handle, uint32_t index,
                          struct gyre_part *part_out)
{
    (void)handle, (void)index;
    *part_out = (struct gyre_part){.number = 0};
    return GYRE_RANGE;
}

/* ---- Changing in place ---- */

void gyre_change_init(struct gyre_change *change)
{
    *change = (struct gyre_change){.struct_size = sizeof *change};
}

gyre_err gyre_change(struct gyre_store *store, const struct gyre_key *key,
                     const struct gyre_change *change, uint64_t *serial_out)
{
    (void)store, (void)key, (void)change, (void)serial_out;
    return GYRE_NOT_FOUND;
}

/* ---- Labels ---- */

uint64_t gyre_label(enum gyre_label_kind kind, const void *bytes, size_t len)
{
    (void)bytes;
    return (uint64_t)kind << 32 | len;
}

gyre_err gyre_ban_label(struct gyre_store *store, uint8_t pool, uint64_t label, unsigned flags)
{
    (void)store, (void)pool, (void)label, (void)flags;
    return GYRE_NO_SPACE;
}
