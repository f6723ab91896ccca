#include "engine/base/crc32c_hw.h"

#include "engine/base/bits.h"

/* An instruction has a latency of about three cycles but can start every cycle. So long input is
 * cut into three streams that run side by side; two table shifts then put the remainders together.
 * The idea is Mark Adler's (crc32c.c, 2013). */

#if defined(__x86_64__)

#include <nmmintrin.h>

#define HW_TARGET __attribute__((target("sse4.2")))
const char eng_crc32c_hw_name[] = "sse4.2";

bool eng_crc32c_hw_usable(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2") != 0;
}

HW_TARGET static inline uint32_t step8(uint32_t reg, const uint8_t *at)
{
    return (uint32_t)_mm_crc32_u64(reg, eng_load_u64(at));
}

HW_TARGET static inline uint32_t step1(uint32_t reg, uint8_t byte)
{
    return _mm_crc32_u8(reg, byte);
}

#elif defined(__aarch64__)

#include <sys/auxv.h>

#define HW_TARGET
#define HW_CAP_CRC32 (1UL << 7) /* HWCAP_CRC32 of the kernel's interface */
const char eng_crc32c_hw_name[] = "armv8";

bool eng_crc32c_hw_usable(void)
{
    return (getauxval(AT_HWCAP) & HW_CAP_CRC32) != 0;
}

/* Written out, because the intrinsics exist only where the whole file is compiled for processors
 * that have the instruction. */
static inline uint32_t step8(uint32_t reg, const uint8_t *at)
{
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(reg) : "r"(eng_load_u64(at)));
    return reg;
}

static inline uint32_t step1(uint32_t reg, uint8_t byte)
{
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(reg) : "r"((uint32_t)byte));
    return reg;
}

#else

#define HW_TARGET
const char eng_crc32c_hw_name[] = "none";

bool eng_crc32c_hw_usable(void)
{
    return false;
}

/* Never reached: nothing is usable. */
static inline uint32_t step8(uint32_t reg, const uint8_t *at)
{
    (void)at;
    return reg;
}

static inline uint32_t step1(uint32_t reg, uint8_t byte)
{
    (void)byte;
    return reg;
}

#endif

static inline uint32_t shifted(const struct eng_crc32c_shift *shift, uint32_t reg)
{
    return shift->by_byte[0][reg & 255] ^ shift->by_byte[1][(reg >> 8) & 255] ^
           shift->by_byte[2][(reg >> 16) & 255] ^ shift->by_byte[3][reg >> 24];
}

/* The register after three streams of `stream` bytes each from `p` on. */
HW_TARGET static inline uint32_t three_streams(uint32_t a, const uint8_t *p, size_t stream,
                                               const struct eng_crc32c_shift *shift)
{
    uint32_t b = 0;
    uint32_t c = 0;
    for (const uint8_t *end = p + stream; p < end; p += 8) {
        a = step8(a, p);
        b = step8(b, p + stream);
        c = step8(c, p + 2 * stream);
    }
    return shifted(shift, shifted(shift, a) ^ b) ^ c;
}

HW_TARGET uint32_t eng_crc32c_hw(uint32_t crc, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    uint32_t reg = ~crc;
    for (; len > 0 && ((uintptr_t)p & 7) != 0; p++, len--)
        reg = step1(reg, *p);
    for (; len >= 3 * CRC_LONG_BYTES; p += 3 * CRC_LONG_BYTES, len -= 3 * CRC_LONG_BYTES)
        reg = three_streams(reg, p, CRC_LONG_BYTES, &eng_crc32c_shift_long);
    for (; len >= 3 * CRC_SHORT_BYTES; p += 3 * CRC_SHORT_BYTES, len -= 3 * CRC_SHORT_BYTES)
        reg = three_streams(reg, p, CRC_SHORT_BYTES, &eng_crc32c_shift_short);
    for (; len >= 8; p += 8, len -= 8)
        reg = step8(reg, p);
    for (; len > 0; p++, len--)
        reg = step1(reg, *p);
    return ~reg;
}
