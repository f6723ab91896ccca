/* What an HTTP/2 server says, understood as far as tests need it.
 *
 * Blocks:  at most a minute at a time.
 */
#pragma once

#include <errno.h>
#include <stdlib.h>

#include "tests/server/h2_client.h"

struct h2_frame {
    uint32_t length;
    uint8_t type;
    uint8_t flags;
    uint32_t stream;
    uint8_t payload[1 << 14];
};

static inline bool h2_recv_all(int fd, uint8_t *to, size_t n)
{
    for (size_t at = 0; at < n;) {
        if (!client_await(fd))
            return false;
        ssize_t got = recv(fd, to + at, n - at, 0);
        if (got <= 0)
            return false;
        at += (size_t)got;
    }
    return true;
}

/* The next frame; false at the end of the connection. */
static inline bool h2_next(int fd, struct h2_frame *frame)
{
    uint8_t head[9];
    if (!h2_recv_all(fd, head, sizeof head))
        return false;
    frame->length = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2];
    frame->type = head[3];
    frame->flags = head[4];
    frame->stream =
        (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8];
    CHECK(frame->length <= sizeof frame->payload);
    return h2_recv_all(fd, frame->payload, frame->length);
}

/* The status at the start of a header block, as libh2o writes it. */
static inline int h2_status(const struct h2_frame *frame)
{
    static const int indexed[] = {200, 204, 206, 304, 400, 404, 500};
    if (frame->payload[0] >= 0x88 && frame->payload[0] <= 0x8e)
        return indexed[frame->payload[0] - 0x88];
    return atoi((const char *)frame->payload + 2);
}

struct h2_answer {
    int status; /* of the last header block; 0: none */
    int interim;
    char text[1 << 12];
    size_t len; /* bytes of content, of which text has the first */
    int reset;  /* error code of RST_STREAM, -1: none */
    bool is_ended;
    uint64_t window; /* increments of the connection's window that came meanwhile */
};

static inline void h2_take(const struct h2_frame *frame, uint32_t stream, struct h2_answer *answer)
{
    if (frame->type == H2_WINDOW_UPDATE && frame->stream == 0)
        answer->window += (uint32_t)frame->payload[0] << 24 | (uint32_t)frame->payload[1] << 16 |
                          (uint32_t)frame->payload[2] << 8 | frame->payload[3];
    if (frame->stream != stream)
        return;
    if (frame->type == H2_HEADERS) {
        if (h2_status(frame) < 200)
            answer->interim = h2_status(frame);
        else
            answer->status = h2_status(frame);
    }
    if (frame->type == H2_DATA) {
        size_t room = sizeof answer->text - 1;
        size_t n = answer->len >= room                  ? 0
                   : frame->length < room - answer->len ? frame->length
                                                        : room - answer->len;
        memcpy(answer->text + (answer->len < room ? answer->len : room), frame->payload, n);
        answer->len += frame->length;
    }
    if (frame->type == H2_RST_STREAM)
        answer->reset = frame->payload[3];
    answer->is_ended =
        answer->is_ended || (frame->type <= H2_HEADERS && (frame->flags & H2_END_STREAM) != 0);
}

/* Reads until the stream has ended or been reset; false when the connection ended before. */
static inline bool h2_wait(int fd, uint32_t stream, struct h2_answer *answer)
{
    struct h2_frame frame;
    memset(answer, 0, sizeof *answer);
    answer->reset = -1;
    while (h2_next(fd, &frame)) {
        h2_take(&frame, stream, answer);
        if (answer->is_ended || answer->reset >= 0)
            return true;
    }
    return false;
}

/* Reads to the end of the connection. True if it ended; *goaway_out gets the last GOAWAY's error,
 * -1 without one. */
static inline bool h2_wait_end(int fd, int *goaway_out)
{
    struct h2_frame frame;
    *goaway_out = -1;
    while (h2_next(fd, &frame))
        if (frame.type == H2_GOAWAY)
            *goaway_out = frame.payload[7];
    uint8_t byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) != -1 || (errno != EAGAIN && errno != EWOULDBLOCK);
}
