#include "server/s3/crc.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

#define N_KINDS 3

/* t[k][b]: what byte `b` contributes after k further zero bytes. */
struct crc_table {
    uint64_t t[8][256];
};

static struct crc_table tables[N_KINDS];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

/* Bit-reversed, as a reflected CRC shifts right. */
static const uint64_t polynomials[N_KINDS] = {0xedb88320, 0x82f63b78, UINT64_C(0x9a6c9329ac4bc9b5)};

static void make_table(struct crc_table *table, uint64_t polynomial)
{
    for (unsigned b = 0; b < 256; b++) {
        uint64_t crc = b;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? polynomial : 0);
        table->t[0][b] = crc;
    }
    for (int k = 1; k < 8; k++) {
        for (unsigned b = 0; b < 256; b++) {
            uint64_t before = table->t[k - 1][b];
            table->t[k][b] = (before >> 8) ^ table->t[0][before & 0xff];
        }
    }
}

static void make_tables(void)
{
    for (int kind = 0; kind < N_KINDS; kind++)
        make_table(&tables[kind], polynomials[kind]);
}

size_t srv_crc_size(enum srv_crc_kind kind)
{
    return kind == SRV_CRC64NVME ? 8 : 4;
}

/* A 32-bit CRC lives in the low half of the 64-bit state: its tables never set the upper half, so
 * one loop serves both widths. */
uint64_t srv_crc_update(enum srv_crc_kind kind, uint64_t crc, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    uint64_t mask = srv_crc_size(kind) == 8 ? UINT64_MAX : UINT32_MAX;

    pthread_once(&tables_once, make_tables);
    const struct crc_table *c = &tables[kind];
    crc ^= mask;
    for (; len >= 8; len -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        crc ^= le64toh(word);
        crc = c->t[7][crc & 0xff] ^ c->t[6][crc >> 8 & 0xff] ^ c->t[5][crc >> 16 & 0xff] ^
              c->t[4][crc >> 24 & 0xff] ^ c->t[3][crc >> 32 & 0xff] ^ c->t[2][crc >> 40 & 0xff] ^
              c->t[1][crc >> 48 & 0xff] ^ c->t[0][crc >> 56];
    }
    for (; len > 0; len--, at++)
        crc = (crc >> 8) ^ c->t[0][(crc ^ *at) & 0xff];
    return crc ^ mask;
}

/* ---- Putting two together ---- */

/* A product of polynomials over GF(2) modulo the CRC's own, in the reflected order of bits: the
 * highest bit stands for 1. */
static uint64_t multiply(enum srv_crc_kind kind, uint64_t a, uint64_t b)
{
    uint64_t one = srv_crc_size(kind) == 8 ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
    uint64_t product = 0;

    for (uint64_t bit = one; bit != 0; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = (b >> 1) ^ (b & 1 ? polynomials[kind] : 0);
    }
    return product;
}

/* Behind `len` bytes more, a CRC is what it was times x to the power of their bits (as zlib's
 * crc32_combine has it, by Mark Adler). */
uint64_t srv_crc_combine(enum srv_crc_kind kind, uint64_t first, uint64_t second, uint64_t len)
{
    uint64_t one = srv_crc_size(kind) == 8 ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
    uint64_t power = one >> 8; /* x^8: a byte */
    uint64_t shift = one;

    for (; len > 0; len >>= 1) {
        if (len & 1)
            shift = multiply(kind, shift, power);
        power = multiply(kind, power, power);
    }
    return multiply(kind, shift, first) ^ second;
}
