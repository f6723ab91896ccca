/* Byte order, alignment, powers of two, and arithmetic at its edges. */
#include "engine/base/bits.h"

#include "tests/harness/test.h"

TEST(numbers_are_little_endian_at_any_alignment)
{
    for (size_t at = 0; at < 8; at++) {
        uint8_t room[24] = {0};
        eng_store_u64(room + at, UINT64_C(0x0807060504030201));
        for (uint8_t i = 0; i < 8; i++)
            CHECK_EQ_INT(room[at + i], i + 1);
        CHECK_EQ_U64(eng_load_u64(room + at), UINT64_C(0x0807060504030201));
        CHECK_EQ_U64(eng_load_u32(room + at), 0x04030201);
        eng_store_u32(room + at, 0xAABBCCDD);
        CHECK_EQ_INT(room[at], 0xDD);
        CHECK_EQ_INT(room[at + 3], 0xAA);
        CHECK_EQ_INT(room[at + 4], 5);
    }
}

TEST(alignment)
{
    CHECK_EQ_U64(eng_align_up(0, 4096), 0);
    CHECK_EQ_U64(eng_align_up(1, 4096), 4096);
    CHECK_EQ_U64(eng_align_up(4096, 4096), 4096);
    CHECK_EQ_U64(eng_align_up(UINT64_MAX - 127, 128), UINT64_MAX - 127);
    CHECK_EQ_U64(eng_align_down(4097, 4096), 4096);
    CHECK_EQ_U64(eng_align_down(UINT64_MAX, 1), UINT64_MAX);
    CHECK(eng_is_aligned(0, 64) && eng_is_aligned(128, 64) && !eng_is_aligned(96, 64));
    volatile uint64_t top = UINT64_MAX;
    CHECK_ABORTS((void)eng_align_up(top, 128));
    CHECK_EQ_U64(eng_div_up(0, 7), 0);
    CHECK_EQ_U64(eng_div_up(8, 7), 2);
    CHECK_EQ_U64(eng_div_up(UINT64_MAX, 1), UINT64_MAX);
}

TEST(powers_of_two)
{
    CHECK(!eng_is_pow2(0) && eng_is_pow2(1) && eng_is_pow2(UINT64_C(1) << 63) && !eng_is_pow2(6));
    for (unsigned k = 0; k < 64; k++) {
        uint64_t v = UINT64_C(1) << k;
        CHECK_EQ_INT(eng_log2_floor(v), k);
        if (k > 1)
            CHECK_EQ_INT(eng_log2_floor(v - 1), k - 1);
    }
    CHECK_EQ_INT(eng_log2_floor(UINT64_MAX), 63);
}

TEST(overflow_is_noticed)
{
    uint64_t got = 7;
    CHECK(eng_add_checked(UINT64_MAX - 1, 1, &got));
    CHECK_EQ_U64(got, UINT64_MAX);
    CHECK(!eng_add_checked(UINT64_MAX, 1, &got));
    CHECK_EQ_U64(got, 0);
}

TEST(a_span_is_inside_without_overflow)
{
    CHECK(eng_span_inside(0, 10, 10));
    CHECK(eng_span_inside(10, 0, 10));
    CHECK(!eng_span_inside(11, 0, 10));
    CHECK(!eng_span_inside(1, 10, 10));
    CHECK(!eng_span_inside(8, UINT64_MAX - 4, 10));
    CHECK(!eng_span_inside(UINT64_MAX, 2, 10));
}
