#include "server/chars.h"

#include <string.h>

const uint8_t srv_char_class[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, /* 00 */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* 10 */
    2, 3, 2, 3, 3, 3, 3, 3, 2, 2, 3, 3, 2, 3, 3, 2, /* 20 */
    3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, /* 30 */
    2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, /* 40 */
    3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 3, 3, /* 50 */
    3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, /* 60 */
    3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 3, 2, 3, 0, /* 70 */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* 80 */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* 90 */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* a0 */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* b0 */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* c0 */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* d0 */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* e0 */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* f0 */
};

/* Eight at a time: bit 7 of a byte of `from_a` says that its lower seven bits are at least 'A', of
 * `past_z` that they are more than 'Z'; moved to bit 5 it is the difference of the cases. */
static uint64_t lower8(uint64_t bytes)
{
    const uint64_t each = UINT64_C(0x0101010101010101);
    uint64_t low = bytes & each * 0x7f;
    uint64_t from_a = low + each * (0x80 - 'A');
    uint64_t past_z = low + each * (0x7f - 'Z');
    return bytes | (from_a & ~past_z & ~bytes & each * 0x80) >> 2;
}

void srv_lower(char *to, const char *from, size_t len)
{
    uint64_t bytes;
    size_t at = 0;
    for (; at + sizeof bytes <= len; at += sizeof bytes) {
        memcpy(&bytes, from + at, sizeof bytes);
        bytes = lower8(bytes);
        memcpy(to + at, &bytes, sizeof bytes);
    }
    for (; at < len; at++) {
        unsigned c = (unsigned char)from[at];
        to[at] = (char)(c | (c - 'A' < 26u ? 0x20 : 0));
    }
}
