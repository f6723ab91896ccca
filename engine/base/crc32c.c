#include "engine/base/crc32c.h"

#include <pthread.h>
#include <stdatomic.h>

#include "engine/base/bits.h"
#include "engine/base/crc32c_hw.h"

/* The polynomial with its highest power in bit 0, as all remainders here: bit 31 is 1, bit 30 is x,
 * bit 0 is x^31. */
#define POLY UINT32_C(0x82F63B78)
#define ONE UINT32_C(0x80000000)

/* x^(2^31) = x modulo this polynomial, so its powers of two repeat with this period. */
enum { N_SQUARES = 31 };

static pthread_once_t tables_once = PTHREAD_ONCE_INIT;
static uint32_t slice[8][256];      /* [c] slice[k][b]: byte b followed by k zero bytes */
static uint32_t squares[N_SQUARES]; /* [c] x^(2^k) */
struct eng_crc32c_shift eng_crc32c_shift_long;
struct eng_crc32c_shift eng_crc32c_shift_short;
static struct eng_crc32c_impl impls[2];
static size_t n_impls;

/* a * b modulo the polynomial. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = ONE; bit != 0; bit >>= 1) {
        product ^= (a & bit) ? b : 0;
        b = (b >> 1) ^ ((b & 1) ? POLY : 0);
    }
    return product;
}

/* x^(8 * n_bytes): what a register is multiplied by when that many zero bytes follow. */
static uint32_t zeros_factor(uint64_t n_bytes)
{
    uint32_t factor = ONE;
    for (unsigned k = 3; n_bytes != 0; n_bytes >>= 1, k++)
        if (n_bytes & 1)
            factor = multiply(factor, squares[k % N_SQUARES]);
    return factor;
}

static void build_shift(struct eng_crc32c_shift *shift, uint64_t n_bytes)
{
    uint32_t factor = zeros_factor(n_bytes);
    for (unsigned at = 0; at < 4; at++)
        for (uint32_t byte = 0; byte < 256; byte++)
            shift->by_byte[at][byte] = multiply(factor, byte << (8 * at));
}

static uint32_t table_update(uint32_t crc, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    uint32_t reg = ~crc;
    for (; len >= 8; p += 8, len -= 8) {
        uint32_t lo = reg ^ eng_load_u32(p);
        uint32_t hi = eng_load_u32(p + 4);
        reg = slice[7][lo & 255] ^ slice[6][(lo >> 8) & 255] ^ slice[5][(lo >> 16) & 255] ^
              slice[4][lo >> 24] ^ slice[3][hi & 255] ^ slice[2][(hi >> 8) & 255] ^
              slice[1][(hi >> 16) & 255] ^ slice[0][hi >> 24];
    }
    for (; len > 0; p++, len--)
        reg = slice[0][(reg ^ *p) & 255] ^ (reg >> 8);
    return ~reg;
}

static void build_tables(void)
{
    squares[0] = ONE >> 1;
    for (unsigned k = 1; k < N_SQUARES; k++)
        squares[k] = multiply(squares[k - 1], squares[k - 1]);
    for (unsigned k = 0; k < 8; k++) {
        uint32_t factor = zeros_factor(k + 1);
        for (uint32_t byte = 0; byte < 256; byte++)
            slice[k][byte] = multiply(factor, byte);
    }
    build_shift(&eng_crc32c_shift_long, CRC_LONG_BYTES);
    build_shift(&eng_crc32c_shift_short, CRC_SHORT_BYTES);

    impls[n_impls++] = (struct eng_crc32c_impl){"table", table_update};
    if (eng_crc32c_hw_usable())
        impls[n_impls++] = (struct eng_crc32c_impl){eng_crc32c_hw_name, eng_crc32c_hw};
}

static void need_tables(void)
{
    int rc = pthread_once(&tables_once, build_tables);
    GYRE_CHECK(rc == 0);
}

size_t eng_crc32c_impls(const struct eng_crc32c_impl **impls_out)
{
    need_tables();
    *impls_out = impls;
    return n_impls;
}

static uint32_t first_update(uint32_t crc, const void *bytes, size_t len);

/* [a] Starts as the function that chooses. A thread that still sees the old value chooses once
 * more, to the same end, and is thereby behind the pthread_once that built the tables; one that
 * sees the new value is behind it by the release. */
static _Atomic(uint32_t (*)(uint32_t, const void *, size_t)) update = first_update;

static uint32_t first_update(uint32_t crc, const void *bytes, size_t len)
{
    need_tables();
    atomic_store_explicit(&update, impls[n_impls - 1].update,
                          memory_order_release); /* Pairs with A */
    return impls[n_impls - 1].update(crc, bytes, len);
}

uint32_t eng_crc32c(uint32_t crc, const void *bytes, size_t len)
{
    return atomic_load_explicit(&update, memory_order_acquire)(crc, bytes, len); /* A */
}

/* The complements at both ends of B cancel out, so finished values combine as registers do. */
uint32_t eng_crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t len_b)
{
    need_tables();
    return multiply(crc_a, zeros_factor(len_b)) ^ crc_b;
}
