/* One running server: what it consists of, and the files that build, change and replace it.
 *
 * Threads: the main thread.
 */
#pragma once

#include "server/admin.h"
#include "server/front.h"
#include "server/inherit.h"
#include "server/options.h"
#include "server/s3/s3.h"

struct srv_access_log;
struct srv_site;
struct srv_pool;

/* Built in this order, taken apart in the reverse one. */
struct srv_server {
    const struct srv_options *started; /* lent: what it was started with */
    struct srv_options *options;       /* in force; `started`, or of the last reload */
    struct srv_inherited inherited;
    struct srv_access_log *access_log;
    struct srv_pool *pool;
    struct srv_admin admin;
    struct srv_handler
        s3_handler; /* listeners point here; its data is set before the front opens */
    struct srv_handler site_handler; /* the same; of listeners with an origin */
    struct srv_handler admin_handler;
    struct srv_front *front;
    char *admin_path;    /* of the default admin socket; NULL: another, or none */
    char *admin_trouble; /* why there is none, until the log has it; NULL: nothing to say */
    struct gyre_store *store;
    struct srv_s3 *s3;
    struct srv_site *site; /* NULL: there is no origin */

    /* Succession (server/succession.c). */
    int predecessor_fd; /* -1: none */
    int takeover_fd;    /* where a successor comes; -1: none can */
    int successor_fd;   /* -1: none has come */
    int watch_fd;       /* epoll over both */
    pid_t successor;    /* started by this process; 0: none */
    bool is_succeeded;
};

/* ---- cmd_serve.c ---- */

/* Fills in a front's configuration from options. The listeners go to `listeners`, which has room
 * for SRV_LISTEN_MAX + 1. */
void srv_server_front_config(const struct srv_server *server, const struct srv_options *options,
                             struct srv_listener_config *listeners,
                             struct srv_front_config *config_out);

/* Fills in what is served; what of it is a pointer is lent by `options`. */
void srv_server_s3_config(const struct srv_server *server, const struct srv_options *options,
                          struct srv_s3_config *config_out);

/* ---- serve_reload.c ---- */

/* Reads the configuration again and goes by it, or says why not. */
void srv_server_reload(struct srv_server *server);

/* ---- succession.c ---- */

/* Before anything is bound: gets the sockets of systemd and, with --takeover, of the predecessor.
 * False after a line on stderr. */
bool srv_succession_begin(struct srv_server *server);

/* Opens the store, which a predecessor may have to let go of first; NULL after a line on stderr. */
struct gyre_store *srv_succession_open_store(struct srv_server *server);

/* Once the store is open: lets successors come. */
void srv_succession_listen(struct srv_server *server);

/* Once the front is open: the predecessor may go. */
void srv_succession_serving(struct srv_server *server);

/* Something came on watch_fd. */
void srv_succession_look(struct srv_server *server);

/* SIGUSR2: starts a successor. SIGCHLD: it may have ended. */
void srv_succession_start(struct srv_server *server);
void srv_succession_reap(struct srv_server *server);

void srv_succession_fini(struct srv_server *server);
