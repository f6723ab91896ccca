/* Any bytes as an aws-chunked body: however it is split, the same comes out, and never more than
 * was announced. */
#include "server/s3/aws_chunked.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
    if (!cond)
        abort();
}

static enum srv_s3_code decode(const struct srv_aws_framing *framing, const uint8_t *data,
                               size_t size, size_t step, char *out, size_t *done_out)
{
    static struct srv_aws_chunked chunked;
    enum srv_s3_code code = SRV_S3_NONE;
    size_t done = 0;

    srv_aws_chunked_init(&chunked, framing);
    for (size_t at = 0; code == SRV_S3_NONE && at < size; at += step) {
        size_t n = size - at < step ? size - at : step, got;
        char *piece = malloc(n);
        require(piece != NULL);
        memcpy(piece, data + at, n);
        code = srv_aws_chunked_feed(&chunked, piece, n, &got);
        require(got <= n);
        memcpy(out + done, piece, got);
        done += got;
        free(piece);
    }
    if (code == SRV_S3_NONE)
        code = srv_aws_chunked_finish(&chunked);
    require(framing->length == SRV_LENGTH_UNKNOWN || done <= framing->length);
    require(chunked.trailer_len <= sizeof chunked.trailer);
    require(chunked.trailer_len == 0 || chunked.trailer[chunked.trailer_len - 1] == '\n');
    *done_out = done;
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct srv_aws_framing framing = {.time = "20130524T000000Z"};
    size_t whole_len, split_len;

    if (size < 2)
        return 0;
    framing.is_signed = data[0] & 1;
    framing.has_trailer = data[0] & 2;
    framing.is_verified = data[0] & 4;
    framing.length = data[0] & 8 ? SRV_LENGTH_UNKNOWN : data[0] >> 4;
    srv_hmac_key_init(&framing.key, "key", 3);
    size_t step = 1 + data[1] % 64;
    char *whole = malloc(size), *split = malloc(size);
    require(whole != NULL && split != NULL);
    enum srv_s3_code code = decode(&framing, data + 2, size - 2, size, whole, &whole_len);
    enum srv_s3_code again = decode(&framing, data + 2, size - 2, step, split, &split_len);
    require(code == again);
    if (code == SRV_S3_NONE)
        require(whole_len == split_len && memcmp(whole, split, whole_len) == 0);
    free(whole);
    free(split);
    return 0;
}
