/* Signatures of version 4, as S3 uses them: read from a request, computed and compared.
 *
 * Lends:   struct srv_sigv4 points into the request and into itself: it must not be moved.
 * Threads: any. Blocks: never.
 * Allocates: for queries beyond 4 KiB only.
 *
 * What is signed is rebuilt from the bytes that arrived: the path decoded once and encoded again
 * without any normalisation, the query sorted, the fields that the signature names.
 */
#pragma once

#include "server/exchange.h"
#include "server/s3/error.h"
#include "server/s3/hmac.h"

enum {
    SRV_SIGV4_TIME_LEN = 16, /* "20130524T000000Z" */
    SRV_SIGV4_DAY_LEN = 8,
    SRV_SIGV4_SKEW_S = 15 * 60,              /* a client's clock may be off by that much */
    SRV_SIGV4_EXPIRES_MAX_S = 7 * 24 * 3600, /* longest life of a presigned request */
    SRV_SIGV4_QUERY_BYTES = 1024,
};

enum srv_sigv4_form {
    SRV_SIGV4_NONE,   /* not signed */
    SRV_SIGV4_HEADER, /* Authorization */
    SRV_SIGV4_QUERY,  /* X-Amz-Signature and its companions: a presigned request */
};

struct srv_sigv4 {
    enum srv_sigv4_form form;
    struct srv_str access_key;
    struct srv_str scope; /* day/region/s3/aws4_request */
    struct srv_str region;
    struct srv_str signed_names; /* "host;x-amz-date" */
    struct srv_str payload;      /* what stands for the body's hash; base NULL: nothing does */
    uint8_t signature[SRV_SHA256_LEN];
    char time[SRV_SIGV4_TIME_LEN + 1];
    int64_t time_s;
    int64_t expires_s; /* QUERY: seconds after time_s */
    char query_[SRV_SIGV4_QUERY_BYTES];
};

/* Finds a request's signature and checks its form and time. NONE, with the form, or what to answer:
 * *message_out then says more, or is NULL. Nothing was verified yet. */
enum srv_s3_code srv_sigv4_read(const struct srv_request *req, int64_t now_s,
                                struct srv_sigv4 *sig_out, const char **message_out);

/* Whether the time of a signature that was verified is near enough: NONE, REQUEST_TIME_TOO_SKEWED
 * or, for a presigned request, ACCESS_DENIED. */
enum srv_s3_code srv_sigv4_check_time(const struct srv_sigv4 *sig, int64_t now_s,
                                      const char **message_out);

/* Whether the list of signed names contains `name`, in lower case. */
bool srv_sigv4_signs(const struct srv_sigv4 *sig, struct srv_str name);

/* The first field that had to be signed and is not: "host" or one that begins with x-amz-; base
 * NULL when all are. */
struct srv_str srv_sigv4_unsigned_field(const struct srv_sigv4 *sig, const struct srv_request *req);

/* How the parts of the target enter what is signed. */
enum srv_sigv4_target {
    SRV_SIGV4_ENCODED, /* as S3 has it: decoded, encoded anew, the query sorted */
    SRV_SIGV4_AS_SENT, /* as old versions of curl have it: the bytes of the request line */
};

/* The canonical request, in pieces of at most some KiB. False when there is no memory or the query
 * has too many items; then nothing of use was written. */
bool srv_sigv4_canonical(const struct srv_sigv4 *sig, const struct srv_request *req,
                         enum srv_sigv4_target target,
                         void (*write)(void *data, const char *bytes, size_t len), void *data);

/* Longest string to sign with its terminator. */
enum { SRV_SIGV4_STRING_MAX = 512 };

/* Writes the string to sign for the hash of a canonical request and returns its length. */
size_t srv_sigv4_string(const struct srv_sigv4 *sig, const uint8_t hash[SRV_SHA256_LEN],
                        char text_out[SRV_SIGV4_STRING_MAX]);

/* The key of a day, region and service, from a user's secret. */
void srv_sigv4_key(struct srv_str secret, struct srv_str day, struct srv_str region,
                   struct srv_hmac_key *key_out);

/* The signature that the request should have. False as srv_sigv4_canonical. */
bool srv_sigv4_sign(const struct srv_sigv4 *sig, const struct srv_request *req,
                    enum srv_sigv4_target target, const struct srv_hmac_key *key,
                    uint8_t signature_out[SRV_SHA256_LEN]);

/* Signatures of the pieces of an aws-chunked body, each over the one before. `data` and `trailer`
 * are hashes of a piece's bytes and of the lines of the trailer. */
void srv_sigv4_sign_chunk(const struct srv_hmac_key *key, const char *time, struct srv_str scope,
                          const uint8_t before[SRV_SHA256_LEN], const uint8_t data[SRV_SHA256_LEN],
                          uint8_t signature_out[SRV_SHA256_LEN]);
void srv_sigv4_sign_trailer(const struct srv_hmac_key *key, const char *time, struct srv_str scope,
                            const uint8_t before[SRV_SHA256_LEN],
                            const uint8_t trailer[SRV_SHA256_LEN],
                            uint8_t signature_out[SRV_SHA256_LEN]);
