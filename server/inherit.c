#include "server/inherit.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/quantity.h"

enum { ACTIVATED_FIRST_FD = 3 };

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un un;
};

void srv_inherited_init(struct srv_inherited *inherited)
{
    *inherited = (struct srv_inherited){0};
}

void srv_inherited_fini(struct srv_inherited *inherited)
{
    for (size_t i = 0; i < inherited->n; i++)
        if (inherited->fds[i] != -1)
            close(inherited->fds[i]);
    free(inherited->fds);
    srv_inherited_init(inherited);
}

static bool listens(int fd)
{
    int type = 0, accepts = 0;
    socklen_t len = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0)
        return false;
    len = sizeof accepts;
    return (type == SOCK_STREAM || type == SOCK_SEQPACKET) &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &len) == 0 && accepts != 0;
}

void srv_inherited_add(struct srv_inherited *inherited, int fd)
{
    int *fds = NULL;
    if (listens(fd) && inherited->n < SRV_INHERITED_MAX)
        fds = realloc(inherited->fds, (inherited->n + 1) * sizeof *fds);
    if (fds == NULL) {
        close(fd);
        return;
    }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    inherited->fds = fds;
    inherited->fds[inherited->n++] = fd;
}

void srv_inherited_add_activated(struct srv_inherited *inherited)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    uint64_t for_whom = 0, n = 0;
    if (pid != NULL && count != NULL && srv_count_parse(pid, UINT32_MAX, &for_whom) &&
        for_whom == (uint64_t)getpid() && srv_count_parse(count, SRV_INHERITED_MAX, &n))
        for (uint64_t i = 0; i < n; i++)
            srv_inherited_add(inherited, ACTIVATED_FIRST_FD + (int)i);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
}

static bool is_same(const union address *a, const union address *b)
{
    if (a->any.sa_family != b->any.sa_family)
        return false;
    switch (a->any.sa_family) {
    case AF_INET:
        return a->v4.sin_port == b->v4.sin_port && a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
    case AF_INET6:
        return a->v6.sin6_port == b->v6.sin6_port &&
               memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof a->v6.sin6_addr) == 0;
    case AF_UNIX: return strncmp(a->un.sun_path, b->un.sun_path, sizeof a->un.sun_path) == 0;
    default: return false;
    }
}

size_t srv_inherited_take(struct srv_inherited *inherited, const struct sockaddr *address,
                          socklen_t len, int *fds, size_t max)
{
    union address wanted, have;
    size_t n = 0;
    memset(&wanted, 0, sizeof wanted);
    memcpy(&wanted, address, len < sizeof wanted ? len : sizeof wanted);
    for (size_t i = 0; i < inherited->n && n < max; i++) {
        socklen_t have_len = sizeof have;
        memset(&have, 0, sizeof have);
        if (inherited->fds[i] == -1 || getsockname(inherited->fds[i], &have.any, &have_len) != 0 ||
            !is_same(&wanted, &have))
            continue;
        fds[n++] = inherited->fds[i];
        inherited->fds[i] = -1;
    }
    return n;
}

size_t srv_inherited_left(const struct srv_inherited *inherited)
{
    size_t n = 0;
    for (size_t i = 0; i < inherited->n; i++)
        n += inherited->fds[i] != -1;
    return n;
}
