/* Bucket names and keys as tables. */
#include "server/s3/name.h"

#include "tests/harness/test.h"

TEST(bucket_names_follow_the_rules)
{
    static const struct {
        const char *name;
        bool valid;
    } rows[] = {
        {"abc", true},
        {"a-b", true},
        {"a.b", true},
        {"0aa", true},
        {"123", true},
        {"1.2.3", true},
        {"1.2.3.4.5", true},
        {"a.2.3.4", true},
        {"a--b", true},
        {"xn--bcher-kva", true},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true}, /* 63 */
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
        {"", false},
        {"ab", false},
        {"Abc", false},
        {"abC", false},
        {"a_b", false},
        {"a b", false},
        {"-ab", false},
        {"ab-", false},
        {".ab", false},
        {"ab.", false},
        {"a..b", false},
        {"a.-b", false},
        {"a-.b", false},
        {"1.2.3.4", false},
        {"192.168.5.123", false},
        {"a/b", false},
        {"a\xc3\xa9"
         "b",
         false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        CHECK_MSG(srv_s3_bucket_valid((struct srv_str){rows[i].name, strlen(rows[i].name)}) ==
                      rows[i].valid,
                  "'%s'", rows[i].name);
}

TEST(keys_are_any_utf8_up_to_1024_bytes)
{
    static char text[1025];
    memset(text, 'k', sizeof(text));
    CHECK_EQ_INT(srv_s3_key_check((struct srv_str){text, 0}), SRV_S3_INVALID_URI);
    CHECK_EQ_INT(srv_s3_key_check((struct srv_str){text, 1}), SRV_S3_NONE);
    CHECK_EQ_INT(srv_s3_key_check((struct srv_str){text, 1024}), SRV_S3_NONE);
    CHECK_EQ_INT(srv_s3_key_check((struct srv_str){text, 1025}), SRV_S3_KEY_TOO_LONG);
    CHECK_EQ_INT(srv_s3_key_check((struct srv_str){"//../ \x01\0", 8}), SRV_S3_NONE);
    CHECK_EQ_INT(srv_s3_key_check((struct srv_str){"\xff", 1}), SRV_S3_INVALID_URI);
}
