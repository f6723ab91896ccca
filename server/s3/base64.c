#include "server/s3/base64.h"

#include "server/chars.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int value_of(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* One group of four characters that stand for n (1 to 3) bytes. */
static bool decode_group(const char *text, uint8_t *out, size_t n)
{
    uint32_t bits = 0;

    for (size_t i = 0; i < 4; i++) {
        int value = i <= n ? value_of((unsigned char)text[i]) : text[i] == '=' ? 0 : -1;
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(bits >> (16 - 8 * i));
    return (bits & ((UINT32_C(1) << (24 - 8 * n)) - 1)) ==
           0; /* a second spelling of the same bytes */
}

bool srv_base64_decode(struct srv_str text, uint8_t *out, size_t len)
{
    if (text.len != srv_base64_size(len))
        return false;
    for (size_t i = 0; i < text.len; i += 4) {
        size_t at = i / 4 * 3;
        if (!decode_group(text.base + i, out + at, len - at < 3 ? len - at : 3))
            return false;
    }
    return true;
}

void srv_base64_encode(const uint8_t *bytes, size_t len, char *out)
{
    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        uint32_t bits = (uint32_t)bytes[i] << 16;
        if (n > 1)
            bits |= (uint32_t)bytes[i + 1] << 8;
        if (n > 2)
            bits |= bytes[i + 2];
        *out++ = alphabet[bits >> 18];
        *out++ = alphabet[bits >> 12 & 63];
        *out++ = n > 1 ? alphabet[bits >> 6 & 63] : '=';
        *out++ = n > 2 ? alphabet[bits & 63] : '=';
    }
    *out = '\0';
}

void srv_hex_encode(const uint8_t *bytes, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = '\0';
}

bool srv_hex_decode(struct srv_str text, uint8_t *out, size_t len)
{
    if (text.len != 2 * len)
        return false;
    for (size_t i = 0; i < len; i++) {
        int high = srv_hex_value((unsigned char)text.base[2 * i]);
        int low = srv_hex_value((unsigned char)text.base[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
