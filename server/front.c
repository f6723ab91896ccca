#include "server/front_own.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/bind.h"
#include "server/buf.h"
#include "server/check.h"
#include "server/clients.h"
#include "server/h2_probe.h"
#include "server/latency.h"
#include "server/listener.h"
#include "server/log.h"

enum { FILES_LEAST = 16 };

/* Addresses that are remembered after they have left, for the sake of their request rate. */
enum { CLIENTS_SPARE = 4096 };

/* Bytes of the receive buffers that one address may have whatever the budget: one large buffer. */
enum { SHARE_LEAST = 1 << 20 };

void srv_process_init(void)
{
    /* libh2o grows its buffers by doubling; below these thresholds every step would be an mmap, a
     * fault per page, and a munmap. */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that must not grow is an error like a full disk */
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

void srv_front_config_init(struct srv_front_config *config)
{
    *config = (struct srv_front_config){
        .max_connections = 10000,
        .buffer_budget_bytes = (size_t)256 << 20,
        .handshake_timeout_ms = 10000,
        .head_timeout_ms = 10000,
        .idle_timeout_ms = 60000,
        .body_timeout_ms = 30000,
        .send_timeout_ms = 600000,
        .drain_timeout_ms = 30000,
    };
}

/* ---- Create ---- */

static unsigned usable_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static size_t share_bytes(const struct srv_front_config *config)
{
    size_t half = config->buffer_budget_bytes / 2;
    if (config->buffer_share_bytes > 0)
        return config->buffer_share_bytes;
    return half > SHARE_LEAST ? half : SHARE_LEAST;
}

static bool create_loops(struct srv_front *front, char *error, size_t size)
{
    front->env.setting = front->setting;
    front->env.bufs = srv_buf_pool_create(front->config.buffer_budget_bytes);
    front->env.clients = srv_clients_create(front->config.max_connections + CLIENTS_SPARE);
    front->loops = calloc(front->n_loops, sizeof(struct srv_loop *));
    front->stop_fd = eventfd(0, EFD_CLOEXEC);
    front->signal_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (front->env.bufs == NULL || front->env.clients == NULL || front->loops == NULL ||
        front->stop_fd == -1 || front->signal_fd == -1) {
        snprintf(error, size, "cannot prepare the event loops: %s", strerror(errno));
        return false;
    }
    srv_buf_pool_limit_share(front->env.bufs, share_bytes(&front->config));
    front->env.n_loops = front->n_loops;
    front->env.is_h2_buffered = !srv_h2_probe(front->config.h2_probe_fails);
    if (front->env.is_h2_buffered)
        srv_log(SRV_LOG_WARN,
                "this libh2o is not the one the HTTP/2 gate was built for: bodies sent over HTTP/2 "
                "are kept in memory until they are complete, and may have %u MiB at most",
                SRV_FRONT_H2_BUFFERED >> 20);
    front->env.access_log = front->config.access_log;
    srv_loop_env_init_h2o(&front->env, &front->config);
    for (unsigned i = 0; i < front->n_loops; i++) {
        front->loops[i] = srv_loop_create(&front->env, i);
        if (front->loops[i] == NULL) {
            snprintf(error, size, "cannot prepare event loop %u: %s", i, strerror(errno));
            return false;
        }
    }
    return true;
}

/* libh2o aborts where it gets no descriptor for a loop. Each takes three, one a listener, and one
 * for what its thread opens; the rest is for the store and a few clients. */
static bool files_suffice(const struct srv_front *front, char *error, size_t size)
{
    struct rlimit files;
    rlim_t need = FILES_LEAST + front->n_loops * (4 + (rlim_t)front->config.n_listeners);
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= need)
        return true;
    snprintf(error, size,
             "the limit on open files is %llu and %u threads need %llu: raise it (ulimit -n), or "
             "give fewer --threads",
             (unsigned long long)files.rlim_cur, front->n_loops, (unsigned long long)need);
    return false;
}

struct srv_front *srv_front_create(const struct srv_front_config *config, char *error, size_t size)
{
    SRV_CHECK(config->n_listeners > 0);
    struct srv_front *front = calloc(1, sizeof *front);
    if (front == NULL) {
        snprintf(error, size, "out of memory");
        return NULL;
    }
    front->config = *config;
    front->stop_fd = front->signal_fd = -1;
    pthread_mutex_init(&front->lock, NULL);
    front->n_loops = srv_front_n_loops_wanted(config->n_threads);
    if (files_suffice(front, error, size))
        front->setting =
            srv_setting_create(config, NULL, config->inherited, front->n_loops, error, size);
    if (front->setting == NULL || !create_loops(front, error, size)) {
        srv_front_destroy(front);
        return NULL;
    }
    front->config = front->setting->config;
    front->max_connections = front->config.max_connections;
    return front;
}

void srv_front_destroy(struct srv_front *front)
{
    if (front == NULL)
        return;
    for (unsigned i = 0; front->loops != NULL && i < front->n_loops; i++)
        srv_loop_destroy(front->loops[i]);
    srv_setting_destroy(front->setting);
    if (front->env.h2o != NULL)
        srv_loop_env_fini_h2o(&front->env);
    srv_buf_pool_destroy(front->env.bufs);
    srv_clients_destroy(front->env.clients);
    if (front->stop_fd != -1)
        close(front->stop_fd);
    if (front->signal_fd != -1)
        close(front->signal_fd);
    pthread_mutex_destroy(&front->lock);
    free(front->threads);
    free(front->loops);
    free(front);
}

/* ---- Changes ---- */

struct srv_setting *srv_front_prepare(struct srv_front *front,
                                      const struct srv_front_config *config, char *error,
                                      size_t size)
{
    return srv_setting_create(config, front->setting, config->inherited, front->n_loops, error,
                              size);
}

void srv_front_abandon(struct srv_front *front, struct srv_setting *setting)
{
    (void)front;
    srv_setting_destroy(setting);
}

size_t srv_front_sockets(const struct srv_front *front, int *fds, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < front->setting->n; i++) {
        const struct srv_listener *listener = front->setting->entries[i].listener;
        for (unsigned k = 0; k < listener->n_fds && n < max; k++)
            fds[n++] = listener->fds[k];
    }
    return n;
}

/* ---- What others ask ---- */

uint16_t srv_front_port(const struct srv_front *front, size_t index)
{
    return front->setting->entries[index].listener->config.port;
}

uint64_t srv_front_lag_ms(const struct srv_front *front)
{
    uint64_t worst = 0;
    for (unsigned i = 0; i < front->n_loops; i++) {
        uint64_t lag = srv_loop_lag_ms(front->loops[i]);
        worst = lag > worst ? lag : worst;
    }
    return worst;
}

unsigned srv_front_n_loops_wanted(unsigned n_threads)
{
    return n_threads > 0 ? n_threads : usable_cores();
}

unsigned srv_front_n_loops(const struct srv_front *front)
{
    return front->n_loops;
}

bool srv_front_listener(const struct srv_front *front, size_t index, struct srv_listener_view *view)
{
    pthread_mutex_t *lock = &((struct srv_front *)(uintptr_t)front)->lock;
    pthread_mutex_lock(lock);
    bool is_there = index < front->setting->n;
    if (is_there) {
        const struct srv_listener *listener = front->setting->entries[index].listener;
        const struct srv_listener_config *config = &listener->config;
        if (config->path != NULL)
            snprintf(view->name, sizeof view->name, "unix:%s", config->path);
        else
            srv_bind_name(config->address, config->port, view->name, sizeof view->name);
        view->role = config->handler->role != NULL ? config->handler->role->name : "-";
        view->is_tls = config->is_tls;
        view->n_sockets = listener->n_fds;
    }
    pthread_mutex_unlock(lock);
    return is_there;
}

unsigned srv_front_max_connections(const struct srv_front *front)
{
    return atomic_load_explicit(&front->max_connections, memory_order_relaxed);
}

struct srv_buf_pool *srv_front_buf_pool(const struct srv_front *front)
{
    return front->env.bufs;
}

void srv_front_latency(const struct srv_front *front, unsigned kind,
                       struct srv_latency_total *total)
{
    memset(total, 0, sizeof *total);
    for (unsigned i = 0; i < front->n_loops; i++)
        srv_loop_add_latency(front->loops[i], kind, total);
}

void srv_front_stats(const struct srv_front *front, struct srv_front_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    for (unsigned i = 0; i < front->n_loops; i++)
        srv_loop_add_stats(front->loops[i], stats);
}
