/* How one server process takes the place of another that uses the same data: through a socket in
 * the first data directory it gets the listening sockets, and says when it serves.
 *
 *   successor                          predecessor
 *   connect ------------------------->
 *   <-------- listening sockets, END
 *   opens the store                    serves on
 *   RELEASE (only if the store is locked) -> stops, closes the store
 *   SERVING ------------------------->  accepts nothing more, finishes, ends
 *   (closes without SERVING)            serves on as if nothing had been
 *
 * Only the same user, and root, may take over.
 *
 * Owns:    the caller owns all descriptors.
 * Threads: the main thread.
 * Blocks:  srv_takeover_receive, for the predecessor to answer, at most ten seconds; the others
 *          not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct srv_inherited;

enum srv_takeover_word {
    SRV_TAKEOVER_NOTHING, /* nothing has come */
    SRV_TAKEOVER_SOCKETS, /* some of the sockets come with it */
    SRV_TAKEOVER_END,
    SRV_TAKEOVER_RELEASE,
    SRV_TAKEOVER_SERVING,
    SRV_TAKEOVER_GONE, /* the other side has closed */
};

/* ---- The predecessor ---- */

/* A socket for successors in `directory`, or the inherited one. -1 with one line in `error_out`. */
int srv_takeover_listen(const char *directory, struct srv_inherited *inherited, char *error_out,
                        size_t error_size);

/* Removes the socket's name, when no successor has it. */
void srv_takeover_forget(const char *directory);

/* A successor's connection, or -1 when there is none that may; *pid_out is its process. */
int srv_takeover_accept(int listen_fd, pid_t *pid_out);

/* Sends the sockets; false when the successor is gone. */
bool srv_takeover_send_sockets(int fd, const int *sockets, size_t n);

/* What the successor has said since. */
enum srv_takeover_word srv_takeover_hear(int fd);

/* ---- The successor ---- */

/* A connection to the server that uses the directory; -1 when there is none. */
int srv_takeover_connect(const char *directory);

/* Takes all sockets. False with one line in `error_out`. */
bool srv_takeover_receive(int fd, struct srv_inherited *inherited, char *error_out,
                          size_t error_size);

/* Says one word; false when the other side is gone. */
bool srv_takeover_say(int fd, enum srv_takeover_word word);
