/* Keys, strings to sign and signatures. */
#include "server/s3/sigv4.h"

#include <openssl/crypto.h>
#include <string.h>

#include "server/check.h"
#include "server/s3/base64.h"

enum { SECRET_MAX = 256, HEX_LEN = 2 * SRV_SHA256_LEN };

static struct iovec piece(struct srv_str text)
{
    return (struct iovec){(void *)(uintptr_t)text.base, text.len};
}

static struct srv_str str(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

void srv_sigv4_key(struct srv_str secret, struct srv_str day, struct srv_str region,
                   struct srv_hmac_key *key_out)
{
    const struct iovec steps[] = {piece(day), piece(region), piece(str("s3")),
                                  piece(str("aws4_request"))};
    uint8_t mac[SRV_SHA256_LEN];
    char first[4 + SECRET_MAX];

    SRV_CHECK(secret.len <= SECRET_MAX);
    memcpy(first, "AWS4", 4);
    memcpy(first + 4, secret.base, secret.len);
    srv_hmac_key_init(key_out, first, 4 + secret.len);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        srv_hmac(key_out, &steps[i], 1, mac);
        srv_hmac_key_init(key_out, mac, sizeof mac);
    }
    OPENSSL_cleanse(first, sizeof first);
    OPENSSL_cleanse(mac, sizeof mac);
}

struct text {
    char *at;
    const char *end;
};

static void add(struct text *text, struct srv_str part)
{
    SRV_CHECK((size_t)(text->end - text->at) > part.len);
    memcpy(text->at, part.base, part.len);
    text->at += part.len;
}

static void add_hex(struct text *text, const uint8_t bytes[SRV_SHA256_LEN])
{
    char hex[HEX_LEN + 1];

    srv_hex_encode(bytes, SRV_SHA256_LEN, hex);
    add(text, (struct srv_str){hex, HEX_LEN});
}

/* The lines that all strings to sign begin with. */
static void add_head(struct text *text, const char *algorithm, const char *time,
                     struct srv_str scope)
{
    add(text, str(algorithm));
    add(text, str("\n"));
    add(text, (struct srv_str){time, SRV_SIGV4_TIME_LEN});
    add(text, str("\n"));
    add(text, scope);
    add(text, str("\n"));
}

size_t srv_sigv4_string(const struct srv_sigv4 *sig, const uint8_t hash[SRV_SHA256_LEN],
                        char text_out[SRV_SIGV4_STRING_MAX])
{
    struct text text = {text_out, text_out + SRV_SIGV4_STRING_MAX};

    add_head(&text, "AWS4-HMAC-SHA256", sig->time, sig->scope);
    add_hex(&text, hash);
    *text.at = '\0';
    return (size_t)(text.at - text_out);
}

static void sign_text(const struct srv_hmac_key *key, const char *begin, const char *end,
                      uint8_t signature_out[SRV_SHA256_LEN])
{
    struct iovec all = piece((struct srv_str){begin, (size_t)(end - begin)});
    srv_hmac(key, &all, 1, signature_out);
}

void srv_sigv4_sign_chunk(const struct srv_hmac_key *key, const char *time, struct srv_str scope,
                          const uint8_t before[SRV_SHA256_LEN], const uint8_t data[SRV_SHA256_LEN],
                          uint8_t signature_out[SRV_SHA256_LEN])
{
    static const char of_nothing[] =
        "\ne3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n";
    char bytes[SRV_SIGV4_STRING_MAX];
    struct text text = {bytes, bytes + sizeof bytes};

    add_head(&text, "AWS4-HMAC-SHA256-PAYLOAD", time, scope);
    add_hex(&text, before);
    add(&text, str(of_nothing));
    add_hex(&text, data);
    sign_text(key, bytes, text.at, signature_out);
}

void srv_sigv4_sign_trailer(const struct srv_hmac_key *key, const char *time, struct srv_str scope,
                            const uint8_t before[SRV_SHA256_LEN],
                            const uint8_t trailer[SRV_SHA256_LEN],
                            uint8_t signature_out[SRV_SHA256_LEN])
{
    char bytes[SRV_SIGV4_STRING_MAX];
    struct text text = {bytes, bytes + sizeof bytes};

    add_head(&text, "AWS4-HMAC-SHA256-TRAILER", time, scope);
    add_hex(&text, before);
    add(&text, str("\n"));
    add_hex(&text, trailer);
    sign_text(key, bytes, text.at, signature_out);
}

static void hash_more(void *data, const char *bytes, size_t len)
{
    srv_sha256_update(data, bytes, len);
}

bool srv_sigv4_sign(const struct srv_sigv4 *sig, const struct srv_request *req,
                    enum srv_sigv4_target target, const struct srv_hmac_key *key,
                    uint8_t signature_out[SRV_SHA256_LEN])
{
    char bytes[SRV_SIGV4_STRING_MAX];
    uint8_t hash[SRV_SHA256_LEN];
    struct srv_sha256 sha;

    srv_sha256_init(&sha);
    if (!srv_sigv4_canonical(sig, req, target, hash_more, &sha))
        return false;
    srv_sha256_finish(&sha, hash);
    size_t len = srv_sigv4_string(sig, hash, bytes);
    sign_text(key, bytes, bytes + len, signature_out);
    return true;
}
