#include "server/front.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/bind.h"
#include "server/buf.h"
#include "server/check.h"
#include "server/latency.h"
#include "server/listen.h"
#include "server/loop_run.h"
#include "server/tls.h"

enum { TLS_RECEIVE_BYTES = 512 << 10, NAME_BYTES = 128, FILES_LEAST = 16 };

/* [c] const between create and destroy  [a] atomic */
struct srv_front {
    struct srv_front_config config; /* [c] */
    struct srv_listener *listeners; /* [c] */
    struct srv_loop_env env;        /* [c] */
    struct srv_loop **loops;        /* [c] */
    unsigned n_loops;               /* [c] */
    int stop_fd;                    /* [c] counts requests to stop */
    _Atomic unsigned n_running;     /* [a] loops whose thread has not ended */
    _Atomic bool is_cut;            /* [a] a loop ended with connections open */
};

void srv_process_init(void)
{
    /* libh2o grows its buffers by doubling; below these thresholds every step would be an mmap, a
     * fault per page, and a munmap. */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    signal(SIGPIPE, SIG_IGN);
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

static bool open_listener(struct srv_front *front, struct srv_listener *listener,
                          const struct srv_listener_config *config, char *error, size_t size)
{
    char name[NAME_BYTES];
    listener->config = *config;
    listener->fds = malloc(front->n_loops * sizeof *listener->fds);
    if (listener->fds == NULL) {
        snprintf(error, size, "out of memory");
        return false;
    }
    if (!srv_bind(config->address, &listener->config.port, config->is_tls ? TLS_RECEIVE_BYTES : 0,
                  listener->fds, front->n_loops, error, size))
        return false;
    listener->n_fds = front->n_loops;
    if (!config->is_tls)
        return true;
    srv_bind_name(config->address, listener->config.port, name, sizeof name);
    listener->tls = srv_tls_create(&front->config, name, error, size);
    return listener->tls != NULL;
}

static void close_listener(struct srv_listener *listener)
{
    for (unsigned i = 0; i < listener->n_fds; i++)
        if (listener->fds[i] != -1)
            close(listener->fds[i]);
    free(listener->fds);
    srv_tls_destroy(listener->tls);
}

static bool open_listeners(struct srv_front *front, char *error, size_t size)
{
    size_t n = front->config.n_listeners;
    front->listeners = calloc(n, sizeof *front->listeners);
    if (front->listeners == NULL) {
        snprintf(error, size, "out of memory");
        return false;
    }
    front->env.listeners = front->listeners;
    for (size_t i = 0; i < n; i++) {
        front->env.n_listeners = i + 1;
        if (!open_listener(front, &front->listeners[i], &front->config.listeners[i], error, size))
            return false;
    }
    return true;
}

static bool create_loops(struct srv_front *front, char *error, size_t size)
{
    front->env.config = &front->config;
    front->env.bufs = srv_buf_pool_create(front->config.buffer_budget_bytes);
    front->loops = calloc(front->n_loops, sizeof(struct srv_loop *));
    front->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (front->env.bufs == NULL || front->loops == NULL || front->stop_fd == -1) {
        snprintf(error, size, "cannot prepare the event loops: %s", strerror(errno));
        return false;
    }
    srv_loop_env_init_h2o(&front->env);
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
    front->stop_fd = -1;
    front->n_loops = config->n_threads > 0 ? config->n_threads : usable_cores();
    if (!files_suffice(front, error, size) || !open_listeners(front, error, size) ||
        !create_loops(front, error, size)) {
        srv_front_destroy(front);
        return NULL;
    }
    front->config.listeners = NULL; /* the caller's; every listener has its own copy */
    return front;
}

void srv_front_destroy(struct srv_front *front)
{
    if (front == NULL)
        return;
    for (unsigned i = 0; front->loops != NULL && i < front->n_loops; i++)
        srv_loop_destroy(front->loops[i]);
    for (size_t i = 0; front->listeners != NULL && i < front->env.n_listeners; i++)
        close_listener(&front->listeners[i]);
    if (front->env.h2o != NULL)
        srv_loop_env_fini_h2o(&front->env);
    srv_buf_pool_destroy(front->env.bufs);
    if (front->stop_fd != -1)
        close(front->stop_fd);
    free(front->loops);
    free(front->listeners);
    free(front);
}

/* ---- Run ---- */

/* Where the signal handler writes to; -1 when no front runs. */
static _Atomic int signal_fd = -1;

static void on_signal(int number)
{
    int saved = errno;
    uint64_t one = 1;
    (void)number;
    ssize_t n = write(atomic_load_explicit(&signal_fd, memory_order_relaxed), &one, sizeof one);
    (void)n;
    errno = saved;
}

struct runner {
    struct srv_front *front;
    struct srv_loop *loop;
    pthread_t thread;
};

static void *run_loop(void *arg)
{
    struct runner *runner = arg;
    struct srv_front *front = runner->front;
    if (!srv_loop_run(runner->loop))
        atomic_store_explicit(&front->is_cut, true, memory_order_relaxed);
    /* The last one out ends the wait for signals. */
    if (atomic_fetch_sub_explicit(&front->n_running, 1, memory_order_acq_rel) == 1)
        srv_front_stop(front);
    return NULL;
}

static void want(struct srv_front *front, enum srv_loop_state state)
{
    for (unsigned i = 0; i < front->n_loops; i++)
        srv_loop_want(front->loops[i], state);
}

/* Turns requests to stop into states, until all loops have ended. */
static void watch(struct srv_front *front)
{
    uint64_t total = 0;
    while (atomic_load_explicit(&front->n_running, memory_order_acquire) > 0) {
        uint64_t n = 0;
        if (read(front->stop_fd, &n, sizeof n) != (ssize_t)sizeof n)
            continue;
        total += n;
        want(front, total == 1 ? SRV_LOOP_DRAIN : SRV_LOOP_STOP);
    }
}

bool srv_front_run(struct srv_front *front)
{
    struct sigaction action = {.sa_handler = on_signal}, old_term, old_int;
    struct runner *runners = calloc(front->n_loops, sizeof *runners);
    SRV_CHECK(runners != NULL);
    atomic_store_explicit(&signal_fd, front->stop_fd, memory_order_relaxed);
    sigaction(SIGTERM, &action, &old_term);
    sigaction(SIGINT, &action, &old_int);
    atomic_store_explicit(&front->n_running, front->n_loops, memory_order_relaxed);
    for (unsigned i = 0; i < front->n_loops; i++) {
        runners[i] = (struct runner){.front = front, .loop = front->loops[i]};
        SRV_CHECK(pthread_create(&runners[i].thread, NULL, run_loop, &runners[i]) == 0);
    }
    watch(front);
    for (unsigned i = 0; i < front->n_loops; i++)
        pthread_join(runners[i].thread, NULL);
    sigaction(SIGTERM, &old_term, NULL);
    sigaction(SIGINT, &old_int, NULL);
    free(runners);
    return !atomic_load_explicit(&front->is_cut, memory_order_relaxed);
}

void srv_front_stop(struct srv_front *front)
{
    uint64_t one = 1;
    ssize_t n = write(front->stop_fd, &one, sizeof one);
    (void)n;
}

/* ---- What others ask ---- */

uint16_t srv_front_port(const struct srv_front *front, size_t index)
{
    return front->listeners[index].config.port;
}

unsigned srv_front_n_loops(const struct srv_front *front)
{
    return front->n_loops;
}

struct srv_buf_pool *srv_front_buf_pool(struct srv_front *front)
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
