#include "server/h2o_glue.h"

#include <errno.h>
#include <string.h>

#include "server/check.h"
#include "server/conn.h"
#include "server/gates.h"
#include "server/tls.h"

enum {
    ACCEPTS_PER_WAKE = 16,
    /* Connections over the limit that are listened to before they are told so, and of these the
     * ones of one address. For one more the oldest is told at once in clear text, and closed
     * through TLS. */
    REFUSALS_MAX = 256,
    REFUSALS_PER_ADDRESS = 128,
};

static const char H2_PREFACE[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
enum { H2_PREFACE_LEN = sizeof H2_PREFACE - 1 };

/* One socket of a listener. */
struct srv_listen_slot {
    struct srv_listen_slot *next;
    struct srv_loop *loop;
    struct srv_listener *listener; /* a reference */
    SSL_CTX *tls;                  /* a reference; NULL: clear text */
    h2o_socket_t *sock;
    h2o_timeout_entry_t pause;
};

/* ---- Which protocol ---- */

static void on_sniff_timeout(h2o_timeout_entry_t *entry)
{
    struct srv_conn *conn = H2O_STRUCT_FROM_MEMBER(struct srv_conn, timer, entry);
    if (conn->is_tls)
        SRV_COUNT(conn->loop, tls_failed, 1);
    else if (conn->rest_len > 0)
        SRV_COUNT(conn->loop, prefaces_unfinished, 1);
    else
        SRV_COUNT(conn->loop, connections_silent, 1);
    h2o_socket_close(conn->sock);
}

static void start_protocol(struct srv_conn *conn, bool is_h2)
{
    srv_conn_clear_timer(conn);
    h2o_socket_read_stop(conn->sock);
    conn->protocol = is_h2 ? SRV_PROTOCOL_H2 : SRV_PROTOCOL_H1;
    if (is_h2 && conn->loop->env->is_h2_buffered)
        srv_gate_h2_start_buffered(conn);
    else if (is_h2)
        srv_gate_h2_start(conn);
    else
        srv_gate_h1_start(conn);
}

/* Receives into the scratch, behind what has been held so far. False when the connection is over or
 * nothing has come. */
static bool sniff_receive(struct srv_conn *conn)
{
    char *scratch = conn->loop->scratch;
    size_t held = conn->rest_len;
    if (held > 0)
        memmove(scratch, conn->rest, held);
    ssize_t n = recv(h2o_socket_get_fd(conn->sock), scratch + held, SRV_READ_BYTES, MSG_DONTWAIT);
    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            h2o_socket_close(conn->sock);
        return false;
    }
    if (conn->held != NULL)
        h2o_buffer_dispose(&conn->held);
    conn->rest = scratch;
    conn->rest_len = held + (size_t)n;
    return true;
}

static void on_sniff(h2o_socket_t *sock, const char *err)
{
    struct srv_conn *conn = sock->on_close.data;
    if (err != NULL) {
        h2o_socket_close(sock);
        return;
    }
    if (!sniff_receive(conn))
        return;
    size_t n = conn->rest_len < H2_PREFACE_LEN ? conn->rest_len : H2_PREFACE_LEN;
    /* What came to the wrong port is answered in the words of HTTP/1, which all understand. */
    bool may_be_h2 = conn->refusal != 400 && memcmp(conn->rest, H2_PREFACE, n) == 0;
    if (may_be_h2 && n < H2_PREFACE_LEN) {
        srv_conn_settle(conn);
        return;
    }
    start_protocol(conn, may_be_h2);
}

static void on_handshake(h2o_socket_t *sock, const char *err);

/* The first byte on a port for TLS. Whoever begins a plain request there has mistaken the port, and
 * can read an answer that says so. */
static void on_tls_sniff(h2o_socket_t *sock, const char *err)
{
    struct srv_conn *conn = sock->on_close.data;
    char first;
    ssize_t n = err != NULL ? 0 : recv(h2o_socket_get_fd(sock), &first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == -1 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        h2o_socket_close(sock);
        return;
    }
    if (first >= 'A' && first <= 'Z') {
        conn->is_tls = false;
        conn->refusal = 400;
        SRV_COUNT(conn->loop, tls_plain, 1);
        on_sniff(sock, NULL);
        return;
    }
    const struct srv_setting_entry *entry = srv_setting_find(conn->loop->setting, conn->listener);
    if (entry == NULL) { /* gone with a change of the configuration */
        h2o_socket_close(sock);
        return;
    }
    h2o_socket_read_stop(sock);
    h2o_socket_dont_read(sock, 0);
    h2o_socket_ssl_handshake(sock, entry->tls, NULL, on_handshake);
}

static void on_handshake(h2o_socket_t *sock, const char *err)
{
    struct srv_conn *conn = sock->on_close.data;
    if (err != NULL) {
        SRV_COUNT(conn->loop, tls_failed, 1);
        h2o_socket_close(sock);
        return;
    }
    h2o_iovec_t protocol = h2o_socket_ssl_get_selected_protocol(sock);
    srv_conn_take_tls(conn);
    start_protocol(conn, h2o_memis(protocol.base, protocol.len, H2O_STRLIT("h2")));
}

/* ---- Accepting ---- */

/* Finds the connection's client, and why that one is refused; 0 if it is not. */
static int enter_client(struct srv_conn *conn)
{
    const struct srv_loop *loop = conn->loop;
    const struct srv_setting_entry *entry = srv_setting_find(loop->setting, conn->listener);
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    uint8_t address[16];
    bool is_over;
    if (getpeername(h2o_socket_get_fd(conn->sock), (struct sockaddr *)&from, &len) != 0 ||
        !srv_cidr_address((struct sockaddr *)&from, address))
        return 0;
    if (entry != NULL && !srv_cidr_admits(&entry->limits.networks, address)) {
        SRV_COUNT(conn->loop, connections_denied, 1);
        return 403;
    }
    if (conn->listener->config.is_admin)
        return 0;
    conn->client = srv_clients_enter(loop->env->clients, address,
                                     srv_setting_per_address(loop->setting), &is_over);
    if (is_over)
        SRV_COUNT(conn->loop, connections_over_address, 1);
    return is_over ? 503 : 0;
}

/* Ends the wait of a connection that is refused: in clear text it hears why, in HTTP/1. */
static void give_up(struct srv_conn *conn)
{
    h2o_linklist_unlink(&conn->refused_link);
    if (conn->protocol == SRV_PROTOCOL_UNKNOWN && !conn->is_tls)
        start_protocol(conn, false);
    else if (conn->protocol == SRV_PROTOCOL_UNKNOWN)
        h2o_socket_close(conn->sock);
    else
        srv_conn_shutdown(conn);
}

/* Gives up this loop's oldest connection that is refused, of `client` unless that is NULL. False
 * when there is none. */
static bool make_place(struct srv_loop *loop, const struct srv_client *client)
{
    for (h2o_linklist_t *at = loop->refused.next; at != &loop->refused; at = at->next) {
        struct srv_conn *conn = H2O_STRUCT_FROM_MEMBER(struct srv_conn, refused_link, at);
        if (client != NULL && conn->client != client)
            continue;
        give_up(conn);
        return true;
    }
    return false;
}

/* Takes a place among those that are refused in their own words; it is given back when the
 * connection closes. False when there is none. */
static bool take_place(struct srv_conn *conn)
{
    struct srv_loop *loop = conn->loop;
    size_t all = atomic_fetch_add_explicit(&loop->env->n_refused, 1, memory_order_relaxed);
    size_t own = 0;
    conn->is_refused = true;
    if (conn->client != NULL)
        own = atomic_fetch_add_explicit(&conn->client->n_refused, 1, memory_order_relaxed);
    bool is_one_too_many = own >= REFUSALS_PER_ADDRESS;
    if ((is_one_too_many || all >= REFUSALS_MAX) &&
        !make_place(loop, is_one_too_many ? conn->client : NULL))
        return false;
    h2o_linklist_insert(&loop->refused, &conn->refused_link);
    return true;
}

/* Whether the connection may stay, if only to be told why it may not. */
static bool admit(struct srv_conn *conn)
{
    struct srv_loop *loop = conn->loop;
    conn->refusal = enter_client(conn);
    if (conn->listener->config.is_admin)
        return true;
    struct srv_loop_env *env = loop->env;
    size_t before = 0;
    if (conn->refusal == 0)
        before = atomic_fetch_add_explicit(&env->n_conns, 1, memory_order_relaxed);
    if (before < loop->setting->config.max_connections && conn->refusal == 0)
        return true;
    if (conn->refusal == 0) {
        atomic_fetch_sub_explicit(&env->n_conns, 1, memory_order_relaxed);
        conn->refusal = 503;
    }
    if (conn->refusal == 503)
        SRV_COUNT(loop, connections_refused, 1);
    return take_place(conn);
}

/* Refuses a connection that there is no place for, all being other loops'. Clear text costs nothing
 * but a moment of lingering; a handshake is work, and not begun. */
static void turn_away(struct srv_conn *conn)
{
    if (conn->is_tls)
        h2o_socket_close(conn->sock);
    else
        start_protocol(conn, false);
}

/* One that is refused and says nothing is told in HTTP/1. */
static void on_refused_silence(h2o_timeout_entry_t *entry)
{
    struct srv_conn *conn = H2O_STRUCT_FROM_MEMBER(struct srv_conn, timer, entry);
    SRV_COUNT(conn->loop, connections_silent, 1);
    start_protocol(conn, false);
}

static void accept_one(struct srv_listen_slot *slot, h2o_socket_t *sock)
{
    struct srv_conn *conn = srv_conn_create(slot->loop, slot->listener, slot->tls != NULL, sock);
    /* The gates receive by themselves, into memory of their choice. */
    h2o_socket_dont_read(sock, 1);
    if (!admit(conn)) {
        turn_away(conn);
        return;
    }
    if (!conn->is_refused)
        srv_conn_set_timer(conn, SRV_TIMEOUT_HANDSHAKE, on_sniff_timeout);
    else if (conn->is_tls)
        srv_conn_set_timer(conn, SRV_TIMEOUT_LINGER, on_sniff_timeout);
    else
        srv_conn_set_timer(conn, SRV_TIMEOUT_REFUSED, on_refused_silence);
    h2o_socket_read_start(sock, conn->is_tls ? on_tls_sniff : on_sniff);
}

static void on_accept(h2o_socket_t *listener, const char *err);

static void on_pause_over(h2o_timeout_entry_t *entry)
{
    struct srv_listen_slot *slot = H2O_STRUCT_FROM_MEMBER(struct srv_listen_slot, pause, entry);
    h2o_socket_read_start(slot->sock, on_accept);
}

/* Accepts up to `max`; true if there may be more. */
static bool accept_some(struct srv_listen_slot *slot, int max)
{
    for (int i = 0; i < max; i++) {
        h2o_socket_t *sock = h2o_evloop_socket_accept(slot->sock);
        if (sock != NULL) {
            accept_one(slot, sock);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* The queue stays readable, so that polling it now would only burn the core that could
             * free a descriptor. */
            h2o_socket_read_stop(slot->sock);
            slot->pause.cb = on_pause_over;
            h2o_timeout_link(slot->loop->ctx.loop, &slot->loop->timeouts[SRV_TIMEOUT_ACCEPT_PAUSE],
                             &slot->pause);
        }
        return errno == ECONNABORTED || errno == EINTR;
    }
    return true;
}

static void on_accept(h2o_socket_t *listener, const char *err)
{
    if (err == NULL)
        accept_some(listener->data, ACCEPTS_PER_WAKE);
}

/* ---- Slots ---- */

static void open_slot(struct srv_loop *loop, const struct srv_setting_entry *entry, unsigned index)
{
    struct srv_listener *listener = entry->listener;
    struct srv_listen_slot *slot = h2o_mem_alloc(sizeof *slot);
    *slot = (struct srv_listen_slot){.next = loop->slots, .loop = loop, .listener = listener};
    loop->slots = slot;
    srv_listener_ref(listener);
    listener->is_taken[index] = true;
    listen(listener->fds[index], SOMAXCONN); /* one that joined its group does not yet */
    slot->tls = entry->tls == NULL ? NULL : srv_tls_ref(entry->tls);
    slot->sock =
        h2o_evloop_socket_create(loop->ctx.loop, listener->fds[index], H2O_SOCKET_FLAG_DONT_READ);
    slot->sock->data = slot;
    h2o_socket_read_start(slot->sock, on_accept);
}

/* Clients in the kernel's queue believe to be connected; closing the last socket of a queue would
 * reset them. */
static void accept_queued(struct srv_listen_slot *slot)
{
    for (int n = 0; n < SOMAXCONN && accept_some(slot, 1); n++)
        ;
}

/* Frees the slot at `link`; its listener may go with it. */
static void close_slot(struct srv_listen_slot **link)
{
    struct srv_listen_slot *slot = *link;
    *link = slot->next;
    h2o_timeout_unlink(&slot->pause);
    h2o_socket_close(slot->sock);
    srv_tls_destroy(slot->tls);
    srv_listener_unref(slot->listener);
    free(slot);
}

static bool has_slot(const struct srv_loop *loop, const struct srv_listener *listener)
{
    const struct srv_listen_slot *slot = loop->slots;
    while (slot != NULL && slot->listener != listener)
        slot = slot->next;
    return slot != NULL;
}

static void open_missing(struct srv_loop *loop)
{
    const struct srv_setting *setting = loop->setting;
    for (size_t i = 0; i < setting->n; i++) {
        const struct srv_setting_entry *entry = &setting->entries[i];
        bool is_due = loop->state == SRV_LOOP_RUN || entry->listener->config.is_admin;
        if (!is_due || has_slot(loop, entry->listener))
            continue;
        for (unsigned k = loop->index; k < entry->listener->n_fds; k += loop->env->n_loops)
            open_slot(loop, entry, k);
    }
}

void srv_listen_follow(struct srv_loop *loop)
{
    for (struct srv_listen_slot **link = &loop->slots, *slot; (slot = *link) != NULL;) {
        const struct srv_setting_entry *entry = srv_setting_find(loop->setting, slot->listener);
        if (entry == NULL) {
            accept_queued(slot);
            close_slot(link);
            continue;
        }
        if (slot->tls != entry->tls) {
            srv_tls_destroy(slot->tls);
            slot->tls = srv_tls_ref(entry->tls);
        }
        link = &slot->next;
    }
    if (loop->state <= SRV_LOOP_RUN)
        open_missing(loop);
}

static void stop_accepting(struct srv_loop *loop, bool with_admin)
{
    for (struct srv_listen_slot **link = &loop->slots, *slot; (slot = *link) != NULL;) {
        /* Who asks after a successor has come asks about that. */
        bool is_handed_over = slot->listener->is_handed_over;
        if (slot->listener->config.is_admin && !with_admin && !is_handed_over) {
            link = &slot->next;
            continue;
        }
        if (!is_handed_over)
            accept_queued(slot);
        close_slot(link);
    }
}

/* Calls `end` for every connection; each call may close its own. */
static void for_each_conn(struct srv_loop *loop, void (*end)(struct srv_conn *conn))
{
    h2o_linklist_t *next;
    for (h2o_linklist_t *node = loop->conns.next; node != &loop->conns; node = next) {
        next = node->next;
        end(H2O_STRUCT_FROM_MEMBER(struct srv_conn, link, node));
    }
}

/* Closes the connection if it has no request, soon if it has begun with one; HTTP/2 is told by
 * libh2o. */
static void drain(struct srv_conn *conn)
{
    if (conn->sock == NULL || conn->is_ending || conn->listener->config.is_admin ||
        conn->protocol == SRV_PROTOCOL_H2)
        return;
    bool is_silent = conn->sock->_cb.read == on_sniff || conn->sock->_cb.read == on_tls_sniff;
    if (conn->protocol == SRV_PROTOCOL_H1) {
        srv_gate_h1_drain(conn);
    } else if (conn->rest_len == 0 && is_silent) {
        h2o_socket_close(conn->sock);
    } else {
        conn->is_ending = true;
        srv_conn_set_timer(conn, SRV_TIMEOUT_LINGER, on_sniff_timeout);
    }
}

/* Closes the connection at once, without a TLS goodbye. */
static void cut(struct srv_conn *conn)
{
    srv_conn_ref(conn);
    switch (conn->protocol) {
    case SRV_PROTOCOL_UNKNOWN: h2o_socket_close(conn->sock); break;
    case SRV_PROTOCOL_H1: srv_gate_h1_close(conn); break;
    case SRV_PROTOCOL_H2:
        /* libh2o may have forgotten a connection whose TLS has yet to say goodbye. It has not while
         * it reads. */
        if (conn->h2 != NULL && conn->sock->_cb.read != NULL)
            conn->h2o_read(conn->sock, h2o_socket_error_closed);
        break;
    }
    srv_conn_shutdown(conn);
    srv_conn_unref(conn);
}

void srv_listen_end_idle(struct srv_loop *loop)
{
    for_each_conn(loop, drain);
}

void srv_listen_stop(struct srv_loop *loop)
{
    stop_accepting(loop, false);
}

void srv_listen_cut(struct srv_loop *loop)
{
    stop_accepting(loop, true);
    for_each_conn(loop, cut);
}
