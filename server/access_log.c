#include "server/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/check.h"
#include "server/log.h"

enum {
    RING_BYTES = 1 << 20,
    GATHER_MS = 10,      /* lines of so long are written together */
    PATIENCE_MS = 100,   /* between two looks at a pipe that nobody reads */
    FAREWELL_MS = 2000,  /* for what is left when the file changes or the log ends */
    PIECE_MAX = PIPE_BUF /* a pipe that can be written to takes that much without blocking */
};

/* One loop's lines. [o] the loop's thread  [a] atomic, positions that only grow */
struct ring {
    _Alignas(64) _Atomic uint64_t head; /* [a] behind the newest line; written by the loop */
    _Atomic uint64_t dropped;           /* [a] written by the loop */
    _Alignas(64) _Atomic uint64_t tail; /* [a] the first byte not written out yet */
    char *bytes;                        /* [c] RING_BYTES */
    char *line;                         /* [o] SRV_ACCESS_LINE_MAX */
};

/* [c] const after create  [w] under `lock`  [t] the writer's  [m] the main thread's  [a] atomic */
struct srv_access_log {
    unsigned n_rings;         /* [c] */
    struct ring *rings;       /* [c] their memory is there once `is_on` has been true */
    int wake_fd;              /* [c] */
    bool is_started;          /* [m] */
    pthread_t thread;         /* [m] */
    _Atomic bool is_on;       /* [a] */
    _Atomic int format;       /* [a] enum srv_access_format */
    _Atomic bool is_asleep;   /* [a] the writer waits for somebody to wake it */
    _Atomic bool is_stopping; /* [a] */
    _Atomic uint64_t
        hurry_ms; /* [a] monotonic; when the file at hand has to be done with; 0: never */
    _Atomic uint64_t written; /* [a] lines; written by the writer */
    _Atomic uint64_t lost;    /* [a] lines that could not be written */
    pthread_mutex_t lock;
    int next_fd;   /* [w] to be used from now on */
    bool has_next; /* [w] */
    char *path;    /* [m] */
    int fd;        /* [t] -1: none */
    int failure;   /* [t] errno of the last write, so that it is said once */
};

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void wake(struct srv_access_log *log)
{
    uint64_t one = 1;
    ssize_t n = write(log->wake_fd, &one, sizeof one);
    (void)n;
}

/* ---- Loops ---- */

bool srv_access_log_on(const struct srv_access_log *log)
{
    return atomic_load_explicit(&log->is_on, memory_order_acquire); /* pairs with C */
}

static void copy_in(struct ring *ring, uint64_t head, const char *bytes, size_t len)
{
    size_t at = head % RING_BYTES, first = RING_BYTES - at;
    first = first < len ? first : len;
    memcpy(ring->bytes + at, bytes, first);
    memcpy(ring->bytes, bytes + first, len - first);
}

void srv_access_log_add(struct srv_access_log *log, unsigned loop,
                        const struct srv_access_entry *entry)
{
    if (!srv_access_log_on(log))
        return;
    struct ring *ring = &log->rings[loop];
    int format = atomic_load_explicit(&log->format, memory_order_relaxed);
    size_t len =
        srv_access_write((enum srv_access_format)format, entry, ring->line, SRV_ACCESS_LINE_MAX);
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t used =
        head - atomic_load_explicit(&ring->tail, memory_order_acquire); /* pairs with B */
    if (len == 0 || len > RING_BYTES - used) {
        atomic_fetch_add_explicit(&ring->dropped, 1, memory_order_relaxed);
        return;
    }
    copy_in(ring, head, ring->line, len);
    /* Sequential, so that either the writer sees the line before it falls asleep, or this thread
     * sees that it has. Release: the bytes come with it. A */
    atomic_store_explicit(&ring->head, head + len, memory_order_seq_cst);
    bool is_half_full = used < RING_BYTES / 2 && used + len >= RING_BYTES / 2;
    if (atomic_load_explicit(&log->is_asleep, memory_order_seq_cst) || is_half_full) {
        atomic_store_explicit(&log->is_asleep, false, memory_order_relaxed);
        wake(log);
    }
}

/* ---- Writing ---- */

static uint64_t count_lines(const char *bytes, size_t len)
{
    uint64_t n = 0;
    for (const char *at = bytes; (at = memchr(at, '\n', len - (size_t)(at - bytes))) != NULL; at++)
        n++;
    return n;
}

static bool is_stopping(const struct srv_access_log *log)
{
    return atomic_load_explicit(&log->is_stopping, memory_order_acquire);
}

/* Waits until the file takes bytes; false when others have waited for that long enough. */
static bool await(const struct srv_access_log *log)
{
    struct pollfd out = {.fd = log->fd, .events = POLLOUT};
    while (poll(&out, 1, PATIENCE_MS) <= 0) {
        uint64_t hurry_ms = atomic_load_explicit(&log->hurry_ms, memory_order_relaxed);
        if (hurry_ms != 0 && now_ms() >= hurry_ms)
            return false;
    }
    return true;
}

static bool is_file(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

/* How many of the bytes were written before something failed; errno says what. */
static size_t write_out(const struct srv_access_log *log, const char *bytes, size_t len)
{
    size_t max = is_file(log->fd) ? len : PIECE_MAX, done = 0;
    while (done < len) {
        if (!await(log)) {
            errno = ETIMEDOUT;
            break;
        }
        ssize_t n = write(log->fd, bytes + done, len - done < max ? len - done : max);
        if (n > 0)
            done += (size_t)n;
        else if (errno != EINTR && errno != EAGAIN)
            break;
    }
    return done;
}

static void write_lines(struct srv_access_log *log, const char *bytes, size_t len)
{
    errno = 0;
    size_t done = write_out(log, bytes, len);
    uint64_t lost = count_lines(bytes + done, len - done);
    atomic_fetch_add_explicit(&log->lost, lost, memory_order_relaxed);
    atomic_fetch_add_explicit(&log->written, count_lines(bytes, len) - lost, memory_order_relaxed);
    if (done < len && errno != log->failure) {
        log->failure = errno;
        srv_log(SRV_LOG_ERROR, "the access log loses lines: %s", strerror(errno));
    } else if (done == len && log->failure != 0) {
        log->failure = 0;
        srv_log(SRV_LOG_INFO, "the access log is written again");
    }
}

/* Writes out what the ring has; true if that was anything. */
static bool empty_ring(struct srv_access_log *log, struct ring *ring)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_seq_cst); /* pairs with A */
    if (tail == head)
        return false;
    while (tail < head) {
        size_t at = tail % RING_BYTES, len = RING_BYTES - at;
        len = head - tail < len ? (size_t)(head - tail) : len;
        write_lines(log, ring->bytes + at, len);
        tail += len;
        atomic_store_explicit(&ring->tail, tail, memory_order_release /* B */);
    }
    return true;
}

/* Without a file lines stay for the next one. */
static bool empty_rings(struct srv_access_log *log)
{
    bool any = false;
    for (unsigned i = 0; log->fd != -1 && i < log->n_rings; i++)
        any = empty_ring(log, &log->rings[i]) || any;
    return any;
}

/* Goes over to another file; what was added before belongs to the old one. */
static void take_next(struct srv_access_log *log)
{
    pthread_mutex_lock(&log->lock);
    bool has_next = log->has_next;
    int fd = log->next_fd;
    log->has_next = false;
    pthread_mutex_unlock(&log->lock);
    if (!has_next)
        return;
    empty_rings(log);
    if (log->fd != -1)
        close(log->fd);
    log->fd = fd;
    log->failure = 0;
    if (!is_stopping(log))
        atomic_store_explicit(&log->hurry_ms, 0, memory_order_relaxed);
}

/* Until somebody wakes, or `wait_ms` are over. */
static void pause_for(const struct srv_access_log *log, int wait_ms)
{
    struct pollfd in = {.fd = log->wake_fd, .events = POLLIN};
    uint64_t n;
    if (poll(&in, 1, wait_ms) > 0) {
        ssize_t got = read(log->wake_fd, &n, sizeof n);
        (void)got;
    }
}

static void *run(void *arg)
{
    struct srv_access_log *log = arg;
    while (!is_stopping(log)) {
        take_next(log);
        atomic_store_explicit(&log->is_asleep, true, memory_order_seq_cst);
        if (!empty_rings(log))
            pause_for(log, -1);
        atomic_store_explicit(&log->is_asleep, false, memory_order_relaxed);
        take_next(log);
        if (!is_stopping(log))
            pause_for(log, GATHER_MS);
        empty_rings(log);
    }
    take_next(log);
    empty_rings(log);
    if (log->fd != -1)
        close(log->fd);
    return NULL;
}

/* ---- Switching ---- */

static void hurry(struct srv_access_log *log)
{
    atomic_store_explicit(&log->hurry_ms, now_ms() + FAREWELL_MS, memory_order_relaxed);
}

struct srv_access_log *srv_access_log_create(unsigned n_loops)
{
    struct srv_access_log *log = calloc(1, sizeof *log);
    if (log == NULL)
        return NULL;
    log->n_rings = n_loops;
    log->fd = log->next_fd = -1;
    log->rings = aligned_alloc(64, n_loops * sizeof *log->rings);
    log->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&log->lock, NULL);
    if (log->rings != NULL)
        memset(log->rings, 0, n_loops * sizeof *log->rings);
    if (log->rings != NULL && log->wake_fd != -1)
        return log;
    srv_access_log_destroy(log);
    return NULL;
}

void srv_access_log_destroy(struct srv_access_log *log)
{
    if (log == NULL)
        return;
    atomic_store_explicit(&log->is_stopping, true, memory_order_release);
    hurry(log);
    if (log->is_started) {
        wake(log);
        pthread_join(log->thread, NULL);
    }
    for (unsigned i = 0; log->rings != NULL && i < log->n_rings; i++) {
        free(log->rings[i].bytes);
        free(log->rings[i].line);
    }
    if (log->has_next && log->next_fd != -1)
        close(log->next_fd);
    if (log->wake_fd != -1)
        close(log->wake_fd);
    pthread_mutex_destroy(&log->lock);
    free(log->rings);
    free(log->path);
    free(log);
}

bool srv_access_log_open(const char *path, int *fd_out, char *error, size_t size)
{
    *fd_out = -1;
    if (path == NULL)
        return true;
    *fd_out = strcmp(path, "-") == 0
                  ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                  : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);
    if (*fd_out == -1)
        snprintf(error, size, "the access log \"%s\" cannot be opened: %s", path, strerror(errno));
    return *fd_out != -1;
}

static bool prepare(struct srv_access_log *log)
{
    sigset_t all, old;
    for (unsigned i = 0; i < log->n_rings; i++) {
        struct ring *ring = &log->rings[i];
        if (ring->bytes == NULL)
            ring->bytes = malloc(RING_BYTES);
        if (ring->line == NULL)
            ring->line = malloc(SRV_ACCESS_LINE_MAX);
        if (ring->bytes == NULL || ring->line == NULL)
            return false;
    }
    if (log->is_started)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    log->is_started = pthread_create(&log->thread, NULL, run, log) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return log->is_started;
}

static void give_next(struct srv_access_log *log, int fd)
{
    hurry(log);
    pthread_mutex_lock(&log->lock);
    if (log->has_next && log->next_fd != -1)
        close(log->next_fd);
    log->next_fd = fd;
    log->has_next = true;
    pthread_mutex_unlock(&log->lock);
    wake(log);
}

bool srv_access_log_set(struct srv_access_log *log, const char *path, int fd,
                        enum srv_access_format format)
{
    char *copy = path == NULL ? NULL : strdup(path);
    bool is_wanted = fd != -1;
    if ((path != NULL && copy == NULL) || (is_wanted && !prepare(log))) {
        if (is_wanted)
            close(fd);
        free(copy);
        return false;
    }
    free(log->path);
    log->path = copy;
    atomic_store_explicit(&log->format, (int)format, memory_order_relaxed);
    if (!is_wanted)
        atomic_store_explicit(&log->is_on, false, memory_order_relaxed);
    if (log->is_started)
        give_next(log, fd);
    if (is_wanted)
        atomic_store_explicit(&log->is_on, true, memory_order_release /* C */);
    return true;
}

void srv_access_log_reopen(struct srv_access_log *log)
{
    char error[512];
    int fd;
    if (log->path == NULL || strcmp(log->path, "-") == 0)
        return;
    if (srv_access_log_open(log->path, &fd, error, sizeof error))
        give_next(log, fd);
    else
        srv_log(SRV_LOG_ERROR, "%s; the old one is kept", error);
}

void srv_access_log_count(const struct srv_access_log *log, uint64_t *written, uint64_t *dropped)
{
    *written = atomic_load_explicit(&log->written, memory_order_relaxed);
    *dropped = atomic_load_explicit(&log->lost, memory_order_relaxed);
    for (unsigned i = 0; i < log->n_rings; i++)
        *dropped += atomic_load_explicit(&log->rings[i].dropped, memory_order_relaxed);
}
