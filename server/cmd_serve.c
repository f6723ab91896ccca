#include "server/serve.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/access_log.h"
#include "server/commands.h"
#include "server/fault.h"
#include "server/http/site.h"
#include "server/job.h"
#include "server/log.h"
#include "server/notify.h"
#include "server/quantity.h"
#include "server/s3/s3.h"

enum {
    CLOSE_TIMEOUT_MS = 10000,
    WORKERS_MIN = 4,
    QUEUED_PER_WORKER = 256,
    ERROR_MAX = 1024,
    FILES_SPARE = 64,
    ORIGIN_IDLE = 64 /* connections to an origin that are kept without a request */
};

/* ---- Listeners ---- */

static size_t add_admin(const struct srv_server *server, const struct srv_options *options,
                        struct srv_listener_config *listener)
{
    static const char UNIX[] = "unix:";
    *listener = (struct srv_listener_config){.is_admin = true, .handler = &server->admin_handler};
    if (options->admin == NULL)
        listener->path = server->admin_path;
    else if (strncmp(options->admin, UNIX, sizeof UNIX - 1) == 0)
        listener->path = options->admin + sizeof UNIX - 1;
    else if (strcmp(options->admin, "off") == 0)
        return 0;
    else {
        listener->address = options->admin_address.host;
        listener->port = options->admin_address.port;
    }
    return listener->path != NULL || listener->address != NULL;
}

void srv_server_front_config(const struct srv_server *server, const struct srv_options *options,
                             struct srv_listener_config *listeners, struct srv_front_config *config)
{
    for (size_t i = 0; i < options->n_listen; i++)
        listeners[i] = (struct srv_listener_config){
            .address = options->listen[i].host,
            .port = options->listen[i].port,
            .is_tls = options->listen[i].is_tls,
            .limits = options->listen[i].limits,
            .label = options->listen[i].bucket,
            .handler = options->origin != NULL ? &server->site_handler : &server->s3_handler};
    srv_front_config_init(config);
    config->listeners = listeners;
    config->n_listeners =
        options->n_listen + add_admin(server, options, &listeners[options->n_listen]);
    config->n_threads = (unsigned)options->threads;
    config->tls_cert_path = options->tls_cert;
    config->tls_key_path = options->tls_key;
    config->tls_self_signed = options->tls_self_signed;
    config->max_connections = (unsigned)options->max_connections;
    config->max_connections_per_address = (unsigned)options->address_connections;
    config->buffer_budget_bytes = options->buffer_budget;
    config->buffer_share_bytes = options->address_buffers;
    config->handshake_timeout_ms = options->handshake_timeout;
    config->head_timeout_ms = options->head_timeout;
    config->idle_timeout_ms = options->idle_timeout;
    config->body_timeout_ms = options->body_timeout;
    config->body_rate = options->body_rate;
    config->send_rate = options->send_rate;
    config->send_timeout_ms = options->send_timeout;
    config->drain_timeout_ms = options->drain_timeout;
    config->access_log = server->access_log;
}

static void forget_admin_path(struct srv_server *server)
{
    free(server->admin_path);
    server->admin_path = NULL;
}

/* Where the admin socket is when nobody says; none as long as its folder is not there. */
static void find_admin_path(struct srv_server *server)
{
    const char *data = server->options->data[0].path;
    struct stat status;
    forget_admin_path(server);
    if (server->options->admin != NULL || stat(data, &status) != 0 || !S_ISDIR(status.st_mode))
        return;
    if (asprintf(&server->admin_path, "%s/admin.sock", data) == -1)
        server->admin_path = NULL;
}

static bool front_create(struct srv_server *server)
{
    struct srv_listener_config listeners[SRV_LISTEN_MAX + 1];
    struct srv_front_config config;
    char error[ERROR_MAX] = "", without[ERROR_MAX];
    find_admin_path(server);
    srv_server_front_config(server, server->options, listeners, &config);
    config.inherited = &server->inherited;
    server->front = srv_front_create(&config, error, sizeof(error));
    if (server->front == NULL && server->admin_path != NULL) {
        /* Nobody has asked for this listener, so that the rest does not depend on it. */
        forget_admin_path(server);
        srv_server_front_config(server, server->options, listeners, &config);
        config.inherited = &server->inherited;
        server->front = srv_front_create(&config, without, sizeof(without));
        if (server->front != NULL)
            server->admin_trouble = strdup(error);
    }
    if (server->front == NULL)
        fprintf(stderr, "gyre: %s\n", error);
    else
        srv_admin_set_front(&server->admin, server->front);
    return server->front != NULL;
}

/* What is said of the admin socket once the store is open: a store that is not to be had has one
 * line to itself. */
static void report_admin(struct srv_server *server)
{
    if (server->admin_trouble != NULL)
        srv_log(SRV_LOG_WARN, "no admin listener: %s", server->admin_trouble);
    free(server->admin_trouble);
    server->admin_trouble = NULL;
}

/* The admin socket in a data directory that was not there before. */
static void add_late_admin(struct srv_server *server)
{
    struct srv_listener_config listeners[SRV_LISTEN_MAX + 1];
    struct srv_front_config config;
    struct stat status;
    char error[ERROR_MAX];
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/admin.sock", server->options->data[0].path);
    if (server->options->admin != NULL || server->admin_path != NULL || stat(path, &status) == 0)
        return;
    find_admin_path(server);
    srv_server_front_config(server, server->options, listeners, &config);
    struct srv_setting *setting = srv_front_prepare(server->front, &config, error, sizeof error);
    if (setting != NULL) {
        srv_front_commit(server->front, setting);
        return;
    }
    srv_log(SRV_LOG_WARN, "no admin listener: %s", error);
    forget_admin_path(server);
}

static bool access_log_create(struct srv_server *server)
{
    char error[ERROR_MAX];
    const struct srv_options *options = server->options;
    int fd;
    unsigned n_loops = srv_front_n_loops_wanted((unsigned)options->threads);
    server->access_log = srv_access_log_create(n_loops);
    if (server->access_log == NULL) {
        fprintf(stderr, "gyre: --access-log: out of memory or descriptors\n");
        return false;
    }
    if (!srv_access_log_open(options->access_log, &fd, error, sizeof error)) {
        fprintf(stderr, "gyre: --access-log: %s\n", error);
        return false;
    }
    bool ok = srv_access_log_set(server->access_log, options->access_log, fd,
                                 (enum srv_access_format)options->access_log_format);
    if (!ok)
        fprintf(stderr, "gyre: --access-log: no memory or thread for it\n");
    return ok;
}

/* ---- The rest ---- */

static bool pool_create(struct srv_server *server)
{
    size_t n = server->options->workers;
    if (n == 0) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        n = cores > 0 ? 2 * (size_t)cores : 0;
        n = n < WORKERS_MIN ? WORKERS_MIN : n;
    }
    server->pool = srv_pool_create(n, n * QUEUED_PER_WORKER);
    if (server->pool == NULL)
        fprintf(stderr, "gyre: --workers: %zu threads cannot be had; give a smaller number\n", n);
    return server->pool != NULL;
}

void srv_server_s3_config(const struct srv_server *server, const struct srv_options *options,
                          struct srv_s3_config *config)
{
    *config = (struct srv_s3_config){
        .store = server->store,
        .pool = server->pool,
        .region = options->region,
        .lifecycle_day_s = (uint32_t)(options->lifecycle_day / 1000),
        .access = &options->access,
        .hosts = {.domains = options->domains, .aliases = options->aliases},
        .etag = (enum srv_s3_etag)options->etag,
        .bucket_rules = options->buckets,
        .n_bucket_rules = options->n_buckets,
    };
    for (size_t i = 0; i < options->n_listen; i++)
        if (options->listen[i].bucket[0] != '\0')
            config->hosts.has_listener_buckets = true;
}

static bool s3_create(struct srv_server *server)
{
    const struct srv_options *options = server->options;
    struct srv_s3_config config;
    srv_server_s3_config(server, options, &config);
    gyre_err err = srv_s3_create(&config, &server->s3);
    if (err != GYRE_OK)
        fprintf(stderr, "gyre: %s: the buckets cannot be read: %s\n", options->data[0].path,
                gyre_err_text(err));
    server->s3_handler.data = server->s3;
    return err == GYRE_OK;
}

/* What stands in front of an origin. */
static bool site_create(struct srv_server *server)
{
    const struct srv_options *options = server->options;
    const struct srv_site_config config = {
        .store = server->store,
        .pool = server->pool,
        .origin = options->origin,
        .limits = {.connect_ms = (long)options->origin_connect_timeout,
                   .first_byte_ms = (long)options->origin_first_byte_timeout,
                   .between_ms = (long)options->origin_between_bytes_timeout,
                   .connections = ORIGIN_IDLE}};
    if (config.origin == NULL)
        return true;
    server->site = srv_site_create(&config);
    if (server->site == NULL)
        fprintf(stderr, "gyre: --origin: no memory or thread for it\n");
    server->site_handler.data = server->site;
    return server->site != NULL;
}

/* Tells whoever started the program where everything is and what to try. */
static void greet(const struct srv_server *server)
{
    const struct srv_options *options = server->options;
    char url[SRV_URL_MAX], size[SRV_SIZE_TEXT_MAX], path[PATH_MAX];
    printf("gyre %s %s%s on", gyre_version(), options->origin != NULL ? "caches " : "serves S3",
           options->origin != NULL ? options->origin : "");
    for (size_t i = 0; i < options->n_listen; i++) {
        srv_address_url(&options->listen[i], srv_front_port(server->front, i), url);
        printf("%s %s", i == 0 ? "" : ",", url);
    }
    srv_size_write(gyre_capacity_bytes(server->store), size);
    printf("\ndata is in");
    for (size_t i = 0; i < options->n_data; i++)
        printf("%s %s", i == 0 ? "" : ",",
               realpath(options->data[i].path, path) != NULL ? path : options->data[i].path);
    printf(" (room for %s)\n", size);
    srv_address_url(&options->listen[0], srv_front_port(server->front, 0), url);
    const char *flag = !options->listen[0].is_tls ? "" : options->tls_self_signed ? "-k " : "";
    if (options->origin != NULL) {
        printf("try:\n  curl %s-i %s/\n", flag, url);
        fflush(stdout);
        return;
    }
    printf("try:\n  curl %s-X PUT %s/my-bucket\n  curl %s-X PUT -d hello %s/my-bucket/my-key\n  "
           "curl %s%s/my-bucket/my-key\n",
           flag, url, flag, url, flag, url);
    fflush(stdout);
}

static void warn_if_open(const struct srv_options *options)
{
    for (size_t i = 0; i < options->n_listen; i++)
        if (options->access.is_open && !srv_address_is_loopback(&options->listen[i]))
            srv_log(
                SRV_LOG_WARN,
                "no keys are asked for: whoever reaches %s can read, write and delete everything",
                options->listen[i].host);
}

/* Clients beyond the limit on open files would wait unanswered instead of being told to. */
static void warn_if_few_files(const struct srv_options *options)
{
    struct rlimit files;
    int used = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (used >= 0)
        close(used);
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || used < 0)
        return;
    rlim_t room = files.rlim_cur - (rlim_t)used;
    if (room < options->max_connections + FILES_SPARE)
        srv_log(SRV_LOG_WARN,
                "the limit on open files (ulimit -n) is %llu: raise it, or give a smaller "
                "--max-connections than %llu",
                (unsigned long long)files.rlim_cur, (unsigned long long)options->max_connections);
}

static void warn_if_other_size(const struct srv_server *server)
{
    char want[SRV_SIZE_TEXT_MAX], have[SRV_SIZE_TEXT_MAX];
    if (srv_store_is_other_size(server->options, server->store, want, have))
        srv_log(SRV_LOG_WARN,
                "the store was made with another size and keeps it: it takes %s, not %s; --reset "
                "makes a new, empty one",
                have, want);
}

/* ---- Life ---- */

static void on_signal(void *data, int number)
{
    struct srv_server *server = data;
    switch (number) {
    case SIGHUP: srv_server_reload(server); break;
    case SIGUSR1: srv_access_log_reopen(server->access_log); break;
    case SIGUSR2: srv_succession_start(server); break;
    case SIGCHLD: srv_succession_reap(server); break;
    }
}

static void on_readable(void *data)
{
    srv_succession_look(data);
}

static void on_open(void *data)
{
    srv_succession_serving(data);
    srv_notify("READY=1\nSTATUS=serving");
}

static void on_drain(void *data)
{
    struct srv_server *server = data;
    if (!server->is_succeeded)
        srv_notify("STOPPING=1");
    srv_site_drain(server->site, server->options->drain_timeout);
}

/* Takes everything apart that was built; true if all that was stored is on disk. */
static bool server_fini(struct srv_server *server)
{
    bool ok = true;
    srv_admin_set_store(&server->admin, NULL);
    if (server->pool != NULL)
        srv_pool_destroy(server->pool);
    if (server->front != NULL)
        srv_front_destroy(server->front);
    srv_site_destroy(server->site);
    srv_s3_destroy(server->s3);
    if (server->store != NULL) {
        gyre_err err = gyre_close(&server->store, CLOSE_TIMEOUT_MS);
        ok = err == GYRE_OK;
        if (!ok)
            srv_log(SRV_LOG_ERROR, "%s: closing: %s", server->options->data[0].path,
                    gyre_err_text(err));
    }
    srv_succession_fini(server);
    srv_access_log_destroy(server->access_log);
    srv_admin_fini(&server->admin);
    forget_admin_path(server);
    free(server->admin_trouble);
    if (server->options != server->started) {
        srv_options_fini(server->options);
        free(server->options);
    }
    return ok;
}

/* Everything up to the point where requests are answered. What may wait until the store is open, a
 * long time after a crash, does: admin listeners answer meanwhile. */
static bool server_init(struct srv_server *server)
{
    /* The ports first: to find one taken after a store was created would leave a surprise on disk.
     */
    if (!srv_succession_begin(server) || !access_log_create(server) || !pool_create(server))
        return false;
    srv_admin_init(&server->admin, server->pool, server->access_log);
    server->admin_handler = (struct srv_handler){
        .data = &server->admin, .start = srv_admin_start, .role = &srv_admin_role};
    server->s3_handler = (struct srv_handler){.start = srv_s3_start, .role = &srv_s3_role};
    server->site_handler = (struct srv_handler){.start = srv_site_start, .role = &srv_site_role};
    if (!front_create(server))
        return false;
    srv_front_start(server->front);
    srv_notify("STATUS=opening the store");
    server->store = srv_succession_open_store(server);
    if (server->store == NULL || !s3_create(server) || !site_create(server))
        return false;
    srv_succession_listen(server);
    report_admin(server);
    add_late_admin(server);
    srv_admin_set_store(&server->admin, server->store);
    return true;
}

/* Set before the first request; the handlers of the start are back when the last has ended. */
static _Atomic bool has_served;

/* Nobody has been served yet, and a store is whole whenever its process ends. Afterwards the end is
 * under way, and is not to be cut short by being asked for again. */
static void leave(int number)
{
    (void)number;
    if (!atomic_load_explicit(&has_served, memory_order_relaxed))
        _exit(0);
}

/* Until they are handled: a server that starts can be stopped, and a log that is rotated or a
 * configuration that has changed must not end it. */
static void begin_signals(void)
{
    signal(SIGTERM, leave);
    signal(SIGINT, leave);
    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
}

int srv_command_serve(const struct srv_options *options)
{
    struct srv_server server = {.started = options,
                                .options = (struct srv_options *)(uintptr_t)options,
                                .predecessor_fd = -1,
                                .takeover_fd = -1,
                                .successor_fd = -1,
                                .watch_fd = -1};
    begin_signals();
    srv_process_init();
    if (!srv_fault_guard())
        srv_log(SRV_LOG_WARN,
                "a data file that is cut short will end the process: no SIGBUS handler");
    bool ok = server_init(&server);
    if (!ok) {
        if (server.front != NULL)
            srv_front_end_unopened(server.front);
        server_fini(&server);
        return 1;
    }
    greet(&server);
    warn_if_open(options);
    warn_if_few_files(options);
    warn_if_other_size(&server);
    const struct srv_front_hooks hooks = {.data = &server,
                                          .on_signal = on_signal,
                                          .watch_fd = server.watch_fd,
                                          .on_readable = on_readable,
                                          .on_open = on_open,
                                          .on_drain = on_drain};
    atomic_store_explicit(&has_served, true, memory_order_relaxed);
    if (!srv_front_run(server.front, &hooks))
        srv_log(SRV_LOG_WARN, "requests were cut short; see --drain-timeout");
    bool is_succeeded = server.is_succeeded;
    ok = server_fini(&server);
    if (ok)
        srv_log(SRV_LOG_INFO, is_succeeded ? "stopped; another process serves on"
                                           : "stopped; all data is on disk");
    return ok ? 0 : 1;
}
