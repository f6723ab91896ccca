#include "engine/base/hash.h"

/* The plain functions of libcrypto. They are out of favour there, yet the EVP ones prepare and
 * clear so much around each digest that a key of some bytes costs five times as much in a busy
 * server: 1.2 us of the 5.8 us that a 4 KiB GET spent outside of the kernel. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"

void eng_sha256(const struct iovec *pieces, size_t n_pieces, uint8_t digest_out[32])
{
    SHA256_CTX ctx;
    int ok = SHA256_Init(&ctx);
    for (size_t i = 0; i < n_pieces && ok == 1; i++)
        ok = SHA256_Update(&ctx, pieces[i].iov_base, pieces[i].iov_len);
    if (ok == 1)
        ok = SHA256_Final(digest_out, &ctx);
    GYRE_CHECK(ok == 1);
}

__extension__ typedef unsigned __int128 wide;

/* Both halves of the full product, so that high input bits reach low output bits too. */
static inline uint64_t fold(uint64_t a, uint64_t b)
{
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Multiply and fold, as in Wang Yi's wyhash. A factor of zero would hide its partner, hence a
 * secret of its own on each factor: hitting zero takes guessing 64 bits. The constants, fractions
 * of the square roots of the first primes, keep the factors apart and away from zero where a seed
 * is zero, as in tests. */
uint64_t eng_key_hash(const uint8_t key[32], uint64_t seed0, uint64_t seed1)
{
    uint64_t left = fold(eng_load_u64(key) ^ seed0 ^ UINT64_C(0x6A09E667F3BCC908),
                         eng_load_u64(key + 8) ^ seed1 ^ UINT64_C(0xBB67AE8584CAA73B));
    uint64_t right = fold(eng_load_u64(key + 16) ^ seed1 ^ UINT64_C(0x3C6EF372FE94F82B),
                          eng_load_u64(key + 24) ^ seed0 ^ UINT64_C(0xA54FF53A5F1D36F1));
    return eng_mix64(fold(left ^ seed0 ^ UINT64_C(0x510E527FADE682D1),
                          right ^ seed1 ^ UINT64_C(0x9B05688C2B3E6C1F)));
}

/* The finalizer of Vigna's SplitMix64 (Stafford's variant 13). */
uint64_t eng_mix64(uint64_t v)
{
    v = (v ^ (v >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    v = (v ^ (v >> 27)) * UINT64_C(0x94D049BB133111EB);
    return v ^ (v >> 31);
}
