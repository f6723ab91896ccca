#include "server/s3/part_of.h"

#include <string.h>

#include "server/s3/error.h"
#include "server/s3/numbers.h"
#include "server/uri.h"

/* The ETag of an object from an upload ends in the number of its parts, and no other has a dash. */
uint32_t srv_s3_count_parts(const struct srv_s3_meta *meta)
{
    const char *dash = memrchr(meta->etag.base, '-', meta->etag.len);
    uint64_t n;

    if (dash == NULL)
        return 0;
    size_t before = (size_t)(dash + 1 - meta->etag.base);
    struct srv_str digits = {dash + 1, meta->etag.len - before};
    return srv_s3_parse_u64(digits, &n) && n <= GYRE_UPLOAD_PARTS_MAX ? (uint32_t)n : 0;
}

void srv_s3_part_checksum(const struct srv_s3_meta *meta, uint32_t index,
                          struct srv_s3_checksum *checksum_out)
{
    struct srv_s3_checksum whole;

    *checksum_out = (struct srv_s3_checksum){.algorithm = SRV_CHECKSUM_NONE};
    if (!srv_s3_checksum_decode(meta->checksum, &whole))
        return;
    size_t size = srv_checksum_size(whole.algorithm);
    if (meta->part_sums.base == NULL || meta->part_sums.len / size <= index)
        return;
    checksum_out->algorithm = whole.algorithm;
    checksum_out->is_composite = false;
    memcpy(checksum_out->value, meta->part_sums.base + index * size, size);
}

enum srv_s3_code srv_s3_part_of(const struct srv_request *req, const struct gyre_handle *handle,
                                const struct srv_s3_meta *meta, struct srv_s3_part *part_out)
{
    struct srv_str raw;
    uint64_t number;

    memset(part_out, 0, sizeof *part_out);
    if (req->query.len == 0 || !srv_query_find(req->query, "partNumber", &raw))
        return SRV_S3_NONE;
    if (!srv_s3_parse_u64(raw, &number) || number < 1 || number > GYRE_UPLOAD_PARTS_MAX)
        return SRV_S3_INVALID_ARGUMENT;
    part_out->is_asked = true;
    part_out->n_parts = srv_s3_count_parts(meta);
    if (part_out->n_parts == 0)
        return number == 1 ? SRV_S3_NONE : SRV_S3_INVALID_PART;
    (void)handle;
    return SRV_S3_INVALID_PART;
}
