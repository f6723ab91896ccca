#define OPENSSL_SUPPRESS_DEPRECATED
#include "server/s3/hmac.h"

#include <openssl/crypto.h>
#include <string.h>

#include "server/check.h"

enum { BLOCK_LEN = 64 };

void srv_sha256_init(struct srv_sha256 *sha)
{
    SRV_CHECK(SHA256_Init(&sha->ctx_) == 1);
}

void srv_sha256_update(struct srv_sha256 *sha, const void *bytes, size_t len)
{
    SRV_CHECK(SHA256_Update(&sha->ctx_, bytes, len) == 1);
}

void srv_sha256_finish(struct srv_sha256 *sha, uint8_t digest_out[SRV_SHA256_LEN])
{
    SRV_CHECK(SHA256_Final(digest_out, &sha->ctx_) == 1);
}

static void absorb_pad(SHA256_CTX *ctx, const uint8_t block[BLOCK_LEN], uint8_t pad)
{
    uint8_t padded[BLOCK_LEN];

    for (size_t i = 0; i < BLOCK_LEN; i++)
        padded[i] = block[i] ^ pad;
    SRV_CHECK(SHA256_Init(ctx) == 1 && SHA256_Update(ctx, padded, BLOCK_LEN) == 1);
    OPENSSL_cleanse(padded, sizeof padded);
}

void srv_hmac_key_init(struct srv_hmac_key *key, const void *secret, size_t len)
{
    uint8_t block[BLOCK_LEN] = {0};

    if (len > BLOCK_LEN)
        SHA256(secret, len, block);
    else if (len > 0)
        memcpy(block, secret, len);
    absorb_pad(&key->inner_, block, 0x36);
    absorb_pad(&key->outer_, block, 0x5c);
    OPENSSL_cleanse(block, sizeof block);
}

void srv_hmac(const struct srv_hmac_key *key, const struct iovec *pieces, size_t n_pieces,
              uint8_t mac_out[SRV_SHA256_LEN])
{
    SHA256_CTX ctx = key->inner_;
    int ok = 1;

    for (size_t i = 0; i < n_pieces && ok == 1; i++)
        ok = SHA256_Update(&ctx, pieces[i].iov_base, pieces[i].iov_len);
    SRV_CHECK(ok == 1 && SHA256_Final(mac_out, &ctx) == 1);
    ctx = key->outer_;
    SRV_CHECK(SHA256_Update(&ctx, mac_out, SRV_SHA256_LEN) == 1 &&
              SHA256_Final(mac_out, &ctx) == 1);
}

bool srv_digest_equal(const uint8_t a[SRV_SHA256_LEN], const uint8_t b[SRV_SHA256_LEN])
{
    return CRYPTO_memcmp(a, b, SRV_SHA256_LEN) == 0;
}
