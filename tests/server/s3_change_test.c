/* Changing objects through the S3 handlers: conditions, checks of the body, and everything that can
 * go wrong on the way: nothing is stored then, and what was there stays. */
#include "tests/server/s3_fixture.h"

#define ETAG "\"5d41402abc4b2a76b9719d911017c592\"" /* of "hello" */
#define PAST "Sun, 06 Nov 1994 08:49:37 GMT"
#define FUTURE "Fri, 31 Dec 2100 00:00:00 GMT"

enum { LONG = 300000 };

static uint8_t zeros[LONG];

static void check_is(struct fixture *f, const char *target, const void *bytes, size_t len)
{
    struct srv_exchange ex;

    CHECK_EQ_INT(ask(f, &ex, SRV_GET, target, NULL), 200);
    CHECK_EQ_U64(ex.out_len, len);
    CHECK_EQ_MEM(ex.out, bytes, len);
    fake_fini(&ex);
}

static const struct {
    const char *fields[5];
    int on_stored, on_missing;
    const char *code;
} conditions[] = {
    {{"if-none-match", "*"}, 412, 200, "PreconditionFailed"},
    {{"if-none-match", ETAG}, 412, 200, "PreconditionFailed"},
    {{"if-none-match", "\"x\""}, 200, 200, NULL},
    {{"if-match", ETAG}, 200, 404, "NoSuchKey"},
    {{"if-match", "5d41402abc4b2a76b9719d911017c592"}, 200, 404, "NoSuchKey"},
    {{"if-match", "*"}, 200, 404, "NoSuchKey"},
    {{"if-match", "\"x\""}, 412, 404, "NoSuchKey"},
    {{"if-unmodified-since", PAST}, 412, 200, "PreconditionFailed"},
    {{"if-unmodified-since", FUTURE}, 200, 200, NULL},
    {{"if-modified-since", FUTURE}, 200, 200, NULL},
    {{"if-match", ETAG, "if-none-match", "*"}, 412, 404, "NoSuchKey"},
};

/* `is_late` keeps the decision from being made before the body. */
static void check_conditions(struct fixture *f, size_t len)
{
    struct srv_exchange ex;

    for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++) {
        CHECK_EQ_INT(put_status(f, "/bucket/k", "hello", 5, NULL), 200);
        int status = put(f, &ex, "/bucket/k", zeros, len, conditions[i].fields);
        CHECK_MSG(status == conditions[i].on_stored, "row %zu: %d", i, status);
        if (status == 412)
            CHECK(has_code(&ex, "PreconditionFailed") && strstr((char *)ex.out, "<Condition>If-"));
        fake_fini(&ex);
        if (status == 200)
            check_is(f, "/bucket/k", zeros, len);
        else
            check_is(f, "/bucket/k", "hello", 5);
        CHECK_EQ_INT(ask_status(f, SRV_DELETE, "/bucket/k", NULL), 204);
        status = put(f, &ex, "/bucket/k", zeros, len, conditions[i].fields);
        CHECK_MSG(status == conditions[i].on_missing, "row %zu, missing: %d", i, status);
        if (status == 404)
            CHECK(has_code(&ex, conditions[i].code));
        fake_fini(&ex);
        CHECK_EQ_INT(ask_status(f, SRV_GET, "/bucket/k", NULL), status == 200 ? 200 : 404);
    }
}

TEST(conditions_of_a_put)
{
    struct fixture f;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    check_conditions(&f, 100);
    check_conditions(&f, LONG);
    fixture_close(&f);
}

static void check_race(struct fixture *f, const char *const *fields, size_t len)
{
    enum { N = 20 };
    static struct srv_exchange all[N];
    int n_stored = 0;

    for (int i = 0; i < N; i++) {
        fake_init(&all[i], &f->loop, SRV_PUT, "/bucket/race");
        fake_body(&all[i], zeros, len);
        fake_field(&all[i], fields[0], fields[1]);
        all[i].stays = true;
        run(f, &all[i]);
    }
    for (int i = 0; i < N; i++) {
        fake_finish(&all[i]);
        n_stored += all[i].status == 200;
        CHECK_MSG(all[i].status == 200 || all[i].status == 412 || all[i].status == 409, "%d",
                  all[i].status);
        fake_fini(&all[i]);
    }
    CHECK_EQ_INT(n_stored, 1);
}

TEST(inv_S3_of_many_puts_under_one_condition_one_succeeds)
{
    struct fixture f;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    for (int i = 0; i < 10; i++) {
        size_t len = i % 2 == 0 ? 1000 : 100000;
        check_race(&f, FIELDS("if-none-match", "*"), len);
        CHECK_EQ_INT(put_status(&f, "/bucket/race", "hello", 5, NULL), 200);
        check_race(&f, FIELDS("if-match", ETAG), len);
        CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/bucket/race", NULL), 204);
    }
    fixture_close(&f);
}

/* Of "hello" where right; a long body is wrong for all of them. */
static const struct {
    const char *fields[3];
    int status;
    const char *code;
} digests[] = {
    {{"content-md5", "XUFAKrxLKna5cZ2REBfFkg=="}, 200, "BadDigest"},
    {{"content-md5", "XUFAKrxLKna5cZ2REBfFkw=="}, 400, "BadDigest"},
    {{"content-md5", "junk"}, 400, "InvalidDigest"},
    {{"content-md5", ""}, 400, "InvalidDigest"},
    {{"x-amz-checksum-crc32", "NhCmhg=="}, 200, "BadDigest"},
    {{"x-amz-checksum-crc32", "AAAAAA=="}, 400, "BadDigest"},
    {{"x-amz-checksum-crc32c", "mnG7TA=="}, 200, "BadDigest"},
    {{"x-amz-checksum-crc64nvme", "M3eFcAZSQlc="}, 200, "BadDigest"},
    {{"x-amz-checksum-sha1", "qvTGHdzF6KLavt4PO0gs2a6pQ00="}, 200, "BadDigest"},
    {{"x-amz-checksum-sha256", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="}, 200, "BadDigest"},
    {{"x-amz-checksum-sha256", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCU="}, 400, "InvalidReq"},
    {{"x-amz-checksum-crc32", "bad"}, 400, "InvalidRequest"},
    {{"x-amz-checksum-blake3", "AAAA"}, 501, "NotImplemented"},
    {{"x-amz-sdk-checksum-algorithm", "CRC32"}, 400, "InvalidRequest"},
    {{"x-amz-content-sha256", "UNSIGNED-PAYLOAD"}, 200, NULL},
    {{"x-amz-content-sha256", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"},
     200,
     "XAmzContentSHA256Mismatch"},
    {{"x-amz-content-sha256", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9825"},
     400,
     "XAmzContentSHA256Mismatch"},
    {{"x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"}, 400, "IncompleteBody"},
    {{"x-amz-content-sha256", "STREAMING-AWS5"}, 501, "NotImplemented"},
    {{"x-amz-trailer", "x-amz-checksum-crc32"}, 400, "InvalidRequest"},
    {{"x-amz-copy-source", "/a/b"}, 400, "InvalidArgument"},
    {{"x-amz-server-side-encryption", "AES256"}, 501, "NotImplemented"},
    {{"x-amz-tagging", "a=b&a=c"}, 400, "InvalidTag"},
    {{"x-amz-acl", "public-ready"}, 400, "InvalidArgument"},
    {{"content-encoding", "gzip, AWS-chunked"}, 200, NULL},
    {{"x-amz-tagging", "a=b"}, 200, NULL},
};

TEST(inv_S2_a_body_that_contradicts_its_digest_is_not_stored)
{
    struct fixture f;
    struct srv_exchange ex;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    CHECK_EQ_INT(put_status(&f, "/bucket/k", "before", 6, NULL), 200);
    for (size_t i = 0; i < sizeof digests / sizeof digests[0]; i++) {
        int status = put(&f, &ex, "/bucket/k", "hello", 5, digests[i].fields);
        CHECK_MSG(status == digests[i].status, "row %zu: %d %s", i, status, (char *)ex.out);
        if (status == 200 && strncmp(digests[i].fields[0], "x-amz-checksum-", 15) == 0)
            CHECK_EQ_STR(fake_get(&ex, digests[i].fields[0]), digests[i].fields[1]);
        fake_fini(&ex);
        check_is(&f, "/bucket/k", status == 200 ? "hello" : "before", status == 200 ? 5 : 6);
        if (digests[i].code == NULL)
            continue;
        CHECK_EQ_INT(put_status(&f, "/bucket/k", "before", 6, NULL), 200);
        status = put(&f, &ex, "/bucket/k", zeros, LONG, digests[i].fields);
        CHECK_MSG(status == (digests[i].status == 501 ? 501 : 400), "row %zu, long: %d", i, status);
        fake_fini(&ex);
        check_is(&f, "/bucket/k", "before", 6);
    }
    fixture_close(&f);
}

TEST(inv_S2_a_body_that_does_not_arrive_leaves_what_was_there)
{
    static const struct {
        enum srv_body_event event;
        int status;
        const char *code;
    } rows[] = {{SRV_BODY_MALFORMED, 400, "IncompleteBody"},
                {SRV_BODY_STALLED, 408, "RequestTimeout"},
                {SRV_BODY_OVERLOAD, 503, "SlowDown"}};
    static const size_t lengths[] = {0, 100, LONG};
    struct fixture f;
    struct srv_exchange ex;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    CHECK_EQ_INT(put_status(&f, "/bucket/k", "before", 6, NULL), 200);
    for (size_t i = 0; i < 3 * 3 * 4; i++) {
        fake_init(&ex, &f.loop, SRV_PUT, "/bucket/k");
        fake_body(&ex, zeros, lengths[i / 3 % 3]);
        ex.ending = rows[i % 3].event;
        ex.is_late = i / 9 % 2 == 0;
        ex.stays = i / 18 == 0; /* else the exchange ends while a job is out */
        srv_s3_start(f.s3, &ex);
        fake_finish(&ex);
        CHECK_EQ_INT(ex.status, rows[i % 3].status);
        CHECK(has_code(&ex, rows[i % 3].code));
        CHECK((ex.status == 503) == (fake_get(&ex, "retry-after") != NULL));
        fake_fini(&ex);
        check_is(&f, "/bucket/k", "before", 6);
    }
    fixture_close(&f);
}

TEST(a_client_that_vanishes_at_any_point_leaves_nothing_behind)
{
    struct fixture f;
    struct srv_exchange ex;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    CHECK_EQ_INT(put_status(&f, "/bucket/k", "before", 6, NULL), 200);
    for (int turns = 0; turns < 12; turns++) {
        fake_init(&ex, &f.loop, SRV_PUT, "/bucket/k");
        fake_body(&ex, zeros, LONG);
        fake_field(&ex, "x-amz-checksum-crc32", "AAAAAA=="); /* never agrees */
        ex.is_late = true;
        ex.stays = true;
        srv_s3_start(f.s3, &ex);
        for (int i = 0; i < turns && !ex.is_responded; i++) {
            if (ex.on_body != NULL)
                fake_deliver(&ex);
            else
                fake_turn(&f.loop);
        }
        fake_fini(&ex);
        check_is(&f, "/bucket/k", "before", 6);
    }
    fixture_close(&f);
}

TEST(a_reader_that_vanishes_lets_go_of_the_object)
{
    static uint8_t bytes[3 << 20];
    struct fixture f;
    struct srv_exchange ex;
    struct gyre_stats stats = {.struct_size = sizeof stats};
    struct iovec piece;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    CHECK_EQ_INT(put_status(&f, "/bucket/k", bytes, sizeof bytes, NULL), 200);
    for (int pieces = 0; pieces < 3; pieces++) {
        fake_init(&ex, &f.loop, SRV_GET, "/bucket/k");
        ex.stays = true;
        srv_s3_start(f.s3, &ex);
        fake_finish(&ex);
        CHECK(ex.source != NULL);
        for (int i = 0; i < pieces; i++)
            CHECK_EQ_INT(ex.source->next(ex.source, 1 << 20, &piece), SRV_SOURCE_READY);
        fake_fini(&ex);
    }
    CHECK_OK(gyre_stat(f.store, &stats));
    CHECK_EQ_U64(stats.pins, 0);
    fixture_close(&f);
}

TEST(work_beyond_the_queue_is_answered_slow_down)
{
    struct fixture f = {.max_queued = 64};
    struct srv_exchange ex;
    struct srv_pool *pool;

    fixture_open(&f);
    make_bucket(&f, "/bucket");
    fixture_close(&f);
    f.max_queued = 0;
    fixture_open(&f);
    pool = f.pool;
    CHECK_EQ_INT(put(&f, &ex, "/bucket/k", "hello", 5, NULL), 503);
    CHECK(has_code(&ex, "SlowDown"));
    CHECK(fake_get(&ex, "retry-after") != NULL);
    fake_fini(&ex);
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/bucket/k", NULL), 503);
    CHECK_EQ_INT(ask_status(&f, SRV_PUT, "/other", NULL), 503);
    CHECK_EQ_INT(ask_status(&f, SRV_GET, "/bucket/k", NULL), 404);
    CHECK(pool == f.pool);
    fixture_close(&f);
}

TEST(an_opaque_etag_is_strong_and_of_its_own)
{
    struct fixture f;
    struct srv_exchange ex;
    char first[64];

    fixture_init(&f);
    make_bucket(&f, "/opaque");
    CHECK_EQ_INT(put(&f, &ex, "/opaque/k", "hello", 5, NULL), 200);
    snprintf(first, sizeof first, "%s", fake_get(&ex, "etag"));
    CHECK_EQ_INT(strlen(first), 34);
    CHECK(strcmp(first, ETAG) != 0);
    fake_fini(&ex);
    CHECK_EQ_INT(ask_status(&f, SRV_GET, "/opaque/k", FIELDS("if-none-match", first)), 304);
    CHECK_EQ_INT(put(&f, &ex, "/opaque/k", "hello", 5, FIELDS("content-md5", "junk")), 400);
    fake_fini(&ex);
    CHECK_EQ_INT(put(&f, &ex, "/opaque/k", zeros, LONG, NULL), 200);
    CHECK(strcmp(first, fake_get(&ex, "etag")) != 0);
    fake_fini(&ex);
    CHECK_EQ_INT(ask_status(&f, SRV_GET, "/opaque/k", FIELDS("if-match", first)), 412);
    fixture_close(&f);
}

static const struct {
    const char *fields[3];
    int status;
} deletions[] = {
    {{NULL}, 204},
    {{"if-match", ETAG}, 204},
    {{"if-match", "*"}, 204},
    {{"if-match", "\"x\""}, 412},
    {{"if-unmodified-since", PAST}, 412},
    {{"x-amz-if-match-size", "5"}, 204},
    {{"x-amz-if-match-size", "6"}, 412},
    {{"x-amz-if-match-size", "x"}, 400},
    {{"x-amz-if-match-last-modified-time", PAST}, 412},
};

TEST(conditions_of_a_delete)
{
    struct fixture f;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    for (size_t i = 0; i < sizeof deletions / sizeof deletions[0]; i++) {
        CHECK_EQ_INT(put_status(&f, "/bucket/k", "hello", 5, NULL), 200);
        int status = ask_status(&f, SRV_DELETE, "/bucket/k", deletions[i].fields);
        CHECK_MSG(status == deletions[i].status, "row %zu: %d", i, status);
        CHECK_EQ_INT(ask_status(&f, SRV_GET, "/bucket/k", NULL), status == 204 ? 404 : 200);
        if (status != 400)
            CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/bucket/gone", deletions[i].fields), 204);
    }
    fixture_close(&f);
}

TEST(a_body_longer_than_the_store_takes_is_refused_before_it_is_sent)
{
    struct fixture f;
    struct srv_exchange ex;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    fake_init(&ex, &f.loop, SRV_PUT, "/bucket/k");
    fake_body(&ex, zeros, 0);
    ex.req.content_length = gyre_object_max_bytes(f.store) + 1;
    run(&f, &ex);
    CHECK_EQ_INT(ex.status, 400);
    CHECK(has_code(&ex, "EntityTooLarge"));
    CHECK_EQ_U64(ex.body_at, 0);
    fake_fini(&ex);
    /* Neither a length nor a body announced. */
    CHECK_EQ_INT(ask(&f, &ex, SRV_PUT, "/bucket/k", NULL), 411);
    CHECK(has_code(&ex, "MissingContentLength"));
    fake_fini(&ex);
    CHECK_EQ_INT(ask_status(&f, SRV_PUT, "/bucket/k", FIELDS("content-length", "0")), 200);
    fixture_close(&f);
}
