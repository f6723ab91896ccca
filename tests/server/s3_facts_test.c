/* Facts of a bucket: encoded, changed one by one, and refused when broken. */
#include "server/s3/facts.h"

#include <stdlib.h>

#include "tests/harness/test.h"

static struct srv_str str(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

static void check_fact(const struct srv_s3_facts *facts, enum srv_s3_fact fact, const char *want)
{
    struct srv_str got = facts->of[fact];

    if (want == NULL)
        CHECK(got.base == NULL);
    else
        CHECK(got.len == strlen(want) && memcmp(got.base, want, got.len) == 0);
}

TEST(facts_change_one_by_one_and_can_be_read_again)
{
    struct srv_s3_facts *none = srv_s3_facts_create(NULL, 0);
    struct srv_s3_facts *owned = srv_s3_facts_with(none, SRV_S3_FACT_OWNER, str("alice"));
    struct srv_s3_facts *placed = srv_s3_facts_with(owned, SRV_S3_FACT_LOCATION, str("eu-1"));
    struct srv_s3_facts *again = srv_s3_facts_create(placed->bytes, placed->len);
    struct srv_s3_facts *less =
        srv_s3_facts_with(again, SRV_S3_FACT_OWNER, (struct srv_str){NULL, 0});

    check_fact(none, SRV_S3_FACT_OWNER, NULL);
    check_fact(owned, SRV_S3_FACT_OWNER, "alice");
    check_fact(again, SRV_S3_FACT_OWNER, "alice");
    check_fact(again, SRV_S3_FACT_LOCATION, "eu-1");
    check_fact(again, SRV_S3_FACT_ACL, NULL);
    check_fact(less, SRV_S3_FACT_OWNER, NULL);
    check_fact(less, SRV_S3_FACT_LOCATION, "eu-1");
    CHECK(srv_s3_facts_acquire(less) == less);
    srv_s3_facts_release(less);
    check_fact(less, SRV_S3_FACT_LOCATION, "eu-1");
    struct srv_s3_facts *all[] = {none, owned, placed, again, less, NULL};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        srv_s3_facts_release(all[i]);
}

TEST(broken_facts_are_refused)
{
    static const struct {
        const char *bytes;
        size_t len;
        bool is_right;
    } rows[] = {
        {"", 0, true},
        {"\1", 1, true},
        {"\2", 1, false}, /* another version */
        {"\1\1\1\0\0\0a", 7, true},
        {"\1\1\1\0\0", 5, false},    /* cut short */
        {"\1\1\2\0\0\0a", 7, false}, /* longer than what is there */
        {"\1\1\xff\xff\xff\xff", 6, false},
        {"\1\1\1\0\0\0a\1\1\0\0\0b", 13, false}, /* twice */
        {"\1\0\0\0\0\0", 6, false},              /* no such fact */
        {"\1\x7f\0\0\0\0", 6, false},
        {"\1\x80\1\0\0\0?\5\1\0\0\0r", 13, true}, /* may be skipped */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct srv_s3_facts *facts = srv_s3_facts_create(rows[i].bytes, rows[i].len);
        CHECK_MSG((facts != NULL) == rows[i].is_right, "row %zu", i);
        srv_s3_facts_release(facts);
    }
}

TEST(facts_have_an_end)
{
    char *text = calloc(1, SRV_S3_FACTS_BYTES_MAX + 1);
    struct srv_s3_facts *none = srv_s3_facts_create(NULL, 0);

    CHECK(text != NULL);
    CHECK(srv_s3_facts_with(none, SRV_S3_FACT_TAGS,
                            (struct srv_str){text, SRV_S3_FACTS_BYTES_MAX}) == NULL);
    struct srv_s3_facts *most = srv_s3_facts_with(
        none, SRV_S3_FACT_TAGS, (struct srv_str){text, SRV_S3_FACTS_BYTES_MAX - 6});
    CHECK(most != NULL);
    CHECK(srv_s3_facts_create(text, SRV_S3_FACTS_BYTES_MAX + 1) == NULL);
    srv_s3_facts_release(most);
    srv_s3_facts_release(none);
    free(text);
}
