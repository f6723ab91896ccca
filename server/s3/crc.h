/* The cyclic redundancy checks that S3 clients send with a body: CRC32, CRC32C and CRC64NVME, eight
 * bytes a step from tables.
 *
 * All three are reflected, start from all ones and end with all bits inverted.
 * Threads: any; the tables are made once. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum srv_crc_kind {
    SRV_CRC32,     /* ISO-HDLC, polynomial 0x04c11db7 */
    SRV_CRC32C,    /* Castagnoli, 0x1edc6f41 */
    SRV_CRC64NVME, /* 0xad93d23594c93659 */
};

/* The CRC of what `crc` covers followed by `bytes`; 0 covers nothing. */
uint64_t srv_crc_update(enum srv_crc_kind kind, uint64_t crc, const void *bytes, size_t len);

/* How many bytes a CRC of this kind has: 4 or 8. */
size_t srv_crc_size(enum srv_crc_kind kind);

/* The CRC of bytes with the CRC `first` followed by `len` bytes with the CRC `second`. */
uint64_t srv_crc_combine(enum srv_crc_kind kind, uint64_t first, uint64_t second, uint64_t len);
