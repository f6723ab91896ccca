#include "server/notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

void srv_notify(const char *format, ...)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char text[512];
    va_list args;
    const char *path = getenv("NOTIFY_SOCKET");
    size_t len = path == NULL ? 0 : strlen(path);
    if (len < 2 || len >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(to.sun_path, path, len);
    if (path[0] == '@') /* a name outside of the file system begins with a zero byte */
        to.sun_path[0] = '\0';
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd == -1)
        return;
    if (n > 0 && (size_t)n < sizeof text)
        sendto(fd, text, (size_t)n, MSG_NOSIGNAL, (struct sockaddr *)&to,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}

void srv_notify_reloading(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    srv_notify("RELOADING=1\nMONOTONIC_USEC=%lld",
               (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
}
