#include "server/s3/upload_record.h"

#include <string.h>

#include "server/s3/base64.h"
#include "server/s3/numbers.h"
#include "server/target.h"
#include "server/uri.h"

enum { VERSION = 1, HEADER_LEN = 4 };

size_t srv_s3_upload_record_encode(const struct srv_s3_upload_record *record,
                                   uint8_t bytes_out[SRV_S3_UPLOAD_RECORD_MAX])
{
    SRV_CHECK(record->object.len <= SRV_S3_META_RECORD_MAX);
    bytes_out[0] = VERSION;
    bytes_out[1] = (uint8_t)record->checksum;
    bytes_out[2] = record->is_composite;
    bytes_out[3] = 0;
    memcpy(bytes_out + HEADER_LEN, record->object.base, record->object.len);
    return HEADER_LEN + record->object.len;
}

bool srv_s3_upload_record_decode(const void *bytes, size_t len,
                                 struct srv_s3_upload_record *record_out)
{
    const uint8_t *at = bytes;

    if (len <= HEADER_LEN || at[0] != VERSION || at[1] > SRV_CHECKSUM_SHA256 || at[2] > 1 ||
        at[3] != 0)
        return false;
    record_out->checksum = (enum srv_checksum)at[1];
    record_out->is_composite = at[2] == 1;
    record_out->object = (struct srv_str){(const char *)at + HEADER_LEN, len - HEADER_LEN};
    return true;
}

void srv_s3_upload_id_write(const struct gyre_upload_id *id,
                            char text_out[SRV_S3_UPLOAD_ID_LEN + 1])
{
    srv_hex_encode(id->bytes, sizeof id->bytes, text_out);
}

enum srv_s3_code srv_s3_upload_id_read(const struct srv_request *req, struct gyre_upload_id *id_out)
{
    struct srv_str raw;

    memset(id_out, 0, sizeof *id_out);
    if (!srv_query_find(req->query, "uploadId", &raw) || raw.base == NULL ||
        !srv_hex_decode(raw, id_out->bytes, sizeof id_out->bytes))
        return SRV_S3_NO_SUCH_UPLOAD;
    return SRV_S3_NONE;
}

enum srv_s3_code srv_s3_part_number_read(const struct srv_request *req, uint32_t *number_out)
{
    struct srv_str raw;
    uint64_t number;

    *number_out = 0;
    if (!srv_query_find(req->query, "partNumber", &raw) || !srv_s3_parse_u64(raw, &number) ||
        number < 1 || number > GYRE_UPLOAD_PARTS_MAX)
        return SRV_S3_INVALID_ARGUMENT;
    *number_out = (uint32_t)number;
    return SRV_S3_NONE;
}

/* SHA digests cannot be put together from those of parts, and S3 has CRC64NVME of whole objects
 * alone. */
static bool allows(enum srv_checksum checksum, bool is_composite)
{
    switch (checksum) {
    case SRV_CHECKSUM_CRC32:
    case SRV_CHECKSUM_CRC32C: return true;
    case SRV_CHECKSUM_CRC64NVME: return !is_composite;
    case SRV_CHECKSUM_SHA1:
    case SRV_CHECKSUM_SHA256: return is_composite;
    case SRV_CHECKSUM_NONE: break;
    }
    return false;
}

enum srv_s3_code srv_s3_upload_checksum_read(const struct srv_request *req,
                                             struct srv_s3_upload_record *record_out)
{
    const struct srv_str *name = srv_request_field(req, "x-amz-checksum-algorithm", NULL);
    const struct srv_str *type = srv_request_field(req, "x-amz-checksum-type", NULL);

    record_out->checksum = SRV_CHECKSUM_NONE;
    record_out->is_composite = false;
    if (name == NULL)
        return type == NULL ? SRV_S3_NONE : SRV_S3_INVALID_REQUEST;
    record_out->checksum = srv_checksum_of_name(*name);
    record_out->is_composite = record_out->checksum != SRV_CHECKSUM_CRC64NVME;
    if (type != NULL) {
        record_out->is_composite = srv_str_equal_nocase(*type, srv_s3_str("COMPOSITE"));
        if (!record_out->is_composite && !srv_str_equal_nocase(*type, srv_s3_str("FULL_OBJECT")))
            return SRV_S3_INVALID_REQUEST;
    }
    return allows(record_out->checksum, record_out->is_composite) ? SRV_S3_NONE
                                                                  : SRV_S3_INVALID_REQUEST;
}
