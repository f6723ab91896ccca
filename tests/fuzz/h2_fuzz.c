/* Any bytes as what an HTTP/2 client sends behind its preface, in two pieces, through the gate and
 * libh2o to a handler that reads bodies: nothing is held when the client is gone, and no more than
 * the window before. */
#include "server/h2o_glue.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/conn.h"
#include "server/gates.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BUDGET = 8 << 20, TURNS = 4 };

static const char PREFACE[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
static struct srv_loop *loop;
static struct srv_loop_env env;
static struct srv_setting setting;

static void require(bool cond)
{
    if (!cond)
        abort();
}

/* ---- The handler ---- */

static void on_body(void *ctx, enum srv_body_event event, struct srv_buf *buf)
{
    const struct srv_response response = {.status = event == SRV_BODY_END ? 200 : 400};
    srv_buf_release(buf);
    if (event == SRV_BODY_DATA)
        srv_body_read(ctx, on_body);
    else
        srv_respond_bytes(ctx, &response, "done", 4);
}

static void start(void *data, struct srv_exchange *ex)
{
    const struct srv_request *req = srv_exchange_request(ex);
    (void)data;
    srv_exchange_attach(ex, ex, NULL);
    require(req->path.len > 0 && req->n_fields <= SRV_HEAD1_FIELDS_MAX);
    require(req->has_body || req->content_length == 0);
    /* One that never answers, one that answers without reading, and all others. */
    if (req->path.len > 1 && req->path.base[1] == 'n')
        return;
    if (req->path.len > 1 && req->path.base[1] == 'e')
        srv_respond_bytes(ex, &(struct srv_response){.status = 403}, "no", 2);
    else
        srv_body_read(ex, on_body);
}

/* ---- The connection ---- */

static void init(void)
{
    srv_front_config_init(&setting.config);
    env = (struct srv_loop_env){.setting = &setting, .n_loops = 1};
    env.bufs = srv_buf_pool_create(BUDGET);
    srv_loop_env_init_h2o(&env, &setting.config);
    loop = srv_loop_create(&env, 0);
    require(loop != NULL);
}

static void turn(void)
{
    for (int i = 0; i < TURNS; i++)
        srv_loop_turn(loop, 0);
    require(srv_buf_pool_used_bytes(env.bufs) <= SRV_FRONT_H2_WINDOW + (1 << 20));
}

/* What a client says; whether the server still hears it is its own affair. */
static void say(int fd, const void *bytes, size_t n)
{
    ssize_t sent = n > 0 ? send(fd, bytes, n, MSG_NOSIGNAL) : 0;
    (void)sent;
}

static void drop_output(int fd)
{
    static char bytes[1 << 16];
    while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct srv_handler handler = {.start = start};
    static struct srv_listener listener = {.refs = 1, .config = {.handler = &handler}};
    int fds[2];
    if (loop == NULL)
        init();
    if (size < 1 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0)
        return 0;
    size_t cut = size * data[0] / 256;
    h2o_socket_t *sock =
        h2o_evloop_socket_create(loop->ctx.loop, fds[0], H2O_SOCKET_FLAG_DONT_READ);
    srv_listener_ref(&listener);
    struct srv_conn *conn = srv_conn_create(loop, &listener, false, sock);
    atomic_fetch_add(&env.n_conns, 1);
    h2o_socket_dont_read(sock, 1);
    conn->protocol = SRV_PROTOCOL_H2;
    say(fds[1], PREFACE, sizeof PREFACE);
    srv_gate_h2_start(conn);
    turn();
    say(fds[1], data + 1, cut > 0 ? cut - 1 : 0);
    turn();
    drop_output(fds[1]);
    say(fds[1], data + (cut > 0 ? cut : 1), size - (cut > 0 ? cut : 1));
    turn();
    drop_output(fds[1]);
    close(fds[1]);
    for (int i = 0; i < 100 && loop->n_conns > 0; i++)
        srv_loop_turn(loop, 0);
    require(loop->n_conns == 0);
    require(srv_buf_pool_used_bytes(env.bufs) == 0);
    return 0;
}
