/* Access control lists: canned, by fields, encoded, and what they let whom do. */
#include "server/s3/acl.h"

#include <stdio.h>

#include "tests/harness/test.h"

#define READ SRV_S3_ACL_READ
#define WRITE SRV_S3_ACL_WRITE
#define ACP (SRV_S3_ACL_READ_ACP | SRV_S3_ACL_WRITE_ACP)
#define FULL SRV_S3_ACL_FULL

static struct srv_str str(const char *text)
{
    return (struct srv_str){text, text == NULL ? 0 : strlen(text)};
}

static struct srv_s3_access people(void)
{
    static struct srv_s3_user users[] = {
        {.name = (char *)(uintptr_t) "alice", .email = (char *)(uintptr_t) "alice@example.com"},
        {.name = (char *)(uintptr_t) "bob"}};
    return (struct srv_s3_access){.users = users, .n_users = 2};
}

TEST(canned_lists_say_what_they_are_called)
{
    static const struct {
        const char *name;
        unsigned owner, bucket_owner, other, stranger;
    } rows[] = {
        {"private", FULL, 0, 0, 0},
        {"public-read", FULL, READ, READ, READ},
        {"public-read-write", FULL, READ | WRITE, READ | WRITE, READ | WRITE},
        {"authenticated-read", FULL, READ, READ, 0},
        {"bucket-owner-read", FULL, READ, 0, 0},
        {"bucket-owner-full-control", FULL, FULL, 0, 0},
        {"aws-exec-read", FULL, 0, 0, 0},
    };
    uint8_t bytes[SRV_S3_ACL_BYTES_MAX];
    struct srv_s3_acl acl;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK(srv_s3_acl_canned(str(rows[i].name), str("alice"), str("boss"), &acl));
        size_t len = srv_s3_acl_encode(&acl, str("alice"), bytes);
        struct srv_str list = {(const char *)bytes, len};
        CHECK_EQ_INT(srv_s3_acl_permissions(list, str("alice"), str("alice")), rows[i].owner);
        CHECK_EQ_INT(srv_s3_acl_permissions(list, str("alice"), str("boss")), rows[i].bucket_owner);
        CHECK_EQ_INT(srv_s3_acl_permissions(list, str("alice"), str("bob")), rows[i].other);
        CHECK_EQ_INT(srv_s3_acl_permissions(list, str("alice"), str(NULL)), rows[i].stranger);
    }
    CHECK(!srv_s3_acl_canned(str("publicread"), str("a"), str("b"), &acl));
    CHECK(!srv_s3_acl_canned(str(""), str("a"), str("b"), &acl));
}

TEST(fields_grant_or_are_refused)
{
    static const struct {
        const char *field, *value;
        enum srv_s3_code code;
        unsigned bob, stranger;
    } rows[] = {
        {"x-amz-grant-read", "id=bob", SRV_S3_NONE, READ, 0},
        {"x-amz-grant-read", "id=\"bob\"", SRV_S3_NONE, READ, 0},
        {"x-amz-grant-write", " id = \"bob\" , id=alice", SRV_S3_NONE, WRITE, 0},
        {"x-amz-grant-full-control", "id=bob", SRV_S3_NONE, FULL, 0},
        {"x-amz-grant-read-acp", "id=bob", SRV_S3_NONE, SRV_S3_ACL_READ_ACP, 0},
        {"x-amz-grant-write-acp", "id=bob", SRV_S3_NONE, SRV_S3_ACL_WRITE_ACP, 0},
        {"x-amz-grant-read", "uri=http://acs.amazonaws.com/groups/global/AllUsers", SRV_S3_NONE,
         READ, READ},
        {"x-amz-grant-read", "uri=http://acs.amazonaws.com/groups/global/AuthenticatedUsers",
         SRV_S3_NONE, READ, 0},
        {"x-amz-grant-read", "uri=http://example.com/all", SRV_S3_INVALID_ARGUMENT, 0, 0},
        {"x-amz-grant-read", "emailAddress=alice@example.com", SRV_S3_NONE, 0, 0},
        {"x-amz-grant-read", "emailAddress=eve@example.com", SRV_S3_UNRESOLVABLE_GRANT, 0, 0},
        {"x-amz-grant-read", "id=eve", SRV_S3_INVALID_ARGUMENT, 0, 0},
        {"x-amz-grant-read", "bob", SRV_S3_INVALID_ARGUMENT, 0, 0},
        {"x-amz-grant-read", "id=bob,", SRV_S3_NONE, READ, 0},
        {"x-amz-acl", "public-read", SRV_S3_NONE, READ, READ},
        {"x-amz-acl", "nonsense", SRV_S3_INVALID_ARGUMENT, 0, 0},
    };
    const struct srv_s3_access access = people();
    uint8_t bytes[SRV_S3_ACL_BYTES_MAX];
    struct srv_s3_acl acl;
    bool is_set;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct srv_field field = {str(rows[i].field), str(rows[i].value)};
        struct srv_request req = {.fields = &field, .n_fields = 1};
        enum srv_s3_code code =
            srv_s3_acl_of_head(&req, &access, str("carol"), str("boss"), &acl, &is_set);
        CHECK_MSG(code == rows[i].code && is_set, "row %zu: %d", i, code);
        if (code != SRV_S3_NONE)
            continue;
        size_t len = srv_s3_acl_encode(&acl, str("carol"), bytes);
        struct srv_str list = {(const char *)bytes, len};
        CHECK_MSG(srv_s3_acl_permissions(list, str("carol"), str("bob")) == rows[i].bob, "row %zu",
                  i);
        CHECK_MSG(srv_s3_acl_permissions(list, str("carol"), str(NULL)) == rows[i].stranger,
                  "row %zu", i);
    }
    struct srv_field both[] = {{str("x-amz-acl"), str("private")},
                               {str("x-amz-grant-read"), str("id=bob")}};
    struct srv_request req = {.fields = both, .n_fields = 2};
    CHECK_EQ_INT(srv_s3_acl_of_head(&req, &access, str("a"), str("b"), &acl, &is_set),
                 SRV_S3_INVALID_REQUEST);
    req.n_fields = 0;
    CHECK_EQ_INT(srv_s3_acl_of_head(&req, &access, str("a"), str("b"), &acl, &is_set), SRV_S3_NONE);
    CHECK(!is_set);
}

TEST(the_owner_alone_takes_no_bytes_and_nobody_takes_some)
{
    struct srv_s3_acl acl = {.n = 0};
    uint8_t bytes[SRV_S3_ACL_BYTES_MAX];

    size_t len = srv_s3_acl_encode(&acl, str("alice"), bytes);
    CHECK(len > 0);
    struct srv_str nobody = {(const char *)bytes, len};
    CHECK_EQ_INT(srv_s3_acl_permissions(nobody, str("alice"), str("alice")), ACP);
    CHECK_EQ_INT(srv_s3_acl_permissions(nobody, str("alice"), str("bob")), 0);
    CHECK(srv_s3_acl_add(&acl, SRV_S3_GRANTEE_USER, str("alice"), READ));
    CHECK(srv_s3_acl_add(&acl, SRV_S3_GRANTEE_USER, str("alice"), FULL));
    CHECK_EQ_U64(acl.n, 1);
    CHECK_EQ_U64(srv_s3_acl_encode(&acl, str("alice"), bytes), 0);
    CHECK_EQ_INT(srv_s3_acl_permissions(str(NULL), str("alice"), str("alice")), FULL);
    CHECK_EQ_INT(srv_s3_acl_permissions(str(NULL), str("alice"), str("bob")), 0);
}

TEST(broken_lists_grant_nothing)
{
    static const struct {
        const char *bytes;
        size_t len;
    } rows[] = {
        {"\1", 1}, {"\1\1", 2}, {"\0\1\3ab", 5}, {"\3\1\0", 3}, {"\1\x10\0", 3}, {"\1\1\0\0", 4},
    };
    struct srv_s3_acl acl;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct srv_str list = {rows[i].bytes, rows[i].len};
        CHECK_MSG(!srv_s3_acl_decode(list, str("alice"), &acl), "row %zu", i);
        CHECK_EQ_INT(srv_s3_acl_permissions(list, str("alice"), str(NULL)), 0);
        CHECK_EQ_INT(srv_s3_acl_permissions(list, str("alice"), str("alice")), ACP);
    }
}

TEST(there_is_an_end_to_grants)
{
    struct srv_s3_acl acl = {.n = 0};
    char ids[SRV_S3_GRANTS_MAX + 1][8];

    for (int i = 0; i <= SRV_S3_GRANTS_MAX; i++) {
        snprintf(ids[i], sizeof ids[i], "u%d", i);
        CHECK(srv_s3_acl_add(&acl, SRV_S3_GRANTEE_USER, str(ids[i]), READ) ==
              (i < SRV_S3_GRANTS_MAX));
    }
    CHECK(srv_s3_acl_add(&acl, SRV_S3_GRANTEE_USER, str("u3"), WRITE));
}
