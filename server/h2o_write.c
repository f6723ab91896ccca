#include "server/h2o_glue.h"

#include <dlfcn.h>
#include <pthread.h>

#include <h2o/http2_internal.h>

#include "server/check.h"
#include "server/fault.h"

/* Two of libh2o's functions that write, behind ours of the same names. */

typedef void write_fn(h2o_socket_t *, h2o_iovec_t *, size_t, h2o_socket_cb);
typedef void notify_fn(h2o_socket_t *, h2o_socket_cb);

static write_fn *own_write;
static notify_fn *own_notify;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void look_up(void)
{
    *(void **)&own_write = dlsym(RTLD_NEXT, "h2o_socket_write");
    *(void **)&own_notify = dlsym(RTLD_NEXT, "h2o_socket_notify_write");
    SRV_CHECK(own_write != NULL && own_notify != NULL);
}

/* libh2o's writes, and ours through it, read stored bytes on their way to the socket: through TLS
 * they encrypt them here, over HTTP/2 libh2o has just copied them. */
void h2o_socket_write(h2o_socket_t *sock, h2o_iovec_t *bufs, size_t bufcnt, h2o_socket_cb cb)
{
    pthread_once(&once, look_up);
    srv_fault_begin(h2o_socket_get_fd(sock));
    own_write(sock, bufs, bufcnt, cb);
    srv_fault_end();
}

/* With one write done and the next one ready, libh2o waits for the socket of an HTTP/2 connection
 * before it begins. An error of the client's that it meets in that time makes it close without a
 * word: it takes the connection for one that has nothing to write. So it begins at once, as it does
 * everywhere else. */
void h2o_socket_notify_write(h2o_socket_t *sock, h2o_socket_cb cb)
{
    const struct srv_conn *conn = sock->on_close.data;
    pthread_once(&once, look_up);
    if (conn != NULL && conn->protocol == SRV_PROTOCOL_H2)
        h2o_http2_conn_request_write(sock->data);
    else
        own_notify(sock, cb);
}
