#include "server/takeover.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/bind.h"
#include "server/inherit.h"

enum {
    SOCKETS_PER_MESSAGE = 128, /* the kernel passes 253 at once */
    PATIENCE_MS = 10000,
    SOCKET_MODE = 0600,
};

static bool path_of(const char *directory, char path[PATH_MAX])
{
    int n = snprintf(path, PATH_MAX, "%s/takeover.sock", directory);
    return n > 0 && n < PATH_MAX;
}

/* Room for the descriptors that come with a message, aligned as the kernel wants it. */
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(SOCKETS_PER_MESSAGE * sizeof(int))];
};

/* ---- The predecessor ---- */

int srv_takeover_listen(const char *directory, struct srv_inherited *inherited, char *error,
                        size_t size)
{
    char path[PATH_MAX];
    if (path_of(directory, path))
        return srv_bind_unix(path, SOCK_SEQPACKET, SOCKET_MODE, inherited, error, size);
    snprintf(error, size, "%s: too long", directory);
    return -1;
}

void srv_takeover_forget(const char *directory)
{
    char path[PATH_MAX];
    if (path_of(directory, path))
        unlink(path);
}

int srv_takeover_accept(int listen_fd, pid_t *pid_out)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd == -1)
        return -1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
        (peer.uid == geteuid() || peer.uid == 0)) {
        *pid_out = peer.pid;
        return fd;
    }
    close(fd);
    return -1;
}

static bool send_message(int fd, enum srv_takeover_word word, const int *sockets, size_t n)
{
    char byte = (char)word;
    union control control;
    struct iovec vec = {&byte, 1};
    struct msghdr message = {.msg_iov = &vec, .msg_iovlen = 1};
    if (n > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(n * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(header), sockets, n * sizeof(int));
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL) == 1;
}

bool srv_takeover_say(int fd, enum srv_takeover_word word)
{
    return send_message(fd, word, NULL, 0);
}

bool srv_takeover_send_sockets(int fd, const int *sockets, size_t n)
{
    for (size_t at = 0; at < n; at += SOCKETS_PER_MESSAGE) {
        size_t some = n - at < SOCKETS_PER_MESSAGE ? n - at : SOCKETS_PER_MESSAGE;
        if (!send_message(fd, SRV_TAKEOVER_SOCKETS, sockets + at, some))
            return false;
    }
    return srv_takeover_say(fd, SRV_TAKEOVER_END);
}

/* One message; its descriptors go to `inherited`, which may be NULL. */
static enum srv_takeover_word hear(int fd, struct srv_inherited *inherited)
{
    char byte = 0;
    union control control;
    struct iovec vec = {&byte, 1};
    struct msghdr message = {.msg_iov = &vec,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = inherited != NULL ? sizeof control.bytes : 0};
    ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return SRV_TAKEOVER_NOTHING;
    if (n != 1 || byte <= SRV_TAKEOVER_NOTHING || byte >= SRV_TAKEOVER_GONE)
        return SRV_TAKEOVER_GONE;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); inherited != NULL && header != NULL;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int socket_fd;
            memcpy(&socket_fd, CMSG_DATA(header) + i * sizeof(int), sizeof socket_fd);
            srv_inherited_add(inherited, socket_fd);
        }
    }
    return (enum srv_takeover_word)byte;
}

enum srv_takeover_word srv_takeover_hear(int fd)
{
    return hear(fd, NULL);
}

/* ---- The successor ---- */

int srv_takeover_connect(const char *directory)
{
    struct sockaddr_un address;
    char path[PATH_MAX], error[256];
    if (!path_of(directory, path) || !srv_bind_unix_address(path, &address, error, sizeof error))
        return -1;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd == -1 || connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

bool srv_takeover_receive(int fd, struct srv_inherited *inherited, char *error, size_t size)
{
    struct pollfd in = {.fd = fd, .events = POLLIN};
    enum srv_takeover_word word = SRV_TAKEOVER_SOCKETS;
    while (word == SRV_TAKEOVER_SOCKETS || word == SRV_TAKEOVER_NOTHING) {
        if (poll(&in, 1, PATIENCE_MS) == 0)
            break;
        word = hear(fd, inherited);
    }
    if (word != SRV_TAKEOVER_END)
        snprintf(error, size,
                 "the server to take over from does not hand over its sockets; is it another "
                 "user's, or does it have a successor already?");
    return word == SRV_TAKEOVER_END;
}
