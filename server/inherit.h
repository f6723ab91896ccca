/* Listening sockets that this process did not bind itself: from systemd (LISTEN_FDS) or from the
 * server it succeeds. They are found again by the address they are bound to.
 *
 * Owns:    the list owns its sockets until srv_inherited_take.
 * Threads: one at a time. Blocks: never.
 */
#pragma once

#include <stddef.h>
#include <sys/socket.h>

/* How many sockets can be handed over: sixteen listeners on as many loops as is sensible. */
enum { SRV_INHERITED_MAX = 4096 };

struct srv_inherited {
    int *fds; /* -1: taken */
    size_t n;
};

void srv_inherited_init(struct srv_inherited *inherited_out);
/* Closes what nobody took. */
void srv_inherited_fini(struct srv_inherited *inherited);

/* Adds a socket, closing it when there is no room or it is none that listens for streams. */
void srv_inherited_add(struct srv_inherited *inherited, int fd);

/* Adds the sockets that the service manager has passed to this process, and removes the variables
 * that said so. */
void srv_inherited_add_activated(struct srv_inherited *inherited);

/* Moves up to `max` sockets that are bound to `address` to `fds_out`; returns how many. */
size_t srv_inherited_take(struct srv_inherited *inherited, const struct sockaddr *address,
                          socklen_t len, int *fds_out, size_t max);

/* How many nobody has taken. */
size_t srv_inherited_left(const struct srv_inherited *inherited);
