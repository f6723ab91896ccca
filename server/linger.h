/* Sockets that outlive their connection for a moment. To close one with unread input resets it, and
 * a reset takes away what the client has not read yet, such as the reason; so what still comes is
 * read and dropped, within bounds.
 *
 * Owns:    the descriptors it was given.
 * Threads: the loop's. Blocks: never.
 */
#pragma once

#include <stddef.h>

struct srv_loop;

enum { SRV_LINGERS_MAX = 256 }; /* of one loop; for another one the oldest is closed */

/* Takes a second descriptor of a socket whose first is closed, or about to be; -1 is allowed. Reads
 * on while something comes within two seconds, ten in all, and 64 MiB at most. */
void srv_linger_start(struct srv_loop *loop, int fd);

/* Closes all of the loop's. */
void srv_linger_stop(struct srv_loop *loop);
