/* Layouts for many sizes: what each must satisfy, whatever was asked for. */
#include "engine/geometry.h"

#include <stdio.h>

#include "engine/base/bits.h"
#include "engine/runtime.h"
#include "tests/harness/test.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

static uint64_t bytes_in_dir(const struct eng_superblock *super, uint32_t dir)
{
    uint64_t bytes = dir == 0 ? super->volume_bytes + eng_runtime_bytes(super) + 4096 : 0;

    for (uint32_t i = 0; i < super->n_stripes; i++)
        bytes += super->stripes[i].data_dir == dir ? eng_data_file_bytes(super, i) : 0;
    return bytes;
}

static uint32_t all_pools(const struct eng_superblock *super, uint32_t stripe)
{
    uint32_t sum = 0;

    for (uint32_t pool = 0; pool < ENG_MAX_POOLS; pool++)
        sum += eng_pool_max_segments(super, stripe, pool);
    return sum;
}

static void check_layout(const struct eng_geometry_want *want, const struct eng_superblock *super)
{
    struct eng_superblock finished = *super;

    finished.generation = 1;
    CHECK(eng_layout_valid(&finished));
    CHECK(super->n_stripes >= want->n_dirs && super->n_stripes <= ENG_MAX_STRIPES);
    CHECK(eng_is_pow2(super->segment_bytes));
    for (uint32_t d = 0; d < want->n_dirs; d++) {
        uint64_t used = bytes_in_dir(super, d);
        CHECK_MSG(used <= want->dir_bytes[d], "%llu of %llu bytes", (unsigned long long)used,
                  (unsigned long long)want->dir_bytes[d]);
    }
    for (uint32_t i = 0; i < super->n_stripes; i++) {
        const struct eng_stripe_row *row = &super->stripes[i];
        CHECK(row->data_dir < want->n_dirs);
        CHECK(eng_is_aligned(row->directory_off, 2 * MIB));
        CHECK(row->n_segments >= ENG_MIN_SEGMENTS && row->n_segments <= ENG_MAX_SEGMENTS);
        CHECK(eng_pool_max_segments(super, i, ENG_POOL_META) >= 2);
        CHECK(eng_pool_max_segments(super, i, ENG_POOL_MAIN) >= 2);
        CHECK(all_pools(super, i) <= row->n_segments);
        CHECK(eng_header_off(i, 1) < eng_table_off(super, 0, 0));
        CHECK((eng_area_bytes(super, i) >> ENG_UNIT_SHIFT) <= UINT64_C(1) << 34);
        CHECK((uint64_t)row->n_buckets * ENG_BUCKET_ENTRIES < UINT32_MAX);
    }
}

TEST(inv_E40_a_layout_stays_within_each_directory_and_in_range)
{
    struct test_rng rng = {test_seed()};
    unsigned made = 0;

    for (unsigned i = 0; i < 20000; i++) {
        uint64_t sizes[8];
        char why[256] = "";
        struct eng_superblock super;
        struct eng_geometry_want want = {
            sizes, 1 + (uint32_t)test_rng_below(&rng, 4), 0, 0, 0, NULL, 0};
        for (uint32_t d = 0; d < want.n_dirs; d++)
            sizes[d] = test_rng_below(&rng, 256 * MIB << test_rng_below(&rng, 16));
        if (test_rng_below(&rng, 4) == 0)
            want.segment_bytes = MIB << test_rng_below(&rng, 12);
        if (test_rng_below(&rng, 4) == 0)
            want.stripes = (uint32_t)test_rng_below(&rng, 70);
        if (test_rng_below(&rng, 4) == 0)
            want.average_object_bytes = (uint32_t)(256 << test_rng_below(&rng, 16));
        gyre_err err = eng_geometry_make(&want, &super, why, sizeof why);
        if (err == GYRE_OK) {
            check_layout(&want, &super);
            made++;
        } else {
            CHECK_ERR(err, GYRE_INVALID);
            CHECK(why[0] != '\0');
        }
    }
    CHECK(made > 2000);
}

TEST(chosen_sizes_follow_the_store)
{
    static const struct {
        uint64_t bytes, segment;
        uint32_t stripes;
    } rows[] = {
        {64 * MIB, MIB, 1},      {100 * MIB, MIB, 1},       {GIB, 8 * MIB, 1},
        {10 * GIB, 64 * MIB, 1}, {100 * GIB, 512 * MIB, 1}, {TIB, 512 * MIB, 16},
        {100 * TIB, GIB, 64},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct eng_geometry_want want = {&rows[i].bytes, 1, 0, 0, 0, NULL, 0};
        struct eng_superblock super;
        char why[256];
        CHECK_OK(eng_geometry_make(&want, &super, why, sizeof why));
        check_layout(&want, &super);
        CHECK_EQ_U64(super.segment_bytes, rows[i].segment);
        CHECK_EQ_U64(super.n_stripes, rows[i].stripes);
        CHECK_MSG(super.stripes[0].n_segments >= 32, "%u segments for row %zu",
                  super.stripes[0].n_segments, i);
        uint64_t lost = rows[i].bytes - eng_area_bytes(&super, 0) * super.n_stripes;
        CHECK_MSG(i == 0 || lost < rows[i].bytes / 10, "row %zu loses %llu bytes", i,
                  (unsigned long long)lost);
    }
}

TEST(wishes_that_cannot_be_met_are_explained)
{
    static const struct {
        uint64_t bytes, segment;
        uint32_t stripes, average;
        const char *why;
    } rows[] = {
        {GIB, 3000000, 0, 0, "not a power of two"},
        {GIB, 512 << 10, 0, 0, "not a power of two"},
        {GIB, 2 * GIB, 0, 0, "not a power of two"},
        {GIB, 512 * MIB, 0, 0, "segments"},
        {GIB, 0, 65, 0, "more than 64"},
        {64 * MIB, 0, 32, 0, "segments"},
        {64 * TIB, 0, 1, 0, "2 TiB"},
        {GIB, 0, 0, 100, "below 512"},
        {TIB, MIB, 1, 0, "more than 4096"},
        {MIB, 0, 0, 0, "segments"},
        {0, 0, 0, 0, "segments"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct eng_geometry_want want = {
            &rows[i].bytes, 1, rows[i].segment, rows[i].stripes, rows[i].average, NULL, 0};
        struct eng_superblock super;
        char why[256] = "";
        CHECK_ERR(eng_geometry_make(&want, &super, why, sizeof why), GYRE_INVALID);
        CHECK_MSG(strstr(why, rows[i].why) != NULL, "row %zu: \"%s\"", i, why);
    }
}

/* Any single field gone wrong behind a right checksum is noticed, or does no harm. */
TEST(inv_E41_a_layout_with_overlaps_or_wild_numbers_is_refused)
{
    uint64_t bytes = 512 * MIB;
    struct eng_geometry_want want = {&bytes, 1, 0, 3, 0, NULL, 0};
    struct eng_superblock good;
    char why[256];

    CHECK_OK(eng_geometry_make(&want, &good, why, sizeof why));
    good.generation = 1;
    CHECK(eng_layout_valid(&good));
    struct eng_superblock bad = good;
    bad.stripes[1].directory_off = good.stripes[0].directory_off;
    CHECK(!eng_layout_valid(&bad));
    bad = good;
    bad.stripes[2].table_off = good.stripes[0].table_off + ENG_PAGE;
    CHECK(!eng_layout_valid(&bad));
    bad = good;
    bad.stripes[2].n_buckets *= 100000;
    CHECK(!eng_layout_valid(&bad));
    bad = good;
    bad.stripes[0].n_segments = 5000;
    CHECK(!eng_layout_valid(&bad));
    bad = good;
    bad.n_stripes = 65;
    CHECK(!eng_layout_valid(&bad));
    bad = good;
    bad.ban_off = UINT64_MAX - 4095;
    CHECK(!eng_layout_valid(&bad));
    bad = good;
    bad.volume_bytes -= ENG_PAGE;
    CHECK(!eng_layout_valid(&bad));
    bad = good;
    bad.segment_bytes = 0;
    CHECK(!eng_layout_valid(&bad));
    bad = good;
    bad.n_pools = 17;
    CHECK(!eng_layout_valid(&bad));
}
