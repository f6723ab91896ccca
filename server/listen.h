/* What happens to a connection before its protocol is known, and when it has to end.
 *
 * Owns:    a loop owns its sockets of the listeners.
 * Threads: the loop's.
 * Blocks:  never.
 */
#pragma once

struct srv_loop;

/* Makes the loop's sockets what its setting says: closes those of listeners that are gone, after
 * what the kernel has queued was accepted, opens new ones, replaces certificates. */
void srv_listen_follow(struct srv_loop *loop);

/* Closes the sockets of all but admin listeners, unless another process has them after what the
 * kernel has queued was accepted. */
void srv_listen_stop(struct srv_loop *loop);

/* Asks connections without a request to end. */
void srv_listen_end_idle(struct srv_loop *loop);

/* Ends every connection of the loop at its socket. */
void srv_listen_cut(struct srv_loop *loop);
