/* Any bytes as a metadata record: what reads is written again and reads the same. */
#include "server/s3/meta.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
    if (!cond)
        abort();
}

static void check_inside(const uint8_t *data, size_t size, struct srv_str text)
{
    const char *begin = (const char *)data;
    require(text.base == NULL || (text.base >= begin && text.base + text.len <= begin + size));
}

static void check_same(struct srv_str a, struct srv_str b)
{
    require((a.base == NULL) == (b.base == NULL) && a.len == b.len);
    require(a.len == 0 || memcmp(a.base, b.base, a.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct srv_s3_meta meta, again;
    static uint8_t bytes[SRV_S3_META_RECORD_MAX];
    if (!srv_s3_meta_decode(data, size, &meta))
        return 0;
    check_inside(data, size, meta.etag);
    check_inside(data, size, meta.key);
    check_inside(data, size, meta.bucket);
    check_inside(data, size, meta.expires);
    for (size_t i = 0; i < meta.n_user; i++) {
        check_inside(data, size, meta.user[i].name);
        check_inside(data, size, meta.user[i].value);
    }
    size_t len;
    require(srv_s3_meta_encode(&meta, bytes, sizeof(bytes), &len) && len <= size);
    require(srv_s3_meta_decode(bytes, len, &again));
    check_same(meta.etag, again.etag);
    check_same(meta.key, again.key);
    check_same(meta.content_type, again.content_type);
    require(meta.modified_ms == again.modified_ms && meta.n_user == again.n_user);
    return 0;
}
