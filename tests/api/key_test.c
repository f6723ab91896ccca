/* Keys: known digests, domains that cannot meet, hex in both directions. */
#include "tests/api/fixture.h"

static struct gyre_key parts2(enum gyre_domain domain, const char *a, const char *b)
{
    struct iovec parts[] = {{(void *)(uintptr_t)a, strlen(a)}, {(void *)(uintptr_t)b, strlen(b)}};
    struct gyre_key key;
    CHECK_OK(gyre_key_of_parts(domain, parts, 2, &key));
    return key;
}

static bool same(const struct gyre_key *a, const struct gyre_key *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

TEST(bytes_are_hashed_with_sha256)
{
    char hex[65];
    struct gyre_key key = gyre_key_of_bytes("abc", 3);
    gyre_key_to_hex(&key, hex);
    CHECK_EQ_STR(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    key = gyre_key_of_bytes(NULL, 0);
    gyre_key_to_hex(&key, hex);
    CHECK_EQ_STR(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(parts_hash_as_documented)
{
    struct gyre_key key = parts2(GYRE_DOMAIN_S3, "bucket", "a/key");
    struct gyre_key by_hand = gyre_key_of_bytes("s3\0bucket\0a/key\0", 16);
    CHECK(same(&key, &by_hand));
    struct gyre_key url = gyre_key_of_url("/x?y", "example.org");
    by_hand = gyre_key_of_bytes("url\0http\0example.org\0/x?y\0", 26);
    CHECK(same(&url, &by_hand));
}

TEST(domains_and_splits_never_meet)
{
    struct gyre_key a = parts2(GYRE_DOMAIN_S3, "ab", "c"), b = parts2(GYRE_DOMAIN_S3, "a", "bc");
    struct gyre_key c = parts2(GYRE_DOMAIN_KV, "ab", "c"), d = parts2(GYRE_DOMAIN_S3, "ab", "");
    CHECK(!same(&a, &b));
    CHECK(!same(&a, &c));
    CHECK(!same(&a, &d));
}

TEST(only_the_last_part_may_hold_zero_bytes)
{
    struct gyre_key key;
    char zero[] = "a\0b";
    struct iovec last[] = {{zero, 1}, {zero, 3}};
    CHECK_OK(gyre_key_of_parts(GYRE_DOMAIN_S3, last, 2, &key));
    struct iovec first[] = {{zero, 3}, {zero, 1}};
    CHECK_ERR(gyre_key_of_parts(GYRE_DOMAIN_S3, first, 2, &key), GYRE_INVALID);
}

TEST(wrong_numbers_of_parts_are_refused)
{
    struct gyre_key key;
    char text[] = "a";
    struct iovec parts[4] = {{text, 1}, {text, 1}, {text, 1}, {text, 1}};
    static const size_t wanted[] = {1, 2, 3, 2};
    for (int domain = GYRE_DOMAIN_RAW; domain <= GYRE_DOMAIN_KV; domain++) {
        for (size_t n = 0; n <= 4; n++)
            CHECK_ERR(gyre_key_of_parts((enum gyre_domain)domain, parts, n, &key),
                      n == wanted[domain] ? GYRE_OK : GYRE_INVALID);
    }
    CHECK_ERR(gyre_key_of_parts((enum gyre_domain)99, parts, 1, &key), GYRE_INVALID);
    CHECK_ERR(gyre_key_of_parts(GYRE_DOMAIN_RAW, NULL, 1, &key), GYRE_INVALID);
    CHECK_ERR(gyre_key_of_parts(GYRE_DOMAIN_RAW, parts, 1, NULL), GYRE_INVALID);
    struct gyre_key raw = gyre_key_of_bytes("a", 1);
    CHECK_OK(gyre_key_of_parts(GYRE_DOMAIN_RAW, parts, 1, &key));
    CHECK(same(&key, &raw));
}

TEST(hex_goes_both_ways)
{
    struct gyre_key key, back;
    char hex[65], upper[65];
    for (unsigned i = 0; i < 32; i++)
        key.bytes[i] = (uint8_t)(i * 37 + 11);
    gyre_key_to_hex(&key, hex);
    CHECK_EQ_U64(strlen(hex), 64);
    CHECK_OK(gyre_key_of_hex(hex, &back));
    CHECK(same(&key, &back));
    for (unsigned i = 0; i < 65; i++)
        upper[i] = (char)(hex[i] >= 'a' && hex[i] <= 'f' ? hex[i] - 'a' + 'A' : hex[i]);
    CHECK_OK(gyre_key_of_hex(upper, &back));
    CHECK(same(&key, &back));
    struct gyre_key digest = gyre_key_of_digest(key.bytes);
    CHECK(same(&key, &digest));
}

TEST(bad_hex_is_refused)
{
    struct gyre_key key;
    char hex[80];
    memset(hex, '0', sizeof hex);
    hex[65] = '\0';
    CHECK_ERR(gyre_key_of_hex(hex, &key), GYRE_INVALID); /* 65 digits */
    hex[63] = '\0';
    CHECK_ERR(gyre_key_of_hex(hex, &key), GYRE_INVALID); /* 63 */
    CHECK_ERR(gyre_key_of_hex("", &key), GYRE_INVALID);
    CHECK_ERR(gyre_key_of_hex(NULL, &key), GYRE_INVALID);
    CHECK_ERR(gyre_key_of_hex(hex, NULL), GYRE_INVALID);
    static const char bad[] = "/:@G`g x";
    for (size_t i = 0; i < sizeof bad - 1; i++) {
        memset(hex, '0', 64);
        hex[64] = '\0';
        hex[33] = bad[i];
        CHECK_ERR(gyre_key_of_hex(hex, &key), GYRE_INVALID);
    }
}

TEST(version_is_that_of_the_header)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", GYRE_VERSION_MAJOR, GYRE_VERSION_MINOR,
             GYRE_VERSION_PATCH);
    CHECK_EQ_STR(gyre_version(), text);
}
