/* Character classes of the HTTP grammar (RFC 9110, 5.6.2 and 5.5; RFC 5234, B.1), one table look-up
 * each.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Indexed by byte; bits as below. */
extern const uint8_t srv_char_class[256];

enum {
    SRV_CHAR_TOKEN = 1, /* tchar */
    SRV_CHAR_TEXT = 2,  /* VCHAR, SP, HTAB and bytes above 0x7f: what a field value may hold */
};

static inline bool srv_is_token(unsigned char c)
{
    return (srv_char_class[c] & SRV_CHAR_TOKEN) != 0;
}

static inline bool srv_is_text(unsigned char c)
{
    return (srv_char_class[c] & SRV_CHAR_TEXT) != 0;
}

/* 0 to 15, or -1 for anything but a hex digit. */
static inline int srv_hex_value(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static inline bool srv_is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

/* Copies with A to Z in lower case; `to` may be `from`. */
void srv_lower(char *to, const char *from, size_t len);
