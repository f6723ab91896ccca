/* The parts of an upload: chosen by a document, and summed up. */
#include "server/s3/upload_parts.h"

#include <stdio.h>

#include "server/xml_read.h"
#include "tests/harness/test.h"

#define DOC(parts) "<CompleteMultipartUpload>" parts "</CompleteMultipartUpload>"
#define PART(n, etag) "<Part><PartNumber>" #n "</PartNumber><ETag>" etag "</ETag></Part>"
#define A "0a000000000000000000000000000000"
#define B "0b000000000000000000000000000000"
#define C "0c000000000000000000000000000000"

/* Parts 1, 2 and 5, of which the last is small. */
static struct srv_s3_upload_part stored[3];

static struct srv_s3_upload_parts parts_of(void)
{
    const uint32_t numbers[3] = {1, 2, 5};

    for (int i = 0; i < 3; i++) {
        stored[i] = (struct srv_s3_upload_part){.number = numbers[i],
                                                .length = i < 2 ? SRV_S3_PART_MIN_BYTES : 7,
                                                .md5 = {(uint8_t)(0x0a + i)}};
    }
    return (struct srv_s3_upload_parts){stored, 3, 3};
}

TEST(documents_choose_parts_or_are_refused)
{
    static const struct {
        const char *text;
        enum srv_s3_code code;
        size_t n;
    } rows[] = {
        {DOC(PART(1, A) PART(2, B) PART(5, C)), SRV_S3_NONE, 3},
        {DOC(PART(1, "&quot;" A "&quot;") PART(5, "\"" C "\"")), SRV_S3_NONE, 2},
        {DOC(PART(2, "0B000000000000000000000000000000")), SRV_S3_NONE, 1},
        {DOC("<Part><PartNumber>5</PartNumber></Part>"), SRV_S3_NONE, 1},
        {DOC(PART(1, B) PART(1, A)), SRV_S3_NONE, 1}, /* the last one counts */
        {DOC(PART(1, A) PART(1, B)), SRV_S3_INVALID_PART, 0},
        {DOC(PART(1, B)), SRV_S3_INVALID_PART, 0},
        {DOC(PART(3, A)), SRV_S3_INVALID_PART, 0},
        {DOC(PART(6, C)), SRV_S3_INVALID_PART, 0},
        {DOC(PART(2, B) PART(1, A)), SRV_S3_INVALID_PART_ORDER, 0},
        {DOC(PART(9, B) PART(1, A)), SRV_S3_INVALID_PART_ORDER, 0},
        {DOC(PART(0, A)), SRV_S3_INVALID_ARGUMENT, 0},
        {DOC(PART(10001, A)), SRV_S3_INVALID_ARGUMENT, 0},
        {DOC(PART(x, A)), SRV_S3_MALFORMED_XML, 0},
        {DOC("<Part><ETag>" A "</ETag></Part>"), SRV_S3_MALFORMED_XML, 0},
        {DOC("<Other/>"), SRV_S3_MALFORMED_XML, 0},
        {DOC(""), SRV_S3_MALFORMED_XML, 0},
        {"<Part/>", SRV_S3_MALFORMED_XML, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct srv_xml_doc *doc = srv_xml_doc_create(rows[i].text, strlen(rows[i].text), 100);
        struct srv_s3_upload_parts parts = parts_of();
        CHECK(doc != NULL);
        enum srv_s3_code code = srv_s3_upload_parts_choose(&parts, srv_xml_root(doc));
        CHECK_MSG(code == rows[i].code, "row %zu: %d", i, code);
        if (code == SRV_S3_NONE)
            CHECK_EQ_U64(parts.n, rows[i].n);
        srv_xml_doc_destroy(doc);
    }
}

TEST(all_parts_but_the_last_are_large)
{
    static const char text[] = DOC(PART(1, A) PART(2, B));
    struct srv_xml_doc *doc = srv_xml_doc_create(text, strlen(text), 100);
    struct srv_s3_upload_parts parts = parts_of();

    CHECK(doc != NULL);
    stored[1].length = 1;
    CHECK_EQ_INT(srv_s3_upload_parts_choose(&parts, srv_xml_root(doc)), SRV_S3_NONE);
    CHECK_EQ_U64(srv_s3_upload_parts_length(&parts), SRV_S3_PART_MIN_BYTES + 1);
    parts = parts_of();
    stored[0].length = SRV_S3_PART_MIN_BYTES - 1;
    CHECK_EQ_INT(srv_s3_upload_parts_choose(&parts, srv_xml_root(doc)), SRV_S3_ENTITY_TOO_SMALL);
    srv_xml_doc_destroy(doc);
}

/* "123456789" in three parts. */
TEST(crcs_of_parts_give_that_of_the_whole)
{
    static const char *const texts[3] = {"12", "345", "6789"};
    static const enum srv_checksum algorithms[3] = {SRV_CHECKSUM_CRC32, SRV_CHECKSUM_CRC32C,
                                                    SRV_CHECKSUM_CRC64NVME};
    struct srv_s3_checksum sum, want;

    for (int a = 0; a < 3; a++) {
        struct srv_s3_upload_parts parts = parts_of();
        for (int i = 0; i < 3; i++) {
            stored[i].length = strlen(texts[i]);
            stored[i].checksum.algorithm = algorithms[a];
            CHECK(srv_checksum_of_bytes(algorithms[a], texts[i], strlen(texts[i]),
                                        stored[i].checksum.value));
        }
        CHECK(srv_checksum_of_bytes(algorithms[a], "123456789", 9, want.value));
        CHECK(srv_s3_upload_parts_checksum(&parts, algorithms[a], false, &sum));
        CHECK(memcmp(sum.value, want.value, srv_checksum_size(algorithms[a])) == 0);
        CHECK(srv_s3_upload_parts_checksum(&parts, algorithms[a], true, &sum));
        CHECK(sum.is_composite && sum.n_parts == 3);
        stored[1].checksum.algorithm = SRV_CHECKSUM_NONE;
        CHECK(!srv_s3_upload_parts_checksum(&parts, algorithms[a], false, &sum));
    }
}

/* MD5 of the bytes of three MD5s, computed by md5sum. */
TEST(the_etag_is_of_the_parts)
{
    struct srv_s3_upload_parts parts = parts_of();
    char etag[SRV_S3_PARTS_ETAG_MAX];

    CHECK(srv_s3_upload_parts_etag(&parts, etag));
    CHECK_EQ_STR(etag, "c506c0b582acf3d39ad024062415106b-3");
}
