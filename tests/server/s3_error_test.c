/* The error table and its XML document. */
#include "server/s3/error.h"

#include "server/xml.h"
#include "tests/harness/test.h"

TEST(every_code_is_an_http_error_with_a_sentence)
{
    for (int code = SRV_S3_NONE + 1; code < SRV_S3_CODE_COUNT; code++) {
        int status = srv_s3_code_status((enum srv_s3_code)code);
        const char *message = srv_s3_code_message((enum srv_s3_code)code);
        CHECK_MSG(status >= 400 && status < 600, "code %d", code);
        CHECK_MSG(strlen(srv_s3_code_name((enum srv_s3_code)code)) > 0, "code %d", code);
        CHECK_MSG(strlen(message) > 0 && message[strlen(message) - 1] == '.', "code %d", code);
    }
}

TEST(every_store_error_has_an_answer)
{
    CHECK_EQ_INT(srv_s3_code_of(GYRE_OK), SRV_S3_NONE);
    for (gyre_err err = GYRE_OK + 1; err < GYRE_ERR_COUNT; err++) {
        enum srv_s3_code code = srv_s3_code_of(err);
        CHECK_MSG(code > SRV_S3_NONE && code < SRV_S3_CODE_COUNT, "%s", gyre_err_name(err));
        int status = srv_s3_code_status(code);
        if (gyre_err_kind(err) == GYRE_KIND_RETRY)
            CHECK_MSG(status == 503, "%s: %d", gyre_err_name(err), status);
        if (gyre_err_kind(err) == GYRE_KIND_MEDIUM)
            CHECK_MSG(status == 500, "%s: %d", gyre_err_name(err), status);
    }
    CHECK_EQ_INT(srv_s3_code_of(GYRE_NOT_FOUND), SRV_S3_NO_SUCH_KEY);
    CHECK_EQ_INT(srv_s3_code_of(GYRE_EXPIRED), SRV_S3_NO_SUCH_KEY);
    CHECK_EQ_INT(srv_s3_code_of(GYRE_EXISTS), SRV_S3_PRECONDITION_FAILED);
    CHECK_EQ_INT(srv_s3_code_of(GYRE_TOO_LARGE), SRV_S3_ENTITY_TOO_LARGE);
    CHECK_EQ_INT(srv_s3_code_of(GYRE_NO_SPACE), SRV_S3_SERVICE_UNAVAILABLE);
}

static struct srv_str str(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

static void check_document(const struct srv_s3_error *error, const char *want)
{
    struct srv_xml xml;
    srv_xml_init(&xml);
    srv_s3_error_write(&xml, error);
    struct srv_str got = srv_xml_view(&xml);
    CHECK_MSG(got.len == strlen(want) && memcmp(got.base, want, got.len) == 0, "%.*s", (int)got.len,
              got.base);
    srv_xml_fini(&xml);
}

#define DECLARATION "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"

TEST(documents_have_the_children_in_order)
{
    struct srv_s3_error error = {
        .code = SRV_S3_NO_SUCH_KEY,
        .bucket = str("abc"),
        .key = str("a&b"),
        .resource = str("/abc/a&b"),
        .request_id = str("0123456789ABCDEF"),
        .host_id = str("h"),
    };
    check_document(&error, DECLARATION
                   "<Error><Code>NoSuchKey</Code><Message>There is no such object.</Message>"
                   "<Key>a&amp;b</Key><Resource>/abc/a&amp;b</Resource>"
                   "<RequestId>0123456789ABCDEF</RequestId><HostId>h</HostId></Error>");
    const struct srv_s3_detail detail = {"ActualObjectSize", str("0")};
    error = (struct srv_s3_error){.code = SRV_S3_INVALID_RANGE,
                                  .message = "M.",
                                  .bucket = str("abc"),
                                  .details = &detail,
                                  .n_details = 1};
    check_document(
        &error, DECLARATION
        "<Error><Code>InvalidRange</Code><Message>M.</Message><BucketName>abc</BucketName>"
        "<ActualObjectSize>0</ActualObjectSize></Error>");
}
