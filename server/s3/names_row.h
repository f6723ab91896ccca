/* What the index of names keeps of one object: all that a list says about it, and which document of
 * the store it was made from.
 *
 * A name is the bucket, a zero byte and the key, so that names sort by bucket and then by key, byte
 * by byte, as S3 lists them.
 *
 * Threads: any. Allocates: nothing.
 */
#pragma once

#include "server/s3/access.h"
#include "server/s3/meta.h"
#include "server/s3/name.h"

#include "api/gyre.h"

enum {
    SRV_NAME_MAX = SRV_S3_BUCKET_MAX + 1 + SRV_S3_KEY_MAX,
    SRV_NAME_PACKED_MAX = 1 + SRV_S3_ETAG_LEN_MAX,
};

struct srv_name_row {
    size_t name_len;
    char name[SRV_NAME_MAX];
    uint64_t place;   /* gyre_info.place */
    bool is_in_parts; /* the document alone does not tell whether the object is whole */
    uint32_t expires; /* Unix seconds; 0: never */
    uint64_t size;    /* bytes of the object */
    int64_t modified_ms;
    size_t etag_len;
    char etag[SRV_S3_ETAG_LEN_MAX]; /* without quotes */
    size_t owner_len;               /* 0: nobody known */
    char owner[SRV_S3_ID_MAX];
};

/* Writes bucket and key as a name; 0 if they are too long to be one. */
size_t srv_name_write(struct srv_str bucket, struct srv_str key, char name_out[SRV_NAME_MAX]);
/* Takes it apart again; false for what is none. */
bool srv_name_split(struct srv_str name, struct srv_str *bucket_out, struct srv_str *key_out);

/* The object's key in the store. */
struct gyre_key srv_name_key(struct srv_str bucket, struct srv_str key);

/* Makes a row of what the store has under a name: OK; NOT_FOUND: nothing, or no object of S3;
 * otherwise what gyre_get answers. Blocks for cold data. */
GYRE_MUST_USE gyre_err srv_name_look(struct gyre_store *store, struct srv_str name, uint32_t now,
                                     struct srv_name_row *row_out);

/* An ETag as it is kept: a byte for the kind, then the bytes that hex digits stand for, with the
 * number of a multipart upload's parts in two bytes behind them, or the text. Returns the length.
 */
size_t srv_name_etag_pack(const char *etag, size_t len, uint8_t packed_out[SRV_NAME_PACKED_MAX]);
/* The reverse; false if it is no packed ETag. */
bool srv_name_etag_unpack(const uint8_t *packed, size_t len, char etag_out[SRV_S3_ETAG_LEN_MAX],
                          size_t *len_out);
