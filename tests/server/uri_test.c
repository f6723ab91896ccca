/* Percent-decoding and query scanning. */
#include "server/uri.h"

#include "tests/harness/test.h"

static struct srv_str str(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

TEST(triplets_are_decoded_and_nothing_else)
{
    static const struct {
        const char *raw;
        bool plus;
        const char *want; /* NULL: refused */
    } rows[] = {
        {"", false, ""},
        {"abc", false, "abc"},
        {"a%20b", false, "a b"},
        {"a+b", false, "a+b"},
        {"a+b", true, "a b"},
        {"a%2Bb", true, "a+b"},
        {"a%2bb", false, "a+b"},
        {"%2f%2E%2e//..", false, "/..//.."},
        {"%25", false, "%"},
        {"%2525", false, "%25"},
        {"\xc3\xa9%C3%A9", false, "\xc3\xa9\xc3\xa9"},
        {"%ff", false, "\xff"},
        {"%", false, NULL},
        {"a%", false, NULL},
        {"a%2", false, NULL},
        {"a%2g", false, NULL},
        {"%%41", false, NULL},
        {"% 41", false, NULL},
        {"%u0041", false, NULL},
        {"%+1", false, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char out[32];
        size_t len;
        bool ok = srv_uri_decode(str(rows[i].raw), rows[i].plus, out, sizeof(out), &len);
        CHECK_MSG(ok == (rows[i].want != NULL), "'%s'", rows[i].raw);
        CHECK_EQ_U64(len, ok ? strlen(rows[i].want) : 0);
        if (ok)
            CHECK_EQ_MEM(out, rows[i].want, len);
    }
}

TEST(zero_bytes_come_through)
{
    char out[4];
    size_t len;
    CHECK(srv_uri_decode(str("a%00b"), false, out, sizeof(out), &len));
    CHECK_EQ_U64(len, 3);
    CHECK_EQ_MEM(out, "a\0b", 3);
}

TEST(capacity_is_kept)
{
    char out[4] = "zzz";
    size_t len;
    CHECK(srv_uri_decode(str("%41%42%43"), false, out, 3, &len) && len == 3);
    CHECK(!srv_uri_decode(str("abcd"), false, out, 3, &len) && len == 0);
    CHECK_EQ_INT(out[3], 0);
}

TEST(queries_are_scanned_by_name)
{
    static const struct {
        const char *query;
        const char *name;
        const char *value; /* NULL: absent; "-": present without '=' */
    } rows[] = {
        {"", "acl", NULL},
        {"acl", "acl", "-"},
        {"acl=", "acl", ""},
        {"acl=x", "acl", "x"},
        {"a&acl&b", "acl", "-"},
        {"a=acl", "acl", NULL},
        {"ACL", "acl", NULL},
        {"acls", "acl", NULL},
        {"ac", "acl", NULL},
        {"&&acl=1=2&acl=3", "acl", "1=2"},
        {"%61cl=%41", "acl", "%41"},
        {"%zz&acl", "acl", "-"},
        {"=x", "", "x"},
        {"x-id=PutObject", "acl", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct srv_str value;
        bool found = srv_query_find(str(rows[i].query), rows[i].name, &value);
        CHECK_MSG(found == (rows[i].value != NULL), "'%s'", rows[i].query);
        CHECK_MSG(found == srv_query_find(str(rows[i].query), rows[i].name, NULL), "'%s'",
                  rows[i].query);
        if (!found || strcmp(rows[i].value, "-") == 0)
            CHECK_MSG(value.base == NULL, "'%s'", rows[i].query);
        else
            CHECK_MSG(value.len == strlen(rows[i].value) &&
                          memcmp(value.base, rows[i].value, value.len) == 0,
                      "'%s'", rows[i].query);
    }
}
