/* The metadata record: round trip, limits, and every kind of damage. */
#include "server/s3/meta.h"

#include <stdlib.h>

#include "tests/harness/test.h"

static struct srv_str str(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

static void fill(struct srv_s3_meta *meta)
{
    *meta = (struct srv_s3_meta){
        .bucket = str("abc"),
        .key = str("a key"),
        .etag = str("d41d8cd98f00b204e9800998ecf8427e"),
        .modified_ms = 1700000000123,
        .content_type = str("text/plain"),
        .cache_control = str(""),
        .expires = str("Sun, 06 Nov 1994 08:49:37 GMT"),
        .n_user = 2,
    };
    meta->user[0] = (struct srv_field){str("colour"), str("blue")};
    meta->user[1] = (struct srv_field){str("empty"), str("")};
}

static void check_same(struct srv_str a, struct srv_str b)
{
    CHECK_EQ_INT(a.base == NULL, b.base == NULL);
    CHECK_EQ_U64(a.len, b.len);
    CHECK(a.len == 0 || memcmp(a.base, b.base, a.len) == 0);
}

/* Decodes a copy of exact size, so that a sanitizer sees any byte read too far. */
static bool decode(const uint8_t *bytes, size_t len, struct srv_s3_meta *out)
{
    static uint8_t *copy;
    free(copy);
    copy = malloc(len + (len == 0));
    CHECK(copy != NULL);
    memcpy(copy, bytes, len);
    return srv_s3_meta_decode(copy, len, out);
}

static struct srv_s3_meta meta, back;
static uint8_t bytes[SRV_S3_META_RECORD_MAX];

TEST(records_come_back_as_they_went)
{
    size_t len;
    fill(&meta);
    CHECK(srv_s3_meta_encode(&meta, bytes, sizeof(bytes), &len));
    CHECK(decode(bytes, len, &back));
    check_same(back.bucket, meta.bucket);
    check_same(back.key, meta.key);
    check_same(back.etag, meta.etag);
    CHECK_EQ_INT(back.modified_ms, meta.modified_ms);
    check_same(back.content_type, meta.content_type);
    check_same(back.content_encoding, meta.content_encoding);
    check_same(back.content_disposition, meta.content_disposition);
    check_same(back.content_language, meta.content_language);
    check_same(back.cache_control, meta.cache_control);
    check_same(back.expires, meta.expires);
    CHECK_EQ_U64(back.n_user, 2);
    for (size_t i = 0; i < 2; i++) {
        check_same(back.user[i].name, meta.user[i].name);
        check_same(back.user[i].value, meta.user[i].value);
    }
}

TEST(limits_are_kept_when_writing)
{
    static char text[SRV_S3_META_RECORD_MAX];
    size_t len;
    memset(text, 'x', sizeof(text));
    fill(&meta);
    CHECK(srv_s3_meta_encode(&meta, bytes, sizeof(bytes), &len));
    size_t exact = len;
    CHECK(srv_s3_meta_encode(&meta, bytes, exact, &len) && len == exact);
    CHECK(!srv_s3_meta_encode(&meta, bytes, exact - 1, &len) && len == 0);
    meta.user[1].value = (struct srv_str){text, 2048 - 6 - 4 - 5};
    CHECK(srv_s3_meta_encode(&meta, bytes, sizeof(bytes), &len) && decode(bytes, len, &back));
    meta.user[1].value.len++;
    CHECK(!srv_s3_meta_encode(&meta, bytes, sizeof(bytes), &len));
    fill(&meta);
    meta.content_type = (struct srv_str){text, sizeof(text)};
    CHECK(!srv_s3_meta_encode(&meta, bytes, sizeof(bytes), &len));
    fill(&meta);
    meta.etag.len = 0;
    CHECK(!srv_s3_meta_encode(&meta, bytes, sizeof(bytes), &len));
    fill(&meta);
    meta.modified_ms = -1;
    CHECK(!srv_s3_meta_encode(&meta, bytes, sizeof(bytes), &len));
    fill(&meta);
    meta.user[0].name.len = 0;
    CHECK(!srv_s3_meta_encode(&meta, bytes, sizeof(bytes), &len));
    fill(&meta);
    meta.n_user = 100;
    for (size_t i = 0; i < 100; i++)
        meta.user[i] = (struct srv_field){str("n"), str("v")};
    CHECK(srv_s3_meta_encode(&meta, bytes, sizeof(bytes), &len) && decode(bytes, len, &back));
    CHECK_EQ_U64(back.n_user, 100);
}

TEST(cut_records_are_refused_or_whole_at_an_item)
{
    size_t len;
    fill(&meta);
    CHECK(srv_s3_meta_encode(&meta, bytes, sizeof(bytes), &len));
    size_t readable = 0;
    for (size_t n = 0; n < len; n++)
        readable += decode(bytes, n, &back);
    /* Only where a user item ends is a shorter record a valid one: before the first and before the
     * second. */
    CHECK_EQ_U64(readable, 2);
}

TEST(damaged_records_are_never_read_past_their_end)
{
    size_t len;
    fill(&meta);
    CHECK(srv_s3_meta_encode(&meta, bytes, sizeof(bytes), &len));
    for (size_t i = 0; i < len; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[i] ^= (uint8_t)(1u << bit);
            if (decode(bytes, len, &back))
                for (size_t k = 0; k < back.n_user; k++)
                    CHECK(back.user[k].name.len + back.user[k].value.len <= len);
            bytes[i] ^= (uint8_t)(1u << bit);
        }
}

/* Appends an item to a valid record and tells whether it still reads. */
static bool reads_with(uint8_t tag, const char *value, size_t value_len)
{
    size_t len;
    fill(&meta);
    CHECK(srv_s3_meta_encode(&meta, bytes, sizeof(bytes), &len));
    bytes[len] = tag;
    bytes[len + 1] = (uint8_t)value_len;
    bytes[len + 2] = 0;
    memcpy(bytes + len + 3, value, value_len);
    return decode(bytes, len + 3 + value_len, &back);
}

TEST(items_are_checked_one_by_one)
{
    CHECK(reads_with(0x80, "later", 5));
    CHECK(reads_with(0xff, "", 0));
    CHECK(reads_with(11, "\x01n", 2));
    CHECK(reads_with(6, "gzip", 4));
    CHECK(!reads_with(0, "", 0));
    CHECK(!reads_with(0x7f, "", 0));
    CHECK(!reads_with(1, "again", 5));
    CHECK(!reads_with(2, "12345678", 8));
    CHECK(!reads_with(3, "abc", 3));
    CHECK(!reads_with(5, "text/html", 9));
    CHECK(!reads_with(11, "", 0));
    CHECK(!reads_with(11, "\0v", 2));
    CHECK(!reads_with(11, "\x02n", 2));
}

TEST(other_versions_are_refused)
{
    size_t len;
    fill(&meta);
    CHECK(srv_s3_meta_encode(&meta, bytes, sizeof(bytes), &len));
    bytes[0] = 2;
    CHECK(!decode(bytes, len, &back));
    bytes[0] = 1;
    bytes[1] = 1;
    CHECK(!decode(bytes, len, &back));
    CHECK(!decode(bytes, 0, &back));
    CHECK(!decode(bytes, 2, &back));
}
