/* Sizes, durations and counts as tables. */
#include "server/quantity.h"

#include "tests/harness/test.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)

TEST(sizes_are_read_as_listed)
{
    static const struct {
        const char *text;
        uint64_t want; /* 0: refused */
    } rows[] = {
        {"1", 1},
        {"4096", 4096},
        {"4096B", 4096},
        {"1K", KIB},
        {"1k", KIB},
        {"1KB", KIB},
        {"1kb", KIB},
        {"1KiB", KIB},
        {"512MiB", 512 * MIB},
        {"512 MiB", 512 * MIB},
        {"10G", 10 * GIB},
        {"10g", 10 * GIB},
        {"1.5G", GIB + GIB / 2},
        {"0.5K", 512},
        {"1.125M", MIB + MIB / 8},
        {"2T", 2048 * GIB},
        {"1P", MIB * GIB},
        {"8191P", 8191 * MIB * GIB},
        {"0", 0},
        {"0G", 0},
        {"", 0},
        {"G", 0},
        {"-1", 0},
        {"+1", 0},
        {" 1", 0},
        {"1 ", 0},
        {"1.", 0},
        {".5G", 0},
        {"1.5", 0},
        {"1.2345G", 0},
        {"12Q", 0},
        {"1GG", 0},
        {"1Gi", 0},
        {"1iB", 0},
        {"1GiBs", 0},
        {"0x10", 0},
        {"1e3", 0},
        {"1,5G", 0},
        {"8192P", 0},
        {"9223372036854775808", 0},
        {"99999999999999999999999", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t got = 7;
        bool ok = srv_size_parse(rows[i].text, &got);
        CHECK_MSG(ok == (rows[i].want != 0) && got == rows[i].want, "'%s': %ju", rows[i].text,
                  (uintmax_t)got);
    }
}

TEST(durations_are_read_as_listed)
{
    static const struct {
        const char *text;
        int64_t want; /* -1: refused */
    } rows[] = {
        {"0", 0},
        {"30", 30000},
        {"30s", 30000},
        {"500ms", 500},
        {"1.5m", 90000},
        {"2h", 7200000},
        {"0.25", 250},
        {"", -1},
        {"s", -1},
        {"-1", -1},
        {"5d", -1},
        {"1 s", -1},
        {"1S", -1},
        {"1.2345s", -1},
        {"87600h", 315360000000},
        {"87601h", -1},
        {"99999999999999999999", -1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t got = 7;
        bool ok = srv_duration_parse(rows[i].text, &got);
        CHECK_MSG(ok == (rows[i].want >= 0) && got == (ok ? (uint64_t)rows[i].want : 0),
                  "'%s': %ju", rows[i].text, (uintmax_t)got);
    }
}

TEST(counts_are_plain_digits)
{
    uint64_t got;
    CHECK(srv_count_parse("0", 10, &got) && got == 0);
    CHECK(srv_count_parse("10", 10, &got) && got == 10);
    CHECK(!srv_count_parse("11", 10, &got) && got == 0);
    CHECK(!srv_count_parse("", 10, &got));
    CHECK(!srv_count_parse("1.0", 10, &got) || got == 1);
    CHECK(!srv_count_parse("-1", 10, &got));
    CHECK(!srv_count_parse("1k", 10, &got));
}

TEST(sizes_are_written_with_a_unit)
{
    static const struct {
        uint64_t bytes;
        const char *want;
    } rows[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {100 * KIB, "100 KiB"},
        {MIB - 1, "1.0 MiB"},
        {10 * GIB, "10.0 GiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[SRV_SIZE_TEXT_MAX];
        srv_size_write(rows[i].bytes, text);
        CHECK_EQ_STR(text, rows[i].want);
    }
}
