/* Objects through the S3 handlers: what is put is got, whole, in ranges and under conditions. */
#include "tests/server/s3_fixture.h"

#include <openssl/evp.h>

static void fill(uint8_t *bytes, size_t len, uint64_t seed)
{
    struct test_rng rng = {seed};
    test_rng_fill(&rng, bytes, len);
}

static void md5_hex(const void *bytes, size_t len, char text[35])
{
    uint8_t md5[16];

    CHECK(EVP_Digest(bytes, len, md5, NULL, EVP_md5(), NULL) == 1);
    text[0] = '"';
    for (int i = 0; i < 16; i++)
        snprintf(text + 1 + 2 * i, 3, "%02x", md5[i]);
    strcpy(text + 33, "\"");
}

static void check_round_trip(struct fixture *f, size_t len, size_t piece, bool is_late,
                             bool is_chunked)
{
    uint8_t *bytes = malloc(len + 1);
    char etag[35], length[24];
    struct srv_exchange ex;

    fill(bytes, len, len + piece);
    md5_hex(bytes, len, etag);
    fake_init(&ex, &f->loop, SRV_PUT, "/bucket/round");
    fake_body(&ex, bytes, len);
    ex.piece = piece;
    ex.is_late = is_late;
    if (is_chunked)
        ex.req.content_length = SRV_LENGTH_UNKNOWN;
    run(f, &ex);
    CHECK_MSG(ex.status == 200, "%zu bytes by %zu: %d %s", len, piece, ex.status, (char *)ex.out);
    CHECK_EQ_STR(fake_get(&ex, "etag"), etag);
    fake_fini(&ex);

    CHECK_EQ_INT(ask(f, &ex, SRV_GET, "/bucket/round", NULL), 200);
    CHECK_EQ_U64(ex.length, len);
    CHECK_EQ_U64(ex.out_len, len);
    CHECK_EQ_MEM(ex.out, bytes, len);
    CHECK_EQ_STR(fake_get(&ex, "etag"), etag);
    CHECK_EQ_STR(fake_get(&ex, "accept-ranges"), "bytes");
    CHECK_EQ_STR(fake_get(&ex, "content-type"), "binary/octet-stream");
    CHECK(fake_get(&ex, "last-modified") != NULL && fake_get(&ex, "x-amz-request-id") != NULL);
    fake_fini(&ex);

    CHECK_EQ_INT(ask(f, &ex, SRV_HEAD, "/bucket/round", NULL), 200);
    CHECK_EQ_U64(ex.length, len);
    CHECK_EQ_U64(ex.out_len, 0);
    fake_fini(&ex);
    snprintf(length, sizeof length, "%zu", len);
    free(bytes);
}

TEST(what_is_put_is_got)
{
    static const size_t sizes[] = {0,     1,       4096,          65535,        65536,
                                   65537, 1 << 20, (1 << 20) + 1, (8 << 20) + 1};
    static const size_t pieces[] = {64 << 10, 1 << 20};
    struct fixture f;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t k = 0; k < 8; k++)
            check_round_trip(&f, sizes[i], pieces[k & 1], (k & 2) != 0, (k & 4) != 0);
    }
    check_round_trip(&f, 3000, 7, true, false);
    check_round_trip(&f, 3000, 7, false, true);
    fixture_close(&f);
}

TEST(objects_and_buckets_outlive_a_restart)
{
    static uint8_t bytes[200000];
    struct fixture f;
    struct srv_exchange ex;

    fill(bytes, sizeof bytes, 1);
    fixture_init(&f);
    make_bucket(&f, "/bucket");
    CHECK_EQ_INT(put_status(&f, "/bucket/small", bytes, 1000, NULL), 200);
    CHECK_EQ_INT(put_status(&f, "/bucket/large", bytes, sizeof bytes, NULL), 200);
    fixture_close(&f);
    fixture_open(&f);
    CHECK_EQ_INT(ask(&f, &ex, SRV_GET, "/bucket/small", NULL), 200);
    CHECK_EQ_MEM(ex.out, bytes, 1000);
    fake_fini(&ex);
    CHECK_EQ_INT(ask(&f, &ex, SRV_GET, "/bucket/large", FIELDS("range", "bytes=150000-150009")),
                 206);
    CHECK_EQ_MEM(ex.out, bytes + 150000, 10);
    fake_fini(&ex);
    CHECK_EQ_INT(ask(&f, &ex, SRV_GET, "/bucket/large", NULL), 200);
    CHECK_EQ_U64(ex.out_len, sizeof bytes);
    CHECK_EQ_MEM(ex.out, bytes, sizeof bytes);
    fake_fini(&ex);
    fixture_close(&f);
}

TEST(kept_headers_come_back)
{
    const char *const *fields =
        FIELDS("content-type", "text/plain; charset=utf-8", "content-encoding", "gzip",
               "content-disposition", "attachment; filename=\"a b\"", "content-language", "de",
               "cache-control", "max-age=60", "expires", "Thu, 01 Dec 1994 16:00:00 GMT",
               "x-amz-meta-one", "1", "x-amz-meta-empty", "", "x-amz-meta-two", "zw\xc3\xb6lf");
    struct fixture f;
    struct srv_exchange ex;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    CHECK_EQ_INT(put_status(&f, "/bucket/k", "hello", 5, fields), 200);
    for (int method = SRV_GET; method <= SRV_HEAD; method++) {
        CHECK_EQ_INT(ask(&f, &ex, (enum srv_method)method, "/bucket/k", NULL), 200);
        for (size_t i = 0; fields[i] != NULL; i += 2)
            CHECK_EQ_STR(fake_get(&ex, fields[i]), fields[i + 1]);
        fake_fini(&ex);
    }
    fixture_close(&f);
}

TEST(metadata_beyond_the_limit_is_refused)
{
    static char value[2100];
    struct fixture f;
    struct srv_exchange ex;

    memset(value, 'v', sizeof value - 1);
    fixture_init(&f);
    make_bucket(&f, "/bucket");
    CHECK_EQ_INT(put(&f, &ex, "/bucket/k", "hello", 5, FIELDS("x-amz-meta-v", value)), 400);
    CHECK(has_code(&ex, "MetadataTooLarge"));
    fake_fini(&ex);
    CHECK_EQ_INT(ask_status(&f, SRV_GET, "/bucket/k", NULL), 404);
    fixture_close(&f);
}

static const struct {
    const char *range;
    int status;
    size_t first, len; /* of a body of 10 bytes, or as `scale` says */
} ranges[] = {
    {"bytes=0-0", 206, 0, 1},   {"bytes=0-", 206, 0, 10},      {"bytes=3-5", 206, 3, 3},
    {"bytes=9-", 206, 9, 1},    {"bytes=9-100", 206, 9, 1},    {"bytes=-1", 206, 9, 1},
    {"bytes=-100", 206, 0, 10}, {"bytes=10-", 416, 0, 0},      {"bytes=-0", 416, 0, 0},
    {"bytes=5-3", 200, 0, 10},  {"bytes=0-1,3-4", 200, 0, 10}, {"lines=0-1", 200, 0, 10},
    {"bytes=", 200, 0, 10},     {"bytes=a-b", 200, 0, 10},
};

TEST(ranges_of_a_short_body)
{
    struct fixture f;
    struct srv_exchange ex;
    char want[64];

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    CHECK_EQ_INT(put_status(&f, "/bucket/k", "0123456789", 10, NULL), 200);
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        int status = ask(&f, &ex, SRV_GET, "/bucket/k", FIELDS("range", ranges[i].range));
        CHECK_MSG(status == ranges[i].status, "%s: %d", ranges[i].range, status);
        if (status == 416) {
            CHECK_EQ_STR(fake_get(&ex, "content-range"), "bytes */10");
            CHECK(has_code(&ex, "InvalidRange"));
            CHECK(strstr((char *)ex.out, "<ActualObjectSize>10</ActualObjectSize>") != NULL);
        } else {
            CHECK_EQ_U64(ex.out_len, ranges[i].len);
            CHECK_EQ_MEM(ex.out, &"0123456789"[ranges[i].first], ranges[i].len);
        }
        if (status == 206) {
            snprintf(want, sizeof want, "bytes %zu-%zu/10", ranges[i].first,
                     ranges[i].first + ranges[i].len - 1);
            CHECK_EQ_STR(fake_get(&ex, "content-range"), want);
        }
        fake_fini(&ex);
        /* Ranges are defined for GET alone. */
        CHECK_EQ_INT(ask_status(&f, SRV_HEAD, "/bucket/k", FIELDS("range", ranges[i].range)), 200);
    }
    fixture_close(&f);
}

TEST(ranges_of_a_long_body)
{
    enum { LEN = (5 << 20) + 17 };
    uint8_t *bytes = malloc(LEN);
    struct test_rng rng = {test_seed()};
    struct fixture f;
    struct srv_exchange ex;
    char range[64];

    fill(bytes, LEN, 3);
    fixture_init(&f);
    make_bucket(&f, "/bucket");
    CHECK_EQ_INT(put_status(&f, "/bucket/k", bytes, LEN, NULL), 200);
    for (int i = 0; i < 60; i++) {
        size_t first = test_rng_below(&rng, LEN);
        size_t len = 1 + test_rng_below(&rng, i % 2 == 0 ? LEN - first : 70000);
        len = len < LEN - first ? len : LEN - first;
        snprintf(range, sizeof range, "bytes=%zu-%zu", first, first + len - 1);
        CHECK_EQ_INT(ask(&f, &ex, SRV_GET, "/bucket/k", FIELDS("range", range)), 206);
        CHECK_EQ_U64(ex.out_len, len);
        CHECK_EQ_MEM(ex.out, bytes + first, len);
        fake_fini(&ex);
    }
    free(bytes);
    fixture_close(&f);
}

TEST(an_empty_body_has_no_ranges)
{
    struct fixture f;
    struct srv_exchange ex;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    CHECK_EQ_INT(put_status(&f, "/bucket/k", "", 0, NULL), 200);
    CHECK_EQ_INT(ask(&f, &ex, SRV_GET, "/bucket/k", FIELDS("range", "bytes=0-")), 416);
    CHECK_EQ_STR(fake_get(&ex, "content-range"), "bytes */0");
    fake_fini(&ex);
    CHECK_EQ_INT(ask(&f, &ex, SRV_GET, "/bucket/k", FIELDS("range", "bytes=-5")), 200);
    CHECK_EQ_U64(ex.out_len, 0);
    fake_fini(&ex);
    fixture_close(&f);
}

#define ETAG "\"5d41402abc4b2a76b9719d911017c592\"" /* of "hello" */
#define PAST "Sun, 06 Nov 1994 08:49:37 GMT"
#define FUTURE "Fri, 31 Dec 2100 00:00:00 GMT"

static const struct {
    const char *fields[7];
    int status;
} conditions[] = {
    {{"if-match", ETAG}, 200},
    {{"if-match", "*"}, 200},
    {{"if-match", "\"x\", " ETAG}, 200},
    {{"if-match", "\"x\""}, 412},
    {{"if-match", "W/" ETAG}, 412},
    {{"if-none-match", ETAG}, 304},
    {{"if-none-match", "W/" ETAG}, 304},
    {{"if-none-match", "*"}, 304},
    {{"if-none-match", "\"x\""}, 200},
    {{"if-modified-since", PAST}, 200},
    {{"if-modified-since", FUTURE}, 304},
    {{"if-modified-since", "junk"}, 200},
    {{"if-unmodified-since", PAST}, 412},
    {{"if-unmodified-since", FUTURE}, 200},
    {{"if-match", ETAG, "if-unmodified-since", PAST}, 200},
    {{"if-match", "\"x\"", "if-none-match", ETAG}, 412},
    {{"if-none-match", "\"x\"", "if-modified-since", FUTURE}, 200},
    {{"if-none-match", ETAG, "if-modified-since", PAST}, 304},
    {{"range", "bytes=1-2", "if-range", ETAG}, 206},
    {{"range", "bytes=1-2", "if-range", "\"x\""}, 200},
    {{"range", "bytes=1-2", "if-range", PAST}, 200},
    {{"range", "bytes=9-", "if-range", "\"x\""}, 200},
    {{"range", "bytes=9-", "if-none-match", ETAG}, 304},
    {{"range", "bytes=9-", "if-match", "\"x\""}, 412},
};

TEST(conditions_of_a_get_in_their_order)
{
    struct fixture f;
    struct srv_exchange ex;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    CHECK_EQ_INT(put_status(&f, "/bucket/k", "hello", 5, FIELDS("cache-control", "max-age=1")),
                 200);
    for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++) {
        int status = ask(&f, &ex, SRV_GET, "/bucket/k", conditions[i].fields);
        CHECK_MSG(status == conditions[i].status, "row %zu: %d", i, status);
        if (status == 304) {
            CHECK_EQ_U64(ex.length, SRV_LENGTH_UNKNOWN);
            CHECK_EQ_STR(fake_get(&ex, "etag"), ETAG);
            CHECK_EQ_STR(fake_get(&ex, "cache-control"), "max-age=1");
            CHECK(fake_get(&ex, "content-type") == NULL);
        }
        if (status == 412)
            CHECK(has_code(&ex, "PreconditionFailed"));
        fake_fini(&ex);
        int head = status == 206 ? 200 : status;
        CHECK_EQ_INT(ask_status(&f, SRV_HEAD, "/bucket/k", conditions[i].fields), head);
        if (conditions[i].fields[1][0] != 'b')
            CHECK_EQ_INT(ask_status(&f, SRV_GET, "/bucket/none", conditions[i].fields), 404);
    }
    fixture_close(&f);
}

TEST(what_is_missing_is_said_to_be)
{
    struct fixture f;
    struct srv_exchange ex;

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    CHECK_EQ_INT(ask(&f, &ex, SRV_GET, "/bucket/a%20b%26", NULL), 404);
    CHECK(has_code(&ex, "NoSuchKey"));
    CHECK(strstr((char *)ex.out, "<Key>a b&amp;</Key>") != NULL);
    CHECK(strstr((char *)ex.out, "<RequestId>0123456789ABCDEF</RequestId>") != NULL);
    CHECK(strstr((char *)ex.out, "<Resource>/bucket/a%20b%26</Resource>") != NULL);
    CHECK_EQ_STR(fake_get(&ex, "content-type"), "application/xml");
    fake_fini(&ex);
    CHECK_EQ_INT(ask(&f, &ex, SRV_HEAD, "/bucket/k", NULL), 404);
    CHECK_EQ_STR(fake_get(&ex, "x-amz-delete-marker"), "false");
    CHECK_EQ_U64(ex.out_len, 0);
    fake_fini(&ex);
    CHECK_EQ_INT(ask(&f, &ex, SRV_GET, "/nobody/k", NULL), 404);
    CHECK(has_code(&ex, "NoSuchBucket"));
    fake_fini(&ex);
    CHECK_EQ_INT(put(&f, &ex, "/nobody/k", "hello", 5, NULL), 404);
    CHECK(has_code(&ex, "NoSuchBucket"));
    fake_fini(&ex);
    CHECK_EQ_INT(ask_status(&f, SRV_DELETE, "/nobody/k", NULL), 404);
    fixture_close(&f);
}

TEST(keys_are_bytes_and_none_stands_for_another)
{
    static const char *const keys[] = {"/bucket/a",     "/bucket//a",    "/bucket/a/",
                                       "/bucket/a%2Fb", "/bucket/../a",  "/bucket/./a",
                                       "/bucket/a+b",   "/bucket/a%20b", "/bucket/%C3%A9",
                                       "/bucket/a%00b", "/bucket/a%00"};
    struct fixture f;
    struct srv_exchange ex;
    enum { N = sizeof keys / sizeof keys[0] };

    fixture_init(&f);
    make_bucket(&f, "/bucket");
    for (size_t i = 0; i < N; i++)
        CHECK_EQ_INT(put_status(&f, keys[i], keys[i], strlen(keys[i]), NULL), 200);
    for (size_t i = 0; i < N; i++) {
        CHECK_EQ_INT(ask(&f, &ex, SRV_GET, keys[i], NULL), 200);
        CHECK_EQ_U64(ex.out_len, strlen(keys[i]));
        CHECK_EQ_MEM(ex.out, keys[i], ex.out_len);
        fake_fini(&ex);
    }
    /* %2F in a key is a slash. */
    CHECK_EQ_INT(ask(&f, &ex, SRV_GET, "/bucket/a/b", NULL), 200);
    fake_fini(&ex);
    fixture_close(&f);
}
