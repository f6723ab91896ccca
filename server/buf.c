#include "server/buf.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "server/check.h"

enum { SIZE_SMALL = 64 << 10, SIZE_LARGE = 1 << 20 };

/* Free buffers kept for the next bodies; what comes back beyond goes back to the system. */
enum { IDLE_MAX_BYTES = 32 << 20 };

enum size_class { SMALL, LARGE, N_CLASSES };

static const size_t class_bytes[N_CLASSES] = {SIZE_SMALL, SIZE_LARGE};

/* [c] const after create  [w] under `lock`  [a] atomic */
struct srv_buf_pool {
    pthread_mutex_t lock;
    struct srv_buf *free[N_CLASSES]; /* [w] */
    size_t held_bytes;               /* [w] handed out or free; never above the budget */
    size_t idle_bytes;               /* [w] free; at most IDLE_MAX_BYTES */
    size_t budget_bytes;             /* [c] */
    size_t share_bytes;              /* [c] */
    _Atomic size_t used_bytes;       /* [a] handed out */
};

static void destroy_buf(struct srv_buf *buf)
{
    munmap(buf->base, buf->capacity);
    free(buf);
}

static struct srv_buf *create_buf(struct srv_buf_pool *pool, size_t capacity)
{
    struct srv_buf *buf = calloc(1, sizeof *buf);
    if (buf == NULL)
        return NULL;
    /* Its own mapping: the heap would keep the pages of what is given up. */
    void *base = mmap(NULL, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        free(buf);
        return NULL;
    }
    buf->base = base;
    buf->capacity = capacity;
    buf->pool_ = pool;
    return buf;
}

static struct srv_buf *pop_locked(struct srv_buf_pool *pool, enum size_class class)
{
    struct srv_buf *buf = pool->free[class];
    if (buf != NULL) {
        pool->free[class] = buf->next_;
        pool->idle_bytes -= buf->capacity;
    }
    return buf;
}

/* Takes `bytes` out of the budget, giving up free buffers for them; these go to *victims_out, for
 * the caller to free without the lock. */
static bool hold_locked(struct srv_buf_pool *pool, size_t bytes, struct srv_buf **victims_out)
{
    if (bytes > pool->budget_bytes)
        return false;
    while (pool->held_bytes + bytes > pool->budget_bytes) {
        struct srv_buf *victim = pop_locked(pool, LARGE);
        if (victim == NULL)
            victim = pop_locked(pool, SMALL);
        if (victim == NULL)
            return false;
        pool->held_bytes -= victim->capacity;
        victim->next_ = *victims_out;
        *victims_out = victim;
    }
    pool->held_bytes += bytes;
    return true;
}

struct srv_buf_pool *srv_buf_pool_create(size_t budget_bytes)
{
    struct srv_buf_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return NULL;
    pool->budget_bytes = budget_bytes;
    pool->share_bytes = SIZE_MAX;
    pthread_mutex_init(&pool->lock, NULL);
    return pool;
}

void srv_buf_pool_limit_share(struct srv_buf_pool *pool, size_t bytes)
{
    pool->share_bytes = bytes;
}

size_t srv_buf_pool_share_bytes(const struct srv_buf_pool *pool)
{
    return pool->share_bytes;
}

static void destroy_list(struct srv_buf *buf)
{
    while (buf != NULL) {
        struct srv_buf *next = buf->next_;
        destroy_buf(buf);
        buf = next;
    }
}

void srv_buf_pool_destroy(struct srv_buf_pool *pool)
{
    if (pool == NULL)
        return;
    SRV_CHECK(srv_buf_pool_used_bytes(pool) == 0);
    for (int class = 0; class < N_CLASSES; class ++)
        destroy_list(pool->free[class]);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

struct srv_buf *srv_buf_acquire(struct srv_buf_pool *pool, size_t want_bytes)
{
    enum size_class class = want_bytes <= SIZE_SMALL ? SMALL : LARGE;
    struct srv_buf *victims = NULL;
    pthread_mutex_lock(&pool->lock);
    struct srv_buf *buf = pop_locked(pool, class);
    bool may_grow = buf == NULL && hold_locked(pool, class_bytes[class], &victims);
    pthread_mutex_unlock(&pool->lock);
    destroy_list(victims);

    if (may_grow) {
        buf = create_buf(pool, class_bytes[class]);
        if (buf == NULL) {
            pthread_mutex_lock(&pool->lock);
            pool->held_bytes -= class_bytes[class];
            pthread_mutex_unlock(&pool->lock);
        }
    }
    if (buf != NULL) {
        buf->len = 0;
        buf->next_ = NULL;
        atomic_fetch_add_explicit(&pool->used_bytes, buf->capacity, memory_order_relaxed);
    }
    return buf;
}

/* Whether `bytes` more are within the share; they are counted then. */
static bool take_share(const struct srv_buf_pool *pool, _Atomic size_t *share, size_t bytes)
{
    size_t before = atomic_fetch_add_explicit(share, bytes, memory_order_relaxed);
    if (before <= pool->share_bytes && bytes <= pool->share_bytes - before)
        return true;
    atomic_fetch_sub_explicit(share, bytes, memory_order_relaxed);
    return false;
}

struct srv_buf *srv_buf_acquire_for(struct srv_buf_pool *pool, _Atomic size_t *share,
                                    size_t want_bytes)
{
    size_t bytes = class_bytes[want_bytes <= SIZE_SMALL ? SMALL : LARGE];
    if (share == NULL)
        return srv_buf_acquire(pool, want_bytes);
    if (!take_share(pool, share, bytes))
        return NULL;
    struct srv_buf *buf = srv_buf_acquire(pool, want_bytes);
    if (buf == NULL)
        atomic_fetch_sub_explicit(share, bytes, memory_order_relaxed);
    else
        buf->share_ = share;
    return buf;
}

bool srv_buf_reserve(struct srv_buf_pool *pool, _Atomic size_t *share, size_t bytes)
{
    struct srv_buf *victims = NULL;
    if (share != NULL && !take_share(pool, share, bytes))
        return false;
    pthread_mutex_lock(&pool->lock);
    bool ok = hold_locked(pool, bytes, &victims);
    pthread_mutex_unlock(&pool->lock);
    destroy_list(victims);
    if (ok)
        atomic_fetch_add_explicit(&pool->used_bytes, bytes, memory_order_relaxed);
    else if (share != NULL)
        atomic_fetch_sub_explicit(share, bytes, memory_order_relaxed);
    return ok;
}

void srv_buf_unreserve(struct srv_buf_pool *pool, _Atomic size_t *share, size_t bytes)
{
    pthread_mutex_lock(&pool->lock);
    pool->held_bytes -= bytes;
    pthread_mutex_unlock(&pool->lock);
    atomic_fetch_sub_explicit(&pool->used_bytes, bytes, memory_order_relaxed);
    /* Release: who finds the share empty may give it to another. */
    if (share != NULL)
        atomic_fetch_sub_explicit(share, bytes, memory_order_release);
}

void srv_buf_release(struct srv_buf *buf)
{
    if (buf == NULL)
        return;
    struct srv_buf_pool *pool = buf->pool_;
    enum size_class class = buf->capacity == SIZE_SMALL ? SMALL : LARGE;
    atomic_fetch_sub_explicit(&pool->used_bytes, buf->capacity, memory_order_relaxed);
    /* Release: who finds the share empty may give it to another. */
    if (buf->share_ != NULL)
        atomic_fetch_sub_explicit(buf->share_, buf->capacity, memory_order_release);
    buf->share_ = NULL;
    pthread_mutex_lock(&pool->lock);
    bool is_kept = pool->idle_bytes + buf->capacity <= IDLE_MAX_BYTES;
    if (is_kept) {
        buf->next_ = pool->free[class];
        pool->free[class] = buf;
        pool->idle_bytes += buf->capacity;
    } else {
        pool->held_bytes -= buf->capacity;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!is_kept)
        destroy_buf(buf);
}

size_t srv_buf_pool_used_bytes(const struct srv_buf_pool *pool)
{
    return atomic_load_explicit(&pool->used_bytes, memory_order_relaxed);
}

size_t srv_buf_pool_budget_bytes(const struct srv_buf_pool *pool)
{
    return pool->budget_bytes;
}
