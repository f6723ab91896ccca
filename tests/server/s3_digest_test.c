/* Digests of bodies: published check values, pieces against the whole, and what requests may ask
 * for. */
#include "server/s3/digest.h"

#include "server/s3/base64.h"
#include "tests/harness/test.h"
#include "tests/server/fake_fields.h"

static struct srv_str str(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

TEST(crcs_have_their_published_check_values)
{
    CHECK_EQ_U64(srv_crc_update(SRV_CRC32, 0, "123456789", 9), 0xcbf43926);
    CHECK_EQ_U64(srv_crc_update(SRV_CRC32C, 0, "123456789", 9), 0xe3069283);
    CHECK_EQ_U64(srv_crc_update(SRV_CRC64NVME, 0, "123456789", 9), UINT64_C(0xae8b14860a799888));
    for (int kind = SRV_CRC32; kind <= SRV_CRC64NVME; kind++)
        CHECK_EQ_U64(srv_crc_update((enum srv_crc_kind)kind, 0, NULL, 0), 0);
}

TEST(crcs_of_pieces_continue_each_other)
{
    struct test_rng rng = {test_seed()};
    uint8_t bytes[700];

    test_rng_fill(&rng, bytes, sizeof bytes);
    for (int kind = SRV_CRC32; kind <= SRV_CRC64NVME; kind++) {
        uint64_t whole = srv_crc_update((enum srv_crc_kind)kind, 0, bytes, sizeof bytes);
        for (size_t cut = 0; cut <= sizeof bytes; cut += 1 + test_rng_below(&rng, 5)) {
            uint64_t crc = srv_crc_update((enum srv_crc_kind)kind, 0, bytes, cut);
            crc = srv_crc_update((enum srv_crc_kind)kind, crc, bytes + cut, sizeof bytes - cut);
            CHECK_EQ_U64(crc, whole);
        }
    }
}

TEST(base64_is_read_strictly)
{
    static const char *const bad[] = {"",     "AAA",   "AAAA=", "AA==AA==", "AB==", "A===", "AA=A",
                                      " AA=", "AA\n=", "AA=",   "A-==",     "AAAA", "AAA="};
    uint8_t byte;
    char text[9];
    uint8_t many[5];

    CHECK(srv_base64_decode(str("AA=="), &byte, 1) && byte == 0);
    CHECK(srv_base64_decode(str("/w=="), &byte, 1) && byte == 255);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_MSG(!srv_base64_decode(str(bad[i]), &byte, 1), "\"%s\" was taken", bad[i]);
    for (size_t len = 0; len <= 5; len++) {
        srv_base64_encode((const uint8_t *)"hello", len, text);
        CHECK_EQ_INT(strlen(text), srv_base64_size(len));
        CHECK(srv_base64_decode(str(text), many, len));
        CHECK_EQ_MEM(many, "hello", len);
    }
}

/* Plans with up to three fields; base names end the list. */
static enum srv_digest_fault plan(struct srv_digest_plan *plan_out, bool is_framed,
                                  const char *const *fields)
{
    struct srv_field list[4];
    struct srv_request req = {.method = SRV_PUT, .fields = list};

    for (; fields[req.n_fields * 2] != NULL; req.n_fields++)
        list[req.n_fields] =
            (struct srv_field){str(fields[req.n_fields * 2]), str(fields[req.n_fields * 2 + 1])};
    return srv_digest_plan(&req, true, is_framed, plan_out);
}

#define PLAN(...) plan(&p, false, (const char *const[]){__VA_ARGS__, NULL})
#define PLAN_FRAMED(...) plan(&p, true, (const char *const[]){__VA_ARGS__, NULL})

static const char *const hello_checksums[][2] = {
    {"x-amz-checksum-crc32", "NhCmhg=="},
    {"x-amz-checksum-crc32c", "mnG7TA=="},
    {"x-amz-checksum-crc64nvme", "M3eFcAZSQlc="},
    {"x-amz-checksum-sha1", "qvTGHdzF6KLavt4PO0gs2a6pQ00="},
    {"x-amz-checksum-sha256", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="},
    {"content-md5", "XUFAKrxLKna5cZ2REBfFkg=="},
    {"x-amz-content-sha256", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"},
};

static enum srv_digest_fault digest_of(const struct srv_digest_plan *p, const char *text,
                                       uint8_t md5[16])
{
    struct srv_digest digest;

    CHECK_EQ_INT(srv_digest_init(&digest, p), SRV_DIGEST_FINE);
    for (const char *at = text; *at != '\0'; at++)
        CHECK_EQ_INT(srv_digest_update(&digest, at, 1), SRV_DIGEST_FINE);
    enum srv_digest_fault fault = srv_digest_finish(&digest, md5);
    srv_digest_fini(&digest);
    srv_digest_fini(&digest);
    return fault;
}

TEST(a_body_passes_with_its_digests_and_fails_with_those_of_another)
{
    struct srv_digest_plan p;
    uint8_t md5[16], want[16];

    srv_hex_decode(str("5d41402abc4b2a76b9719d911017c592"), want, 16);
    for (size_t i = 0; i < sizeof hello_checksums / sizeof hello_checksums[0]; i++) {
        CHECK_EQ_INT(PLAN(hello_checksums[i][0], hello_checksums[i][1]), SRV_DIGEST_FINE);
        CHECK_EQ_INT(digest_of(&p, "hello", md5), SRV_DIGEST_FINE);
        CHECK_EQ_MEM(md5, want, 16);
        enum srv_digest_fault fault = digest_of(&p, "hellp", md5);
        CHECK_MSG(fault >= SRV_DIGEST_MD5_DIFFERS && fault <= SRV_DIGEST_CHECKSUM_DIFFERS,
                  "row %zu: fault %d", i, fault);
        CHECK(digest_of(&p, "", md5) >= SRV_DIGEST_MD5_DIFFERS);
    }
}

TEST(requests_that_cannot_be_checked_are_told_why)
{
    static const char hash[] = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    struct srv_digest_plan p;

    CHECK_EQ_INT(PLAN("content-md5", ""), SRV_DIGEST_BAD_MD5);
    CHECK_EQ_INT(PLAN("content-md5", "YWJyYWNhZGFicmE="), SRV_DIGEST_BAD_MD5);
    CHECK_EQ_INT(PLAN("x-amz-checksum-crc32", "bad"), SRV_DIGEST_BAD_CHECKSUM);
    CHECK_EQ_INT(PLAN("x-amz-checksum-crc32", "NhCmhg==", "x-amz-checksum-crc32c", "mnG7TA=="),
                 SRV_DIGEST_MANY_CHECKSUMS);
    CHECK_EQ_INT(PLAN("x-amz-checksum-blake3", "AAAA"), SRV_DIGEST_CHECKSUM_UNKNOWN);
    CHECK_EQ_INT(PLAN("x-amz-sdk-checksum-algorithm", "CRC32"), SRV_DIGEST_CHECKSUM_MISSING);
    CHECK_EQ_INT(PLAN("x-amz-checksum-type", "FULL_OBJECT"), SRV_DIGEST_FINE);
    CHECK_EQ_INT(PLAN("x-amz-trailer", "x-amz-checksum-crc32"), SRV_DIGEST_TRAILER_UNKNOWN);
    CHECK_EQ_INT(PLAN("x-amz-content-sha256", "junk"), SRV_DIGEST_BAD_PAYLOAD_HASH);
    CHECK_EQ_INT(PLAN("x-amz-content-sha256", "UNSIGNED-PAYLOAD"), SRV_DIGEST_FINE);
    CHECK(!p.has_payload);
    CHECK_EQ_INT(PLAN("x-amz-content-sha256", hash), SRV_DIGEST_FINE);
    CHECK(p.has_payload);
}

TEST(the_query_of_a_link_may_carry_what_is_a_field_elsewhere)
{
    static const struct {
        const char *query;
        enum srv_digest_fault fault;
        bool has_value, has_payload;
    } table[] = {
        {"a=b&x-amz-checksum-crc32=NhCmhg%3D%3D&x-id=PutObject", SRV_DIGEST_FINE, true, false},
        {"x-amz-checksum-crc32=NhCmhg==", SRV_DIGEST_FINE, true, false},
        {"x-amz-checksum-mode=ENABLED&X-Amz-Content-Sha256=UNSIGNED-PAYLOAD", SRV_DIGEST_FINE,
         false, false},
        {"x-amz-checksum-crc32=NhCmhg%3D%3D&x-amz-checksum-sha1=qvTGHdzF6KLavt4PO0gs2a6pQ00%3D",
         SRV_DIGEST_MANY_CHECKSUMS, true, false},
        {"x-amz-checksum-crc32=NhCmhg%3", SRV_DIGEST_BAD_CHECKSUM, false, false},
        {"x-amz-checksum-crc32", SRV_DIGEST_BAD_CHECKSUM, false, false},
        {"x-amz-checksum-md4=AAAA", SRV_DIGEST_CHECKSUM_UNKNOWN, false, false},
        {"X-Amz-Content-Sha256="
         "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
         SRV_DIGEST_FINE, false, true},
        {"X-Amz-Content-Sha256=2cf2", SRV_DIGEST_BAD_PAYLOAD_HASH, false, false},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct srv_request req = {.method = SRV_PUT, .query = str(table[i].query)};
        struct srv_digest_plan p;
        CHECK_MSG(srv_digest_plan(&req, true, false, &p) == table[i].fault, "%s", table[i].query);
        CHECK_MSG(p.has_value == table[i].has_value && p.has_payload == table[i].has_payload, "%s",
                  table[i].query);
    }
}

TEST(a_checksum_may_follow_in_the_trailer_of_a_framed_body)
{
    struct srv_digest_plan p;
    struct srv_digest digest;
    uint8_t md5[16];

    CHECK_EQ_INT(PLAN_FRAMED("x-amz-trailer", "X-Amz-Checksum-Crc32", "x-amz-content-sha256",
                             "STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
                 SRV_DIGEST_FINE);
    CHECK(p.is_trailing && !p.has_value && p.checksum == SRV_CHECKSUM_CRC32);
    CHECK_EQ_INT(PLAN_FRAMED("x-amz-trailer", "x-amz-checksum-sha256",
                             "x-amz-sdk-checksum-algorithm", "SHA256"),
                 SRV_DIGEST_FINE);
    CHECK(p.is_trailing && p.checksum == SRV_CHECKSUM_SHA256);
    CHECK_EQ_INT(PLAN_FRAMED("x-amz-trailer", "expires"), SRV_DIGEST_TRAILER_UNKNOWN);
    CHECK_EQ_INT(PLAN_FRAMED("x-amz-sdk-checksum-algorithm", "SHA256"),
                 SRV_DIGEST_CHECKSUM_MISSING);
    CHECK_EQ_INT(
        PLAN_FRAMED("x-amz-trailer", "x-amz-checksum-crc32", "x-amz-checksum-crc32", "NhCmhg=="),
        SRV_DIGEST_TRAILER_AND_VALUE);

    static const char *const values[] = {"NhCmhg==", "NhCmhw=="};
    for (int i = 0; i < 2; i++) {
        CHECK_EQ_INT(PLAN_FRAMED("x-amz-trailer", "x-amz-checksum-crc32"), SRV_DIGEST_FINE);
        CHECK_EQ_INT(srv_digest_init(&digest, &p), SRV_DIGEST_FINE);
        CHECK_EQ_INT(srv_digest_update(&digest, "hello", 5), SRV_DIGEST_FINE);
        CHECK(!srv_digest_set_value(&digest, str("bad")));
        CHECK(srv_digest_set_value(&digest, str(values[i])));
        CHECK_EQ_INT(srv_digest_finish(&digest, md5),
                     i == 0 ? SRV_DIGEST_FINE : SRV_DIGEST_CHECKSUM_DIFFERS);
        srv_digest_fini(&digest);
    }
}

TEST(checksums_of_pieces_give_that_of_the_whole)
{
    static const char text[] =
        "123456789 and some more, so that a piece is longer than eight bytes";
    size_t len = sizeof text - 1;

    for (int kind = SRV_CRC32; kind <= SRV_CRC64NVME; kind++) {
        enum srv_crc_kind k = (enum srv_crc_kind)kind;
        uint64_t whole = srv_crc_update(k, 0, text, len);
        for (size_t cut = 0; cut <= len; cut++) {
            uint64_t first = srv_crc_update(k, 0, text, cut);
            uint64_t second = srv_crc_update(k, 0, text + cut, len - cut);
            CHECK_EQ_U64(srv_crc_combine(k, first, second, len - cut), whole);
        }
    }
}
