/* Signatures of version 4 against the vectors that were published for them, and what is read from
 * requests. */
#include "server/s3/sigv4.h"

#include <stdio.h>
#include <string.h>

#include "server/http_date.h"
#include "server/iso_date.h"
#include "server/s3/aws_chunked.h"
#include "server/s3/base64.h"
#include "tests/harness/test.h"
#include "tests/server/fake_fields.h"

#define SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define CREDENTIAL "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"
#define NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define VHOST "examplebucket.s3.amazonaws.com"
#define DAY_S 1369353600 /* 2013-05-24 */

enum { FIELDS_MAX = 12 };

struct request {
    struct srv_request req;
    struct srv_field fields[FIELDS_MAX];
};

static struct srv_str str(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

static void make(struct request *r, const char *method, const char *path, const char *query,
                 const char *const *fields)
{
    memset(r, 0, sizeof *r);
    r->req.method_name = str(method);
    r->req.path = str(path);
    r->req.query = str(query);
    r->req.authority = str(VHOST);
    for (size_t i = 0; fields != NULL && fields[2 * i] != NULL; i++) {
        CHECK(i < FIELDS_MAX);
        r->fields[i] = (struct srv_field){str(fields[2 * i]), str(fields[2 * i + 1])};
        r->req.n_fields++;
    }
    r->req.fields = r->fields;
}

#define FIELDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* What a client signs in each published example, and the signature it gives. */
static const struct vector {
    const char *method, *path, *query;
    const char *const *fields;
    const char *signed_names;
    const char *signature;
} vectors[] = {
    {"GET", "/test.txt", "",
     FIELDS("host", VHOST, "range", "bytes=0-9", "x-amz-content-sha256", NOTHING, "x-amz-date",
            "20130524T000000Z"),
     "host;range;x-amz-content-sha256;x-amz-date",
     "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
    {"PUT", "/test$file.text", "",
     FIELDS("date", "Fri, 24 May 2013 00:00:00 GMT", "host", VHOST, "x-amz-date",
            "20130524T000000Z", "x-amz-storage-class", "REDUCED_REDUNDANCY", "x-amz-content-sha256",
            "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"),
     "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
     "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
    {"GET", "/", "lifecycle",
     FIELDS("host", VHOST, "x-amz-content-sha256", NOTHING, "x-amz-date", "20130524T000000Z"),
     "host;x-amz-content-sha256;x-amz-date",
     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
    {"GET", "/", "prefix=J&max-keys=2",
     FIELDS("host", VHOST, "x-amz-content-sha256", NOTHING, "x-amz-date", "20130524T000000Z"),
     "host;x-amz-content-sha256;x-amz-date",
     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
    {"PUT", "/examplebucket/chunkObject.txt", "",
     FIELDS("host", "s3.amazonaws.com", "x-amz-date", "20130524T000000Z", "x-amz-storage-class",
            "REDUCED_REDUNDANCY", "x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
            "content-encoding", "aws-chunked", "x-amz-decoded-content-length", "66560",
            "content-length", "66824"),
     "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;"
     "x-amz-decoded-content-length;x-amz-storage-class",
     "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"},
    {"PUT", "/examplebucket/chunkObject.txt", "",
     FIELDS("host", "s3.amazonaws.com", "x-amz-date", "20130524T000000Z", "x-amz-storage-class",
            "REDUCED_REDUNDANCY", "x-amz-content-sha256",
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", "content-encoding", "aws-chunked",
            "x-amz-decoded-content-length", "66560", "x-amz-trailer", "x-amz-checksum-crc32c"),
     "content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;"
     "x-amz-storage-class;x-amz-trailer",
     "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"},
};

enum { N_VECTORS = sizeof vectors / sizeof vectors[0] };

static void example_key(struct srv_hmac_key *key)
{
    srv_sigv4_key(str(SECRET), str("20130524"), str("us-east-1"), key);
}

/* Signs `r` as its Authorization field or query says. */
static void sign(const struct request *r, struct srv_sigv4 *sig, enum srv_sigv4_target target,
                 char hex[65])
{
    uint8_t signature[SRV_SHA256_LEN];
    struct srv_hmac_key key;
    const char *message;

    CHECK_EQ_INT(srv_sigv4_read(&r->req, DAY_S, sig, &message), SRV_S3_NONE);
    example_key(&key);
    CHECK(srv_sigv4_sign(sig, &r->req, target, &key, signature));
    srv_hex_encode(signature, sizeof signature, hex);
}

TEST(published_requests_have_their_signatures)
{
    for (size_t i = 0; i < N_VECTORS; i++) {
        const struct vector *v = &vectors[i];
        char authorization[512], hex[65];
        struct srv_sigv4 sig;
        struct request r;

        make(&r, v->method, v->path, v->query, v->fields);
        snprintf(authorization, sizeof authorization,
                 "AWS4-HMAC-SHA256 " CREDENTIAL ",SignedHeaders=%s,Signature=%s", v->signed_names,
                 v->signature);
        r.fields[r.req.n_fields++] = (struct srv_field){str("authorization"), str(authorization)};
        sign(&r, &sig, SRV_SIGV4_ENCODED, hex);
        CHECK_MSG(strcmp(hex, v->signature) == 0, "vector %zu: %s", i, hex);
        CHECK(memcmp(sig.access_key.base, "AKIAIOSFODNN7EXAMPLE", sig.access_key.len) == 0);
        CHECK(srv_sigv4_unsigned_field(&sig, &r.req).base == NULL);
    }
}

#define PRESIGNED                                                                          \
    "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2F" \
    "us-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&"       \
    "X-Amz-SignedHeaders=host&X-Amz-Signature="

TEST(the_published_presigned_request_has_its_signature)
{
    static const char want[] = "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
    const char *message;
    struct srv_sigv4 sig;
    struct request r;
    char hex[65];

    make(&r, "GET", "/test.txt",
         PRESIGNED "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
         FIELDS("host", VHOST));
    sign(&r, &sig, SRV_SIGV4_ENCODED, hex);
    CHECK_EQ_STR(hex, want);
    CHECK_EQ_INT(sig.form, SRV_SIGV4_QUERY);
    CHECK_EQ_INT(srv_sigv4_check_time(&sig, DAY_S + 86400, &message), SRV_S3_NONE);
    CHECK_EQ_INT(srv_sigv4_check_time(&sig, DAY_S + 86401, &message), SRV_S3_ACCESS_DENIED);
    CHECK_EQ_STR(message, "Request has expired");
    CHECK_EQ_INT(srv_sigv4_check_time(&sig, DAY_S - 900, &message), SRV_S3_NONE);
    CHECK_EQ_INT(srv_sigv4_check_time(&sig, DAY_S - 901, &message), SRV_S3_ACCESS_DENIED);
}

/* ---- What clients send ---- */

#define AUTHORIZATION(names) \
    "AWS4-HMAC-SHA256 " CREDENTIAL ", SignedHeaders=" names ", Signature=" ZEROS

static void catch_text(void *data, const char *bytes, size_t len)
{
    char **at = data;
    memcpy(*at, bytes, len);
    *at += len;
    **at = '\0';
}

static void canonical(const char *path, const char *query, enum srv_sigv4_target target,
                      const char *const *fields, const char *names, char text[4096])
{
    const char *message;
    struct srv_sigv4 sig;
    struct request r;
    char authorization[512];

    make(&r, "GET", path, query, fields);
    snprintf(authorization, sizeof authorization,
             "AWS4-HMAC-SHA256 " CREDENTIAL ", SignedHeaders=%s, Signature=" ZEROS, names);
    r.fields[r.req.n_fields++] = (struct srv_field){str("authorization"), str(authorization)};
    r.fields[r.req.n_fields++] = (struct srv_field){str("x-amz-date"), str("20130524T000000Z")};
    CHECK_EQ_INT(srv_sigv4_read(&r.req, DAY_S, &sig, &message), SRV_S3_NONE);
    char *at = text;
    CHECK(srv_sigv4_canonical(&sig, &r.req, target, catch_text, &at));
}

TEST(targets_are_encoded_anew_and_sorted)
{
    static const struct {
        const char *path, *query, *want_path, *want_query;
    } rows[] = {
        {"/b/year=2020/x", "", "/b/year%3D2020/x", ""},
        {"/b/a+b", "", "/b/a%2Bb", ""},
        {"/b/a%2fb%7e", "", "/b/a/b~", ""},
        {"/b//k/../%25", "", "/b//k/../%25", ""},
        {"/b/%zz", "", "/b/%25zz", ""},
        {"/b", "uploads", "/b", "uploads="},
        {"/b", "b=2&a=1&a=0&A", "/b", "A=&a=0&a=1&b=2"},
        {"/b", "prefix=a/b&x=a+b&y=%e2", "/b", "prefix=a%2Fb&x=a%20b&y=%E2"},
        {"/b", "&&a=&", "/b", "a="},
        {"/b", "a=b=c", "/b", "a=b%3Dc"},
        {"/b", "a-b=1&a=2", "/b", "a=2&a-b=1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char got[4096], want[512];
        canonical(rows[i].path, rows[i].query, SRV_SIGV4_ENCODED, FIELDS("host", "h"), "host", got);
        snprintf(want, sizeof want, "GET\n%s\n%s\nhost:h\n\nhost\n" NOTHING, rows[i].want_path,
                 rows[i].want_query);
        CHECK_EQ_STR(got, want);
        canonical(rows[i].path, "x=1&prefix=a/b", SRV_SIGV4_AS_SENT, FIELDS("host", "h"), "host",
                  got);
        snprintf(want, sizeof want, "GET\n%s\nx=1&prefix=a/b\nhost:h\n\nhost\n" NOTHING,
                 rows[i].path);
        CHECK_EQ_STR(got, want);
    }
}

TEST(fields_are_trimmed_squeezed_and_joined)
{
    char got[4096];

    canonical("/", "", SRV_SIGV4_ENCODED,
              FIELDS("host", " h ", "a", "  x   y z  ", "b", "1", "b", "2", "c", ""), "a;b;c;host",
              got);
    CHECK_EQ_STR(got, "GET\n/\n\na:x y z\nb:1,2\nc:\nhost:h\n\na;b;c;host\n" NOTHING);
    canonical("/", "", SRV_SIGV4_ENCODED, NULL, "host", got);
    CHECK_EQ_STR(got, "GET\n/\n\nhost:" VHOST "\n\nhost\n" NOTHING);
}

TEST(what_is_no_signature_is_refused)
{
    const struct {
        const char *query;
        const char *const *fields;
        enum srv_s3_code code;
    } rows[] = {
        {"", FIELDS("host", "h"), SRV_S3_NONE},
        {"", FIELDS("authorization", ""), SRV_S3_NONE},
        {"", FIELDS("authorization", "AWS AKID:c2ln"), SRV_S3_INVALID_ARGUMENT},
        {"", FIELDS("authorization", "AWS4-HMAC-SHA256"), SRV_S3_INVALID_ARGUMENT},
        {"", FIELDS("authorization", "AWS4-ECDSA-P256-SHA256 x"), SRV_S3_NOT_IMPLEMENTED},
        {"", FIELDS("authorization", "AWS4-HMAC-SHA256 x"), SRV_S3_AUTHORIZATION_MALFORMED},
        {"", FIELDS("authorization", "AWS4-HMAC-SHA256 " CREDENTIAL ", SignedHeaders=host"),
         SRV_S3_AUTHORIZATION_MALFORMED},
        {"", FIELDS("authorization", AUTHORIZATION("host")), SRV_S3_ACCESS_DENIED},
        {"", FIELDS("authorization", AUTHORIZATION("host"), "x-amz-date", "yesterday"),
         SRV_S3_ACCESS_DENIED},
        {"", FIELDS("authorization", AUTHORIZATION("host"), "x-amz-date", "20130524T000000Z"),
         SRV_S3_NONE},
        {"",
         FIELDS("authorization", AUTHORIZATION("host"), "x-amz-date",
                "Fri, 24 May 2013 00:00:00 GMT"),
         SRV_S3_NONE},
        {"",
         FIELDS("authorization", AUTHORIZATION("host"), "date", "Fri, 24 May 2013 00:00:00 -0000"),
         SRV_S3_NONE},
        {"",
         FIELDS("authorization", AUTHORIZATION("host"), "date", "Fri, 24 May 2013 00:00:00 -0100"),
         SRV_S3_ACCESS_DENIED},
        {"", FIELDS("authorization", AUTHORIZATION("host"), "date", "20130524T000000Z"),
         SRV_S3_NONE},
        {"", FIELDS("authorization", AUTHORIZATION("host"), "x-amz-date", "20130525T000000Z"),
         SRV_S3_AUTHORIZATION_MALFORMED},
        {"", FIELDS("authorization", AUTHORIZATION(""), "x-amz-date", "20130524T000000Z"),
         SRV_S3_AUTHORIZATION_MALFORMED},
        {"", FIELDS("authorization", AUTHORIZATION("host"), "authorization", AUTHORIZATION("host")),
         SRV_S3_INVALID_ARGUMENT},
        {PRESIGNED ZEROS, FIELDS("authorization", AUTHORIZATION("host")), SRV_S3_INVALID_ARGUMENT},
        {PRESIGNED ZEROS, FIELDS("host", "h"), SRV_S3_NONE},
        {PRESIGNED "00", FIELDS("host", "h"), SRV_S3_AUTHORIZATION_QUERY_ERROR},
        {"X-Amz-Signature=" ZEROS, FIELDS("host", "h"), SRV_S3_AUTHORIZATION_QUERY_ERROR},
        {PRESIGNED ZEROS "&X-Amz-Date=20130524T000000Z", FIELDS("host", "h"),
         SRV_S3_AUTHORIZATION_QUERY_ERROR},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *message;
        struct srv_sigv4 sig;
        struct request r;
        make(&r, "GET", "/", rows[i].query, rows[i].fields);
        CHECK_MSG(srv_sigv4_read(&r.req, DAY_S, &sig, &message) == rows[i].code, "row %zu", i);
    }
}

TEST(presigned_requests_live_between_a_second_and_a_week)
{
    static const struct {
        const char *expires;
        enum srv_s3_code code;
    } rows[] = {{"1", SRV_S3_NONE},           {"604800", SRV_S3_NONE},
                {"0", SRV_S3_ACCESS_DENIED},  {"604801", SRV_S3_ACCESS_DENIED},
                {"", SRV_S3_ACCESS_DENIED},   {"-7", SRV_S3_ACCESS_DENIED},
                {"1x", SRV_S3_ACCESS_DENIED}, {"99999999999999999999999", SRV_S3_ACCESS_DENIED}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *message;
        struct srv_sigv4 sig;
        struct request r;
        char query[1024];
        snprintf(
            query, sizeof query,
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK%%2F20130524%%2Fus-east-1%%2Fs3"
            "%%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=%s&"
            "X-Amz-SignedHeaders=host&X-Amz-Signature=" ZEROS,
            rows[i].expires);
        make(&r, "GET", "/", query, FIELDS("host", "h"));
        CHECK_MSG(srv_sigv4_read(&r.req, DAY_S, &sig, &message) == rows[i].code, "row %zu", i);
    }
}

TEST(clocks_may_be_a_quarter_of_an_hour_apart)
{
    const char *message;
    struct srv_sigv4 sig;
    struct request r;

    make(&r, "GET", "/", "",
         FIELDS("authorization", AUTHORIZATION("host"), "x-amz-date", "20130524T000000Z"));
    CHECK_EQ_INT(srv_sigv4_read(&r.req, DAY_S, &sig, &message), SRV_S3_NONE);
    CHECK_EQ_INT(srv_sigv4_check_time(&sig, DAY_S + 900, &message), SRV_S3_NONE);
    CHECK_EQ_INT(srv_sigv4_check_time(&sig, DAY_S - 900, &message), SRV_S3_NONE);
    CHECK_EQ_INT(srv_sigv4_check_time(&sig, DAY_S + 901, &message), SRV_S3_TIME_SKEWED);
    CHECK_EQ_INT(srv_sigv4_check_time(&sig, DAY_S - 901, &message), SRV_S3_TIME_SKEWED);
}

TEST(fields_that_change_the_meaning_must_be_signed)
{
    const char *message;
    struct srv_sigv4 sig;
    struct request r;

    make(&r, "PUT", "/b/k", "",
         FIELDS("authorization", AUTHORIZATION("host;x-amz-date"), "x-amz-date", "20130524T000000Z",
                "x-amz-content-sha256", NOTHING, "content-type", "a/b", "x-amz-acl",
                "public-read"));
    CHECK_EQ_INT(srv_sigv4_read(&r.req, DAY_S, &sig, &message), SRV_S3_NONE);
    struct srv_str name = srv_sigv4_unsigned_field(&sig, &r.req);
    CHECK(name.len == 9 && memcmp(name.base, "x-amz-acl", 9) == 0);
    make(&r, "GET", "/b/k", "",
         FIELDS("authorization", AUTHORIZATION("x-amz-date"), "x-amz-date", "20130524T000000Z"));
    CHECK_EQ_INT(srv_sigv4_read(&r.req, DAY_S, &sig, &message), SRV_S3_NONE);
    name = srv_sigv4_unsigned_field(&sig, &r.req);
    CHECK(name.len == 4 && memcmp(name.base, "host", 4) == 0);
}

TEST(iso_dates_are_read_in_all_forms)
{
    static const struct {
        const char *text;
        int64_t want; /* -1: refused */
    } rows[] = {{"20130524T000000Z", DAY_S},
                {"2013-05-24", DAY_S},
                {"2013-05-24T00:00:00Z", DAY_S},
                {"2013-05-24T00:00:00.000Z", DAY_S},
                {"2013-05-24T00:00:00", DAY_S},
                {"2013-05-24T02:00:00+02:00", DAY_S},
                {"2013-05-23T23:30:00-0030", DAY_S},
                {"2012-02-29", 1330473600},
                {"9999-12-31T23:59:59Z", INT64_C(253402300799)},
                {"2013-02-29", -1},
                {"2013-05-24T24:00:00Z", -1},
                {"2013-05-24T00:00:00.Z", -1},
                {"2013-05-24 00:00:00Z", -1},
                {"2013-5-24", -1},
                {"1969-12-31", -1},
                {"20130524T000000Zx", -1},
                {"2013", -1},
                {"", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t got;
        bool ok = srv_iso_date_parse(str(rows[i].text), &got);
        CHECK_MSG(ok == (rows[i].want >= 0) && got == (ok ? rows[i].want : 0), "row %zu: %lld", i,
                  (long long)got);
    }
    char text[SRV_ISO_SHORT_LEN + 1];
    srv_iso_short_write(DAY_S + 3723, text);
    CHECK_EQ_STR(text, "20130524T010203Z");
}
