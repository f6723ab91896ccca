/* SHA-256 over pieces and HMAC-SHA256 (RFC 2104) with keys whose two first blocks are hashed
 * beforehand: what signatures are made of.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 *
 * The plain functions of libcrypto are used: the EVP ones spend several times as long around each
 * short digest.
 */
#pragma once

#include <openssl/sha.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { SRV_SHA256_LEN = 32 };

/* A digest under way. */
struct srv_sha256 {
    SHA256_CTX ctx_;
};

void srv_sha256_init(struct srv_sha256 *sha);
void srv_sha256_update(struct srv_sha256 *sha, const void *bytes, size_t len);
/* Ends the digest; only srv_sha256_init may follow. */
void srv_sha256_finish(struct srv_sha256 *sha, uint8_t digest_out[SRV_SHA256_LEN]);

/* A secret, ready to sign with. As secret as what it was made of. */
struct srv_hmac_key {
    SHA256_CTX inner_;
    SHA256_CTX outer_;
};

void srv_hmac_key_init(struct srv_hmac_key *key, const void *secret, size_t len);

/* The MAC of the pieces, one after the other. */
void srv_hmac(const struct srv_hmac_key *key, const struct iovec *pieces, size_t n_pieces,
              uint8_t mac_out[SRV_SHA256_LEN]);

/* Whether two digests are equal, in a time that does not depend on where they differ. */
bool srv_digest_equal(const uint8_t a[SRV_SHA256_LEN], const uint8_t b[SRV_SHA256_LEN]);
