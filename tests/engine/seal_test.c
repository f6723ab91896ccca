/* Structures made and checked: a changed byte is noticed wherever it is. */
#include "engine/seal.h"

#include "engine/geometry.h"
#include "tests/harness/test.h"

static struct eng_superblock some_superblock(void)
{
    uint64_t bytes = UINT64_C(256) << 20;
    struct eng_geometry_want want = {&bytes, 1, 0, 2, 0, NULL, 0};
    struct eng_superblock super;
    char why[256];

    CHECK_OK(eng_geometry_make(&want, &super, why, sizeof why));
    memset(super.uuid, 7, sizeof super.uuid);
    super.generation = 3;
    eng_superblock_seal(&super);
    return super;
}

static struct eng_stripe_header some_header(const struct eng_superblock *super)
{
    struct eng_stripe_header header;

    memset(&header, 0, sizeof header);
    header.magic = ENG_HEADER_MAGIC;
    header.stripe = 1;
    header.generation = 1;
    memcpy(header.uuid, super->uuid, sizeof header.uuid);
    header.n_horizon = 2;
    header.horizon[1] = 5;
    eng_stripe_header_seal(&header);
    return header;
}

TEST(each_byte_of_a_superblock_counts)
{
    struct eng_superblock super = some_superblock();
    uint8_t *bytes = (uint8_t *)&super;

    CHECK_OK(eng_superblock_check(&super, super.volume_bytes));
    CHECK_ERR(eng_superblock_check(&super, super.volume_bytes + ENG_PAGE), GYRE_DAMAGED);
    for (size_t i = 0; i < sizeof super; i++) {
        bytes[i] ^= 0x10;
        gyre_err err = eng_superblock_check(&super, super.volume_bytes);
        CHECK(err == (i < 8 ? GYRE_NO_STORE : GYRE_DAMAGED));
        bytes[i] ^= 0x10;
    }
}

TEST(another_version_or_feature_is_told_from_damage)
{
    struct eng_superblock super = some_superblock();

    super.major = 2;
    eng_superblock_seal(&super);
    CHECK_ERR(eng_superblock_check(&super, super.volume_bytes), GYRE_INCOMPATIBLE);
    super.major = ENG_FORMAT_MAJOR;
    super.minor = 77;
    eng_superblock_seal(&super);
    CHECK_OK(eng_superblock_check(&super, super.volume_bytes));
    super.feature_incompat = 1;
    eng_superblock_seal(&super);
    CHECK_ERR(eng_superblock_check(&super, super.volume_bytes), GYRE_INCOMPATIBLE);
}

TEST(each_byte_of_a_stripe_header_counts)
{
    struct eng_superblock super = some_superblock();
    struct eng_stripe_header header = some_header(&super);
    uint8_t *bytes = (uint8_t *)&header;

    CHECK_OK(eng_stripe_header_check(&header, &super, 1));
    CHECK_ERR(eng_stripe_header_check(&header, &super, 0), GYRE_DAMAGED);
    for (size_t i = 0; i < sizeof header; i++) {
        bytes[i] ^= 0x10;
        CHECK_ERR(eng_stripe_header_check(&header, &super, 1), GYRE_DAMAGED);
        bytes[i] ^= 0x10;
    }
}

TEST(numbers_of_a_sealed_stripe_header_are_checked_all_the_same)
{
    struct eng_superblock super = some_superblock();
    struct eng_stripe_header header = some_header(&super);

    header.n_horizon = ENG_HORIZON_ALL;
    eng_stripe_header_seal(&header);
    CHECK_OK(eng_stripe_header_check(&header, &super, 1));
    header.n_horizon = ENG_HORIZON_ALL + 1;
    eng_stripe_header_seal(&header);
    CHECK_ERR(eng_stripe_header_check(&header, &super, 1), GYRE_DAMAGED);
    header = some_header(&super);
    header.horizon[0] = super.stripes[1].n_segments;
    eng_stripe_header_seal(&header);
    CHECK_ERR(eng_stripe_header_check(&header, &super, 1), GYRE_DAMAGED);
    header = some_header(&super);
    header.rings[1].used = 1;
    header.rings[1].segment = 2;
    header.rings[1].cursor = 2 * super.segment_bytes - ENG_UNIT;
    eng_stripe_header_seal(&header);
    CHECK_ERR(eng_stripe_header_check(&header, &super, 1), GYRE_DAMAGED);
    header.rings[1].cursor = 3 * super.segment_bytes;
    eng_stripe_header_seal(&header);
    CHECK_OK(eng_stripe_header_check(&header, &super, 1));
}

TEST(segment_tables_are_checked_by_sum_and_by_sense)
{
    struct eng_segment_row rows[16];

    memset(rows, 0, sizeof rows);
    for (size_t i = 0; i < 16; i++)
        rows[i].successor = i == 3 ? 4 : ENG_NO_SEGMENT;
    CHECK_OK(eng_segment_table_check(rows, 16, eng_segment_table_crc(rows, 16)));
    uint32_t crc = eng_segment_table_crc(rows, 16);
    rows[7].first_serial++;
    CHECK_ERR(eng_segment_table_check(rows, 16, crc), GYRE_DAMAGED);
    rows[7].successor = 16;
    CHECK_ERR(eng_segment_table_check(rows, 16, eng_segment_table_crc(rows, 16)), GYRE_DAMAGED);
}

TEST(data_files_know_their_store_and_stripe)
{
    struct eng_superblock super = some_superblock();
    struct eng_data_head head = eng_data_head_of(&super, 1);
    uint8_t *bytes = (uint8_t *)&head;

    CHECK_OK(eng_data_head_check(&head, &super, 1));
    CHECK_ERR(eng_data_head_check(&head, &super, 0), GYRE_FOREIGN);
    for (size_t i = 0; i < sizeof head; i++) {
        bytes[i] ^= 1;
        CHECK_ERR(eng_data_head_check(&head, &super, 1), GYRE_DAMAGED);
        bytes[i] ^= 1;
    }
    super.uuid[3] ^= 1;
    CHECK_ERR(eng_data_head_check(&head, &super, 1), GYRE_FOREIGN);
}

TEST(ban_rows_are_unused_or_whole)
{
    struct eng_ban_row row = {0};

    CHECK(eng_ban_row_valid(&row));
    row.hash = 1;
    CHECK(!eng_ban_row_valid(&row));
    row.kind = 2;
    eng_ban_row_seal(&row);
    CHECK(eng_ban_row_valid(&row));
    row.time_ms ^= 1;
    CHECK(!eng_ban_row_valid(&row));
}

TEST(vectors_stay_inside_their_body)
{
    struct {
        uint32_t count, zero;
        struct eng_vector_entry entries[2];
        char strings[8];
    } body;
    uint32_t count;

    memset(&body, 0, sizeof body);
    body.count = 2;
    body.entries[1].vary_off = 3;
    body.entries[1].vary_len = 5;
    CHECK_OK(eng_vector_check(&body, sizeof body, &count));
    CHECK_EQ_INT(count, 2);
    body.entries[1].vary_len = 6;
    CHECK_ERR(eng_vector_check(&body, sizeof body, &count), GYRE_DAMAGED);
    body.entries[1].vary_off = UINT32_MAX;
    CHECK_ERR(eng_vector_check(&body, sizeof body, &count), GYRE_DAMAGED);
    body.entries[1].vary_off = 0;
    body.count = UINT32_MAX;
    CHECK_ERR(eng_vector_check(&body, sizeof body, &count), GYRE_DAMAGED);
    CHECK_ERR(eng_vector_check(&body, 7, &count), GYRE_DAMAGED);
    CHECK_EQ_INT(count, 0);
}
