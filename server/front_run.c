#include "server/front_own.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/check.h"
#include "server/job.h"
#include "server/listener.h"
#include "server/loop.h"

/* ---- Signals ---- */

/* Where the signal handlers write to; -1 when no front runs. */
static _Atomic int stop_fd = -1, signal_fd = -1;
static _Atomic unsigned long signals; /* bits of those that have come */

static void tell(int fd)
{
    uint64_t one = 1;
    ssize_t n = write(fd, &one, sizeof one);
    (void)n;
}

static void on_stop(int number)
{
    int saved = errno;
    (void)number;
    tell(atomic_load_explicit(&stop_fd, memory_order_relaxed));
    errno = saved;
}

static void on_signal(int number)
{
    int saved = errno;
    atomic_fetch_or_explicit(&signals, 1ul << number, memory_order_relaxed);
    tell(atomic_load_explicit(&signal_fd, memory_order_relaxed));
    errno = saved;
}

static const int stopping[] = {SIGTERM, SIGINT}, others[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};

enum { N_STOPPING = 2, N_OTHERS = 4 };

struct handlers {
    struct sigaction stopping[N_STOPPING], others[N_OTHERS];
};

static void take_signals(struct srv_front *front, bool all, struct handlers *old)
{
    const struct sigaction stop = {.sa_handler = on_stop}, other = {.sa_handler = on_signal};
    atomic_store_explicit(&stop_fd, front->stop_fd, memory_order_relaxed);
    atomic_store_explicit(&signal_fd, front->signal_fd, memory_order_relaxed);
    for (int i = 0; i < N_STOPPING; i++)
        sigaction(stopping[i], &stop, &old->stopping[i]);
    for (int i = 0; all && i < N_OTHERS; i++)
        sigaction(others[i], &other, &old->others[i]);
}

static void give_signals_back(bool all, const struct handlers *old)
{
    for (int i = 0; i < N_STOPPING; i++)
        sigaction(stopping[i], &old->stopping[i], NULL);
    for (int i = 0; all && i < N_OTHERS; i++)
        sigaction(others[i], &old->others[i], NULL);
}

static void report_signals(const struct srv_front_hooks *hooks)
{
    unsigned long bits = atomic_exchange_explicit(&signals, 0, memory_order_relaxed);
    for (int i = 0; i < N_OTHERS; i++)
        if ((bits & 1ul << others[i]) != 0 && hooks->on_signal != NULL)
            hooks->on_signal(hooks->data, others[i]);
}

/* ---- Loops ---- */

struct runner {
    struct srv_front *front;
    struct srv_loop *loop;
};

static void *run_loop(void *arg)
{
    struct runner runner = *(struct runner *)arg;
    struct srv_front *front = runner.front;
    free(arg);
    if (!srv_loop_run(runner.loop))
        atomic_store_explicit(&front->is_cut, true, memory_order_relaxed);
    /* The last one out ends the wait for signals. */
    if (atomic_fetch_sub_explicit(&front->n_running, 1, memory_order_acq_rel) == 1)
        srv_front_stop(front);
    return NULL;
}

void srv_front_start(struct srv_front *front)
{
    sigset_t all, old;
    SRV_CHECK(front->threads == NULL);
    front->threads = calloc(front->n_loops, sizeof *front->threads);
    SRV_CHECK(front->threads != NULL);
    atomic_store_explicit(&front->n_running, front->n_loops, memory_order_relaxed);
    /* Signals are for the thread that waits for them. */
    sigfillset(&all);
    /* A fault is the thread's own, and a blocked one ends the process. */
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (unsigned i = 0; i < front->n_loops; i++) {
        struct runner *runner = malloc(sizeof *runner);
        SRV_CHECK(runner != NULL);
        *runner = (struct runner){front, front->loops[i]};
        SRV_CHECK(pthread_create(&front->threads[i], NULL, run_loop, runner) == 0);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void want(struct srv_front *front, enum srv_loop_state state)
{
    for (unsigned i = 0; i < front->n_loops; i++)
        srv_loop_want(front->loops[i], state);
}

void srv_front_open(struct srv_front *front)
{
    int starting = SRV_FRONT_STARTING;
    atomic_compare_exchange_strong_explicit(&front->state, &starting, SRV_FRONT_OPEN,
                                            memory_order_relaxed, memory_order_relaxed);
    want(front, SRV_LOOP_RUN);
}

static void end(struct srv_front *front, const struct srv_front_hooks *hooks)
{
    if (atomic_exchange_explicit(&front->state, SRV_FRONT_ENDING, memory_order_relaxed) !=
            SRV_FRONT_ENDING &&
        hooks != NULL && hooks->on_drain != NULL)
        hooks->on_drain(hooks->data);
}

void srv_front_retire(struct srv_front *front)
{
    atomic_store_explicit(&front->state, SRV_FRONT_ENDING, memory_order_relaxed);
    for (size_t i = 0; i < front->setting->n; i++)
        atomic_store_explicit(&front->setting->entries[i].listener->is_handed_over, true,
                              memory_order_relaxed);
    want(front, SRV_LOOP_RETIRE);
}

void srv_front_stop(struct srv_front *front)
{
    tell(front->stop_fd);
}

enum srv_front_state srv_front_state(const struct srv_front *front)
{
    return (enum srv_front_state)atomic_load_explicit(&front->state, memory_order_relaxed);
}

/* ---- Waiting ---- */

static bool drain_counter(int fd, uint64_t *n_out)
{
    return read(fd, n_out, sizeof *n_out) == (ssize_t)sizeof *n_out;
}

/* Turns requests to stop into states and reports what else happens, until all loops have ended. */
static void watch(struct srv_front *front, const struct srv_front_hooks *hooks)
{
    uint64_t total = 0, n;
    while (atomic_load_explicit(&front->n_running, memory_order_acquire) > 0) {
        struct pollfd fds[] = {{.fd = front->stop_fd, .events = POLLIN},
                               {.fd = front->signal_fd, .events = POLLIN},
                               {.fd = hooks != NULL ? hooks->watch_fd : -1, .events = POLLIN}};
        if (poll(fds, sizeof fds / sizeof fds[0], -1) <= 0)
            continue;
        if (fds[0].revents != 0 && drain_counter(front->stop_fd, &n)) {
            total += n;
            end(front, hooks);
            want(front, total == 1 ? SRV_LOOP_DRAIN : SRV_LOOP_STOP);
        }
        if (fds[1].revents != 0 && drain_counter(front->signal_fd, &n) && hooks != NULL)
            report_signals(hooks);
        if (fds[2].revents != 0)
            hooks->on_readable(hooks->data);
    }
}

static void join(struct srv_front *front)
{
    for (unsigned i = 0; i < front->n_loops; i++)
        pthread_join(front->threads[i], NULL);
}

bool srv_front_run(struct srv_front *front, const struct srv_front_hooks *hooks)
{
    struct handlers old;
    bool all = hooks != NULL && hooks->on_signal != NULL;
    take_signals(front, all, &old);
    if (front->threads == NULL)
        srv_front_start(front);
    srv_front_open(front);
    if (hooks != NULL && hooks->on_open != NULL)
        hooks->on_open(hooks->data);
    watch(front, hooks);
    join(front);
    give_signals_back(all, &old);
    return !atomic_load_explicit(&front->is_cut, memory_order_relaxed);
}

void srv_front_end_unopened(struct srv_front *front)
{
    SRV_CHECK(srv_front_state(front) == SRV_FRONT_STARTING);
    if (front->threads == NULL)
        return;
    want(front, SRV_LOOP_STOP);
    join(front);
}

/* ---- Changes ---- */

/* One loop's notice of a new setting. */
struct notice {
    struct srv_job job;
    struct srv_loop *loop;
    const struct srv_setting *setting;
    sem_t *taken;
};

static void on_notice(struct srv_job *job)
{
    struct notice *notice = (struct notice *)job;
    srv_loop_follow(notice->loop, notice->setting);
    sem_post(notice->taken);
}

void srv_front_commit(struct srv_front *front, struct srv_setting *setting)
{
    struct srv_setting *old = front->setting;
    struct notice *notices = calloc(front->n_loops, sizeof *notices);
    sem_t taken;
    SRV_CHECK(notices != NULL && sem_init(&taken, 0, 0) == 0);
    for (size_t i = 0; i < old->n; i++)
        if (srv_setting_find(setting, old->entries[i].listener) == NULL)
            atomic_store_explicit(&old->entries[i].listener->is_removed, true,
                                  memory_order_relaxed);
    for (unsigned i = 0; i < front->n_loops; i++) {
        notices[i] = (struct notice){{.done = on_notice}, front->loops[i], setting, &taken};
        srv_loop_post(front->loops[i], &notices[i].job);
    }
    for (unsigned i = 0; i < front->n_loops; i++)
        while (sem_wait(&taken) != 0)
            SRV_CHECK(errno == EINTR);
    pthread_mutex_lock(&front->lock);
    front->setting = setting;
    pthread_mutex_unlock(&front->lock);
    atomic_store_explicit(&front->max_connections, setting->config.max_connections,
                          memory_order_relaxed);
    srv_setting_destroy(old);
    sem_destroy(&taken);
    free(notices);
}
