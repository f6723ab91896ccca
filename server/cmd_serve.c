#include "server/commands.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/front.h"
#include "server/job.h"
#include "server/log.h"
#include "server/options.h"
#include "server/quantity.h"
#include "server/s3/s3.h"

enum {
    CLOSE_TIMEOUT_MS = 10000,
    WORKERS_MIN = 4,
    QUEUED_PER_WORKER = 256,
    ERROR_MAX = 1024,
    FILES_SPARE = 64
};

/* All that one server consists of; built in this order, taken apart in the reverse one. */
struct server {
    const struct srv_options *options;
    struct srv_handler handler; /* listeners point here; its data is set before the front runs */
    struct srv_front *front;
    struct gyre_store *store;
    struct srv_pool *pool;
    struct srv_s3 *s3;
};

static bool front_create(struct server *server)
{
    const struct srv_options *options = server->options;
    struct srv_listener_config listeners[SRV_LISTEN_MAX];
    struct srv_front_config config;
    char error[ERROR_MAX] = "";
    for (size_t i = 0; i < options->n_listen; i++)
        listeners[i] = (struct srv_listener_config){.address = options->listen[i].host,
                                                    .port = options->listen[i].port,
                                                    .is_tls = options->listen[i].is_tls,
                                                    .handler = &server->handler};
    srv_front_config_init(&config);
    config.listeners = listeners;
    config.n_listeners = options->n_listen;
    config.n_threads = (unsigned)options->threads;
    config.tls_cert_path = options->tls_cert;
    config.tls_key_path = options->tls_key;
    config.tls_self_signed = options->tls_self_signed;
    config.max_connections = (unsigned)options->max_connections;
    config.buffer_budget_bytes = options->buffer_budget;
    config.head_timeout_ms = options->head_timeout;
    config.idle_timeout_ms = options->idle_timeout;
    config.body_timeout_ms = options->body_timeout;
    config.send_timeout_ms = options->send_timeout;
    config.drain_timeout_ms = options->drain_timeout;
    server->front = srv_front_create(&config, error, sizeof(error));
    if (server->front == NULL)
        fprintf(stderr, "gyre: %s\n", error);
    return server->front != NULL;
}

static bool pool_create(struct server *server)
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

static bool s3_create(struct server *server)
{
    const struct srv_options *options = server->options;
    const struct srv_s3_config config = {
        .store = server->store,
        .pool = server->pool,
        .region = options->region,
        .access = &options->access,
        .etag = (enum srv_s3_etag)options->etag,
        .bucket_etags = options->buckets,
        .n_bucket_etags = options->n_buckets,
    };
    gyre_err err = srv_s3_create(&config, &server->s3);
    if (err != GYRE_OK)
        fprintf(stderr, "gyre: %s: the buckets cannot be read: %s\n", options->data[0].path,
                gyre_err_text(err));
    server->handler =
        (struct srv_handler){.data = server->s3, .start = srv_s3_start, .role = &srv_s3_role};
    return err == GYRE_OK;
}

/* Tells whoever started the program where everything is and what to try. */
static void greet(const struct server *server)
{
    const struct srv_options *options = server->options;
    char url[SRV_URL_MAX], size[SRV_SIZE_TEXT_MAX], path[PATH_MAX];
    printf("gyre %s serves S3 on", gyre_version());
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

/* The sizes asked for are those of a new store; one that is there keeps its own. A new one may fall
 * short by its last, incomplete segments. */
static void warn_if_other_size(const struct server *server)
{
    const struct srv_options *options = server->options;
    uint64_t want = 0, have = 0;
    bool is_shared = false;
    struct gyre_file file;
    char text[SRV_SIZE_TEXT_MAX];
    for (size_t i = 0; i < options->n_data; i++) {
        want += options->data[i].size_bytes;
        is_shared = is_shared || options->data[i].size_bytes == 0;
    }
    if (is_shared && options->size == 0)
        return;
    want += is_shared ? options->size : 0;
    for (size_t i = 0; gyre_file_at(server->store, i, &file) == GYRE_OK; i++)
        have += file.size_bytes;
    if (have <= want && have >= want - want / 8)
        return;
    srv_size_write(have, text);
    srv_log(SRV_LOG_WARN,
            "the store was made with another size and keeps it: %s; --reset makes a "
            "new, empty one",
            text);
}

/* Takes everything apart that was built; true if all that was stored is on disk. */
static bool server_fini(struct server *server)
{
    bool ok = true;
    if (server->pool != NULL)
        srv_pool_destroy(server->pool);
    if (server->front != NULL)
        srv_front_destroy(server->front);
    srv_s3_destroy(server->s3);
    if (server->store != NULL) {
        gyre_err err = gyre_close(&server->store, CLOSE_TIMEOUT_MS);
        ok = err == GYRE_OK;
        if (!ok)
            srv_log(SRV_LOG_ERROR, "%s: closing: %s", server->options->data[0].path,
                    gyre_err_text(err));
    }
    return ok;
}

int srv_command_serve(const struct srv_options *options)
{
    struct server server = {.options = options};
    bool ok = false;
    srv_process_init();
    /* The ports first: to find one taken after a store was created would leave a surprise on disk.
     */
    if (!front_create(&server))
        goto out;
    server.store = srv_store_open(options, options->reset ? GYRE_OPEN_RESET : GYRE_OPEN_OR_CREATE);
    if (server.store == NULL || !pool_create(&server) || !s3_create(&server))
        goto out;
    greet(&server);
    warn_if_open(options);
    warn_if_few_files(options);
    warn_if_other_size(&server);
    if (!srv_front_run(server.front, NULL))
        srv_log(SRV_LOG_WARN, "requests were cut short; see --drain-timeout");
    ok = true;
out:
    ok = server_fini(&server) && ok;
    if (ok)
        srv_log(SRV_LOG_INFO, "stopped; all data is on disk");
    return ok ? 0 : 1;
}
