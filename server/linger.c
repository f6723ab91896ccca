#include "server/h2o_glue.h"

#include <errno.h>
#include <unistd.h>

#include "server/linger.h"

enum { DROPPED_MAX = 64 << 20, LINGER_MS = 10000 };

struct lingering {
    struct srv_loop *loop;
    h2o_socket_t *sock;
    h2o_linklist_t link; /* loop->lingers */
    h2o_timeout_entry_t timer;
    size_t left;       /* bytes that are still dropped */
    uint64_t until_ms; /* or until then, at most */
};

static void end(struct lingering *linger)
{
    h2o_timeout_unlink(&linger->timer);
    h2o_linklist_unlink(&linger->link);
    linger->loop->n_lingers--;
    h2o_socket_close(linger->sock);
    free(linger);
}

static void on_timeout(h2o_timeout_entry_t *entry)
{
    end(H2O_STRUCT_FROM_MEMBER(struct lingering, timer, entry));
}

/* Waits for more, as long as it may. */
static void go_on(struct lingering *linger)
{
    struct srv_loop *loop = linger->loop;
    if (h2o_now(loop->ctx.loop) >= linger->until_ms) {
        end(linger);
        return;
    }
    h2o_timeout_unlink(&linger->timer);
    h2o_timeout_link(loop->ctx.loop, &loop->timeouts[SRV_TIMEOUT_LINGER], &linger->timer);
}

static void on_readable(h2o_socket_t *sock, const char *err)
{
    struct lingering *linger = sock->data;
    if (err == NULL) {
        ssize_t n =
            recv(h2o_socket_get_fd(sock), linger->loop->scratch, SRV_SCRATCH_BYTES, MSG_DONTWAIT);
        if (n == -1 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n > 0 && (size_t)n < linger->left) {
            linger->left -= (size_t)n;
            go_on(linger);
            return;
        }
    }
    end(linger);
}

void srv_linger_start(struct srv_loop *loop, int fd)
{
    if (fd == -1)
        return;
    /* The oldest has had the most of its time. */
    if (loop->n_lingers == SRV_LINGERS_MAX)
        end(H2O_STRUCT_FROM_MEMBER(struct lingering, link, loop->lingers.next));
    struct lingering *linger = h2o_mem_alloc(sizeof *linger);
    *linger = (struct lingering){
        .loop = loop, .left = DROPPED_MAX, .until_ms = h2o_now(loop->ctx.loop) + LINGER_MS};
    shutdown(fd, SHUT_WR);
    linger->sock = h2o_evloop_socket_create(loop->ctx.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    linger->sock->data = linger;
    linger->timer.cb = on_timeout;
    h2o_linklist_insert(&loop->lingers, &linger->link);
    loop->n_lingers++;
    h2o_timeout_link(loop->ctx.loop, &loop->timeouts[SRV_TIMEOUT_LINGER], &linger->timer);
    h2o_socket_read_start(linger->sock, on_readable);
}

void srv_linger_stop(struct srv_loop *loop)
{
    while (!h2o_linklist_is_empty(&loop->lingers))
        end(H2O_STRUCT_FROM_MEMBER(struct lingering, link, loop->lingers.next));
}
