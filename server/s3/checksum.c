#include "server/s3/checksum.h"

#include <stdio.h>
#include <string.h>

#include "server/s3/base64.h"
#include "server/target.h"

enum { HEADER_LEN = 6 };

static const struct {
    const char *name;
    const char *element;
} names[] = {
    [SRV_CHECKSUM_NONE] = {NULL, NULL},
    [SRV_CHECKSUM_CRC32] = {"CRC32", "ChecksumCRC32"},
    [SRV_CHECKSUM_CRC32C] = {"CRC32C", "ChecksumCRC32C"},
    [SRV_CHECKSUM_CRC64NVME] = {"CRC64NVME", "ChecksumCRC64NVME"},
    [SRV_CHECKSUM_SHA1] = {"SHA1", "ChecksumSHA1"},
    [SRV_CHECKSUM_SHA256] = {"SHA256", "ChecksumSHA256"},
};

enum { N_NAMES = sizeof names / sizeof names[0] };

const char *srv_checksum_name(enum srv_checksum checksum)
{
    return names[checksum].name;
}

const char *srv_checksum_element(enum srv_checksum checksum)
{
    return names[checksum].element;
}

enum srv_checksum srv_checksum_of_name(struct srv_str name)
{
    for (size_t i = 1; i < N_NAMES; i++) {
        struct srv_str known = {names[i].name, strlen(names[i].name)};
        if (srv_str_equal_nocase(name, known))
            return (enum srv_checksum)i;
    }
    return SRV_CHECKSUM_NONE;
}

enum srv_checksum srv_checksum_of_field(struct srv_str name)
{
    for (size_t i = 1; i < N_NAMES; i++) {
        const char *field = srv_checksum_field((enum srv_checksum)i);
        if (name.len == strlen(field) && memcmp(name.base, field, name.len) == 0)
            return (enum srv_checksum)i;
    }
    return SRV_CHECKSUM_NONE;
}

size_t srv_s3_checksum_encode(const struct srv_s3_checksum *checksum,
                              uint8_t bytes_out[SRV_S3_CHECKSUM_ENCODED_MAX])
{
    size_t size = srv_checksum_size(checksum->algorithm);

    if (checksum->algorithm == SRV_CHECKSUM_NONE)
        return 0;
    bytes_out[0] = (uint8_t)checksum->algorithm;
    bytes_out[1] = checksum->is_composite;
    for (int i = 0; i < 4; i++)
        bytes_out[2 + i] = checksum->is_composite ? (uint8_t)(checksum->n_parts >> (8 * i)) : 0;
    memcpy(bytes_out + HEADER_LEN, checksum->value, size);
    return HEADER_LEN + size;
}

bool srv_s3_checksum_decode(struct srv_str bytes, struct srv_s3_checksum *checksum_out)
{
    const uint8_t *at = (const uint8_t *)bytes.base;

    *checksum_out = (struct srv_s3_checksum){.algorithm = SRV_CHECKSUM_NONE};
    if (bytes.len < HEADER_LEN || at[0] == SRV_CHECKSUM_NONE || at[0] >= N_NAMES || at[1] > 1 ||
        bytes.len != HEADER_LEN + srv_checksum_size((enum srv_checksum)at[0]))
        return false;
    checksum_out->algorithm = (enum srv_checksum)at[0];
    checksum_out->is_composite = at[1] == 1;
    for (int i = 0; i < 4; i++)
        checksum_out->n_parts |= (uint32_t)at[2 + i] << (8 * i);
    memcpy(checksum_out->value, at + HEADER_LEN, bytes.len - HEADER_LEN);
    return true;
}

struct srv_str srv_s3_checksum_text(const struct srv_s3_checksum *checksum,
                                    char text_out[SRV_S3_CHECKSUM_TEXT_MAX])
{
    size_t size = srv_checksum_size(checksum->algorithm);
    size_t len = srv_base64_size(size);

    srv_base64_encode(checksum->value, size, text_out);
    if (checksum->is_composite)
        len += (size_t)snprintf(text_out + len, SRV_S3_CHECKSUM_TEXT_MAX - len, "-%u",
                                checksum->n_parts);
    return (struct srv_str){text_out, len};
}

const char *srv_s3_checksum_type(const struct srv_s3_checksum *checksum)
{
    return checksum->is_composite ? "COMPOSITE" : "FULL_OBJECT";
}
