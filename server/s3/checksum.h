/* The checksum that is kept with an object or a part: which, of what, and how it is shown.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 *
 * Encoded, little-endian: u8 algorithm (enum srv_checksum), u8 1 if it is composite, u32 parts that
 * it is composed of (0 unless composite), the value. Composite values are checksums over the
 * parts' values.
 */
#pragma once

#include "server/s3/digest.h"

struct srv_s3_checksum {
    enum srv_checksum algorithm; /* NONE: there is none */
    bool is_composite;
    uint32_t n_parts;
    uint8_t value[SRV_CHECKSUM_BYTES_MAX];
};

enum {
    SRV_S3_CHECKSUM_ENCODED_MAX = 6 + SRV_CHECKSUM_BYTES_MAX,
    SRV_S3_CHECKSUM_TEXT_MAX = SRV_CHECKSUM_TEXT_MAX + 8, /* with "-10000" and a terminator */
};

/* Writes the encoded form and returns its length; 0 for NONE. */
size_t srv_s3_checksum_encode(const struct srv_s3_checksum *checksum,
                              uint8_t bytes_out[SRV_S3_CHECKSUM_ENCODED_MAX]);
/* False, and NONE, when `bytes` are no encoded checksum. */
bool srv_s3_checksum_decode(struct srv_str bytes, struct srv_s3_checksum *checksum_out);

/* Base64, followed by "-N" when composed of N parts. */
struct srv_str srv_s3_checksum_text(const struct srv_s3_checksum *checksum,
                                    char text_out[SRV_S3_CHECKSUM_TEXT_MAX]);
/* "FULL_OBJECT" or "COMPOSITE". */
const char *srv_s3_checksum_type(const struct srv_s3_checksum *checksum);

/* The algorithm called "CRC32" and so on, in any case; NONE for others. */
enum srv_checksum srv_checksum_of_name(struct srv_str name);
/* "CRC32" and so on, and "ChecksumCRC32", the element that carries it; NULL for NONE. */
const char *srv_checksum_name(enum srv_checksum checksum);
const char *srv_checksum_element(enum srv_checksum checksum);
/* The algorithm whose field is called `name`; NONE for other fields. */
enum srv_checksum srv_checksum_of_field(struct srv_str name);
