#include "server/bind.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/inherit.h"

bool srv_bind_unix_address(const char *path, struct sockaddr_un *address_out, char *error,
                           size_t size)
{
    char folder[PATH_MAX], real[PATH_MAX];
    *address_out = (struct sockaddr_un){.sun_family = AF_UNIX};
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    int len = slash == NULL   ? snprintf(folder, sizeof folder, ".")
              : slash == path ? snprintf(folder, sizeof folder, "/")
                              : snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    if (len < 0 || (size_t)len >= sizeof folder || realpath(folder, real) == NULL) {
        snprintf(error, size, "cannot listen on unix:%s: its folder: %s", path, strerror(errno));
        return false;
    }
    len = snprintf(address_out->sun_path, sizeof address_out->sun_path, "%s/%s",
                   strcmp(real, "/") == 0 ? "" : real, name);
    if (len < 0 || (size_t)len >= sizeof address_out->sun_path) {
        snprintf(error, size, "cannot listen on unix:%s: a socket's path has at most %zu bytes",
                 path, sizeof address_out->sun_path - 1);
        return false;
    }
    return true;
}

/* Whether nobody listens there any more: what a process that was killed leaves behind. */
static bool is_stale(const struct sockaddr_un *address, int type)
{
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd == -1)
        return false;
    bool refused = connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
                   errno == ECONNREFUSED;
    close(fd);
    return refused;
}

static int bind_path(const struct sockaddr_un *address, int type)
{
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd == -1)
        return -1;
    const struct sockaddr *to = (const struct sockaddr *)address;
    if (bind(fd, to, sizeof *address) == 0)
        return fd;
    if (errno == EADDRINUSE && is_stale(address, type) && unlink(address->sun_path) == 0 &&
        bind(fd, to, sizeof *address) == 0)
        return fd;
    int code = errno;
    close(fd);
    errno = code;
    return -1;
}

int srv_bind_unix(const char *path, int type, unsigned mode, struct srv_inherited *inherited,
                  char *error, size_t size)
{
    struct sockaddr_un address;
    int fd = -1;
    if (!srv_bind_unix_address(path, &address, error, size))
        return -1;
    if (inherited != NULL && srv_inherited_take(inherited, (const struct sockaddr *)&address,
                                                sizeof address, &fd, 1) == 1)
        return fd;
    fd = bind_path(&address, type);
    /* Nobody can connect before listen, so that the mode holds from the beginning. */
    if (fd != -1 && chmod(address.sun_path, mode) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    snprintf(error, size, "cannot listen on unix:%s: %s", path,
             errno == EADDRINUSE ? "another process does" : strerror(errno));
    if (fd != -1) {
        close(fd);
        unlink(address.sun_path);
    }
    return -1;
}
