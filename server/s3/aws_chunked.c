#include "server/s3/aws_chunked.h"

#include <openssl/crypto.h>
#include <string.h>

#include "server/chars.h"
#include "server/s3/base64.h"

enum { SIZE_DIGITS_MAX = 15 }; /* beyond any object, and within 64 bits */

void srv_aws_chunked_init(struct srv_aws_chunked *chunked, const struct srv_aws_framing *framing)
{
    memset(chunked, 0, sizeof *chunked);
    chunked->framing = *framing;
    memcpy(chunked->before_, framing->seed, sizeof chunked->before_);
}

void srv_aws_chunked_fini(struct srv_aws_chunked *chunked)
{
    OPENSSL_cleanse(&chunked->framing.key, sizeof chunked->framing.key);
}

static bool begins(struct srv_str text, const char *word)
{
    size_t len = strlen(word);
    return text.len >= len && memcmp(text.base, word, len) == 0;
}

static enum srv_s3_code fail(struct srv_aws_chunked *c, enum srv_s3_code code)
{
    c->state = SRV_AWS_FAILED;
    c->left_ = code;
    return code;
}

static struct srv_str scope_of(const struct srv_aws_chunked *c)
{
    return (struct srv_str){c->framing.scope, c->framing.scope_len};
}

static bool is_checked(const struct srv_aws_chunked *c)
{
    return c->framing.is_signed && c->framing.is_verified;
}

/* ---- Lines ---- */

/* Gathers a line, which is then without its end in line_. True once it is complete. */
static bool take_line(struct srv_aws_chunked *c, const char **at, const char *end, bool *long_out)
{
    *long_out = false;
    while (*at < end) {
        char byte = *(*at)++;
        if (byte == '\n') {
            if (c->line_len_ > 0 && c->line_[c->line_len_ - 1] == '\r')
                c->line_len_--;
            return true;
        }
        if (c->line_len_ == sizeof c->line_) {
            *long_out = true;
            return false;
        }
        c->line_[c->line_len_++] = byte;
    }
    return false;
}

static bool read_size(struct srv_str digits, uint64_t *size_out)
{
    uint64_t size = 0;

    for (size_t i = 0; i < digits.len; i++) {
        int value = srv_hex_value((unsigned char)digits.base[i]);
        if (value < 0)
            return false;
        size = size << 4 | (uint64_t)value;
    }
    *size_out = size;
    return digits.len > 0 && digits.len <= SIZE_DIGITS_MAX;
}

/* `hex[;chunk-signature=...]` */
static enum srv_s3_code begin_chunk(struct srv_aws_chunked *c)
{
    static const char word[] = "chunk-signature=";
    struct srv_str line = {c->line_, c->line_len_};
    const char *semicolon = line.len == 0 ? NULL : memchr(line.base, ';', line.len);
    size_t digits = semicolon == NULL ? line.len : (size_t)(semicolon - line.base);
    struct srv_str rest = {line.base + digits, line.len - digits};

    c->line_len_ = 0;
    if (!read_size((struct srv_str){line.base, digits}, &c->left_))
        return fail(c, SRV_S3_INCOMPLETE_BODY);
    if (c->framing.length != SRV_LENGTH_UNKNOWN && c->left_ > c->framing.length - c->decoded)
        return fail(c, SRV_S3_INCOMPLETE_BODY);
    if (c->framing.is_signed) {
        if (rest.len > 0)
            rest = (struct srv_str){rest.base + 1, rest.len - 1};
        if (!begins(rest, word) || !srv_hex_decode((struct srv_str){rest.base + sizeof word - 1,
                                                                    rest.len - sizeof word + 1},
                                                   c->claimed_, sizeof c->claimed_))
            return fail(c, SRV_S3_SIGNATURE_DIFFERS);
        srv_sha256_init(&c->data_);
    }
    c->state = SRV_AWS_DATA;
    return SRV_S3_NONE;
}

static enum srv_s3_code end_chunk(struct srv_aws_chunked *c, bool is_last)
{
    uint8_t hash[SRV_SHA256_LEN], signature[SRV_SHA256_LEN];

    c->state = is_last ? SRV_AWS_TRAILER : SRV_AWS_DATA_END;
    if (!is_checked(c))
        return SRV_S3_NONE;
    srv_sha256_finish(&c->data_, hash);
    srv_sigv4_sign_chunk(&c->framing.key, c->framing.time, scope_of(c), c->before_, hash,
                         signature);
    if (!srv_digest_equal(signature, c->claimed_))
        return fail(c, SRV_S3_SIGNATURE_DIFFERS);
    memcpy(c->before_, signature, sizeof signature);
    return SRV_S3_NONE;
}

/* ---- Trailer ---- */

static struct srv_str trim(struct srv_str text)
{
    while (text.len > 0 && (text.base[0] == ' ' || text.base[0] == '\t'))
        text = (struct srv_str){text.base + 1, text.len - 1};
    while (text.len > 0 && (text.base[text.len - 1] == ' ' || text.base[text.len - 1] == '\t'))
        text.len--;
    return text;
}

static enum srv_s3_code check_trailer(struct srv_aws_chunked *c, struct srv_str hex)
{
    uint8_t claimed[SRV_SHA256_LEN], hash[SRV_SHA256_LEN], signature[SRV_SHA256_LEN];
    struct srv_sha256 sha;

    c->is_trailer_signed_ = true;
    if (!is_checked(c))
        return SRV_S3_NONE;
    srv_sha256_init(&sha);
    srv_sha256_update(&sha, c->trailer, c->trailer_len);
    srv_sha256_finish(&sha, hash);
    srv_sigv4_sign_trailer(&c->framing.key, c->framing.time, scope_of(c), c->before_, hash,
                           signature);
    if (!srv_hex_decode(hex, claimed, sizeof claimed) || !srv_digest_equal(signature, claimed))
        return fail(c, SRV_S3_SIGNATURE_DIFFERS);
    return SRV_S3_NONE;
}

static void append(struct srv_aws_chunked *c, const char *bytes, size_t len)
{
    memcpy(c->trailer + c->trailer_len, bytes, len);
    c->trailer_len += len;
}

/* One line of the trailer. Some clients end lines with LF and then send CRLF as well: an empty line
 * is the end only when no signature is still due. */
static enum srv_s3_code take_trailer_line(struct srv_aws_chunked *c)
{
    static const char word[] = "x-amz-trailer-signature";
    struct srv_str line = {c->line_, c->line_len_};
    bool is_due = c->framing.is_signed && c->framing.has_trailer && !c->is_trailer_signed_;

    c->line_len_ = 0;
    if (line.len == 0) {
        if (!is_due)
            c->state = SRV_AWS_ENDED;
        return SRV_S3_NONE;
    }
    const char *colon = memchr(line.base, ':', line.len);
    if (colon == NULL || !c->framing.has_trailer || c->is_trailer_signed_)
        return fail(c, SRV_S3_INCOMPLETE_BODY);
    size_t name_len = (size_t)(colon - line.base);
    struct srv_str value = trim((struct srv_str){colon + 1, line.len - name_len - 1});
    srv_lower(c->line_, c->line_, name_len);
    if (name_len == sizeof word - 1 && memcmp(line.base, word, name_len) == 0)
        return check_trailer(c, value);
    if (name_len + value.len + 2 > sizeof c->trailer - c->trailer_len)
        return fail(c, SRV_S3_INCOMPLETE_BODY);
    append(c, line.base, name_len);
    append(c, ":", 1);
    append(c, value.base, value.len);
    append(c, "\n", 1);
    return SRV_S3_NONE;
}

bool srv_aws_chunked_trailer(const struct srv_aws_chunked *chunked, const char *name,
                             struct srv_str *value_out)
{
    struct srv_str rest = {chunked->trailer, chunked->trailer_len};
    size_t len = strlen(name);

    *value_out = (struct srv_str){NULL, 0};
    while (rest.len > 0) {
        size_t line = (size_t)((const char *)memchr(rest.base, '\n', rest.len) - rest.base);
        if (line > len && memcmp(rest.base, name, len) == 0 && rest.base[len] == ':') {
            *value_out = (struct srv_str){rest.base + len + 1, line - len - 1};
            return true;
        }
        rest = (struct srv_str){rest.base + line + 1, rest.len - line - 1};
    }
    return false;
}

/* ---- All of it ---- */

static void take_data(struct srv_aws_chunked *c, const char **at, const char *end, char **to)
{
    uint64_t there = (uint64_t)(end - *at);
    size_t n = (size_t)(c->left_ < there ? c->left_ : there);

    if (n == 0)
        return;
    if (is_checked(c))
        srv_sha256_update(&c->data_, *at, n);
    if (*to != *at)
        memmove(*to, *at, n);
    *to += n;
    *at += n;
    c->left_ -= n;
    c->decoded += n;
}

static enum srv_s3_code step(struct srv_aws_chunked *c, const char **at, const char *end, char **to)
{
    bool is_long;

    if (c->state == SRV_AWS_ENDED) { /* empty lines that some clients add */
        char byte = *(*at)++;
        return byte == '\r' || byte == '\n' ? SRV_S3_NONE : fail(c, SRV_S3_INCOMPLETE_BODY);
    }
    if (c->state == SRV_AWS_DATA) {
        take_data(c, at, end, to);
        return c->left_ == 0 ? end_chunk(c, false) : SRV_S3_NONE;
    }
    bool is_whole = take_line(c, at, end, &is_long);
    if (is_long)
        return fail(c, SRV_S3_INCOMPLETE_BODY);
    if (!is_whole)
        return SRV_S3_NONE;
    if (c->state == SRV_AWS_TRAILER)
        return take_trailer_line(c);
    if (c->state == SRV_AWS_DATA_END) {
        c->state = SRV_AWS_SIZE;
        return c->line_len_ == 0 ? SRV_S3_NONE : fail(c, SRV_S3_INCOMPLETE_BODY);
    }
    enum srv_s3_code code = begin_chunk(c);
    return code == SRV_S3_NONE && c->left_ == 0 ? end_chunk(c, true) : code;
}

enum srv_s3_code srv_aws_chunked_feed(struct srv_aws_chunked *chunked, char *bytes, size_t len,
                                      size_t *decoded_len_out)
{
    const char *at = bytes, *end = bytes + len;
    char *to = bytes;
    enum srv_s3_code code = SRV_S3_NONE;

    if (chunked->state == SRV_AWS_FAILED)
        code = (enum srv_s3_code)chunked->left_;
    while (code == SRV_S3_NONE && at < end)
        code = step(chunked, &at, end, &to);
    *decoded_len_out = code == SRV_S3_NONE ? (size_t)(to - bytes) : 0;
    return code;
}

enum srv_s3_code srv_aws_chunked_finish(struct srv_aws_chunked *chunked)
{
    const struct srv_aws_framing *framing = &chunked->framing;
    bool is_due = framing->is_signed && framing->has_trailer && !chunked->is_trailer_signed_;

    if (chunked->state == SRV_AWS_FAILED)
        return (enum srv_s3_code)chunked->left_;
    /* The empty line at the very end is left out by some. */
    bool is_whole = chunked->state == SRV_AWS_ENDED ||
                    (chunked->state == SRV_AWS_TRAILER && chunked->line_len_ == 0);
    if (!is_whole)
        return fail(chunked, SRV_S3_INCOMPLETE_BODY);
    if (framing->length != SRV_LENGTH_UNKNOWN && chunked->decoded != framing->length)
        return fail(chunked, SRV_S3_INCOMPLETE_BODY);
    return is_due ? fail(chunked, SRV_S3_SIGNATURE_DIFFERS) : SRV_S3_NONE;
}
