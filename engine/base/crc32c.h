/* CRC-32C (Castagnoli, RFC 3720), by the processor's instruction where it has one.
 *
 * Values are finished ones: start from 0 and pass the last result on to continue.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* CRC of the bytes behind `crc` followed by `len` more. */
uint32_t eng_crc32c(uint32_t crc, const void *bytes, size_t len);

/* CRC of A followed by B from the CRC of each and the length of B in bytes. Below a microsecond for
 * any length. */
uint32_t eng_crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t len_b);

/* One way to compute it. */
struct eng_crc32c_impl {
    const char *name; /* "table", "sse4.2", "armv8" */
    uint32_t (*update)(uint32_t crc, const void *bytes, size_t len);
};

/* Those that work on this machine, the one in use last; static. Returns how many, at least 1. */
size_t eng_crc32c_impls(const struct eng_crc32c_impl **impls_out);
