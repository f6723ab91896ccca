/* A client on a raw socket, for tests that say to a server what no library would.
 *
 * Blocks:  at most a minute at a time.
 */
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/harness/test.h"

static inline int client_connect(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    CHECK(fd != -1 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

/* Waits until there is something to receive, or the end. Time in which the machine stands still
 * counts for little, as it falls into one of many short waits. */
static inline bool client_await(int fd)
{
    struct pollfd poll_fd = {fd, POLLIN, 0};
    for (int i = 0; i < 600; i++)
        if (poll(&poll_fd, 1, 100) == 1)
            return true;
    return false;
}

/* Sends all; false if the connection broke. */
static inline bool client_send(int fd, const void *bytes, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t sent = send(fd, (const char *)bytes + at, n - at, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += (size_t)sent;
    }
    return true;
}

static inline bool client_say(int fd, const char *text)
{
    return client_send(fd, text, strlen(text));
}

/* Receives until the text holds `until` (NULL: the end), the peer closes, or nothing comes.
 * True if `until` came, or the close if it was waited for. *text_out is terminated. */
static inline bool client_hear(int fd, char *text_out, size_t size, const char *until)
{
    size_t at = 0;
    for (;;) {
        text_out[at] = '\0';
        if (until != NULL && memmem(text_out, at, until, strlen(until)) != NULL)
            return true;
        if (at + 1 >= size || !client_await(fd))
            return false;
        ssize_t n = recv(fd, text_out + at, size - 1 - at, 0);
        if (n <= 0)
            return until == NULL && n == 0;
        at += (size_t)n;
    }
}
