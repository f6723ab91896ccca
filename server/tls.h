/* TLS contexts of listeners.
 *
 * Owns:    the caller owns a context until srv_tls_destroy.
 * Threads: any; a context may serve all loops at once.
 * Blocks:  while reading the certificate.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct srv_front_config;
struct ssl_ctx_st;

/* A context that offers h2 and http/1.1, TLS 1.2 or later, with the certificate `config` names or a
 * self-signed one. `name` tells listeners apart, so that a session of one cannot be resumed on
 * another. NULL with one line in `error_out`. */
struct ssl_ctx_st *srv_tls_create(const struct srv_front_config *config, const char *name,
                                  char *error_out, size_t error_size);

/* The same context once more; each needs its destroy. */
struct ssl_ctx_st *srv_tls_ref(struct ssl_ctx_st *tls);

/* How often clients of this process have asked for another handshake on a connection. */
uint64_t srv_tls_renegotiations(void);

/* NULL is allowed. */
void srv_tls_destroy(struct ssl_ctx_st *tls);
