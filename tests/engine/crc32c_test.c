/* CRC-32C: the published vectors, and every implementation against a bit-by-bit one. */
#include "engine/base/crc32c.h"

#include <stdlib.h>

#include "engine/base/crc32c_hw.h"
#include "tests/harness/test.h"

/* Slow and plainly the definition. */
static uint32_t by_bits(uint32_t crc, const uint8_t *p, size_t len)
{
    crc = ~crc;
    for (; len > 0; p++, len--) {
        crc ^= *p;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) ? UINT32_C(0x82F63B78) : 0);
    }
    return ~crc;
}

static void check_vectors(const struct eng_crc32c_impl *impl)
{
    uint8_t zeros[32] = {0};
    uint8_t ones[32];
    uint8_t up[32];
    uint8_t down[32];
    const uint8_t iscsi_read[48] = {0x01, 0xc0, 0, 0,    0,    0, 0, 0,    0,    0, 0,    0,
                                    0,    0,    0, 0,    0x14, 0, 0, 0,    0,    0, 0x04, 0,
                                    0,    0,    0, 0x14, 0,    0, 0, 0x18, 0x28, 0, 0,    0,
                                    0,    0,    0, 0,    0x02, 0, 0, 0,    0,    0, 0,    0};
    memset(ones, 0xff, sizeof ones);
    for (uint8_t i = 0; i < 32; i++) {
        up[i] = i;
        down[i] = (uint8_t)(31 - i);
    }
    CHECK_EQ_U64(impl->update(0, "", 0), 0);
    CHECK_EQ_U64(impl->update(0, "123456789", 9), 0xE3069283);
    CHECK_EQ_U64(impl->update(0, zeros, 32), 0x8A9136AA);
    CHECK_EQ_U64(impl->update(0, ones, 32), 0x62A8AB43);
    CHECK_EQ_U64(impl->update(0, up, 32), 0x46DD794E);
    CHECK_EQ_U64(impl->update(0, down, 32), 0x113FDB5C);
    CHECK_EQ_U64(impl->update(0, iscsi_read, 48), 0xD9963A56);
}

TEST(rfc3720_vectors_in_every_implementation)
{
    const struct eng_crc32c_impl *impls;
    size_t n = eng_crc32c_impls(&impls);
    CHECK(n >= 1);
    CHECK_EQ_STR(impls[0].name, "table");
    for (size_t i = 0; i < n; i++)
        check_vectors(&impls[i]);
    check_vectors(&(struct eng_crc32c_impl){"chosen", eng_crc32c});
}

TEST(the_instruction_is_used_where_there_is_one)
{
    const struct eng_crc32c_impl *impls;
    size_t n = eng_crc32c_impls(&impls);
    CHECK_EQ_U64(n, eng_crc32c_hw_usable() ? 2 : 1);
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("sse4.2"))
        test_skip("no SSE4.2 here");
    CHECK_EQ_STR(impls[n - 1].name, "sse4.2");
#endif
}

/* Lengths around the block sizes, where the streams of the fast form begin and end. */
TEST(implementations_agree_on_any_length_and_alignment)
{
    enum { ROOM = 3 * 3 * CRC_LONG_BYTES + 64 };
    struct test_rng rng = {test_seed()};
    const struct eng_crc32c_impl *impls;
    size_t n = eng_crc32c_impls(&impls);
    uint8_t *room = malloc(ROOM);
    CHECK(room != NULL);
    test_rng_fill(&rng, room, ROOM);
    static const size_t around[] = {0,
                                    64,
                                    CRC_SHORT_BYTES,
                                    3 * CRC_SHORT_BYTES,
                                    6 * CRC_SHORT_BYTES,
                                    CRC_LONG_BYTES,
                                    3 * CRC_LONG_BYTES,
                                    3 * CRC_LONG_BYTES + 3 * CRC_SHORT_BYTES,
                                    6 * CRC_LONG_BYTES};
    int rounds = test_full() ? 20000 : 1500;
    for (int i = 0; i < rounds; i++) {
        size_t at = test_rng_below(&rng, 17);
        size_t len = around[test_rng_below(&rng, sizeof around / sizeof *around)];
        len += test_rng_below(&rng, 33);
        len -= test_rng_below(&rng, (len < 16 ? len : 16) + 1);
        uint32_t before = (uint32_t)test_rng_next(&rng);
        uint32_t want = by_bits(before, room + at, len);
        for (size_t k = 0; k < n; k++)
            CHECK_MSG(impls[k].update(before, room + at, len) == want, "%s: %zu bytes at %zu",
                      impls[k].name, len, at);
    }
    free(room);
}

TEST(continuing_equals_one_call)
{
    struct test_rng rng = {test_seed()};
    uint8_t bytes[5000];
    test_rng_fill(&rng, bytes, sizeof bytes);
    uint32_t whole = eng_crc32c(0, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= sizeof bytes; cut += 1 + test_rng_below(&rng, 40)) {
        uint32_t head = eng_crc32c(0, bytes, cut);
        CHECK_EQ_U64(eng_crc32c(head, bytes + cut, sizeof bytes - cut), whole);
    }
}

TEST(combining_equals_one_call)
{
    struct test_rng rng = {test_seed()};
    uint8_t bytes[5000];
    test_rng_fill(&rng, bytes, sizeof bytes);
    uint32_t whole = eng_crc32c(0, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= sizeof bytes; cut += 1 + test_rng_below(&rng, 40)) {
        size_t rest = sizeof bytes - cut;
        uint32_t a = eng_crc32c(0, bytes, cut);
        uint32_t b = eng_crc32c(0, bytes + cut, rest);
        CHECK_EQ_U64(eng_crc32c_combine(a, b, rest), whole);
    }
}

/* Lengths no buffer could have: doubling a run of zeros step by step must equal the direct way. */
TEST(combining_works_for_huge_lengths)
{
    uint32_t a = eng_crc32c(0, "gyre", 4);
    uint32_t zeros = eng_crc32c(0, "", 1);
    uint64_t len = 1;
    for (; len < (UINT64_C(1) << 62); len *= 2) {
        uint32_t once = eng_crc32c_combine(a, zeros, len);
        uint32_t twice = eng_crc32c_combine(once, zeros, len);
        zeros = eng_crc32c_combine(zeros, zeros, len);
        CHECK_EQ_U64(eng_crc32c_combine(a, zeros, 2 * len), twice);
    }
}
