/* SHA-256, and cheap 64-bit hashes for tables.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* SHA-256 of the pieces one after the other. */
void eng_sha256(const struct iovec *pieces, size_t n_pieces, uint8_t digest_out[32]);

/* Hash of a whole key under a secret of 128 bits. Keys can be chosen by whoever likes, so which
 * ones share a bucket must not be predictable without the seeds; nothing more is claimed for it.
 * The value is stored: it never changes for the same input. */
uint64_t eng_key_hash(const uint8_t key[32], uint64_t seed0, uint64_t seed1);

/* A bijection of 64-bit numbers in which every input bit moves about half of the output bits; 0
 * stays 0. */
uint64_t eng_mix64(uint64_t v);
