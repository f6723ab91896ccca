/* Lifecycle rules: documents that are taken and refused, and what follows for an object. */
#include "server/s3/lifecycle.h"

#include <stdio.h>

#include "tests/harness/test.h"

#define DOC(rules) "<LifecycleConfiguration>" rules "</LifecycleConfiguration>"
#define RULE(inner) "<Rule><Status>Enabled</Status>" inner "</Rule>"
#define ALL "<Prefix></Prefix>"
#define DAYS(n) "<Expiration><Days>" #n "</Days></Expiration>"

enum { DAY_S = SRV_S3_LIFECYCLE_DAY_S };

static struct srv_str str(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

static struct srv_s3_lifecycle *create(const char *text, enum srv_s3_code *code)
{
    return srv_s3_lifecycle_create(text, strlen(text), code);
}

TEST(documents_are_taken_or_refused)
{
    static const struct {
        const char *text;
        enum srv_s3_code code;
    } rows[] = {
        {DOC(RULE(ALL DAYS(1))), SRV_S3_NONE},
        {DOC(RULE("<Filter/>" DAYS(36500))), SRV_S3_NONE},
        {DOC(RULE("<Filter><Prefix>a</Prefix></Filter>" DAYS(1))), SRV_S3_NONE},
        {DOC(RULE(ALL "<Expiration><Date>2030-01-01T00:00:00Z</Date></Expiration>")), SRV_S3_NONE},
        {DOC(RULE(ALL "<AbortIncompleteMultipartUpload><DaysAfterInitiation>1"
                      "</DaysAfterInitiation></AbortIncompleteMultipartUpload>")),
         SRV_S3_NONE},
        {DOC(RULE(ALL "<NoncurrentVersionExpiration/>")), SRV_S3_NONE},
        {DOC("<Rule><Status>Disabled</Status>" ALL DAYS(1) "</Rule>"), SRV_S3_NONE},
        {DOC(RULE("<ID>x</ID>" ALL DAYS(1)) RULE("<ID>y</ID>" ALL DAYS(1))), SRV_S3_NONE},
        {DOC(RULE("<ID>x</ID>" ALL DAYS(1)) RULE("<ID>x</ID>" ALL DAYS(1))),
         SRV_S3_INVALID_ARGUMENT},
        {DOC(RULE(ALL DAYS(0))), SRV_S3_INVALID_ARGUMENT},
        {DOC(RULE(ALL DAYS(36501))), SRV_S3_INVALID_ARGUMENT},
        {DOC(RULE(ALL DAYS(x))), SRV_S3_INVALID_ARGUMENT},
        {DOC(RULE(ALL "<Expiration><Date>2030-01-01T01:00:00Z</Date></Expiration>")),
         SRV_S3_INVALID_ARGUMENT},
        {DOC(RULE(ALL "<Expiration><Date>20300101</Date></Expiration>")), SRV_S3_MALFORMED_XML},
        {DOC(RULE(ALL "<Expiration><Days>1</Days><Date>2030-01-01T00:00:00Z</Date></Expiration>")),
         SRV_S3_MALFORMED_XML},
        {DOC(RULE(ALL "<Transition><Days>1</Days></Transition>")), SRV_S3_NOT_IMPLEMENTED},
        {DOC(RULE(ALL)), SRV_S3_MALFORMED_XML},
        {DOC(RULE(DAYS(1))), SRV_S3_MALFORMED_XML}, /* for which objects? */
        {DOC("<Rule><Status>enabled</Status>" ALL DAYS(1) "</Rule>"), SRV_S3_MALFORMED_XML},
        {DOC("<Rule>" ALL DAYS(1) "</Rule>"), SRV_S3_MALFORMED_XML},
        {DOC(""), SRV_S3_MALFORMED_XML},
        {"<Other/>", SRV_S3_MALFORMED_XML},
        {"<LifecycleConfiguration>", SRV_S3_MALFORMED_XML},
        {"", SRV_S3_MALFORMED_XML},
        {DOC(RULE("<Filter><ObjectSizeGreaterThan>x</ObjectSizeGreaterThan></Filter>" DAYS(1))),
         SRV_S3_INVALID_ARGUMENT},
    };
    enum srv_s3_code code;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct srv_s3_lifecycle *lifecycle = create(rows[i].text, &code);
        CHECK_MSG(code == rows[i].code && (lifecycle != NULL) == (code == SRV_S3_NONE),
                  "row %zu: %d", i, code);
        srv_s3_lifecycle_destroy(lifecycle);
    }
}

TEST(ids_are_short)
{
    char text[1024], id[300];
    enum srv_s3_code code;

    for (size_t len = 255; len <= 256; len++) {
        memset(id, 'i', len);
        id[len] = '\0';
        snprintf(text, sizeof text, DOC(RULE("<ID>%s</ID>" ALL DAYS(1))), id);
        struct srv_s3_lifecycle *lifecycle = create(text, &code);
        CHECK_EQ_INT(code, len == 255 ? SRV_S3_NONE : SRV_S3_INVALID_ARGUMENT);
        srv_s3_lifecycle_destroy(lifecycle);
    }
}

TEST(rules_apply_to_what_they_name)
{
    /* The object was stored in the tenth hour of day 100. */
    const struct srv_s3_meta object = {.key = {"logs/x", 6},
                                       .tags = {"\1\1\0ab", 5},
                                       .modified_ms = ((int64_t)100 * DAY_S + 36000) * 1000};
    static const struct {
        const char *text;
        int64_t day; /* on whose midnight it expires; 0: never */
    } rows[] = {
        {DOC(RULE(ALL DAYS(1))), 102},
        {DOC(RULE("<Prefix>logs/</Prefix>" DAYS(3))), 104},
        {DOC(RULE("<Prefix>log/</Prefix>" DAYS(3))), 0},
        {DOC(RULE("<Prefix>logs/xy</Prefix>" DAYS(3))), 0},
        {DOC(RULE(ALL DAYS(5)) RULE(ALL DAYS(2)) RULE(ALL DAYS(4))), 103},
        {DOC("<Rule><Status>Disabled</Status>" ALL DAYS(1) "</Rule>"), 0},
        {DOC(RULE(ALL "<Expiration><Date>1970-01-06T00:00:00Z</Date></Expiration>")), 5},
        {DOC(RULE("<Filter><Tag><Key>a</Key><Value>b</Value></Tag></Filter>" DAYS(1))), 102},
        {DOC(RULE("<Filter><Tag><Key>a</Key><Value>c</Value></Tag></Filter>" DAYS(1))), 0},
        {DOC(RULE("<Filter><And><Prefix>logs/</Prefix><Tag><Key>a</Key><Value>b</Value></Tag>"
                  "</And></Filter>" DAYS(1))),
         102},
        {DOC(RULE("<Filter><ObjectSizeGreaterThan>999</ObjectSizeGreaterThan></Filter>" DAYS(1))),
         102},
        {DOC(RULE("<Filter><ObjectSizeGreaterThan>1000</ObjectSizeGreaterThan></Filter>" DAYS(1))),
         0},
        {DOC(RULE("<Filter><ObjectSizeLessThan>1001</ObjectSizeLessThan></Filter>" DAYS(1))), 102},
        {DOC(RULE("<Filter><ObjectSizeLessThan>1000</ObjectSizeLessThan></Filter>" DAYS(1))), 0},
    };
    enum srv_s3_code code;
    int64_t expiry_s;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct srv_s3_lifecycle *lifecycle = create(rows[i].text, &code);
        CHECK_MSG(lifecycle != NULL, "row %zu: %d", i, code);
        const struct srv_s3_lifecycle_rule *rule =
            srv_s3_lifecycle_of_object(lifecycle, &object, 1000, &expiry_s);
        CHECK_MSG((rule != NULL) == (rows[i].day != 0) && expiry_s == rows[i].day * DAY_S,
                  "row %zu: %lld", i, (long long)expiry_s);
        if (rule != NULL) {
            CHECK(!srv_s3_lifecycle_is_due(lifecycle, &object, 1000, expiry_s - 1, DAY_S));
            CHECK(srv_s3_lifecycle_is_due(lifecycle, &object, 1000, expiry_s, DAY_S));
        } else {
            CHECK(!srv_s3_lifecycle_is_due(lifecycle, &object, 1000, INT32_MAX, DAY_S));
        }
        srv_s3_lifecycle_destroy(lifecycle);
    }
}

TEST(days_can_be_short_and_uploads_are_given_up)
{
    const struct srv_s3_meta object = {.key = {"k", 1}, .modified_ms = 5000000};
    enum srv_s3_code code;
    struct srv_s3_lifecycle *lifecycle = create(
        DOC(RULE("<Prefix>k</Prefix>" DAYS(
            2) "<AbortIncompleteMultipartUpload>"
               "<DaysAfterInitiation>3</DaysAfterInitiation></AbortIncompleteMultipartUpload>")),
        &code);

    CHECK(lifecycle != NULL);
    CHECK(!srv_s3_lifecycle_is_due(lifecycle, &object, 1, 5019, 10));
    CHECK(srv_s3_lifecycle_is_due(lifecycle, &object, 1, 5020, 10));
    CHECK(!srv_s3_lifecycle_is_upload_due(lifecycle, str("k"), 1000, 1029, 10));
    CHECK(srv_s3_lifecycle_is_upload_due(lifecycle, str("k"), 1000, 1030, 10));
    CHECK(!srv_s3_lifecycle_is_upload_due(lifecycle, str("j"), 1000, 9999, 10));
    srv_s3_lifecycle_destroy(lifecycle);
}
