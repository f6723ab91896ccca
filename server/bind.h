/* Binding listening sockets.
 *
 * Owns:    the caller owns the descriptors.
 * Threads: any. Blocks: never.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr_un;
struct srv_inherited;

/* Binds `n` sockets to the same address, between which the kernel spreads connections, and listens
 * on all. *port_inout 0 becomes the port that was found free. A positive `receive_bytes` bounds
 * what the kernel buffers for each connection. False with one line in `error_out` and no socket
 * left open. */
bool srv_bind(const char *address, uint16_t *port_inout, int receive_bytes, int *fds_out,
              unsigned n, char *error_out, size_t error_size);

/* As srv_bind for the sockets [have, n) of a group whose first `have` were inherited: they join it,
 * or are copies of the first where that does not share its address. What has joined does not
 * listen yet, so that no connection waits there before somebody accepts. */
bool srv_bind_more(const char *address, uint16_t port, int receive_bytes, int *fds_inout,
                   unsigned have, unsigned n, char *error_out, size_t error_size);

/* Moves inherited sockets bound to the address to `fds_out`; returns how many, at most `max`. */
size_t srv_bind_inherited(const char *address, uint16_t port, struct srv_inherited *inherited,
                          int *fds_out, size_t max);

/* The socket's address for a path; its folder must be there. False with a line. */
bool srv_bind_unix_address(const char *path, struct sockaddr_un *address_out, char *error_out,
                           size_t error_size);

/* Binds a socket of `type` to a path with these permissions, or takes the inherited one, and
 * listens. What a dead process left there is replaced. -1 with one line in `error_out`. */
int srv_bind_unix(const char *path, int type, unsigned mode, struct srv_inherited *inherited,
                  char *error_out, size_t error_size);

/* "address:port", or "[address]:port" for IPv6, into `text_out`. */
void srv_bind_name(const char *address, uint16_t port, char *text_out, size_t size);
