#include "api/deferred.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/check.h"
#include "engine/base/lock.h"
#include "engine/base/sys.h"
#include "engine/base/thread.h"

#include "api/handle.h"
#include "api/store.h"

/* Between two looks at the sockets: short at first, for what is nearly through. */
#define LOOK_MIN_NS UINT64_C(1000000)
#define LOOK_MAX_NS UINT64_C(50000000)

/* A handle that waits; `fd` -1: for its token. */
struct row {
    struct gyre_handle *handle;
    uint64_t token;
    uint64_t deadline_ns;
    int fd;
    bool is_local;
    struct row *next;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t added = PTHREAD_COND_INITIALIZER; /* a row with a socket */
static struct row *rows;
static uint32_t n_rows, n_sockets;
static uint64_t last_token;
static bool has_thread;

void api_deferred_lock(void)
{
    pthread_mutex_lock(&table_lock);
}

void api_deferred_unlock(void)
{
    pthread_mutex_unlock(&table_lock);
}

/* The child's copies of sockets would keep connections open. */
void api_deferred_forget(void)
{
    while (rows != NULL) {
        struct row *row = rows;
        rows = row->next;
        if (row->fd >= 0)
            close(row->fd);
        api_handle_forget(row->handle);
        free(row);
    }
    n_rows = n_sockets = 0;
    has_thread = false;
    pthread_cond_init(&added, NULL);
}

uint32_t gyre_deferred(void)
{
    pthread_mutex_lock(&table_lock);
    uint32_t n = n_rows;
    pthread_mutex_unlock(&table_lock);
    return n;
}

static void add_locked(struct row *row)
{
    row->next = rows;
    rows = row;
    n_rows++;
}

static struct row *remove_locked(struct row **at)
{
    struct row *row = *at;
    *at = row->next;
    n_rows--;
    return row;
}

/* Without the lock: releasing the last handle of a closed store ends it. */
static void release(struct row *row)
{
    gyre_release(row->handle);
    if (row->fd >= 0)
        close(row->fd);
    free(row);
}

static struct row *make(struct gyre_handle *handle)
{
    struct row *row = calloc(1, sizeof *row);
    if (row != NULL)
        *row = (struct row){.handle = handle, .fd = -1};
    return row;
}

static gyre_err check_handle(const struct gyre_handle *handle)
{
    if (handle == NULL)
        return GYRE_INVALID;
    GYRE_CHECK(handle->magic == API_HANDLE_LIVE);
    return api_is_inherited(handle->store, handle->life) ? GYRE_STATE : GYRE_OK;
}

/* ---- By token ---- */

gyre_err gyre_release_deferred(struct gyre_handle *handle, uint64_t *token_out)
{
    if (token_out == NULL)
        return GYRE_INVALID;
    *token_out = 0;
    gyre_err err = check_handle(handle);
    if (err != GYRE_OK)
        return err;
    struct row *row = make(handle);
    if (row == NULL)
        return GYRE_NO_MEMORY;
    pthread_mutex_lock(&table_lock);
    row->token = *token_out = ++last_token;
    add_locked(row);
    pthread_mutex_unlock(&table_lock);
    return GYRE_OK;
}

gyre_err gyre_release_token(uint64_t token)
{
    struct row *row = NULL;
    pthread_mutex_lock(&table_lock);
    struct row **at = &rows;
    while (*at != NULL && ((*at)->token != token || (*at)->fd >= 0))
        at = &(*at)->next;
    if (*at != NULL)
        row = remove_locked(at);
    pthread_mutex_unlock(&table_lock);
    if (row == NULL)
        return GYRE_NOT_FOUND;
    release(row);
    return GYRE_OK;
}

/* ---- Once sent ---- */

/* The peer's bytes never leave this machine. */
static bool is_local_peer(const struct sockaddr_storage *own, const struct sockaddr_storage *peer)
{
    if (own->ss_family == AF_INET && peer->ss_family == AF_INET) {
        const struct sockaddr_in *a = (const void *)own, *b = (const void *)peer;
        return a->sin_addr.s_addr == b->sin_addr.s_addr ||
               ntohl(b->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (own->ss_family == AF_INET6 && peer->ss_family == AF_INET6) {
        const struct sockaddr_in6 *a = (const void *)own, *b = (const void *)peer;
        const uint8_t *v4 = b->sin6_addr.s6_addr + 12;
        return memcmp(&a->sin6_addr, &b->sin6_addr, sizeof a->sin6_addr) == 0 ||
               IN6_IS_ADDR_LOOPBACK(&b->sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&b->sin6_addr) && *v4 == IN_LOOPBACKNET);
    }
    return false;
}

/* INVALID: not a connected TCP or UNIX stream. */
static gyre_err look_at_socket(struct row *row)
{
    struct sockaddr_storage own = {0}, peer = {0};
    socklen_t own_len = sizeof own, peer_len = sizeof peer;
    int type = 0;
    socklen_t type_len = sizeof type;
    if (getsockopt(row->fd, SOL_SOCKET, SO_TYPE, &type, &type_len) != 0 || type != SOCK_STREAM ||
        getsockname(row->fd, (struct sockaddr *)&own, &own_len) != 0 ||
        getpeername(row->fd, (struct sockaddr *)&peer, &peer_len) != 0)
        return GYRE_INVALID;
    row->is_local = is_local_peer(&own, &peer);
    return own.ss_family == AF_UNIX || own.ss_family == AF_INET || own.ss_family == AF_INET6
               ? GYRE_OK
               : GYRE_INVALID;
}

/* A UNIX socket counts what its peer has not read, a TCP socket what was not acknowledged. A
 * connection that has ended has nothing under way; one whose peer has only stopped sending has. */
static bool has_arrived(const struct row *row, uint64_t now_ns)
{
    struct pollfd fd = {.fd = row->fd, .events = POLLRDHUP};
    int unsent = 0;
    if (now_ns >= row->deadline_ns)
        return true;
    if (poll(&fd, 1, 0) > 0 && (fd.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0)
        return true;
    if (ioctl(row->fd, SIOCOUTQ, &unsent) != 0)
        return false;
    return unsent == 0 && (!row->is_local || (fd.revents & POLLRDHUP) != 0);
}

/* Rows whose bytes have arrived, taken out. */
static struct row *take_arrived_locked(uint64_t now_ns)
{
    struct row *arrived = NULL;
    for (struct row **at = &rows; *at != NULL;) {
        if ((*at)->fd < 0 || !has_arrived(*at, now_ns)) {
            at = &(*at)->next;
            continue;
        }
        struct row *row = remove_locked(at);
        n_sockets--;
        row->next = arrived;
        arrived = row;
    }
    return arrived;
}

/* Never ends: it sleeps while no socket is watched. */
static void watch(void *unused)
{
    uint64_t look_ns = LOOK_MIN_NS;
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&table_lock);
        while (n_sockets == 0) {
            look_ns = LOOK_MIN_NS;
            pthread_cond_wait(&added, &table_lock);
        }
        struct row *arrived = take_arrived_locked(eng_clock_mono_ns());
        pthread_mutex_unlock(&table_lock);
        look_ns = arrived != NULL || look_ns * 2 > LOOK_MAX_NS
                      ? (arrived != NULL ? LOOK_MIN_NS : LOOK_MAX_NS)
                      : look_ns * 2;
        while (arrived != NULL) {
            struct row *row = arrived;
            arrived = row->next;
            release(row);
        }
        const struct timespec nap = {.tv_nsec = (long)look_ns};
        nanosleep(&nap, NULL);
    }
}

static gyre_err start_thread_locked(void)
{
    static struct eng_thread thread;
    if (has_thread)
        return GYRE_OK;
    gyre_err err = eng_thread_start(&thread, "gyre-sent", watch, NULL);
    if (err == GYRE_OK)
        (void)!pthread_detach(thread.id_);
    has_thread = err == GYRE_OK;
    return err;
}

gyre_err gyre_release_when_sent(struct gyre_handle *handle, int fd, uint32_t grace_ms)
{
    gyre_err err = check_handle(handle);
    if (err != GYRE_OK)
        return err;
    struct row *row = make(handle);
    if (row == NULL)
        return GYRE_NO_MEMORY;
    row->deadline_ns = eng_clock_mono_ns() + grace_ms * UINT64_C(1000000);
    row->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (row->fd < 0)
        err = errno == EMFILE || errno == ENFILE ? GYRE_NO_FILES : GYRE_INVALID;
    else
        err = look_at_socket(row);
    if (err == GYRE_OK) {
        pthread_mutex_lock(&table_lock);
        err = start_thread_locked();
        if (err == GYRE_OK) {
            add_locked(row);
            n_sockets++;
            pthread_cond_signal(&added);
        }
        pthread_mutex_unlock(&table_lock);
    }
    if (err != GYRE_OK) {
        if (row->fd >= 0)
            close(row->fd);
        free(row);
    }
    return err;
}
