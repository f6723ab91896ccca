#include "server/h2o_glue.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/conn.h"
#include "server/gates.h"
#include "server/h2_probe.h"

enum {
    TURNS = 200,
    TURN_MS = 10,
    LIMIT_S = 20,
    FRAME_HEAD = 9,
    ANSWER_MAX = 8192,
    BODY_BYTES = 5,
    BUDGET_BYTES = 1 << 20,
};

/* PUT / with a body of five bytes: preface, SETTINGS, HEADERS, DATA. */
static const char REQUEST[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                              "\0\0\0\4\0\0\0\0\0"
                              "\0\0\x0a\1\4\0\0\0\1"
                              "\2\3PUT\x86\x84\1\1a"
                              "\0\0\5\0\1\0\0\0\1hello";

/* ---- The handler: answers with the body ---- */

static void on_body(void *ctx, enum srv_body_event event, struct srv_buf *buf)
{
    static const struct srv_field fields[] = {{{"X-Probe", 7}, {"yes", 3}}};
    const struct srv_response response = {.status = 200, .fields = fields, .n_fields = 1};
    bool is_whole = event == SRV_BODY_END && buf != NULL;
    srv_respond_bytes(ctx, &response, is_whole ? (const char *)buf->base : "",
                      is_whole ? buf->len : 0);
    srv_buf_release(buf);
}

static void start(void *data, struct srv_exchange *ex)
{
    (void)data;
    srv_exchange_attach(ex, ex, NULL);
    srv_body_read(ex, on_body);
}

/* ---- The answer ---- */

/* The payload of the first frame of this kind, or NULL. */
static const uint8_t *find_frame(const uint8_t *answer, size_t len, int type, size_t *size_out)
{
    for (size_t at = 0; at + FRAME_HEAD <= len; at += FRAME_HEAD + *size_out) {
        const uint8_t *head = answer + at;
        *size_out = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        if (at + FRAME_HEAD + *size_out > len)
            return NULL;
        if (head[3] == type)
            return head + FRAME_HEAD;
    }
    return NULL;
}

/* The window was opened by the gate, the head is as our encoder writes it, the body came round. */
static bool is_right(const uint8_t *answer, size_t len)
{
    enum { DATA = 0, HEADERS = 1, WINDOW_UPDATE = 8, WINDOW_DEFAULT = 65535 };
    const uint32_t grown = SRV_FRONT_H2_WINDOW - WINDOW_DEFAULT;
    size_t n;
    const uint8_t *at = find_frame(answer, len, WINDOW_UPDATE, &n);
    uint32_t credit = at == NULL || n != 4 ? 0
                                           : (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
                                                 (uint32_t)at[2] << 8 | at[3];
    /* libh2o by itself would give four times as much. With the window comes what the handler has
     * taken by then. */
    if (credit < grown || credit > grown + BODY_BYTES)
        return false;
    at = find_frame(answer, len, HEADERS, &n);
    if (at == NULL || memmem(at, n, "x-probe\3yes", 11) == NULL)
        return false;
    at = find_frame(answer, len, DATA, &n);
    return at != NULL && n == BODY_BYTES && memcmp(at, "hello", BODY_BYTES) == 0;
}

/* ---- The request ---- */

static struct srv_loop *create_loop(void)
{
    static struct srv_setting setting;
    static struct srv_loop_env env;
    srv_front_config_init(&setting.config);
    env = (struct srv_loop_env){.setting = &setting, .n_loops = 1};
    env.bufs = srv_buf_pool_create(BUDGET_BYTES);
    srv_loop_env_init_h2o(&env, &setting.config);
    return env.bufs == NULL ? NULL : srv_loop_create(&env, 0);
}

static void connect_probe(struct srv_loop *loop, int fd, bool is_broken)
{
    static struct srv_handler handler = {.start = start};
    static struct srv_listener listener = {.refs = 2, .config = {.handler = &handler}};
    h2o_socket_t *sock = h2o_evloop_socket_create(loop->ctx.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    struct srv_conn *conn = srv_conn_create(loop, &listener, false, sock);
    h2o_socket_dont_read(sock, !is_broken);
    conn->protocol = SRV_PROTOCOL_H2;
    if (is_broken)
        srv_gate_h2_start_buffered(conn);
    else
        srv_gate_h2_start(conn);
}

static bool run(bool is_broken)
{
    static uint8_t answer[ANSWER_MAX];
    size_t len = 0;
    int fds[2];
    struct srv_loop *loop = create_loop();
    if (loop == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0)
        return false;
    connect_probe(loop, fds[0], is_broken);
    ssize_t n = write(fds[1], REQUEST, sizeof REQUEST - 1);
    for (int i = 0; i < TURNS && n > 0 && !is_right(answer, len); i++) {
        srv_loop_turn(loop, TURN_MS);
        ssize_t got = recv(fds[1], answer + len, sizeof answer - len, MSG_DONTWAIT);
        len += got > 0 ? (size_t)got : 0;
    }
    return is_right(answer, len);
}

/* ASan's allocator does not survive a fork beside threads: its builds, made with the very library
 * that the build found, take the answer for granted. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SRV_H2_PROBE_FORKS false
#endif
#endif
#ifndef SRV_H2_PROBE_FORKS
#define SRV_H2_PROBE_FORKS true
#endif

bool srv_h2_probe(bool is_broken)
{
    int status = -1;
    if (!SRV_H2_PROBE_FORKS)
        return !is_broken;
    pid_t child = fork();
    if (child == -1)
        return false;
    if (child == 0) {
        alarm(LIMIT_S);
        _exit(run(is_broken) ? 0 : 1);
    }
    while (waitpid(child, &status, 0) == -1 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
