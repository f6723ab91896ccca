#include "server/h2o_glue.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "server/check.h"
#include "server/conn.h"
#include "server/exchange_run.h"
#include "server/fault.h"
#include "server/linger.h"

enum {
    WAIT_MS = 1000,     /* longest sleep of an idle loop */
    WAIT_DRAIN_MS = 50, /* of one that is about to end */
    CUT_ROUNDS = 200,   /* rounds of events that cut connections get to unwind */
    IDLE_GRACE_MS = 1000,
};

void srv_loop_env_init_h2o(struct srv_loop_env *env, const struct srv_front_config *config)
{
    h2o_globalconf_t *conf = h2o_mem_alloc(sizeof *conf);
    h2o_config_init(conf);
    conf->server_name = h2o_iovec_init(H2O_STRLIT("Gyre"));
    /* Input buffers stay small because the gates bound them; nothing of ours shall end up in a
     * temporary file unasked. */
    h2o_socket_buffer_mmap_settings.threshold = SIZE_MAX;
    conf->max_request_entity_size = SRV_FRONT_H2_BUFFERED;
    conf->http2.idle_timeout = config->idle_timeout_ms;
    /* How long streams may take to end is the loop's to say. */
    conf->http2.graceful_shutdown_timeout = 0;
    /* More than the streams a client may open, so that a request never waits inside libh2o while
     * its body arrives. */
    conf->http2.max_concurrent_requests_per_connection = 256;
    h2o_hostconf_t *host =
        h2o_config_register_host(conf, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    host->http2.push_preload = 0;
    host->http2.reprioritize_blocking_assets = 0;
    srv_glue_register(host);
    env->h2o = conf;
}

void srv_loop_env_fini_h2o(struct srv_loop_env *env)
{
    h2o_config_dispose(env->h2o);
    free(env->h2o);
    env->h2o = NULL;
}

/* ---- Posts ---- */

static void wake(struct srv_loop *loop)
{
    uint64_t one = 1;
    ssize_t n = write(loop->wake_fd, &one, sizeof one);
    (void)n; /* full means that the loop has not looked yet and will */
}

void srv_loop_post(struct srv_loop *loop, struct srv_job *job)
{
    struct srv_job *head = atomic_load_explicit(&loop->posted, memory_order_relaxed);
    do {
        job->next_ = head;
    } while (!atomic_compare_exchange_weak_explicit(
        &loop->posted, &head, job, memory_order_release /* A */, memory_order_relaxed));
    /* Whoever made the list non-empty wakes: the loop takes the whole list after it has read the
     * wake-up. */
    if (head == NULL)
        wake(loop);
}

/* Runs `done` of all that is posted, oldest first. */
static void deliver_posts(struct srv_loop *loop)
{
    struct srv_job *job =
        atomic_exchange_explicit(&loop->posted, NULL, memory_order_acquire); /* pairs with A */
    struct srv_job *oldest = NULL;
    while (job != NULL) {
        struct srv_job *next = job->next_;
        job->next_ = oldest;
        oldest = job;
        job = next;
    }
    while (oldest != NULL) {
        struct srv_job *next = oldest->next_; /* the job is its owner's from `done` on */
        oldest->done(oldest);
        oldest = next;
    }
}

void srv_loop_expect(struct srv_loop *loop, int n)
{
    /* Release: what was posted before the count went down is seen by whoever sees the count. */
    atomic_fetch_add_explicit(&loop->n_expected, n, memory_order_acq_rel /* B */);
}

static void on_wake(h2o_socket_t *sock, const char *err)
{
    struct srv_loop *loop = sock->data;
    uint64_t n;
    SRV_CHECK(err == NULL);
    if (read(loop->wake_fd, &n, sizeof n) == (ssize_t)sizeof n)
        deliver_posts(loop);
}

unsigned srv_loop_index(const struct srv_loop *loop)
{
    return loop->index;
}

uint64_t srv_loop_now_ms(const struct srv_loop *loop)
{
    return h2o_now(loop->ctx.loop);
}

/* ---- Create and destroy ---- */

static void get_delays(const struct srv_front_config *config, uint64_t delays[SRV_N_TIMEOUTS])
{
    const uint64_t values[SRV_N_TIMEOUTS] = {
        [SRV_TIMEOUT_HANDSHAKE] = config->handshake_timeout_ms,
        [SRV_TIMEOUT_HEAD] = config->head_timeout_ms,
        [SRV_TIMEOUT_IDLE] = config->idle_timeout_ms,
        [SRV_TIMEOUT_BODY] = config->body_timeout_ms,
        [SRV_TIMEOUT_SEND] = config->send_timeout_ms,
        [SRV_TIMEOUT_LINGER] = 2000,
        [SRV_TIMEOUT_REFUSED] = 1000,
        [SRV_TIMEOUT_ACCEPT_PAUSE] = 100,
    };
    memcpy(delays, values, sizeof values);
}

static void init_timeouts(struct srv_loop *loop)
{
    uint64_t delays[SRV_N_TIMEOUTS];
    get_delays(&loop->setting->config, delays);
    for (int i = 0; i < SRV_N_TIMEOUTS; i++)
        h2o_timeout_init(loop->ctx.loop, &loop->timeouts[i], delays[i]);
}

void srv_loop_follow(struct srv_loop *loop, const struct srv_setting *setting)
{
    uint64_t delays[SRV_N_TIMEOUTS];
    loop->setting = setting;
    /* What waits already has the new delay, too: libh2o adds it when it looks. */
    get_delays(&setting->config, delays);
    for (int i = 0; i < SRV_N_TIMEOUTS; i++)
        loop->timeouts[i].timeout = delays[i];
    loop->ctx.http2.idle_timeout.timeout = setting->config.idle_timeout_ms;
    srv_listen_follow(loop);
}

struct srv_loop *srv_loop_create(struct srv_loop_env *env, unsigned index)
{
    struct srv_loop *loop = calloc(1, sizeof *loop);
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    char *scratch = malloc(SRV_SCRATCH_BYTES);
    if (loop == NULL || fd == -1 || scratch == NULL ||
        getrandom(&loop->id_seed, sizeof loop->id_seed, 0) == -1)
        goto fail;
    loop->env = env;
    loop->setting = env->setting;
    loop->index = index;
    loop->wake_fd = fd;
    loop->scratch = scratch;
    h2o_linklist_init_anchor(&loop->conns);
    h2o_linklist_init_anchor(&loop->lingers);
    h2o_linklist_init_anchor(&loop->refused);
    srv_latency_init(&loop->latency);
    h2o_context_init(&loop->ctx, h2o_evloop_create(), env->h2o);
    loop->accept = (h2o_accept_ctx_t){.ctx = &loop->ctx, .hosts = env->h2o->hosts};
    init_timeouts(loop);
    loop->wake_sock = h2o_evloop_socket_create(loop->ctx.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    loop->wake_sock->data = loop;
    h2o_socket_read_start(loop->wake_sock, on_wake);
    return loop;
fail:
    free(loop);
    free(scratch);
    if (fd != -1)
        close(fd);
    return NULL;
}

/* Takes down the libh2o side, with what its own functions leave behind. */
static void dispose_h2o(struct srv_loop *loop)
{
    h2o_evloop_t *evloop = loop->ctx.loop;
    h2o_multithread_queue_t *queue = loop->ctx.queue;
    h2o_timeout_unlink(&loop->ctx.http2._graceful_shutdown_timeout);
    for (int i = 0; i < SRV_N_TIMEOUTS; i++)
        h2o_timeout_dispose(evloop, &loop->timeouts[i]);
    h2o_context_dispose(&loop->ctx);
    free(queue);
    h2o_socket_close(loop->wake_sock);
    h2o_evloop_destroy(evloop);
}

void srv_loop_destroy(struct srv_loop *loop)
{
    if (loop == NULL)
        return;
    deliver_posts(loop);
    /* libh2o cannot take down a context that still has connections; what little may be left is the
     * process's to release. */
    if (loop->n_conns == 0)
        dispose_h2o(loop);
    srv_latency_fini(&loop->latency);
    free(loop->scratch);
    free(loop);
}

/* ---- Run ---- */

void srv_loop_want(struct srv_loop *loop, enum srv_loop_state state)
{
    int have = atomic_load_explicit(&loop->wanted, memory_order_relaxed);
    while (have < (int)state &&
           !atomic_compare_exchange_weak_explicit(&loop->wanted, &have, (int)state,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
    wake(loop);
}

/* Connections whose events of this round are over may now be looked at without a handler or libh2o
 * on the stack. What that makes due, for them or others, must not wait: libh2o runs what is pending
 * only after it has polled. */
static void run_after(struct srv_loop *loop)
{
    struct srv_conn *conn = loop->after;
    loop->after = NULL;
    loop->must_not_sleep = false;
    srv_fault_taken(); /* nobody has sent what it was about */
    while (conn != NULL) {
        struct srv_conn *next = conn->after_next;
        conn->is_queued_after = false;
        enum srv_after result = SRV_AFTER_IDLE;
        if (conn->sock != NULL && conn->after != NULL)
            result = conn->after(conn);
        if (result == SRV_AFTER_AGAIN)
            srv_conn_queue_again(conn);
        if (result == SRV_AFTER_ACTED)
            loop->must_not_sleep = true;
        srv_conn_unref(conn);
        conn = next;
    }
}

/* Asks connections to end, within the time there is. Those without a request get some of it too: a
 * client that has just sent one cannot know that it comes too late. */
static void begin_to_end(struct srv_loop *loop, int wanted)
{
    uint64_t now_ms = h2o_now(loop->ctx.loop);
    uint64_t grace_ms = loop->setting->config.drain_timeout_ms;
    if (loop->state <= SRV_LOOP_RUN) {
        loop->drain_until_ms = now_ms + grace_ms;
        srv_listen_stop(loop);
        h2o_context_request_shutdown(&loop->ctx);
    }
    if (wanted >= SRV_LOOP_DRAIN && grace_ms > IDLE_GRACE_MS)
        grace_ms = IDLE_GRACE_MS;
    loop->idle_until_ms = now_ms + grace_ms;
}

/* Acts upon a state that was asked for since the last round. */
static void follow_wanted(struct srv_loop *loop)
{
    int wanted = atomic_load_explicit(&loop->wanted, memory_order_relaxed);
    if (wanted == loop->state)
        return;
    if (wanted > SRV_LOOP_RUN)
        begin_to_end(loop, wanted);
    loop->state = wanted;
    if (wanted == SRV_LOOP_RUN)
        srv_listen_follow(loop);
}

uint64_t srv_loop_lag_ms(const struct srv_loop *loop)
{
    uint64_t turned_ms = atomic_load_explicit(&loop->turned_ms, memory_order_relaxed);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    return turned_ms == 0 || turned_ms > now_ms ? 0 : now_ms - turned_ms;
}

/* One round of events. */
static void run_round(struct srv_loop *loop, int32_t wait_ms)
{
    atomic_store_explicit(&loop->turned_ms, h2o_now(loop->ctx.loop), memory_order_relaxed);
    loop->round_bytes = 0;
    h2o_evloop_run(loop->ctx.loop, loop->must_not_sleep ? 0 : wait_ms);
    run_after(loop);
}

void srv_loop_turn(struct srv_loop *loop, int wait_ms)
{
    run_round(loop, wait_ms);
}

/* Whether the loop has served its last client; one that answers for all, all loops' last. */
static bool has_served(const struct srv_loop *loop)
{
    bool is_admin = loop->slots != NULL || loop->n_admin > 0;
    return loop->n_conns == loop->n_admin && loop->n_lingers == 0 &&
           (!is_admin || atomic_load_explicit(&loop->env->n_conns, memory_order_relaxed) == 0);
}

/* Whether there is nothing to do any more, or no more time for it. */
static bool is_over(struct srv_loop *loop)
{
    if (loop->state <= SRV_LOOP_RUN)
        return false;
    uint64_t now_ms = h2o_now(loop->ctx.loop);
    if (now_ms >= loop->idle_until_ms)
        srv_listen_end_idle(loop);
    return loop->state == SRV_LOOP_STOP || has_served(loop) || now_ms >= loop->drain_until_ms;
}

/* Delivers what is posted; true while more is to come. */
static bool has_completions(struct srv_loop *loop)
{
    deliver_posts(loop);
    return atomic_load_explicit(&loop->n_expected, memory_order_acquire) > 0 /* pairs with B */ ||
           atomic_load_explicit(&loop->posted, memory_order_relaxed) != NULL;
}

bool srv_loop_run(struct srv_loop *loop)
{
    srv_listen_follow(loop);
    while (!is_over(loop)) {
        run_round(loop, loop->state <= SRV_LOOP_RUN ? WAIT_MS : WAIT_DRAIN_MS);
        follow_wanted(loop);
    }
    bool is_clean = loop->n_conns == loop->n_admin;
    srv_listen_cut(loop);
    for (int i = 0; i < CUT_ROUNDS && (loop->n_conns > 0 || i < 2); i++)
        run_round(loop, 1);
    while (has_completions(loop))
        run_round(loop, WAIT_DRAIN_MS);
    srv_linger_stop(loop);
    run_round(loop, 0);
    return is_clean;
}

void srv_loop_add_latency(const struct srv_loop *loop, unsigned kind,
                          struct srv_latency_total *total)
{
    srv_latency_sum(&loop->latency, kind, total);
}

void srv_loop_add_stats(const struct srv_loop *loop, struct srv_front_stats *stats)
{
#define SRV_LOOP(name, type, help) \
    stats->name += atomic_load_explicit(&loop->n_##name, memory_order_relaxed);
#include "server/counters.def"
}
