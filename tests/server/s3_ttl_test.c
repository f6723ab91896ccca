/* When objects expire by the rule of their bucket. */
#include "tests/harness/test.h"

#include "server/s3/ttl.h"

static struct srv_str str_of(const char *text)
{
    return (struct srv_str){text, text != NULL ? strlen(text) : 0};
}

TEST(rules_are_read_whole_or_not_at_all)
{
    struct srv_s3_ttl ttl;
    CHECK(srv_s3_ttl_parse("none", &ttl) && ttl.kind == SRV_S3_TTL_NONE);
    CHECK(srv_s3_ttl_parse("headers", &ttl) && ttl.kind == SRV_S3_TTL_HEADERS);
    CHECK(srv_s3_ttl_parse("1h", &ttl) && ttl.kind == SRV_S3_TTL_FIXED && ttl.seconds == 3600);
    CHECK(srv_s3_ttl_parse("90", &ttl) && ttl.seconds == 90);
    CHECK(srv_s3_ttl_parse("metadata:cache-ttl", &ttl) && ttl.kind == SRV_S3_TTL_METADATA);
    CHECK_EQ_STR(ttl.name, "cache-ttl");
    static const char *const bad[] = {"",           "0",      "10ms",         "1 day", "metadata:",
                                      "metadata:A", "header", "metadata:a b", "-5",    "metadata"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_MSG(!srv_s3_ttl_parse(bad[i], &ttl), "%s", bad[i]);
}

#define NOW INT64_C(1000000000) /* 2001-09-09 01:46:40 */

TEST(objects_expire_by_the_rule_alone)
{
    static const struct {
        const char *rule, *cache_control, *expires, *user;
        uint32_t at;
    } rows[] = {
        {"none", "max-age=60", "Sun, 09 Sep 2001 01:46:50 GMT", "60", 0},
        {"1m", NULL, NULL, NULL, NOW + 60},
        {"1m", "max-age=5", NULL, "5", NOW + 60},
        {"headers", NULL, NULL, "5", 0},
        {"headers", "max-age=60", NULL, NULL, NOW + 60},
        {"headers", "public, Max-Age=\"60\"", NULL, NULL, NOW + 60},
        {"headers", "max-age=60, s-maxage=5", NULL, NULL, NOW + 5},
        {"headers", "s-maxage=5,max-age=60", NULL, NULL, NOW + 5},
        {"headers", "max-age=0", NULL, NULL, NOW},
        {"headers", "max-age=99999999999999", NULL, NULL, UINT32_MAX},
        {"headers", "max-age=99999999999999999999999", NULL, NULL, 0},
        {"headers", "max-age=soon", "Sun, 09 Sep 2001 01:46:50 GMT", NULL, NOW + 10},
        {"headers", "no-cache", "Sun, 09 Sep 2001 01:46:50 GMT", NULL, NOW + 10},
        {"headers", "max-age=60", "Sun, 09 Sep 2001 01:46:50 GMT", NULL, NOW + 60},
        {"headers", NULL, "Thu, 01 Jan 1970 00:00:00 GMT", NULL, 1},
        {"headers", NULL, "whenever", NULL, 0},
        {"headers", ", ,=,max-age", NULL, NULL, 0},
        {"metadata:ttl", NULL, NULL, NULL, 0},
        {"metadata:ttl", "max-age=60", NULL, "30", NOW + 30},
        {"metadata:ttl", NULL, NULL, "30 s", 0},
        {"metadata:other", NULL, NULL, "30", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct srv_s3_ttl ttl;
        static struct srv_s3_meta meta;
        meta = (struct srv_s3_meta){.cache_control = str_of(rows[i].cache_control),
                                    .expires = str_of(rows[i].expires),
                                    .n_user = rows[i].user != NULL};
        meta.user[0] = (struct srv_field){str_of("ttl"), str_of(rows[i].user)};
        CHECK(srv_s3_ttl_parse(rows[i].rule, &ttl));
        uint32_t at = srv_s3_ttl_expires(&ttl, &meta, NOW);
        CHECK_MSG(at == rows[i].at, "row %zu: %u", i, at);
    }
}
