/* Method, path and query to operation, as a table. */
#include "server/s3/route.h"

#include <stdio.h>

#include "tests/harness/test.h"

struct row {
    const char *method;
    const char *path;
    const char *query;
    enum srv_s3_op op;
    enum srv_s3_code error;
    const char *bucket;
    const char *key;
};

#define REFUSED SRV_S3_OP_REFUSED
#define NOPE SRV_S3_NOT_IMPLEMENTED
#define NOT_ALLOWED SRV_S3_METHOD_NOT_ALLOWED
#define BAD_NAME SRV_S3_INVALID_BUCKET_NAME
#define BAD_URI SRV_S3_INVALID_URI
#define OK SRV_S3_NONE

static const struct row rows[] = {
    {"GET", "/", "", SRV_S3_OP_LIST_BUCKETS, OK, "", ""},
    {"GET", "", "", SRV_S3_OP_LIST_BUCKETS, OK, "", ""},
    {"GET", "/", "x-id=ListBuckets", SRV_S3_OP_LIST_BUCKETS, OK, "", ""},
    {"PUT", "/", "", REFUSED, NOT_ALLOWED, "", ""},
    {"POST", "/", "", REFUSED, NOT_ALLOWED, "", ""},
    {"HEAD", "/", "", REFUSED, NOT_ALLOWED, "", ""},
    {"OPTIONS", "*", "", REFUSED, NOT_ALLOWED, "", ""},
    {"PUT", "/abc", "", SRV_S3_OP_CREATE_BUCKET, OK, "abc", ""},
    {"PUT", "/abc/", "", SRV_S3_OP_CREATE_BUCKET, OK, "abc", ""},
    {"PUT", "/a%62c/", "", SRV_S3_OP_CREATE_BUCKET, OK, "abc", ""},
    {"HEAD", "/abc", "", SRV_S3_OP_HEAD_BUCKET, OK, "abc", ""},
    {"DELETE", "/abc", "", SRV_S3_OP_DELETE_BUCKET, OK, "abc", ""},
    {"GET", "/abc", "", SRV_S3_OP_LIST_OBJECTS, OK, "abc", ""},
    {"GET", "/abc", "prefix=a&delimiter", SRV_S3_OP_LIST_OBJECTS, OK, "abc", ""},
    {"GET", "/abc", "list-type=2&prefix=a", SRV_S3_OP_LIST_OBJECTS_V2, OK, "abc", ""},
    {"GET", "/abc/", "versions", SRV_S3_OP_LIST_OBJECT_VERSIONS, OK, "abc", ""},
    {"POST", "/abc", "delete", SRV_S3_OP_DELETE_OBJECTS, OK, "abc", ""},
    {"GET", "/abc", "delete", REFUSED, NOPE, "abc", ""},
    {"POST", "/abc", "", REFUSED, NOPE, "abc", ""},
    {"PUT", "/Abc", "", REFUSED, BAD_NAME, "Abc", ""},
    {"PUT", "/ab", "", REFUSED, BAD_NAME, "ab", ""},
    {"PUT", "/a%2", "", REFUSED, BAD_NAME, "", ""},
    {"PUT", "//abc", "", REFUSED, BAD_NAME, "", "abc"},
    {"PUT", "/ABC", "acl", REFUSED, BAD_NAME, "ABC", ""},
    {"PUT", "/abc/k", "", SRV_S3_OP_PUT_OBJECT, OK, "abc", "k"},
    {"GET", "/abc/k", "", SRV_S3_OP_GET_OBJECT, OK, "abc", "k"},
    {"HEAD", "/abc/k", "", SRV_S3_OP_HEAD_OBJECT, OK, "abc", "k"},
    {"DELETE", "/abc/k", "", SRV_S3_OP_DELETE_OBJECT, OK, "abc", "k"},
    {"GET", "/abc/k", "x-id=GetObject", SRV_S3_OP_GET_OBJECT, OK, "abc", "k"},
    {"GET", "/abc/k", "versionId=null", SRV_S3_OP_GET_OBJECT, OK, "abc", "k"},
    {"GET", "/abc/k", "versionId=abc", REFUSED, SRV_S3_NO_SUCH_VERSION, "abc", "k"},
    {"GET", "/abc/k", "versionId=nullx", REFUSED, SRV_S3_NO_SUCH_VERSION, "abc", "k"},
    {"GET", "/abc/k", "versionId", REFUSED, SRV_S3_NO_SUCH_VERSION, "abc", "k"},
    {"GET", "/abc/k", "acl", SRV_S3_OP_GET_OBJECT_ACL, OK, "abc", "k"},
    {"GET", "/abc/k", "acl=", SRV_S3_OP_GET_OBJECT_ACL, OK, "abc", "k"},
    {"GET", "/abc/k", "x=1&tagging", SRV_S3_OP_GET_OBJECT_TAGGING, OK, "abc", "k"},
    {"GET", "/abc/k", "Acl", SRV_S3_OP_GET_OBJECT, OK, "abc", "k"},
    {"GET", "/abc/k", "aclx&x=acl", SRV_S3_OP_GET_OBJECT, OK, "abc", "k"},
    {"PUT", "/abc/k", "partNumber=1&uploadId=x", SRV_S3_OP_UPLOAD_PART, OK, "abc", "k"},
    {"POST", "/abc/k", "uploads", SRV_S3_OP_CREATE_MULTIPART_UPLOAD, OK, "abc", "k"},
    {"POST", "/abc/k", "", REFUSED, NOPE, "abc", "k"},
    {"PURGE", "/abc/k", "", SRV_S3_OP_PURGE_OBJECT, OK, "abc", "k"},
    {"PURGE", "/abc", "prefix=a/", SRV_S3_OP_PURGE_BUCKET, OK, "abc", ""},
    {"PURGE", "/", "", REFUSED, NOT_ALLOWED, "", ""},
    {"PURGE", "/abc/k", "acl", REFUSED, NOPE, "abc", "k"},
    {"PATCH", "/abc/k", "", REFUSED, NOT_ALLOWED, "abc", "k"},
    {"get", "/abc/k", "", REFUSED, NOT_ALLOWED, "abc", "k"},
    {"OPTIONS", "/abc/k", "", SRV_S3_OP_PREFLIGHT_OBJECT, OK, "abc", "k"},
    {"GET", "/abc/a/b/", "", SRV_S3_OP_GET_OBJECT, OK, "abc", "a/b/"},
    {"GET", "/abc//k", "", SRV_S3_OP_GET_OBJECT, OK, "abc", "/k"},
    {"GET", "/abc//", "", SRV_S3_OP_GET_OBJECT, OK, "abc", "/"},
    {"GET", "/abc/../x/./y", "", SRV_S3_OP_GET_OBJECT, OK, "abc", "../x/./y"},
    {"GET", "/abc/%2e%2e%2Fx", "", SRV_S3_OP_GET_OBJECT, OK, "abc", "../x"},
    {"GET", "/abc/a+b", "", SRV_S3_OP_GET_OBJECT, OK, "abc", "a+b"},
    {"GET", "/abc/a%20b%2Bc", "", SRV_S3_OP_GET_OBJECT, OK, "abc", "a b+c"},
    {"GET", "/abc/%25", "", SRV_S3_OP_GET_OBJECT, OK, "abc", "%"},
    {"GET", "/abc/%D0%BA\xd0\xba", "", SRV_S3_OP_GET_OBJECT, OK, "abc", "\xd0\xba\xd0\xba"},
    {"GET", "/abc/%01%3F%23", "", SRV_S3_OP_GET_OBJECT, OK, "abc", "\x01?#"},
    {"GET", "/abc/%", "", REFUSED, BAD_URI, "abc", ""},
    {"GET", "/abc/%zz", "", REFUSED, BAD_URI, "abc", ""},
    {"GET", "/abc/%ff", "", REFUSED, BAD_URI, "abc", "\xff"},
};

static void check_str(size_t row, struct srv_str got, const char *want)
{
    CHECK_MSG(got.len == strlen(want) && (got.len == 0 || memcmp(got.base, want, got.len) == 0),
              "row %zu: '%.*s' instead of '%s'", row, (int)got.len, got.base, want);
}

static enum srv_method method_of(const char *name)
{
    static const char *const names[] = {"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PURGE"};
    for (int i = 0; i < 7; i++)
        if (strcmp(names[i], name) == 0)
            return (enum srv_method)i;
    return SRV_METHOD_OTHER;
}

static void route(const char *method, const char *path, const char *query, struct srv_s3_route *out)
{
    struct srv_request req = {
        .method = method_of(method),
        .method_name = {method, strlen(method)},
        .path = {path, strlen(path)},
        .query = {query, strlen(query)},
    };
    srv_s3_route(&req, (struct srv_str){NULL, 0}, out);
}

TEST(requests_are_routed_as_listed)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct srv_s3_route got;
        route(rows[i].method, rows[i].path, rows[i].query, &got);
        CHECK_MSG(got.op == rows[i].op, "row %zu (%s %s?%s): op %d", i, rows[i].method,
                  rows[i].path, rows[i].query, (int)got.op);
        CHECK_MSG(got.error == rows[i].error, "row %zu (%s %s?%s): %s", i, rows[i].method,
                  rows[i].path, rows[i].query, srv_s3_code_name(got.error));
        check_str(i, got.bucket, rows[i].bucket);
        check_str(i, got.key, rows[i].key);
    }
}

TEST(the_missing_subresource_is_named)
{
    struct srv_s3_route got;
    route("GET", "/abc/k", "z&tagging=1", &got);
    CHECK_EQ_STR(srv_s3_sub_name(got.sub), "tagging");
    route("GET", "/abc/k", "z", &got);
    CHECK(srv_s3_sub_name(got.sub) == NULL);
}

TEST(long_keys_are_told_from_broken_ones)
{
    static char path[8192];
    struct srv_s3_route got;
    int n = snprintf(path, sizeof(path), "/abc/%0*d", 1024, 0);
    route("GET", path, "", &got);
    CHECK_EQ_INT(got.op, SRV_S3_OP_GET_OBJECT);
    CHECK_EQ_U64(got.key.len, 1024);
    path[n] = 'x';
    path[n + 1] = '\0';
    route("GET", path, "", &got);
    CHECK_EQ_INT(got.error, SRV_S3_KEY_TOO_LONG);
    path[n] = '%';
    route("GET", path, "", &got);
    CHECK_EQ_INT(got.error, SRV_S3_INVALID_URI);
    char *at = path + 5;
    for (int i = 0; i < 1024; i++, at += 3)
        memcpy(at, "%41", 4);
    route("GET", path, "", &got);
    CHECK_EQ_INT(got.op, SRV_S3_OP_GET_OBJECT);
    CHECK_EQ_U64(got.key.len, 1024);
}
