#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/access_log.h"
#include "server/listener.h"
#include "server/log.h"
#include "server/notify.h"
#include "server/options_set.h"
#include "server/reload.h"
#include "server/serve.h"

/* What SIGHUP does: read, check everything, and only then change anything. */

/* What is made ready between looking at new options and taking them. */
struct ready {
    struct srv_server *server;
    const struct srv_options *next;
    struct srv_setting *setting;
    struct srv_s3_next *s3;
    int log_fd; /* -1: none */
};

/* ---- Listeners, certificates, limits ---- */

static bool prepare_front(void *data, const struct srv_options *next, char *error, size_t size)
{
    struct ready *ready = data;
    struct srv_listener_config listeners[SRV_LISTEN_MAX + 1];
    struct srv_front_config config;
    srv_server_front_config(ready->server, next, listeners, &config);
    ready->setting = srv_front_prepare(ready->server->front, &config, error, size);
    return ready->setting != NULL;
}

static void commit_front(void *data)
{
    struct ready *ready = data;
    srv_front_commit(ready->server->front, ready->setting);
}

static void abandon_front(void *data)
{
    struct ready *ready = data;
    srv_front_abandon(ready->server->front, ready->setting);
}

/* ---- Logs ---- */

static bool prepare_logs(void *data, const struct srv_options *next, char *error, size_t size)
{
    struct ready *ready = data;
    return srv_access_log_open(next->access_log, &ready->log_fd, error, size);
}

static void commit_logs(void *data)
{
    struct ready *ready = data;
    const struct srv_options *next = ready->next;
    if (!srv_access_log_set(ready->server->access_log, next->access_log, ready->log_fd,
                            (enum srv_access_format)next->access_log_format))
        srv_log(SRV_LOG_ERROR, "the access log stays as it was: no memory or thread for it");
    srv_log_set_level((enum srv_log_level)next->log_level);
}

static void abandon_logs(void *data)
{
    struct ready *ready = data;
    if (ready->log_fd != -1)
        close(ready->log_fd);
}

/* ---- S3: users and rights, hosts, buckets ---- */

static bool prepare_s3(void *data, const struct srv_options *next, char *error, size_t size)
{
    struct ready *ready = data;
    struct srv_s3_config config;
    srv_server_s3_config(ready->server, next, &config);
    ready->s3 = srv_s3_prepare(&config, error, size);
    return ready->s3 != NULL;
}

static void commit_s3(void *data)
{
    struct ready *ready = data;
    srv_s3_commit(ready->server->s3, ready->s3);
}

static void abandon_s3(void *data)
{
    struct ready *ready = data;
    srv_s3_abandon(ready->s3);
}

/* ---- All of it ---- */

/* Says which new values have to wait for another start. */
static void name_fixed(const struct srv_options *started, const struct srv_options *next)
{
    for (size_t i = 0; i < SRV_OPTION_COUNT_ALL; i++) {
        const struct srv_option *option = &srv_option_table[i];
        if ((option->places & SRV_IN_FILE) != 0 && (option->places & SRV_IN_RELOAD) == 0 &&
            !srv_option_is_same(option, started, next))
            srv_log(SRV_LOG_WARN,
                    "%s: cannot change while the server runs and stays as it was; SIGUSR2 starts a "
                    "successor that goes by it",
                    option->name);
    }
}

static bool take(struct srv_server *server, struct srv_options *next, char *error, size_t size)
{
    struct ready ready = {.server = server, .next = next, .log_fd = -1};
    const struct srv_reload_part parts[] = {
        {&ready, prepare_logs, commit_logs, abandon_logs},
        {&ready, prepare_s3, commit_s3, abandon_s3},
        {&ready, prepare_front, commit_front, abandon_front},
    };
    return srv_reload(parts, sizeof parts / sizeof parts[0], next, error, size);
}

void srv_server_reload(struct srv_server *server)
{
    char error[SRV_OPTIONS_ERROR_MAX] = "";
    const struct srv_options *started = server->started;
    struct srv_options *next = calloc(1, sizeof *next);
    if (srv_front_state(server->front) != SRV_FRONT_OPEN || next == NULL) {
        free(next);
        return;
    }
    srv_notify_reloading();
    bool ok = srv_options_parse(next, SRV_COMMAND_SERVE, started->argc, started->argv, error) &&
              take(server, next, error, sizeof error);
    struct srv_options *old = next;
    if (ok) {
        name_fixed(started, next);
        srv_log(SRV_LOG_INFO, "the configuration was read again and is in force");
        old = server->options;
        server->options = next;
    } else {
        srv_log(SRV_LOG_ERROR, "the configuration stays as it was: %s", error);
    }
    if (old != started) {
        srv_options_fini(old);
        free(old);
    }
    srv_admin_count_reload(&server->admin, ok);
    srv_notify("READY=1\nSTATUS=serving");
}
