/* Any bytes as a chunked body, whole and byte by byte: same result, same body, same end. */
#include "server/chunked.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
    if (!cond)
        abort();
}

struct outcome {
    enum srv_chunked_result result;
    size_t used;
    size_t body_len;
    uint64_t body_sum; /* of position times value: differs if bytes move */
};

static void take(struct outcome *out, struct srv_str data)
{
    for (size_t i = 0; i < data.len; i++)
        out->body_sum = out->body_sum * 31 + (unsigned char)data.base[i];
    out->body_len += data.len;
}

static struct outcome decode(const char *bytes, size_t size, size_t step)
{
    struct srv_chunked decoder;
    struct outcome out = {.result = SRV_CHUNKED_MORE};
    srv_chunked_init(&decoder);
    while (out.used < size && (out.result == SRV_CHUNKED_MORE || out.result == SRV_CHUNKED_DATA)) {
        size_t n = size - out.used < step ? size - out.used : step;
        size_t used;
        struct srv_str data;
        uint64_t left = srv_chunked_left(&decoder);
        out.result = srv_chunked_feed(&decoder, bytes + out.used, n, &used, &data);
        require(used <= n && (used > 0 || out.result == SRV_CHUNKED_BAD));
        require((out.result == SRV_CHUNKED_DATA) == (data.len > 0));
        require(left == 0 || data.base == bytes + out.used);
        take(&out, data);
        out.used += used;
    }
    require(decoder.total == out.body_len);
    require((out.result == SRV_CHUNKED_BAD) == (decoder.reason != NULL));
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome whole = decode((const char *)data, size, size);
    struct outcome steps = decode((const char *)data, size, 1);
    bool open = whole.result == SRV_CHUNKED_MORE || whole.result == SRV_CHUNKED_DATA;
    bool steps_open = steps.result == SRV_CHUNKED_MORE || steps.result == SRV_CHUNKED_DATA;
    require(open == steps_open && (open || whole.result == steps.result));
    require(whole.used == steps.used && whole.body_len == steps.body_len &&
            whole.body_sum == steps.body_sum);
    return 0;
}
