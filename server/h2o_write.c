#include "server/h2o_glue.h"

#include <dlfcn.h>

#include "server/check.h"
#include "server/fault.h"

/* libh2o's writes, and ours through it, read stored bytes on their way to the socket: through TLS
 * they encrypt them here, over HTTP/2 libh2o has just copied them. Stands in front of libh2o's
 * function of the same name. */
void h2o_socket_write(h2o_socket_t *sock, h2o_iovec_t *bufs, size_t bufcnt, h2o_socket_cb cb)
{
    typedef void write_fn(h2o_socket_t *, h2o_iovec_t *, size_t, h2o_socket_cb);
    static _Atomic(write_fn *) own;
    write_fn *write = atomic_load_explicit(&own, memory_order_relaxed);
    if (write == NULL) {
        *(void **)&write = dlsym(RTLD_NEXT, "h2o_socket_write");
        SRV_CHECK(write != NULL);
        atomic_store_explicit(&own, write, memory_order_relaxed);
    }
    srv_fault_begin(h2o_socket_get_fd(sock));
    write(sock, bufs, bufcnt, cb);
    srv_fault_end();
}
