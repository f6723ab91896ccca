#include "engine/base/hash.h"

#include <openssl/evp.h>
#include <pthread.h>

#include "engine/base/bits.h"

/* Looking the algorithm up by name costs several digests' worth of time, so it is done once; a
 * context lives as long as its thread. */
static pthread_once_t sha256_once = PTHREAD_ONCE_INIT;
static EVP_MD *sha256;            /* [c] after sha256_once; kept until the process ends */
static pthread_key_t context_key; /* frees a thread's context at its end */
static _Thread_local EVP_MD_CTX *context;

static void free_context(void *of_thread)
{
    EVP_MD_CTX_free(of_thread);
    context = NULL; /* another destructor of this thread may still want a digest */
}

static void fetch_sha256(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    GYRE_CHECK(sha256 != NULL);
    int rc = pthread_key_create(&context_key, free_context);
    GYRE_CHECK(rc == 0);
}

static EVP_MD_CTX *thread_context(void)
{
    if (likely(context != NULL))
        return context;
    int rc = pthread_once(&sha256_once, fetch_sha256);
    GYRE_CHECK(rc == 0);
    context = EVP_MD_CTX_new();
    GYRE_CHECK(context != NULL);
    rc = pthread_setspecific(context_key, context);
    GYRE_CHECK(rc == 0);
    return context;
}

void eng_sha256(const struct iovec *pieces, size_t n_pieces, uint8_t digest_out[32])
{
    EVP_MD_CTX *ctx = thread_context();
    unsigned len = 0;
    int ok = EVP_DigestInit_ex2(ctx, sha256, NULL);
    for (size_t i = 0; i < n_pieces && ok == 1; i++)
        ok = EVP_DigestUpdate(ctx, pieces[i].iov_base, pieces[i].iov_len);
    if (ok == 1)
        ok = EVP_DigestFinal_ex(ctx, digest_out, &len);
    GYRE_CHECK(ok == 1 && len == 32);
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
