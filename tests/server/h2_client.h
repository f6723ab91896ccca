/* Frames of an HTTP/2 client, written as the test says, right or wrong.
 *
 * Blocks:  while the peer does not read.
 */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/server/front_client.h"

enum {
    H2_DATA,
    H2_HEADERS,
    H2_PRIORITY,
    H2_RST_STREAM,
    H2_SETTINGS,
    H2_PUSH_PROMISE,
    H2_PING,
    H2_GOAWAY,
    H2_WINDOW_UPDATE,
    H2_CONTINUATION,
    H2_END_STREAM = 1,
    H2_END_HEADERS = 4,
    H2_PADDED = 8,
};

struct h2_out {
    uint8_t bytes[1 << 16];
    size_t len;
};

static inline void h2_put(struct h2_out *out, const void *bytes, size_t n)
{
    CHECK(out->len + n <= sizeof out->bytes);
    memcpy(out->bytes + out->len, bytes, n);
    out->len += n;
}

static inline void h2_frame(struct h2_out *out, int type, int flags, uint32_t stream,
                            const void *payload, size_t n)
{
    uint8_t head[9] = {(uint8_t)(n >> 16),      (uint8_t)(n >> 8),      (uint8_t)n,
                       (uint8_t)type,           (uint8_t)flags,         (uint8_t)(stream >> 24),
                       (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};
    h2_put(out, head, sizeof head);
    h2_put(out, payload, n);
}

static inline void h2_preface(struct h2_out *out)
{
    static const uint8_t window[] = {0, 4, 0x7f, 0xff, 0xff, 0xff};
    h2_put(out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    h2_frame(out, H2_SETTINGS, 0, 0, window, sizeof window);
}

/* A literal field with a name of the static table, not to be indexed. */
static inline size_t h2_literal(uint8_t *to, unsigned name, const char *value)
{
    size_t n = 0, len = strlen(value);
    if (name < 15) {
        to[n++] = (uint8_t)name;
    } else {
        to[n++] = 15;
        to[n++] = (uint8_t)(name - 15);
    }
    to[n++] = (uint8_t)len;
    memcpy(to + n, value, len);
    return n + len;
}

/* A header block: `length` NULL for no content-length, `extra` a literal field in wire format or
 * NULL. */
static inline size_t h2_block(uint8_t *to, const char *method, const char *path, const char *length,
                              const char *extra)
{
    size_t n = h2_literal(to, 2, method);
    to[n++] = 0x86; /* :scheme: http */
    n += h2_literal(to + n, 4, path);
    n += h2_literal(to + n, 1, "a");
    if (length != NULL)
        n += h2_literal(to + n, 28, length);
    if (extra != NULL) {
        memcpy(to + n, extra, strlen(extra));
        n += strlen(extra);
    }
    return n;
}

static inline void h2_request(struct h2_out *out, uint32_t stream, const char *method,
                              const char *path, const char *length, bool is_whole)
{
    uint8_t block[512];
    size_t n = h2_block(block, method, path, length, NULL);
    h2_frame(out, H2_HEADERS, H2_END_HEADERS | (is_whole ? H2_END_STREAM : 0), stream, block, n);
}

/* Sends and empties; false if the connection broke. */
static inline bool h2_flush(int fd, struct h2_out *out)
{
    bool ok = client_send(fd, out->bytes, out->len);
    out->len = 0;
    return ok;
}
