/* Sending without copies, safely: sendfile, splice and MSG_ZEROCOPY leave the kernel with the pages
 * of the file, which must not change before the peer has them. So a handle whose bytes were given
 * to one of them is not released but deferred. Included by gyre.h.
 *
 * Pages that are sent to a socket of the same machine lie in the receiver's queue as they are,
 * acknowledged or not, until it reads them; that holds for other containers too.
 *
 * Threads: any.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Takes the handle away but keeps its bytes, until gyre_release_token is called with the token. The
 * token outlives gyre_close; the files stay locked meanwhile. NO_MEMORY: the handle is still the
 * caller's. STATE: it is a parent process's. Never blocks. */
GYRE_MUST_USE GYRE_API gyre_err gyre_release_deferred(struct gyre_handle *handle,
                                                      uint64_t *token_out);
/* Lets go of the bytes. NOT_FOUND: the token was used before, or was given in a parent process.
 * Never blocks. */
GYRE_MUST_USE GYRE_API gyre_err gyre_release_token(uint64_t token);

/* Takes the handle away and keeps its bytes until what was sent on the socket has arrived: nothing
 * is unacknowledged any more, or the connection has ended; for a peer of this machine (loopback,
 * or the same address), not before it has ended. At the latest after `grace_ms`; the sender had
 * better end the connection by then. A thread of the library watches, with a duplicate of `fd`: use
 * shutdown, not only close, to end a connection meanwhile. NO_MEMORY, NO_FILES, INVALID (no
 * connected TCP or UNIX socket), BUSY (no thread), STATE: the handle is still the caller's. Never
 * blocks. */
GYRE_MUST_USE GYRE_API gyre_err gyre_release_when_sent(struct gyre_handle *handle, int fd,
                                                       uint32_t grace_ms);
/* Handles of this process that wait for gyre_release_token or to be sent. */
GYRE_API uint32_t gyre_deferred(void);

#ifdef __cplusplus
}
#endif
