/* The digests of a request body: the MD5 its ETag is made of, and whatever the client sent to check
 * the body against.
 *
 * Owns:    struct srv_digest owns its OpenSSL contexts between init and fini.
 * Threads: plan on any thread; one srv_digest is used by one thread at a time.
 * Blocks:  never, but hashing takes time: more than 64 KiB belongs on a worker.
 */
#pragma once

#include <openssl/evp.h>

#include "server/s3/crc.h"

#include "server/exchange.h"

enum srv_checksum {
    SRV_CHECKSUM_NONE,
    SRV_CHECKSUM_CRC32,
    SRV_CHECKSUM_CRC32C,
    SRV_CHECKSUM_CRC64NVME,
    SRV_CHECKSUM_SHA1,
    SRV_CHECKSUM_SHA256,
};

enum { SRV_CHECKSUM_BYTES_MAX = 32, SRV_CHECKSUM_TEXT_MAX = 48 };

/* What to compute and what must come out. */
struct srv_digest_plan {
    bool wants_md5;             /* for the ETag */
    bool has_md5;               /* Content-MD5 was sent */
    bool has_payload;           /* x-amz-content-sha256 names a hash */
    enum srv_checksum checksum; /* to be computed */
    bool has_value;             /* and compared with `value` */
    bool is_trailing;           /* `value` comes in the body's trailer */
    uint8_t md5[16];
    uint8_t payload[32];
    uint8_t value[SRV_CHECKSUM_BYTES_MAX];
};

/* Why a body's digests cannot be checked as the request wants. */
enum srv_digest_fault {
    SRV_DIGEST_FINE,
    SRV_DIGEST_BAD_MD5,          /* Content-MD5 is no digest */
    SRV_DIGEST_BAD_PAYLOAD_HASH, /* x-amz-content-sha256 is neither a hash nor a word that is known
                                  */
    SRV_DIGEST_BAD_CHECKSUM,     /* the value of x-amz-checksum-* is no such digest */
    SRV_DIGEST_MANY_CHECKSUMS,   /* more than one x-amz-checksum-* */
    SRV_DIGEST_CHECKSUM_MISSING, /* an algorithm is named, but no value sent */
    SRV_DIGEST_CHECKSUM_UNKNOWN, /* x-amz-checksum-* of an algorithm that cannot be computed here */
    SRV_DIGEST_TRAILER_AND_VALUE, /* x-amz-trailer besides x-amz-checksum-* */
    SRV_DIGEST_TRAILER_UNKNOWN,   /* x-amz-trailer names something else than a checksum */
    SRV_DIGEST_MD5_DIFFERS,       /* from here on: found by srv_digest_finish */
    SRV_DIGEST_PAYLOAD_DIFFERS,
    SRV_DIGEST_CHECKSUM_DIFFERS,
    SRV_DIGEST_NO_MEMORY,
};

/* Reads the request's wishes; `wants_md5` says whether the ETag needs it, `is_framed` that the body
 * is framed as aws-chunked, so that x-amz-content-sha256 is none of its hash and a trailer may
 * follow. One of the faults above MD5_DIFFERS, or FINE. */
enum srv_digest_fault srv_digest_plan(const struct srv_request *req, bool wants_md5, bool is_framed,
                                      struct srv_digest_plan *plan_out);

/* "x-amz-checksum-crc32" and so on; NULL for NONE. Static. */
const char *srv_checksum_field(enum srv_checksum checksum);
/* Bytes of a value: 4, 8, 20 or 32; 0 for NONE. */
size_t srv_checksum_size(enum srv_checksum checksum);

struct srv_digest {
    struct srv_digest_plan plan;
    EVP_MD_CTX *md5_;
    EVP_MD_CTX *sha256_; /* serves the payload hash and a SHA256 checksum at once */
    EVP_MD_CTX *sha1_;
    uint64_t crc_;
    uint8_t value[SRV_CHECKSUM_BYTES_MAX]; /* of plan.checksum, once it is finished */
};

/* FINE or NO_MEMORY, with nothing held. */
enum srv_digest_fault srv_digest_init(struct srv_digest *digest,
                                      const struct srv_digest_plan *plan);
/* Allowed on a zeroed digest and twice. */
void srv_digest_fini(struct srv_digest *digest);

/* FINE or NO_MEMORY. */
enum srv_digest_fault srv_digest_update(struct srv_digest *digest, const void *bytes, size_t len);

/* Sets the value that a trailer brought. False when `text` is none of the plan's algorithm. */
bool srv_digest_set_value(struct srv_digest *digest, struct srv_str text);

/* Ends the computation and compares: FINE, one of ..._DIFFERS, or NO_MEMORY. *md5_out is set if the
 * plan wanted it. */
enum srv_digest_fault srv_digest_finish(struct srv_digest *digest, uint8_t md5_out[16]);

/* A checksum of bytes that are all there: the values of an upload's parts, say. False without
 * memory. */
bool srv_checksum_of_bytes(enum srv_checksum checksum, const void *bytes, size_t len,
                           uint8_t value_out[SRV_CHECKSUM_BYTES_MAX]);
