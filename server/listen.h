/* Listening sockets, and what happens to a connection before its protocol is known.
 *
 * Owns:    a listener owns its sockets and TLS context.
 * Threads: open and close before and after the loops run; start and stop on the loop's thread.
 * Blocks:  never.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/front.h"

struct srv_loop;
struct ssl_ctx_st;

/* [c] const while loops run. */
struct srv_listener {
    struct srv_listener_config config; /* with the port that was really bound */
    struct ssl_ctx_st *tls;            /* NULL: clear text */
    int *fds;                          /* one for each loop; -1 once the loop has it */
    unsigned n_fds;
};

/* Starts accepting on the loop's sockets of all listeners. */
void srv_listen_start(struct srv_loop *loop);

/* Accepts what the kernel has queued, then closes the sockets and asks idle connections to end. */
void srv_listen_stop(struct srv_loop *loop);

/* Ends every connection of the loop at its socket. */
void srv_listen_cut(struct srv_loop *loop);
