/* Bodies framed as aws-chunked: the published examples, every split of them, and what is wrong. */
#include "server/s3/aws_chunked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/s3/base64.h"
#include "tests/harness/test.h"

#define DECODED 66560

/* Signatures that AWS published for 66560 bytes 'a' in chunks of 64 KiB. */
static const char *const plain[] = {
    "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
    "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
    "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
    "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
};
static const char *const trailing[] = {
    "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
    "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
    "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
    "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
};
#define TRAILER_SIGNATURE "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435"

static struct srv_str str(const char *text)
{
    return (struct srv_str){text, strlen(text)};
}

static void frame(struct srv_aws_framing *framing, bool has_trailer)
{
    static const char scope[] = "20130524/us-east-1/s3/aws4_request";

    *framing = (struct srv_aws_framing){.is_signed = true,
                                        .has_trailer = has_trailer,
                                        .is_verified = true,
                                        .length = DECODED,
                                        .time = "20130524T000000Z",
                                        .scope_len = sizeof scope - 1};
    memcpy(framing->scope, scope, sizeof scope - 1);
    srv_sigv4_key(str("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), str("20130524"),
                  str("us-east-1"), &framing->key);
    CHECK(srv_hex_decode(str((has_trailer ? trailing : plain)[0]), framing->seed, 32));
}

/* The example's body; `end` follows the last chunk's line. */
static char *make_body(const char *const signatures[4], const char *end, size_t *len_out)
{
    static const size_t sizes[] = {65536, 1024};
    char *body = malloc(DECODED + 1024), *at = body;

    for (int i = 0; i < 2; i++) {
        at += sprintf(at, "%zx;chunk-signature=%s\r\n", sizes[i], signatures[i + 1]);
        memset(at, 'a', sizes[i]);
        at += sizes[i];
        at += sprintf(at, "\r\n");
    }
    at += sprintf(at, "0;chunk-signature=%s\r\n%s", signatures[3], end);
    *len_out = (size_t)(at - body);
    return body;
}

/* Feeds copies of `step` bytes; the decoded ones are appended to `out`. */
static enum srv_s3_code decode(struct srv_aws_chunked *c, const struct srv_aws_framing *framing,
                               const char *body, size_t len, size_t step, char *out)
{
    enum srv_s3_code code = SRV_S3_NONE;
    size_t done = 0;

    srv_aws_chunked_init(c, framing);
    for (size_t at = 0; code == SRV_S3_NONE && at < len; at += step) {
        size_t n = len - at < step ? len - at : step, got;
        char *piece = malloc(n);
        memcpy(piece, body + at, n);
        code = srv_aws_chunked_feed(c, piece, n, &got);
        if (out != NULL)
            memcpy(out + done, piece, got);
        done += got;
        free(piece);
    }
    if (code == SRV_S3_NONE)
        code = srv_aws_chunked_finish(c);
    if (code == SRV_S3_NONE)
        CHECK_EQ_U64(done, c->decoded);
    return code;
}

static void check_all_a(const char *bytes)
{
    for (size_t i = 0; i < DECODED; i++)
        CHECK(bytes[i] == 'a');
}

TEST(published_chunks_verify_however_they_are_split)
{
    static const size_t steps[] = {1, 2, 7, 85, 86, 87, 1000, 65536, 1 << 20};
    static char out[DECODED];
    struct srv_aws_framing framing;
    struct srv_aws_chunked c;
    size_t len;
    char *body = make_body(plain, "\r\n", &len);

    CHECK_EQ_U64(len, 66824);
    frame(&framing, false);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        memset(out, 0, sizeof out);
        CHECK_EQ_INT(decode(&c, &framing, body, len, steps[i], out), SRV_S3_NONE);
        check_all_a(out);
    }
    free(body);
}

static enum srv_s3_code with_trailer(struct srv_aws_chunked *c, const char *end)
{
    struct srv_aws_framing framing;
    size_t len;
    char *body = make_body(trailing, end, &len);

    frame(&framing, true);
    enum srv_s3_code code = decode(c, &framing, body, len, 4096, NULL);
    free(body);
    return code;
}

TEST(published_trailer_verifies_in_every_form_that_clients_send)
{
    struct srv_aws_chunked c;
    struct srv_str value;

    CHECK_EQ_INT(with_trailer(&c, "x-amz-checksum-crc32c:sOO8/Q==\r\n"
                                  "x-amz-trailer-signature:" TRAILER_SIGNATURE "\r\n\r\n"),
                 SRV_S3_NONE);
    CHECK(srv_aws_chunked_trailer(&c, "x-amz-checksum-crc32c", &value));
    CHECK(value.len == 8 && memcmp(value.base, "sOO8/Q==", 8) == 0);
    CHECK(!srv_aws_chunked_trailer(&c, "x-amz-checksum-crc32", &value));
    CHECK(!srv_aws_chunked_trailer(&c, "x-amz-trailer-signature", &value));
    /* as minio-go has it */
    CHECK_EQ_INT(with_trailer(&c, "x-amz-checksum-crc32c:sOO8/Q==\n\r\n"
                                  "x-amz-trailer-signature:" TRAILER_SIGNATURE "\r\n\r\n"),
                 SRV_S3_NONE);
    CHECK_EQ_INT(with_trailer(&c, "X-Amz-Checksum-Crc32c: sOO8/Q== \n"
                                  "x-amz-trailer-signature:" TRAILER_SIGNATURE "\n"),
                 SRV_S3_NONE);
}

TEST(a_signed_trailer_that_is_changed_or_bare_is_refused)
{
    struct srv_aws_chunked c;

    CHECK_EQ_INT(with_trailer(&c, "x-amz-checksum-crc32c:sOO8/g==\r\n"
                                  "x-amz-trailer-signature:" TRAILER_SIGNATURE "\r\n\r\n"),
                 SRV_S3_SIGNATURE_DIFFERS);
    CHECK_EQ_INT(with_trailer(&c, "x-amz-checksum-crc32c:sOO8/Q==\r\n\r\n"),
                 SRV_S3_SIGNATURE_DIFFERS);
    CHECK_EQ_INT(with_trailer(&c, "\r\n"), SRV_S3_SIGNATURE_DIFFERS);
    CHECK_EQ_INT(with_trailer(&c, "x-amz-trailer-signature:" TRAILER_SIGNATURE
                                  "\r\nx-amz-checksum-crc32c:sOO8/Q==\r\n\r\n"),
                 SRV_S3_SIGNATURE_DIFFERS);
}

TEST(every_flipped_byte_of_a_signed_body_is_noticed)
{
    struct srv_aws_framing framing;
    struct srv_aws_chunked c;
    size_t len;
    char *body = make_body(plain, "\r\n", &len);

    frame(&framing, false);
    for (size_t i = 0; i < len - 2; i += i < 200 || i > 65500 ? 1 : 997) {
        body[i] ^= 1;
        enum srv_s3_code code = decode(&c, &framing, body, len, 1 << 20, NULL);
        /* A carriage return before a line's end is the only byte that nothing depends on: where it
         * was, another byte makes the line another. */
        CHECK_MSG(code == SRV_S3_SIGNATURE_DIFFERS || code == SRV_S3_INCOMPLETE_BODY, "byte %zu",
                  i);
        body[i] ^= 1;
    }
    for (size_t cut = 1; cut < len - 2; cut += 1 + cut / 50)
        CHECK_MSG(decode(&c, &framing, body, cut, 1 << 20, NULL) != SRV_S3_NONE, "cut at %zu", cut);
    free(body);
}

static const struct row {
    const char *body;
    uint64_t length; /* announced */
    bool has_trailer;
    enum srv_s3_code code;
    const char *decoded;
} rows[] = {
    {"3\r\nabc\r\n0\r\n\r\n", 3, false, SRV_S3_NONE, "abc"},
    {"3\r\nabc\r\n0\r\n", 3, false, SRV_S3_NONE, "abc"},
    {"3;x=y\r\nabc\r\n0\r\n\r\n", 3, false, SRV_S3_NONE, "abc"},
    {"A\r\n0123456789\r\n0\r\n\r\n", 10, false, SRV_S3_NONE, "0123456789"},
    {"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", SRV_LENGTH_UNKNOWN, false, SRV_S3_NONE, "abc"},
    {"0\r\n\r\n", 0, false, SRV_S3_NONE, ""},
    {"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:AAAA\r\n\r\n", 3, true, SRV_S3_NONE, "abc"},
    {"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:AAAA\n\r\n\r\n", 3, true, SRV_S3_NONE, "abc"},
    {"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:AAAA\r\n\r\n", 3, false, SRV_S3_INCOMPLETE_BODY, ""},
    {"3\r\nabc\r\n0\r\nnonsense\r\n\r\n", 3, true, SRV_S3_INCOMPLETE_BODY, ""},
    {"3\r\nabc\r\n", 3, false, SRV_S3_INCOMPLETE_BODY, ""},
    {"3\r\nabc", 3, false, SRV_S3_INCOMPLETE_BODY, ""},
    {"3\r\nabcd\r\n0\r\n\r\n", 3, false, SRV_S3_INCOMPLETE_BODY, ""},
    {"3\r\nabc\r\n0\r\n\r\nx", 3, false, SRV_S3_INCOMPLETE_BODY, ""},
    {"4\r\nabcd\r\n0\r\n\r\n", 3, false, SRV_S3_INCOMPLETE_BODY, ""},
    {"2\r\nab\r\n0\r\n\r\n", 3, false, SRV_S3_INCOMPLETE_BODY, ""},
    {"\r\n", 0, false, SRV_S3_INCOMPLETE_BODY, ""},
    {"x\r\n", 0, false, SRV_S3_INCOMPLETE_BODY, ""},
    {"-1\r\n", 0, false, SRV_S3_INCOMPLETE_BODY, ""},
    {"ffffffffffffffff\r\n", SRV_LENGTH_UNKNOWN, false, SRV_S3_INCOMPLETE_BODY, ""},
    {"", 0, false, SRV_S3_INCOMPLETE_BODY, ""},
};

TEST(unsigned_bodies_are_decoded_as_listed)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct srv_aws_framing framing = {.has_trailer = rows[i].has_trailer,
                                          .length = rows[i].length};
        for (size_t step = 1; step <= 64; step *= 4) {
            struct srv_aws_chunked c;
            char out[64] = "";
            enum srv_s3_code code =
                decode(&c, &framing, rows[i].body, strlen(rows[i].body), step, out);
            CHECK_MSG(code == rows[i].code, "row %zu in steps of %zu: %s", i, step,
                      srv_s3_code_name(code));
            if (code == SRV_S3_NONE)
                CHECK_MSG(memcmp(out, rows[i].decoded, strlen(rows[i].decoded)) == 0, "row %zu", i);
        }
    }
}

TEST(long_lines_and_trailers_are_refused)
{
    struct srv_aws_framing framing = {.has_trailer = true, .length = SRV_LENGTH_UNKNOWN};
    struct srv_aws_chunked c;
    static char body[4096];

    memset(body, '0', sizeof body);
    CHECK_EQ_INT(decode(&c, &framing, body, sizeof body, 4096, NULL), SRV_S3_INCOMPLETE_BODY);
    char *at = body + sprintf(body, "0\r\n");
    for (int i = 0; i < 20; i++)
        at += sprintf(at, "name-%02d:%080d\r\n", i, 0);
    CHECK_EQ_INT(decode(&c, &framing, body, (size_t)(at - body), 4096, NULL),
                 SRV_S3_INCOMPLETE_BODY);
    size_t got;
    char more[] = "1";
    CHECK_EQ_INT(srv_aws_chunked_feed(&c, more, 1, &got), SRV_S3_INCOMPLETE_BODY);
    CHECK_EQ_INT(srv_aws_chunked_finish(&c), SRV_S3_INCOMPLETE_BODY);
}
