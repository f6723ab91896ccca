/* Fields of header blocks, counted without decoding. */
#include "server/hpack_count.h"

#include "tests/harness/test.h"

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
        CHECK_MSG(srv_hpack_count((const uint8_t *)rows[i].block, rows[i].len) == rows[i].want,
                  "row %zu: %zu", i, srv_hpack_count((const uint8_t *)rows[i].block, rows[i].len));
}

TEST(one_octet_a_field)
{
    static uint8_t block[16000];
    memset(block, 0xbe, sizeof block);
    CHECK_EQ_U64(srv_hpack_count(block, sizeof block), sizeof block);
}
