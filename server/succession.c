#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "server/commands.h"
#include "server/http/site.h"
#include "server/log.h"
#include "server/notify.h"
#include "server/serve.h"
#include "server/takeover.h"

enum { RETRY_MS = 20, STORE_GRACE_MS = 30000, ERROR_MAX = 1024 };

extern char **environ;

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void drop(int *fd)
{
    if (*fd != -1)
        close(*fd);
    *fd = -1;
}

/* ---- As the successor ---- */

bool srv_succession_begin(struct srv_server *server)
{
    char error[ERROR_MAX];
    const struct srv_options *options = server->options;
    srv_inherited_init(&server->inherited);
    srv_inherited_add_activated(&server->inherited);
    if (!options->takeover)
        return true;
    server->predecessor_fd = srv_takeover_connect(options->data[0].path);
    if (server->predecessor_fd == -1) {
        srv_log(SRV_LOG_INFO, "%s: nobody to take over from", options->data[0].path);
        return true;
    }
    if (srv_takeover_receive(server->predecessor_fd, &server->inherited, error, sizeof error))
        return true;
    fprintf(stderr, "gyre: --takeover: %s\n", error);
    return false;
}

struct gyre_store *srv_succession_open_store(struct srv_server *server)
{
    const struct srv_options *options = server->options;
    uint64_t until_ms = now_ms() + options->drain_timeout + STORE_GRACE_MS;
    enum gyre_open_mode mode = options->reset ? GYRE_OPEN_RESET : GYRE_OPEN_OR_CREATE;
    bool is_asked = server->predecessor_fd == -1;
    gyre_err err;
    for (;;) {
        bool may_wait = server->predecessor_fd != -1 && now_ms() < until_ms;
        struct gyre_store *store = srv_store_try_open(options, mode, may_wait, &err);
        if (store != NULL || err != GYRE_LOCKED || !may_wait)
            return store;
        /* The store is not to be shared: the sockets are here, so that clients wait instead of
         * being refused while the predecessor finishes. */
        if (!is_asked)
            srv_takeover_say(server->predecessor_fd, SRV_TAKEOVER_RELEASE);
        is_asked = true;
        nanosleep(&(struct timespec){0, RETRY_MS * 1000000L}, NULL);
    }
}

void srv_succession_serving(struct srv_server *server)
{
    if (server->predecessor_fd == -1)
        return;
    srv_takeover_say(server->predecessor_fd, SRV_TAKEOVER_SERVING);
    drop(&server->predecessor_fd);
    srv_log(SRV_LOG_INFO, "took over from the server that was here");
    size_t left = srv_inherited_left(&server->inherited);
    if (left > 0)
        srv_log(SRV_LOG_WARN, "%zu sockets of the former server are not listened on any more",
                left);
}

/* ---- As the predecessor ---- */

static void watch(struct srv_server *server, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(server->watch_fd, EPOLL_CTL_ADD, fd, &event);
}

void srv_succession_listen(struct srv_server *server)
{
    char error[ERROR_MAX];
    server->watch_fd = epoll_create1(EPOLL_CLOEXEC);
    server->takeover_fd =
        srv_takeover_listen(server->options->data[0].path, &server->inherited, error, sizeof error);
    if (server->takeover_fd == -1)
        srv_log(SRV_LOG_WARN, "no successor can take over: %s", error);
    else
        watch(server, server->takeover_fd);
}

static void meet(struct srv_server *server)
{
    int *sockets = malloc(SRV_INHERITED_MAX * sizeof *sockets);
    pid_t pid;
    int fd = srv_takeover_accept(server->takeover_fd, &pid);
    /* One at a time, and none once it is over. */
    if (fd == -1 || sockets == NULL || server->successor_fd != -1 || server->is_succeeded ||
        srv_front_state(server->front) != SRV_FRONT_OPEN)
        goto refuse;
    sockets[0] = server->takeover_fd;
    size_t n = 1 + srv_front_sockets(server->front, sockets + 1, SRV_INHERITED_MAX - 1);
    if (!srv_takeover_send_sockets(fd, sockets, n))
        goto refuse;
    srv_log(SRV_LOG_INFO, "process %ld is about to take over", (long)pid);
    server->successor = pid;
    server->successor_fd = fd;
    watch(server, fd);
    free(sockets);
    return;
refuse:
    drop(&fd);
    free(sockets);
}

static void hand_over(struct srv_server *server, bool must_hurry)
{
    if (!server->is_succeeded) {
        srv_notify("MAINPID=%ld", (long)server->successor);
        srv_front_retire(server->front);
        srv_site_drain(server->site, server->options->drain_timeout);
        server->is_succeeded = true;
    }
    if (must_hurry)
        srv_front_stop(server->front);
}

void srv_succession_look(struct srv_server *server)
{
    struct epoll_event event;
    if (epoll_wait(server->watch_fd, &event, 1, 0) != 1)
        return;
    if (event.data.fd == server->takeover_fd) {
        meet(server);
        return;
    }
    switch (srv_takeover_hear(server->successor_fd)) {
    case SRV_TAKEOVER_NOTHING: break;
    case SRV_TAKEOVER_RELEASE:
        srv_log(SRV_LOG_INFO, "the successor waits for the store");
        hand_over(server, true);
        break;
    case SRV_TAKEOVER_SERVING:
        srv_log(SRV_LOG_INFO, "process %ld serves from now on", (long)server->successor);
        hand_over(server, false);
        drop(&server->successor_fd);
        break;
    default:
        if (!server->is_succeeded)
            srv_log(SRV_LOG_WARN, "process %ld did not take over; serving on",
                    (long)server->successor);
        drop(&server->successor_fd);
    }
}

void srv_succession_start(struct srv_server *server)
{
    const struct srv_options *options = server->started;
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    char **argv = calloc((size_t)options->argc + 4, sizeof *argv);
    pid_t pid = 0;
    int code = EBUSY;
    if (argv == NULL || n <= 0 || server->successor_fd != -1 || server->is_succeeded)
        goto out;
    exe[n] = '\0';
    /* A program that was replaced has this behind its name; the new one is to be started. */
    char *deleted = strstr(exe, " (deleted)");
    if (deleted != NULL)
        *deleted = '\0';
    size_t at = 0;
    argv[at++] = exe;
    argv[at++] = (char *)(uintptr_t) "serve";
    for (int i = 0; i < options->argc; i++)
        argv[at++] = options->argv[i];
    if (!options->takeover)
        argv[at++] = (char *)(uintptr_t) "--takeover";
    code = posix_spawn(&pid, exe, NULL, NULL, argv, environ);
out:
    if (code != 0)
        srv_log(SRV_LOG_ERROR, "no successor can be started: %s", strerror(code));
    else
        srv_log(SRV_LOG_INFO, "started process %ld as the successor", (long)pid);
    free(argv);
}

void srv_succession_reap(struct srv_server *server)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (!server->is_succeeded)
            srv_log(SRV_LOG_ERROR, "process %ld, the successor, ended with %s %d; serving on",
                    (long)pid, WIFEXITED(status) ? "status" : "signal",
                    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

void srv_succession_fini(struct srv_server *server)
{
    drop(&server->predecessor_fd);
    drop(&server->successor_fd);
    drop(&server->watch_fd);
    if (server->takeover_fd != -1 && !server->is_succeeded)
        srv_takeover_forget(server->options->data[0].path);
    drop(&server->takeover_fd);
    srv_inherited_fini(&server->inherited);
}
