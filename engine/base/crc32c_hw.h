/* The CRC-32C instruction of the processor, and the shift tables it needs to run three streams at
 * once; private to crc32c*.c.
 *
 * Inside these files a "register" is the complement of a finished CRC: the raw remainder that the
 * instruction works on.
 *
 * Threads: any, after the tables are built. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CRC_LONG_BYTES = 4096, /* length of one of three streams */
    CRC_SHORT_BYTES = 256,
};

/* Appending a fixed number of zero bytes is linear over the register's bits, so it is the sum of
 * one entry for each byte. */
struct eng_crc32c_shift {
    uint32_t by_byte[4][256];
};

/* [c] once built, before any update. */
extern struct eng_crc32c_shift eng_crc32c_shift_long;
extern struct eng_crc32c_shift eng_crc32c_shift_short;

/* "sse4.2" or "armv8". */
extern const char eng_crc32c_hw_name[];

/* Whether this processor has the instruction; false on architectures that never do. */
bool eng_crc32c_hw_usable(void);

/* CRC by the instruction; only if usable. */
uint32_t eng_crc32c_hw(uint32_t crc, const void *bytes, size_t len);
