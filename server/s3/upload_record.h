/* What is kept with an upload until it is completed: the record of the object it will be, and how
 * its parts are checked. And the text by which clients know an upload.
 *
 * Lends:   a decoded record points into the bytes it was decoded from.
 * Threads: any. Blocks: never. Allocates: nothing.
 *
 * Encoded: u8 version (1), u8 algorithm (enum srv_checksum), u8 1 if the object's checksum is
 * composite, u8 zero, then the object's record (server/s3/meta.h) without its final ETag and time.
 */
#pragma once

#include "server/s3/call.h"
#include "server/s3/checksum.h"

enum {
    SRV_S3_UPLOAD_RECORD_MAX = 4 + SRV_S3_META_RECORD_MAX,
    SRV_S3_UPLOAD_ID_LEN = 32, /* hex digits */
};

struct srv_s3_upload_record {
    enum srv_checksum checksum; /* NONE: parts are checked by what each brings */
    bool is_composite;
    struct srv_str object; /* the object's record */
};

/* Returns the length. */
size_t srv_s3_upload_record_encode(const struct srv_s3_upload_record *record,
                                   uint8_t bytes_out[SRV_S3_UPLOAD_RECORD_MAX]);
bool srv_s3_upload_record_decode(const void *bytes, size_t len,
                                 struct srv_s3_upload_record *record_out);

/* Writes the id as hex digits and a terminator. */
void srv_s3_upload_id_write(const struct gyre_upload_id *id,
                            char text_out[SRV_S3_UPLOAD_ID_LEN + 1]);

/* The id in the query's uploadId: NONE, or NO_SUCH_UPLOAD for what is no id. */
enum srv_s3_code srv_s3_upload_id_read(const struct srv_request *req,
                                       struct gyre_upload_id *id_out);

/* Its partNumber: NONE, or INVALID_ARGUMENT unless it is from 1 to 10000. */
enum srv_s3_code srv_s3_part_number_read(const struct srv_request *req, uint32_t *number_out);

/* Reads x-amz-checksum-algorithm and x-amz-checksum-type of the beginning of an upload. NONE, or
 * INVALID_REQUEST: S3 has no such pair. */
enum srv_s3_code srv_s3_upload_checksum_read(const struct srv_request *req,
                                             struct srv_s3_upload_record *record_out);
