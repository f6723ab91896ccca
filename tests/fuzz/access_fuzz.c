/* Any bytes of a client give one line of the access log, which is JSON or has no second line. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "server/access_entry.h"

static struct srv_access_bytes take(const uint8_t **at, size_t *left)
{
    size_t len = *left == 0 ? 0 : (*at)[0] * (size_t)8;
    if (*left > 0) {
        ++*at;
        --*left;
    }
    len = len < *left ? len : *left;
    struct srv_access_bytes bytes = {(const char *)*at, len};
    *at += len;
    *left -= len;
    return bytes;
}

static void require(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char line[SRV_ACCESS_LINE_MAX];
    struct srv_access_entry entry = {.client = "127.0.0.1",
                                     .status = 200,
                                     .result = "hit",
                                     .role = "s3",
                                     .operation = "GET_OBJECT",
                                     .id = "0123456789ABCDEF",
                                     .version = 11};
    entry.method = take(&data, &size);
    entry.path = take(&data, &size);
    entry.query = take(&data, &size);
    entry.referer = take(&data, &size);
    entry.agent = take(&data, &size);
    entry.host = take(&data, &size);
    size_t len = srv_access_write(SRV_ACCESS_COMBINED, &entry, line, sizeof line);
    require(len > 0 && memchr(line, '\n', len) == line + len - 1);
    len = srv_access_write(SRV_ACCESS_JSON, &entry, line, sizeof line);
    require(len > 0 && memchr(line, '\n', len) == line + len - 1);
    for (size_t i = 0; i < len; i++)
        require((line[i] >= ' ' && line[i] <= '~') || i == len - 1);
    json_t *root = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    require(root != NULL);
    json_decref(root);
    return 0;
}
