/* The front: listeners, TLS, event loops, and the gates that make HTTP/1 and HTTP/2 requests out of
 * sockets.
 *
 * Owns:    its sockets, loop threads and buffer pool; handlers and their data stay the caller's
 * and must outlive it.
 * Threads: srv_front_stop, _stats, _latency, _state and _port on any; the others on one thread.
 * Blocks:  srv_front_run, until it is told to stop; srv_front_commit until all loops have turned;
 * the others not for long.
 * Allocates: receive buffers within buffer_budget_bytes, and per connection: HTTP/1 a few KiB and
 * at most 64 KiB of an unfinished head; TLS twice the socket's receive buffer; HTTP/2 what
 * SRV_FRONT_H2_WINDOW allows, taken from the same budget.
 *
 *   CREATED -> STARTED [srv_front_start] -> OPEN [srv_front_open] -> DRAINING -> STOPPED
 *   OPEN -> RETIRING [srv_front_retire] -> STOPPED
 *   OPEN or RETIRING -> DRAINING     [SIGTERM, SIGINT, srv_front_stop]
 *   any -> STOPPED                   [a second signal, or drain_timeout_ms after the first]
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/exchange.h"
#include "server/limits.h"

struct srv_access_log;
struct srv_buf_pool;
struct srv_front;
struct srv_latency_total;

/* HTTP/2 body bytes that one connection may have sent and no handler has taken yet. */
#define SRV_FRONT_H2_WINDOW (4u << 20)

/* Longest body over HTTP/2 where bodies cannot be streamed. */
#define SRV_FRONT_H2_BUFFERED (64u << 20)

/* An address to listen on, and who answers there. */
struct srv_listener_config {
    const char *address; /* numeric IPv4 or IPv6 */
    uint16_t port;       /* 0: any free one, see srv_front_port */
    const char *path;    /* of a Unix socket instead of address and port; NULL: none */
    bool is_tls;
    /* Answers before the front opens and until it has stopped; its connections count against no
     * limit and hold up no drain. */
    bool is_admin;
    const struct srv_handler *handler;
    struct srv_listener_limits limits; /* may change while it runs */
    const char *label; /* for handlers, see srv_exchange_label; NULL: none. May change, too */
};

struct srv_front_config {
    const struct srv_listener_config *listeners;
    size_t n_listeners;
    unsigned n_threads;        /* event loops; 0: one for each usable core */
    const char *tls_cert_path; /* PEM, with the chain; NULL without TLS or when self-signed */
    const char *tls_key_path;  /* PEM; NULL: the key is in tls_cert_path */
    bool tls_self_signed;      /* a throw-away certificate for localhost, 127.0.0.1 and ::1, made at
                                  start and never stored */
    unsigned max_connections;  /* beyond it a connection is answered 503 and closed */
    unsigned max_connections_per_address; /* the same; 0: three quarters of all */
    size_t buffer_budget_bytes;           /* for request bodies on their way to a handler */
    size_t buffer_share_bytes;            /* of it, for one client address; 0: half */
    /* Milliseconds. */
    uint64_t handshake_timeout_ms; /* TLS handshake, or the first byte of a new connection */
    uint64_t head_timeout_ms;      /* an HTTP/1 head, from its first byte to its last */
    uint64_t idle_timeout_ms;      /* a connection without a request */
    uint64_t body_timeout_ms;      /* no byte of an expected body, */
    uint64_t body_rate;            /* or fewer than so many a second */
    /* No byte of a response acknowledged by the client's kernel. A client that reads 1 KiB/s out of
     * a large kernel buffer makes it answer only every few minutes, so this must not be short. */
    uint64_t send_timeout_ms;
    uint64_t send_rate;                /* or fewer than so many a second */
    uint64_t drain_timeout_ms;         /* requests that are still running after the first signal */
    struct srv_access_log *access_log; /* lent; NULL: none */
    bool h2_probe_fails;               /* for tests: the HTTP/2 gate cannot be put in place */
    struct srv_inherited *inherited;   /* sockets to use where an address is theirs; NULL: none */
};

/* What a front that runs reports to its owner, on the thread of srv_front_run. Each may be NULL. */
struct srv_front_hooks {
    void *data;
    void (*on_signal)(void *data, int number); /* SIGHUP, SIGUSR1, SIGUSR2 or SIGCHLD */
    int watch_fd;                              /* -1: none */
    void (*on_readable)(void *data);           /* the watched descriptor */
    void (*on_open)(void *data);               /* all listeners accept, and signals are heard */
    void (*on_drain)(void *data);              /* the front begins to stop */
};

struct srv_front_stats {
#define SRV_LOOP(name, type, help) uint64_t name;
#include "server/counters.def"
};

/* What every process that runs a front must do before it starts a thread or allocates: malloc
 * thresholds that suit buffers of megabytes, SIGPIPE ignored, and as many open files as the system
 * lets it have: shells and services start with 1024. */
void srv_process_init(void);

/* Fills in the defaults; listeners are left empty. */
void srv_front_config_init(struct srv_front_config *config_out);

/* Binds all listeners, reads or makes the certificate and prepares the loops. NULL with one line of
 * text in `error_out` (what, where, what to do) when any of it fails. Copies `config`. */
struct srv_front *srv_front_create(const struct srv_front_config *config, char *error_out,
                                   size_t error_size);

/* Starts the loops; only admin listeners accept connections. Others wait in the kernel's queue. */
void srv_front_start(struct srv_front *front);

/* Has all listeners accept. */
void srv_front_open(struct srv_front *front);

/* Starts and opens what has not been, and serves until stopped. While it runs, SIGTERM and SIGINT
 * are its own, and with hooks (may be NULL) those named there. True when every request could
 * finish, false when it was cut short by the drain timeout or a second signal. */
bool srv_front_run(struct srv_front *front, const struct srv_front_hooks *hooks);

/* Ends a front that was never opened, so that it can be destroyed: who waits in the kernel's queue
 * is not answered. */
void srv_front_end_unopened(struct srv_front *front);

/* As a first SIGTERM; again, as a second. */
void srv_front_stop(struct srv_front *front);

/* Another process has the listening sockets now: nothing more is accepted, and connections end with
 * the answer to their next request, or by themselves. */
void srv_front_retire(struct srv_front *front);

enum srv_front_state {
    SRV_FRONT_STARTING, /* only admin listeners accept */
    SRV_FRONT_OPEN,
    SRV_FRONT_ENDING, /* retiring or draining */
};

enum srv_front_state srv_front_state(const struct srv_front *front);

/* ---- Changes while it runs ---- */

struct srv_setting; /* server/listener.h */

/* Makes what it takes to go by another configuration: binds new listeners, reads certificates.
 * n_threads and buffer_budget_bytes are not looked at. NULL with one line in `error_out`. */
struct srv_setting *srv_front_prepare(struct srv_front *front,
                                      const struct srv_front_config *config, char *error_out,
                                      size_t error_size);

/* Takes the setting: new listeners accept, those gone close and their connections end with the
 * next answer; limits and certificates hold for what comes. Returns when all loops go by it. */
void srv_front_commit(struct srv_front *front, struct srv_setting *setting);

/* Gives the setting up. */
void srv_front_abandon(struct srv_front *front, struct srv_setting *setting);

/* ---- For a successor ---- */

/* Lends the descriptors of all listening sockets, at most `max`; returns how many there are. They
 * stay valid until the front stops, retires or commits. */
size_t srv_front_sockets(const struct srv_front *front, int *fds_out, size_t max);

/* After run. Calls what was posted to a loop after that had ended; jobs of a pool never are, as a
 * loop waits for them. */
void srv_front_destroy(struct srv_front *front);

/* The port listener `index` of the configuration in force is bound to. */
uint16_t srv_front_port(const struct srv_front *front, size_t index);

/* One listener of the configuration in force. */
struct srv_listener_view {
    char name[128];
    const char *role; /* static */
    bool is_tls;
    unsigned n_sockets;
};

/* The n-th listener; false past the last. On any thread. */
bool srv_front_listener(const struct srv_front *front, size_t index,
                        struct srv_listener_view *view_out);

/* The limit in force. */
unsigned srv_front_max_connections(const struct srv_front *front);

/* How long the loop that is worst off has not looked for events, in milliseconds: around a second
 * when there is nothing to do. */
uint64_t srv_front_lag_ms(const struct srv_front *front);

/* How many event loops a front gets that is asked for `n_threads`. */
unsigned srv_front_n_loops_wanted(unsigned n_threads);

unsigned srv_front_n_loops(const struct srv_front *front);

/* The receive buffers, for handlers that want some of the same budget. */
struct srv_buf_pool *srv_front_buf_pool(const struct srv_front *front);

/* Sums all loops' counters. Counters of one loop may be newer than those of another. */
void srv_front_stats(const struct srv_front *front, struct srv_front_stats *stats_out);

/* Sums what all loops have seen of one kind of request (server/latency.h). */
void srv_front_latency(const struct srv_front *front, unsigned kind,
                       struct srv_latency_total *total_out);
