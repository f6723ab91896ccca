/* Names of objects: digests, and the ways to make them. */
#include "api/gyre.h"

#include <string.h>

#include "engine/base/check.h"
#include "engine/base/hash.h"

#define API_KEY_PARTS_MAX 3

/* What a domain's keys begin with and how many parts they have. */
static const struct {
    const char *name;
    size_t n_parts;
} domains[] = {
    [GYRE_DOMAIN_RAW] = {NULL, 1},
    [GYRE_DOMAIN_S3] = {"s3", 2},
    [GYRE_DOMAIN_URL] = {"url", 3},
    [GYRE_DOMAIN_KV] = {"kv", 2},
};

struct gyre_key gyre_key_of_bytes(const void *bytes, size_t len)
{
    struct gyre_key key;
    struct iovec piece = {(void *)(uintptr_t)bytes, len};
    eng_sha256(&piece, 1, key.bytes);
    return key;
}

gyre_err gyre_key_of_parts(enum gyre_domain domain, const struct iovec *parts, size_t n_parts,
                           struct gyre_key *key_out)
{
    if (key_out == NULL)
        return GYRE_INVALID;
    memset(key_out, 0, sizeof *key_out);
    if ((size_t)domain >= GYRE_ARRAY_LEN(domains) || parts == NULL ||
        n_parts != domains[domain].n_parts)
        return GYRE_INVALID;
    if (domain == GYRE_DOMAIN_RAW) {
        *key_out = gyre_key_of_bytes(parts[0].iov_base, parts[0].iov_len);
        return GYRE_OK;
    }
    static char zero[1];
    struct iovec pieces[1 + 2 * API_KEY_PARTS_MAX];
    size_t n = 0;
    const char *name = domains[domain].name;
    pieces[n++] = (struct iovec){(void *)(uintptr_t)name, strlen(name) + 1};
    for (size_t i = 0; i < n_parts; i++) {
        bool last = i + 1 == n_parts;
        if (!last && parts[i].iov_len > 0 && memchr(parts[i].iov_base, 0, parts[i].iov_len) != NULL)
            return GYRE_INVALID;
        pieces[n++] = parts[i];
        pieces[n++] = (struct iovec){zero, 1};
    }
    eng_sha256(pieces, n, key_out->bytes);
    return GYRE_OK;
}

struct gyre_key gyre_key_of_url(const char *url, const char *host)
{
    static char scheme[] = "http";
    struct iovec parts[] = {
        {scheme, sizeof scheme - 1},
        {(void *)(uintptr_t)host, strlen(host)},
        {(void *)(uintptr_t)url, strlen(url)},
    };
    struct gyre_key key;
    gyre_err err = gyre_key_of_parts(GYRE_DOMAIN_URL, parts, GYRE_ARRAY_LEN(parts), &key);
    GYRE_CHECK(err == GYRE_OK);
    return key;
}

struct gyre_key gyre_key_of_digest(const uint8_t digest[32])
{
    struct gyre_key key;
    memcpy(key.bytes, digest, sizeof key.bytes);
    return key;
}

/* 0..15, or -1. */
static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

gyre_err gyre_key_of_hex(const char *hex, struct gyre_key *key_out)
{
    if (key_out == NULL)
        return GYRE_INVALID;
    memset(key_out, 0, sizeof *key_out);
    if (hex == NULL || strnlen(hex, 65) != 64)
        return GYRE_INVALID;
    struct gyre_key key;
    for (size_t i = 0; i < sizeof key.bytes; i++) {
        int high = hex_value(hex[2 * i]), low = hex_value(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return GYRE_INVALID;
        key.bytes[i] = (uint8_t)(high << 4 | low);
    }
    *key_out = key;
    return GYRE_OK;
}

void gyre_key_to_hex(const struct gyre_key *key, char hex_out[65])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof key->bytes; i++) {
        hex_out[2 * i] = digits[key->bytes[i] >> 4];
        hex_out[2 * i + 1] = digits[key->bytes[i] & 15];
    }
    hex_out[64] = '\0';
}
