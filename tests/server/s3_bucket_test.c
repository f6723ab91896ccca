/* Buckets through the S3 handlers, and what is not offered. */
#include "tests/server/s3_fixture.h"

TEST(a_bucket_is_made_seen_listed_and_removed)
{
    struct fixture f;
    struct srv_exchange ex;

    fixture_init(&f);
    CHECK_EQ_INT(ask_status(&f, SRV_HEAD, "/bucket", NULL), 404);
    CHECK_EQ_INT(ask(&f, &ex, SRV_PUT, "/bucket/", NULL), 200);
    CHECK_EQ_STR(fake_get(&ex, "location"), "/bucket");
    fake_fini(&ex);
    CHECK_EQ_INT(ask_status(&f, SRV_PUT, "/bucket", NULL), 200); /* as in us-east-1 */
    CHECK_EQ_INT(ask(&f, &ex, SRV_HEAD, "/bucket", NULL), 200);
    CHECK_EQ_STR(fake_get(&ex, "x-amz-bucket-region"), "us-east-1");
    fake_fini(&ex);
    make_bucket(&f, "/another");
    CHECK_EQ_INT(ask(&f, &ex, SRV_GET, "/", NULL), 200);
    const char *list = (const char *)ex.out;
    const char *first = strstr(list, "<Bucket><Name>another</Name><CreationDate>");
    CHECK(first != NULL && strstr(first, "<Bucket><Name>bucket</Name><CreationDate>") != NULL);
    fake_fini(&ex);
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/bucket", NULL), 204);
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/bucket", NULL), 404);
    CHECK_EQ_INT(ask_status(&f, SRV_HEAD, "/bucket", NULL), 404);
    fixture_close(&f);
}

TEST(inv_S1_a_bucket_with_objects_cannot_be_removed)
{
    struct fixture f;
    struct srv_exchange ex;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    make_bucket(&f, "/bucket2");
    CHECK_EQ_INT(put_status(&f, "/bucket/a", "a", 1, NULL), 200);
    CHECK_EQ_INT(put_status(&f, "/bucket/b", "b", 1, NULL), 200);
    CHECK_EQ_INT(ask(&f, &ex, SRV_DELETE, "/bucket", NULL), 409);
    CHECK(has_code(&ex, "BucketNotEmpty"));
    fake_fini(&ex);
    /* The latest object is gone, an older one is not: the store must be searched. */
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/bucket/b", NULL), 204);
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/bucket", NULL), 409);
    fixture_close(&f);
    fixture_open(&f);
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/bucket", NULL), 409);
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/bucket2", NULL), 204);
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/bucket/a", NULL), 204);
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/bucket", NULL), 204);
    fixture_close(&f);
    fixture_open(&f);
    CHECK_EQ_INT(ask_status(&f, SRV_HEAD, "/bucket", NULL), 404);
    CHECK_EQ_INT(ask_status(&f, SRV_HEAD, "/bucket2", NULL), 404);
    fixture_close(&f);
}

TEST(a_put_under_way_does_not_reach_a_bucket_removed_meanwhile)
{
    static uint8_t bytes[300000];
    struct fixture f;
    struct srv_exchange ex;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    fake_init(&ex, &f.loop, SRV_PUT, "/bucket/k");
    fake_body(&ex, bytes, sizeof bytes);
    ex.is_late = true;
    ex.stays = true;
    srv_s3_start(f.s3, &ex);
    fake_deliver(&ex);
    fake_turn(&f.loop);
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/bucket", NULL), 204);
    make_bucket(&f, "/bucket");
    fake_finish(&ex);
    CHECK_EQ_INT(ex.status, 404);
    CHECK(has_code(&ex, "NoSuchBucket"));
    fake_fini(&ex);
    CHECK_EQ_INT(ask_status(&f, SRV_GET, "/bucket/k", NULL), 404);
    fixture_close(&f);
}

static const struct {
    enum srv_method method;
    const char *target;
    int status;
    const char *code;
} refused[] = {
    {SRV_GET, "/bucket/k?acl", 404, "NoSuchKey"},
    {SRV_GET, "/bucket/k?torrent", 501, "NotImplemented"},
    {SRV_PUT, "/bucket/k?partNumber=1&uploadId=x", 501, "NotImplemented"},
    {SRV_POST, "/bucket/k?uploads=", 501, "NotImplemented"},
    {SRV_POST, "/", 405, "MethodNotAllowed"},
    {SRV_METHOD_OTHER, "/bucket/k", 405, "MethodNotAllowed"},
    {SRV_DELETE, "/", 405, "MethodNotAllowed"},
    {SRV_PUT, "/Bucket", 400, "InvalidBucketName"},
    {SRV_PUT, "/ab", 400, "InvalidBucketName"},
    {SRV_GET, "/a..b/k", 400, "InvalidBucketName"},
    {SRV_GET, "/bucket/%zz", 400, "InvalidURI"},
    {SRV_GET, "/bucket/%ff", 400, "InvalidURI"},
    {SRV_GET, "/bucket/k?versionId=7", 404, "NoSuchVersion"},
    {SRV_GET, "/bucket/k?response-content-type=text/html", 400, "InvalidRequest"},
    {SRV_GET, "/bucket/k?x-id=GetObject&versionId=null", 404, "NoSuchKey"},
    {SRV_GET, "/?max-buckets=0", 400, "InvalidArgument"},
    {SRV_GET, "/?prefix=%", 400, "InvalidArgument"},
};

TEST(what_is_not_offered_is_refused_by_name)
{
    struct fixture f;
    struct srv_exchange ex;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        int status = ask(&f, &ex, refused[i].method, refused[i].target, NULL);
        CHECK_MSG(status == refused[i].status && has_code(&ex, refused[i].code), "%s: %d %s",
                  refused[i].target, status, (char *)ex.out);
        CHECK((status == 405) == (fake_get(&ex, "allow") != NULL));
        fake_fini(&ex);
    }
    fixture_close(&f);
}

TEST(a_configuration_that_makes_no_sense_makes_no_bucket)
{
    static const char good[] = "<CreateBucketConfiguration><LocationConstraint>eu-west-1"
                               "</LocationConstraint></CreateBucketConfiguration>";
    struct fixture f;
    struct srv_exchange ex;

    fixture_init(&f);
    CHECK_EQ_INT(put(&f, &ex, "/bucket", "<junk", 5, NULL), 400);
    CHECK(has_code(&ex, "MalformedXML"));
    fake_fini(&ex);
    CHECK_EQ_INT(ask_status(&f, SRV_HEAD, "/bucket", NULL), 404);
    fake_init(&ex, &f.loop, SRV_PUT, "/bucket");
    fake_body(&ex, good, strlen(good));
    ex.piece = 7;
    ex.is_late = true;
    run(&f, &ex);
    CHECK_EQ_INT(ex.status, 200);
    fake_fini(&ex);
    CHECK_EQ_INT(ask_status(&f, SRV_HEAD, "/bucket", NULL), 200);
    fixture_close(&f);
}

TEST(the_list_of_buckets_comes_in_pages)
{
    char target[160], token[64] = "";
    struct fixture f;
    struct srv_exchange ex;
    int n = 0;

    fixture_init(&f);
    for (int i = 0; i < 7; i++) {
        snprintf(target, sizeof target, "/page-%d", i);
        make_bucket(&f, target);
    }
    make_bucket(&f, "/other");
    do {
        snprintf(target, sizeof target, "/?prefix=page-&max-buckets=3%s%s",
                 token[0] != '\0' ? "&continuation-token=" : "", token);
        CHECK_EQ_INT(ask(&f, &ex, SRV_GET, target, NULL), 200);
        const char *at = (const char *)ex.out;
        while ((at = strstr(at, "<Name>page-")) != NULL)
            CHECK_EQ_INT((at += 11)[0], '0' + n++);
        const char *next = strstr((const char *)ex.out, "<ContinuationToken>");
        token[0] = '\0';
        if (next != NULL)
            sscanf(next, "<ContinuationToken>%63[^<]", token);
        fake_fini(&ex);
    } while (token[0] != '\0');
    CHECK_EQ_INT(n, 7);
    fixture_close(&f);
}
