/* Fields of header blocks, counted without decoding. */
#include "server/hpack_count.h"

#include "tests/harness/test.h"

static bool is_odd;

static bool is_third(const void *table, size_t i)
{
    CHECK(table == &is_odd);
    return i == 2;
}

static size_t count(const char *block, size_t len)
{
    return srv_hpack_count((const uint8_t *)block, len, is_third, &is_odd, &is_odd);
}

TEST(every_representation_is_one_field_and_a_fault_ends_the_count)
{
    static const struct {
        const char *block;
        size_t len, want;
    } rows[] = {
        {"", 0, 0},
        {"\x82", 1, 1},                             /* indexed */
        {"\x82\x86\x84\xbe\xbe\xff\x80\x01", 8, 6}, /* the last beyond its prefix */
        {"\x41\x03www", 5, 1},                      /* a kept literal, its name indexed */
        {"\x40\x01x\x02yz\xbe", 7, 2},              /* its name spelt out */
        {"\x04\x01/\x00\x01x\x00", 7, 2},           /* not kept; an empty value */
        {"\x10\x01x\x81\xff\x82", 6, 2},            /* never kept; a Huffman string */
        {"\x3f\xe1\x1f\x82", 4, 1},                 /* the table's size is no field */
        {"\x20\x20\x20", 3, 0},                     /* nor is its end */
        {"\x82\x40", 2, 1},                         /* cut in the name */
        {"\x82\x40\x05x", 4, 1},                    /* a string longer than the block */
        {"\x82\x40\x01x", 4, 1},                    /* no value */
        {"\xff\x80\x80\x80\x80\x80\x80\x01", 8, 0}, /* an integer without end */
        {"\x40\x7f\xff\xff\xff\xff\x0f\x61", 8, 0}, /* a length of 4 GiB */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_MSG(count(rows[i].block, rows[i].len) == rows[i].want && !is_odd, "row %zu: %zu", i,
                  count(rows[i].block, rows[i].len));
}

TEST(one_octet_a_field)
{
    static char block[16000];
    memset(block, 0xbe, sizeof block);
    CHECK_EQ_U64(count(block, sizeof block), sizeof block);
}

TEST(a_scheme_is_http_or_https_however_it_is_spelt)
{
    /* The third entry of the client's table is `:scheme`. */
    static const struct {
        const char *block;
        size_t len;
        bool want_odd;
    } rows[] = {
        {"\x86\x87", 2, false},                 /* indexed */
        {"\x06\x04http", 6, false},             /* a literal */
        {"\x47\x05https", 7, false},            /* kept */
        {"\x17\x83\x9d\x29\xaf", 5, false},     /* Huffman: http */
        {"\x06\x84\x9d\x29\xad\x1f", 6, false}, /* https */
        {"\x00\x07:scheme\x04http", 14, false}, /* the name spelt out */
        {"\x00\x85\xb8\x82\x4e\x5a\x4b\x04http", 12, false},
        {"\x06\x00", 2, true},
        {"\x06\x03"
         "ftp",
         5, true},
        {"\x06\x04HTTP", 6, true},
        {"\x06\x04\x9d\x29\xaf\xff", 6, true}, /* not Huffman's */
        {"\x46\x01x", 3, true},
        {"\x17\x0ajavascript", 12, true},
        {"\x00\x07:scheme\x01x", 11, true},
        {"\x00\x85\xb8\x82\x4e\x5a\x4b\x01x", 9, true},
        {"\x04\x01/\x05\x01x", 6, false}, /* other names */
        {"\x7e\x01x", 3, false},          /* the client's first entry, */
        {"\x7f\x01\x01x", 4, true},       /* and its third */
        {"\x0f\x31\x01x", 4, true},
        {"\x41\x01"
         "a\x7f\x01\x01x",
         7, false}, /* which is the fourth now */
        {"\x41\x01"
         "a\x7f\x02\x01x",
         7, true},
        {"\x46\x04http\x41\x01"
         "a\x7f\x00\x01x",
         13, true}, /* an entry of the block itself */
        {"\x46\x04http\x41\x01"
         "a\x7e\x01x",
         12, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        count(rows[i].block, rows[i].len);
        CHECK_MSG(is_odd == rows[i].want_odd, "row %zu", i);
    }
}

TEST(what_is_added_is_counted_up_to_any_number)
{
    static char block[3000];
    for (size_t i = 0; i < sizeof block; i += 3)
        memcpy(block + i, "\x46\x01x", 3);
    CHECK_EQ_U64(count(block, sizeof block), sizeof block / 3);
    CHECK(is_odd);
}
