/* Little-endian access, alignment, powers of two and arithmetic that notices overflow.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/check.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ENG_LE32(x) (x)
#define ENG_LE64(x) (x)
#else
#define ENG_LE32(x) __builtin_bswap32(x)
#define ENG_LE64(x) __builtin_bswap64(x)
#endif

/* Read a little-endian number at any alignment. */
static inline uint32_t eng_load_u32(const void *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return ENG_LE32(v);
}

static inline uint64_t eng_load_u64(const void *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return ENG_LE64(v);
}

/* Write a little-endian number at any alignment. */
static inline void eng_store_u32(void *at, uint32_t v)
{
    v = ENG_LE32(v);
    memcpy(at, &v, sizeof v);
}

static inline void eng_store_u64(void *at, uint64_t v)
{
    v = ENG_LE64(v);
    memcpy(at, &v, sizeof v);
}

/* Whether exactly one bit of `v` is set. */
static inline bool eng_is_pow2(uint64_t v)
{
    return v != 0 && (v & (v - 1)) == 0;
}

/* Round to a multiple of `align`, a power of two. Rounding up past 2^64 is the caller's mistake and
 * aborts. */
static inline uint64_t eng_align_down(uint64_t v, uint64_t align)
{
    GYRE_ASSERT(eng_is_pow2(align));
    return v & ~(align - 1);
}

static inline uint64_t eng_align_up(uint64_t v, uint64_t align)
{
    GYRE_ASSERT(eng_is_pow2(align));
    GYRE_CHECK(v <= UINT64_MAX - (align - 1));
    return (v + (align - 1)) & ~(align - 1);
}

static inline bool eng_is_aligned(uint64_t v, uint64_t align)
{
    GYRE_ASSERT(eng_is_pow2(align));
    return (v & (align - 1)) == 0;
}

/* Quotient rounded up; `by` is not 0. */
static inline uint64_t eng_div_up(uint64_t v, uint64_t by)
{
    return v / by + (v % by != 0);
}

/* Largest k with 2^k <= v; `v` is not 0. */
static inline unsigned eng_log2_floor(uint64_t v)
{
    GYRE_ASSERT(v != 0);
    return 63 - (unsigned)__builtin_clzll(v);
}

/* False on overflow, and *result_out is then 0. */
GYRE_MUST_USE static inline bool eng_add_checked(uint64_t a, uint64_t b, uint64_t *result_out)
{
    bool fits = !__builtin_add_overflow(a, b, result_out);
    *result_out = fits ? *result_out : 0;
    return fits;
}

/* Whether [off, off+len) lies inside [0, size), without overflow. The empty span at `size` does. */
static inline bool eng_span_inside(uint64_t off, uint64_t len, uint64_t size)
{
    return off <= size && len <= size - off;
}
