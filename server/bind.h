/* Binding listening sockets.
 *
 * Owns:    the caller owns the descriptors.
 * Threads: any. Blocks: never.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Binds `n` sockets to the same address, between which the kernel spreads connections, and listens
 * on all. *port_inout 0 becomes the port that was found free. A positive `receive_bytes` bounds
 * what the kernel buffers for each connection. False with one line in `error_out` and no socket
 * left open. */
bool srv_bind(const char *address, uint16_t *port_inout, int receive_bytes, int *fds_out,
              unsigned n, char *error_out, size_t error_size);

/* "address:port", or "[address]:port" for IPv6, into `text_out`. */
void srv_bind_name(const char *address, uint16_t port, char *text_out, size_t size);
