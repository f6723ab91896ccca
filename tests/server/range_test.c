/* Range values against body lengths, as a table. */
#include "server/range.h"

#include "tests/harness/test.h"

struct row {
    const char *value; /* NULL: no field */
    uint64_t length;
    enum srv_range_kind kind;
    uint64_t first;
    uint64_t last;
    const char *text; /* Content-Range, NULL for WHOLE */
};

#define MAX UINT64_MAX

static const struct row rows[] = {
    {NULL, 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes=0-0", 10, SRV_RANGE_PART, 0, 0, "bytes 0-0/10"},
    {"bytes=0-9", 10, SRV_RANGE_PART, 0, 9, "bytes 0-9/10"},
    {"bytes=0-10", 10, SRV_RANGE_PART, 0, 9, "bytes 0-9/10"},
    {"bytes=0-", 10, SRV_RANGE_PART, 0, 9, "bytes 0-9/10"},
    {"bytes=3-5", 10, SRV_RANGE_PART, 3, 5, "bytes 3-5/10"},
    {"bytes=9-", 10, SRV_RANGE_PART, 9, 9, "bytes 9-9/10"},
    {"bytes=9-9", 10, SRV_RANGE_PART, 9, 9, "bytes 9-9/10"},
    {"bytes=003-0005", 10, SRV_RANGE_PART, 3, 5, "bytes 3-5/10"},
    {"bytes=-1", 10, SRV_RANGE_PART, 9, 9, "bytes 9-9/10"},
    {"bytes=-10", 10, SRV_RANGE_PART, 0, 9, "bytes 0-9/10"},
    {"bytes=-11", 10, SRV_RANGE_PART, 0, 9, "bytes 0-9/10"},
    {"bytes=-99999999999999999999999", 10, SRV_RANGE_PART, 0, 9, "bytes 0-9/10"},
    {"bytes=5-99999999999999999999999", 10, SRV_RANGE_PART, 5, 9, "bytes 5-9/10"},
    {"bytes=5-18446744073709551615", 10, SRV_RANGE_PART, 5, 9, "bytes 5-9/10"},
    {"BYTES=0-1", 10, SRV_RANGE_PART, 0, 1, "bytes 0-1/10"},
    {" bytes=0-1 ", 10, SRV_RANGE_PART, 0, 1, "bytes 0-1/10"},
    {"bytes= 0-1", 10, SRV_RANGE_PART, 0, 1, "bytes 0-1/10"},
    {"bytes=0-", 1, SRV_RANGE_PART, 0, 0, "bytes 0-0/1"},
    {"bytes=5-6", MAX, SRV_RANGE_PART, 5, 6, "bytes 5-6/18446744073709551615"},
    {"bytes=18446744073709551614-", MAX, SRV_RANGE_PART, MAX - 1, MAX - 1,
     "bytes 18446744073709551614-18446744073709551614/18446744073709551615"},
    {"bytes=10-", 10, SRV_RANGE_UNSATISFIABLE, 0, 0, "bytes */10"},
    {"bytes=10-10", 10, SRV_RANGE_UNSATISFIABLE, 0, 0, "bytes */10"},
    {"bytes=11-12", 10, SRV_RANGE_UNSATISFIABLE, 0, 0, "bytes */10"},
    {"bytes=99999999999999999999999-", 10, SRV_RANGE_UNSATISFIABLE, 0, 0, "bytes */10"},
    {"bytes=18446744073709551616-18446744073709551617", 10, SRV_RANGE_UNSATISFIABLE, 0, 0,
     "bytes */10"},
    {"bytes=-0", 10, SRV_RANGE_UNSATISFIABLE, 0, 0, "bytes */10"},
    {"bytes=-0", 0, SRV_RANGE_UNSATISFIABLE, 0, 0, "bytes */0"},
    {"bytes=0-", 0, SRV_RANGE_UNSATISFIABLE, 0, 0, "bytes */0"},
    {"bytes=0-0", 0, SRV_RANGE_UNSATISFIABLE, 0, 0, "bytes */0"},
    {"bytes=-5", 0, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes=5-3", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes=", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes=-", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes=5", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes=--5", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes=1-2-3", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes=a-b", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes=0x1-2", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes=1 -2", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes=1- 2", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes =1-2", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes 1-2", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes:1-2", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"items=0-1", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"0-1", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes=0-1,3-4", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes=0-1, -1", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes=0-1,", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes=20-30,0-1", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
    {"bytes=+1-2", 10, SRV_RANGE_WHOLE, 0, 0, NULL},
};

TEST(each_range_is_decided_as_listed)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        const char *text = row->value != NULL ? row->value : "";
        struct srv_str value = {text, strlen(text)};
        struct srv_range got = srv_range_decide(row->value != NULL ? &value : NULL, row->length);
        CHECK_MSG(got.kind == row->kind, "'%s': kind %d", text, (int)got.kind);
        CHECK_MSG(got.first == row->first && got.last == row->last, "'%s': %ju-%ju", text,
                  (uintmax_t)got.first, (uintmax_t)got.last);
        if (row->text == NULL)
            continue;
        char written[SRV_CONTENT_RANGE_MAX];
        CHECK_EQ_U64(srv_range_write(&got, row->length, written), strlen(row->text));
        CHECK_EQ_STR(written, row->text);
    }
}

TEST(largest_content_range_fits)
{
    struct srv_range range = {SRV_RANGE_PART, MAX, MAX};
    char written[SRV_CONTENT_RANGE_MAX];
    CHECK(srv_range_write(&range, MAX, written) < sizeof(written));
}
