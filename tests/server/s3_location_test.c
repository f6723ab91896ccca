/* Bodies of CreateBucket, as clients send them and as they should not. */
#include "server/s3/location.h"

#include "tests/harness/test.h"

#define OPEN "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
#define CLOSE "</CreateBucketConfiguration>"

static const struct {
    const char *body;
    enum srv_s3_code code;
} rows[] = {
    {"", SRV_S3_NONE},
    {" \r\n", SRV_S3_NONE},
    {OPEN CLOSE, SRV_S3_NONE},
    {"<CreateBucketConfiguration/>", SRV_S3_NONE},
    {"<?xml version=\"1.0\"?>\n" OPEN "<LocationConstraint>eu-west-1</LocationConstraint>" CLOSE,
     SRV_S3_NONE},
    {OPEN "<LocationConstraint> EU\n</LocationConstraint>" CLOSE, SRV_S3_NONE},
    {OPEN "<LocationConstraint/>" CLOSE, SRV_S3_NONE},
    {OPEN "<LocationConstraint></LocationConstraint>" CLOSE, SRV_S3_NONE},
    {OPEN "<LocationConstraint>no region</LocationConstraint>" CLOSE, SRV_S3_INVALID_LOCATION},
    {OPEN "<LocationConstraint><a/></LocationConstraint>" CLOSE, SRV_S3_INVALID_LOCATION},
    {OPEN "<LocationConstraint>eu-west-1" CLOSE, SRV_S3_MALFORMED_XML},
    {OPEN, SRV_S3_MALFORMED_XML},
    {"<CreateBucketConfiguration", SRV_S3_MALFORMED_XML},
    {"<Delete></Delete>", SRV_S3_MALFORMED_XML},
    {"hello", SRV_S3_MALFORMED_XML},
};

TEST(every_body_is_judged_however_it_is_cut)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t len = strlen(rows[i].body);
        for (size_t cut = 0; cut <= len; cut++) {
            struct srv_s3_location location = {.len = 0};
            srv_s3_location_feed(&location, rows[i].body, cut);
            srv_s3_location_feed(&location, rows[i].body + cut, len - cut);
            CHECK_MSG(srv_s3_location_check(&location) == rows[i].code, "row %zu cut at %zu", i,
                      cut);
        }
    }
}

TEST(a_body_beyond_the_limit_is_malformed)
{
    struct srv_s3_location location = {.len = 0};
    char spaces[SRV_S3_LOCATION_BODY_MAX];

    memset(spaces, ' ', sizeof spaces);
    srv_s3_location_feed(&location, spaces, sizeof spaces);
    CHECK_EQ_INT(srv_s3_location_check(&location), SRV_S3_NONE);
    srv_s3_location_feed(&location, spaces, 1);
    CHECK_EQ_INT(srv_s3_location_check(&location), SRV_S3_MALFORMED_XML);
}
