#include "server/bind.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/inherit.h"

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

void srv_bind_name(const char *address, uint16_t port, char *text, size_t size)
{
    bool is_v6 = strchr(address, ':') != NULL;
    snprintf(text, size, is_v6 ? "[%s]:%u" : "%s:%u", address, port);
}

static void explain(char *error, size_t size, const char *address, uint16_t port, int code)
{
    char name[128];
    srv_bind_name(address, port, name, sizeof name);
    if (code == EADDRINUSE)
        snprintf(error, size,
                 "cannot listen on %s: the address is already in use; stop the process that has "
                 "it, or choose "
                 "another port",
                 name);
    else if (code == EACCES)
        snprintf(error, size,
                 "cannot listen on %s: permission denied; ports below 1024 need root or "
                 "CAP_NET_BIND_SERVICE",
                 name);
    else if (code == EADDRNOTAVAIL)
        snprintf(error, size, "cannot listen on %s: this machine has no such address", name);
    else
        snprintf(error, size, "cannot listen on %s: %s", name, strerror(code));
}

/* The length of the parsed address, 0 if it is none. */
static socklen_t parse(const char *text, uint16_t port, union address *address_out)
{
    memset(address_out, 0, sizeof *address_out);
    if (inet_pton(AF_INET, text, &address_out->v4.sin_addr) == 1) {
        address_out->v4.sin_family = AF_INET;
        address_out->v4.sin_port = htons(port);
        return sizeof address_out->v4;
    }
    if (inet_pton(AF_INET6, text, &address_out->v6.sin6_addr) == 1) {
        address_out->v6.sin6_family = AF_INET6;
        address_out->v6.sin6_port = htons(port);
        return sizeof address_out->v6;
    }
    return 0;
}

static int close_failed(int fd)
{
    int code = errno;
    close(fd);
    errno = code;
    return -1;
}

/* A bound socket, or -1 with errno. */
static int bind_one(const union address *address, socklen_t len, bool is_shared)
{
    int on = 1;
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd == -1)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (is_shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0)
        return close_failed(fd);
    return bind(fd, &address->any, len) == 0 ? fd : close_failed(fd);
}

static uint16_t port_of(int fd)
{
    union address address;
    socklen_t len = sizeof address;
    if (getsockname(fd, &address.any, &len) != 0)
        return 0;
    return ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
}

/* Finds out whether the address is free. A shared socket cannot: the kernel lets it join the
 * listeners of another process of the same user, and connections would be spread between the two.
 */
static bool probe(const union address *address, socklen_t len)
{
    int fd = bind_one(address, len, false);
    if (fd == -1)
        return false;
    bool is_free = listen(fd, 1) == 0;
    int code = errno;
    close(fd);
    errno = code;
    return is_free;
}

static bool bind_all(const char *text, uint16_t *port_inout, int receive_bytes, int *fds,
                     unsigned n, unsigned *done_out)
{
    union address address;
    for (*done_out = 0; *done_out < n; ++*done_out) {
        socklen_t len = parse(text, *port_inout, &address);
        int fd = bind_one(&address, len, true);
        if (fd == -1)
            return false;
        if (receive_bytes > 0)
            setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
        fds[*done_out] = fd;
        *port_inout = port_of(fd);
    }
    /* Only now, so that no connection is spread to a socket that then fails. */
    for (unsigned i = 0; i < n; i++)
        if (listen(fds[i], SOMAXCONN) != 0)
            return false;
    return true;
}

bool srv_bind(const char *text, uint16_t *port_inout, int receive_bytes, int *fds, unsigned n,
              char *error, size_t size)
{
    union address address;
    unsigned done = 0;
    uint16_t port = *port_inout;
    socklen_t len = parse(text, port, &address);
    if (len == 0) {
        snprintf(error, size, "cannot listen on %s: not a numeric IPv4 or IPv6 address", text);
        return false;
    }
    if ((port == 0 || probe(&address, len)) &&
        bind_all(text, port_inout, receive_bytes, fds, n, &done))
        return true;
    explain(error, size, text, port, errno);
    while (done > 0)
        close(fds[--done]);
    return false;
}

size_t srv_bind_inherited(const char *text, uint16_t port, struct srv_inherited *inherited,
                          int *fds, size_t max)
{
    union address address;
    socklen_t len = parse(text, port, &address);
    return len == 0 || port == 0 ? 0 : srv_inherited_take(inherited, &address.any, len, fds, max);
}

bool srv_bind_more(const char *text, uint16_t port, int receive_bytes, int *fds, unsigned have,
                   unsigned n, char *error, size_t size)
{
    union address address;
    int is_shared = 0;
    socklen_t len = sizeof is_shared;
    getsockopt(fds[0], SOL_SOCKET, SO_REUSEPORT, &is_shared, &len);
    len = parse(text, port, &address);
    for (unsigned i = have; i < n; i++) {
        fds[i] = is_shared ? bind_one(&address, len, true) : fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
        if (fds[i] == -1) {
            explain(error, size, text, port, errno);
            while (i > have)
                close(fds[--i]);
            return false;
        }
        if (receive_bytes > 0)
            setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    }
    return true;
}
