/* Lists and multiple deletions through the S3 handlers: every answer shows what was stored and
 * deleted before it. */
#include "tests/server/s3_fixture.h"

static void check_has(struct fixture *f, const char *target, const char *const *pieces)
{
    struct srv_exchange ex;
    int status = ask(f, &ex, SRV_GET, target, NULL);
    CHECK_MSG(status == 200, "%s: %d %s", target, status, (char *)ex.out);
    for (size_t i = 0; pieces[i] != NULL; i++) {
        bool is_absent = pieces[i][0] == '!';
        CHECK_MSG((strstr((char *)ex.out, pieces[i] + is_absent) == NULL) == is_absent,
                  "%s: %s: %s", target, pieces[i], (char *)ex.out);
    }
    fake_fini(&ex);
}

static void check_refused(struct fixture *f, enum srv_method method, const char *target, int status,
                          const char *code)
{
    struct srv_exchange ex;
    int got = ask(f, &ex, method, target, NULL);
    CHECK_MSG(got == status && has_code(&ex, code), "%s: %d %s", target, got, (char *)ex.out);
    fake_fini(&ex);
}

static void put_keys(struct fixture *f, const char *bucket)
{
    static const char *const keys[] = {"a", "b/1", "b/2", "c%20d", "%26", "%01"};
    char target[64];
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        snprintf(target, sizeof target, "/%s/%s", bucket, keys[i]);
        CHECK_EQ_INT(put_status(f, target, "hello", 5, NULL), 200);
    }
}

TEST(a_list_shows_every_answered_put)
{
    struct fixture f;
    fixture_init(&f);
    make_bucket(&f, "/bucket");
    check_has(&f, "/bucket", FIELDS("<Name>bucket</Name>", "!<Contents>", "<Marker></Marker>"));
    put_keys(&f, "bucket");
    check_has(&f, "/bucket",
              FIELDS("<Key>a</Key>", "<Key>b/1</Key>", "<Key>c d</Key>", "<Key>&amp;</Key>",
                     "<Key>&#x1;</Key>",
                     "<ETag>&quot;5d41402abc4b2a76b9719d911017c592&quot;</ETag>", "<Size>5</Size>",
                     "<IsTruncated>false</IsTruncated>", "<Owner>"));
    check_has(&f, "/bucket?list-type=2&delimiter=/&max-keys=3&encoding-type=url",
              FIELDS("<KeyCount>3</KeyCount>", "<Key>%01</Key>", "<Key>%26</Key>", "!<Owner>",
                     "<NextContinuationToken>", "<IsTruncated>true</IsTruncated>"));
    check_has(&f, "/bucket/?delimiter=/&prefix=b&max-keys=1",
              FIELDS("<CommonPrefixes><Prefix>b/</Prefix></CommonPrefixes>", "!<Contents>",
                     "<IsTruncated>false</IsTruncated>"));
    check_has(&f, "/bucket?versions&key-marker=b/1",
              FIELDS("<ListVersionsResult", "<Key>b/2</Key>", "!<Key>b/1</Key>",
                     "<VersionId>null</VersionId>"));
    check_has(&f, "/bucket?max-keys=0", FIELDS("<IsTruncated>false</IsTruncated>", "!<Contents>"));
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/bucket/a", NULL), 204);
    check_has(&f, "/bucket", FIELDS("!<Key>a</Key>", "<Key>b/1</Key>"));
    fixture_close(&f);
    fixture_open(&f);
    check_has(&f, "/bucket", FIELDS("!<Key>a</Key>", "<Key>b/1</Key>"));
    fixture_close(&f);
}

TEST(lists_that_cannot_be_are_refused)
{
    struct fixture f;
    fixture_init(&f);
    make_bucket(&f, "/bucket");
    make_bucket(&f, "/dark");
    check_refused(&f, SRV_GET, "/nothing", 404, "NoSuchBucket");
    check_refused(&f, SRV_GET, "/nothing?versions", 404, "NoSuchBucket");
    check_refused(&f, SRV_GET, "/bucket?max-keys=blah", 400, "InvalidArgument");
    check_refused(&f, SRV_GET, "/bucket?list-type=3", 400, "InvalidArgument");
    check_refused(&f, SRV_GET, "/bucket?list-type=2&continuation-token=%21", 400,
                  "InvalidArgument");
    CHECK_EQ_INT(put_status(&f, "/dark/k", "hello", 5, NULL), 200);
    check_refused(&f, SRV_GET, "/dark", 501, "NotImplemented");
    check_refused(&f, SRV_DELETE, "/dark", 409, "BucketNotEmpty");
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/dark/k", NULL), 204);
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/dark", NULL), 204);
    fixture_close(&f);
}

static int post_delete(struct fixture *f, struct srv_exchange *ex, const char *body, size_t len)
{
    fake_init(ex, &f->loop, SRV_POST, "/bucket?delete");
    fake_body(ex, body, len);
    run(f, ex);
    return ex->status;
}

TEST(many_are_deleted_at_once_each_with_its_own_result)
{
    static const char body[] =
        "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Object><Key>a</Key></Object>"
        "<Object><Key>never-there</Key><VersionId>null</VersionId></Object>"
        "<Object><Key>b/1</Key><ETag>\"bad\"</ETag></Object>"
        "<Object><Key>b/2</Key><ETag>5d41402abc4b2a76b9719d911017c592</ETag><Size>5</Size></Object>"
        "<Object><Key>&amp;</Key><Size>6</Size></Object>"
        "<Object><Key>c d</Key><VersionId>3</VersionId></Object></Delete>";
    static const char *const answers[] = {
        "<Deleted><Key>a</Key></Deleted>",
        "<Deleted><Key>never-there</Key><VersionId>null</VersionId></Deleted>",
        "<Error><Key>b/1</Key><Code>PreconditionFailed</Code>",
        "<Deleted><Key>b/2</Key></Deleted>",
        "<Error><Key>&amp;</Key><Code>PreconditionFailed</Code>",
        "<Error><Key>c d</Key><VersionId>3</VersionId><Code>NoSuchVersion</Code>",
    };
    struct fixture f;
    struct srv_exchange ex;
    fixture_init(&f);
    make_bucket(&f, "/bucket");
    put_keys(&f, "bucket");
    CHECK_EQ_INT(post_delete(&f, &ex, body, sizeof body - 1), 200);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        CHECK_MSG(strstr((char *)ex.out, answers[i]) != NULL, "%s: %s", answers[i], (char *)ex.out);
    fake_fini(&ex);
    check_has(&f, "/bucket",
              FIELDS("!<Key>a</Key>", "<Key>b/1</Key>", "!<Key>b/2</Key>", "<Key>&amp;</Key>",
                     "<Key>c d</Key>"));
    static const char quiet[] = "<Delete><Quiet>true</Quiet><Object><Key>b/1</Key></Object>"
                                "<Object><Key>c d</Key><Size>1</Size></Object></Delete>";
    CHECK_EQ_INT(post_delete(&f, &ex, quiet, sizeof quiet - 1), 200);
    CHECK(strstr((char *)ex.out, "<Deleted>") == NULL && strstr((char *)ex.out, "<Error>") != NULL);
    fake_fini(&ex);
    fixture_close(&f);
}

TEST(bodies_of_another_kind_delete_nothing)
{
    static const char *const bodies[] = {
        "",
        "<Delete/>",
        "<Delete></Delete>",
        "<Remove><Object><Key>a</Key></Object></Remove>",
        "<Delete><Object></Object></Delete>",
        "<Delete><Thing/></Delete>",
        "<!DOCTYPE d [<!ENTITY e \"a\">]><Delete><Object><Key>&e;</Key></Object></Delete>",
        "<Delete><Object><Key>a</Key></Object>"};
    struct fixture f;
    struct srv_exchange ex;
    fixture_init(&f);
    make_bucket(&f, "/bucket");
    put_keys(&f, "bucket");
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        CHECK_MSG(post_delete(&f, &ex, bodies[i], strlen(bodies[i])) == 400, "%s", bodies[i]);
        CHECK_MSG(has_code(&ex, "MalformedXML"), "%s", bodies[i]);
        fake_fini(&ex);
    }
    size_t len = 0, capacity = 200000;
    char *body = malloc(capacity);
    for (unsigned limit = 1000; limit <= 1001; limit++) {
        len = (size_t)snprintf(body, capacity, "<Delete>");
        for (unsigned i = 0; i < limit; i++)
            len +=
                (size_t)snprintf(body + len, capacity - len, "<Object><Key>n%u</Key></Object>", i);
        len += (size_t)snprintf(body + len, capacity - len, "</Delete>");
        CHECK_EQ_INT(post_delete(&f, &ex, body, len), limit == 1000 ? 200 : 400);
        fake_fini(&ex);
    }
    free(body);
    check_has(&f, "/bucket", FIELDS("<Key>a</Key>", "<Key>b/1</Key>"));
    fixture_close(&f);
}

/* The rule of the bucket, not the headers, decides. */
TEST(objects_of_a_bucket_with_a_rule_expire)
{
    struct fixture f;
    fixture_init(&f);
    make_bucket(&f, "/brief");
    make_bucket(&f, "/bucket");
    CHECK_EQ_INT(put_status(&f, "/brief/gone", "hello", 5, FIELDS("x-amz-meta-ttl", "0")), 200);
    CHECK_EQ_INT(put_status(&f, "/brief/long", "hello", 5, FIELDS("x-amz-meta-ttl", "999")), 200);
    CHECK_EQ_INT(put_status(&f, "/brief/ever", "hello", 5, FIELDS("cache-control", "max-age=0")),
                 200);
    CHECK_EQ_INT(put_status(&f, "/bucket/k", "hello", 5, FIELDS("x-amz-meta-ttl", "0")), 200);
    CHECK_EQ_INT(ask_status(&f, SRV_GET, "/brief/gone", NULL), 404);
    CHECK_EQ_INT(ask_status(&f, SRV_GET, "/brief/long", NULL), 200);
    check_has(&f, "/brief", FIELDS("!<Key>gone</Key>", "<Key>long</Key>", "<Key>ever</Key>"));
    check_has(&f, "/bucket", FIELDS("<Key>k</Key>"));
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/brief/long", NULL), 204);
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/brief/ever", NULL), 204);
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/brief", NULL), 204);
    fixture_close(&f);
}
