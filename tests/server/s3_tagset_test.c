/* Sets of tags: what goes in, in which order, and what does not. */
#include "server/s3/tagset.h"

#include "tests/harness/test.h"

static struct srv_s3_tagset set;

static struct srv_str str(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

static struct srv_str encoded(void)
{
    return (struct srv_str){(const char *)set.bytes, set.len};
}

/* The tags as "key=value;". */
static const char *shown(void)
{
    static char text[1024];
    struct srv_str rest = encoded();
    struct srv_s3_tag tag;
    size_t len = 0;

    while (srv_s3_tags_next(&rest, &tag)) {
        memcpy(text + len, tag.key.base, tag.key.len);
        len += tag.key.len;
        text[len++] = '=';
        memcpy(text + len, tag.value.base, tag.value.len);
        len += tag.value.len;
        text[len++] = ';';
    }
    CHECK_EQ_U64(rest.len, 0);
    text[len] = '\0';
    return text;
}

TEST(fields_are_read_as_queries)
{
    static const struct {
        const char *field;
        enum srv_s3_code code;
        const char *want;
    } rows[] = {
        {"", SRV_S3_NONE, ""},
        {"a=b", SRV_S3_NONE, "a=b;"},
        {"a", SRV_S3_NONE, "a=;"},
        {"a=", SRV_S3_NONE, "a=;"},
        {"b=2&a=1", SRV_S3_NONE, "a=1;b=2;"},
        {"ab=1&a=2&b=3", SRV_S3_NONE, "a=2;ab=1;b=3;"},
        {"a%20b=c+d", SRV_S3_NONE, "a b=c d;"},
        {"%C3%A9=x", SRV_S3_NONE, "\xc3\xa9=x;"},
        {"a=1&a=2", SRV_S3_INVALID_TAG, NULL},
        {"=x", SRV_S3_INVALID_TAG, NULL},
        {"%ff=x", SRV_S3_INVALID_TAG, NULL},
        {"a=%ff", SRV_S3_INVALID_TAG, NULL},
        {"a=%f", SRV_S3_INVALID_ARGUMENT, NULL},
        {"a=1&b=2&c=3&d=4", SRV_S3_INVALID_TAG, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        srv_s3_tagset_init(&set, 3);
        CHECK_MSG(srv_s3_tagset_add_field(&set, str(rows[i].field)) == rows[i].code, "%s",
                  rows[i].field);
        if (rows[i].want != NULL)
            CHECK_EQ_STR(shown(), rows[i].want);
        if (rows[i].code == SRV_S3_NONE)
            CHECK_EQ_U64(srv_s3_tags_count(encoded()), set.n);
    }
}

TEST(lengths_are_counted_in_characters)
{
    char text[4 * SRV_S3_TAG_VALUE_MAX + 4];
    struct srv_str one = {text, 0};

    memset(text, 'x', sizeof text);
    srv_s3_tagset_init(&set, 10);
    one.len = SRV_S3_TAG_KEY_MAX + 1;
    CHECK_EQ_INT(srv_s3_tagset_add(&set, one, str("")), SRV_S3_INVALID_TAG);
    one.len = SRV_S3_TAG_KEY_MAX;
    CHECK_EQ_INT(srv_s3_tagset_add(&set, one, str("")), SRV_S3_NONE);
    one.len = SRV_S3_TAG_VALUE_MAX + 1;
    CHECK_EQ_INT(srv_s3_tagset_add(&set, str("a"), one), SRV_S3_INVALID_TAG);
    one.len = SRV_S3_TAG_VALUE_MAX;
    CHECK_EQ_INT(srv_s3_tagset_add(&set, str("a"), one), SRV_S3_NONE);
    for (size_t i = 0; i + 2 <= sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    one.len = 2 * SRV_S3_TAG_VALUE_MAX;
    CHECK_EQ_INT(srv_s3_tagset_add(&set, str("b"), one), SRV_S3_NONE);
}

TEST(a_broken_set_ends_where_it_breaks)
{
    struct srv_str rest = {"\1\1\0ab\1\1\0a", 9};
    struct srv_s3_tag tag;

    CHECK_EQ_U64(srv_s3_tags_count(rest), 1);
    CHECK(srv_s3_tags_next(&rest, &tag) && tag.key.len == 1 && tag.value.base[0] == 'b');
    CHECK(!srv_s3_tags_next(&rest, &tag));
    rest = (struct srv_str){"\1\1", 2};
    CHECK(!srv_s3_tags_next(&rest, &tag));
}
