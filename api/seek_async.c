/* Looks that wait without a thread. One that waits for a fetch of this process is woken by it, one
 * that waits for another process by the watcher, which all of them share; it also knows when a wait
 * has been long enough.
 *
 * A call that waits stands in the watcher's list. Whoever takes it out of there queues it again;
 * its waker, which may be running just then, finds it gone and does nothing.
 */
#include "api/seek.h"

#include <stdlib.h>

#include "engine/base/check.h"
#include "engine/base/sys.h"
#include "engine/process.h"

#include "api/store.h"

struct api_seek_call {
    struct api_seek seek;
    struct api_waker waker; /* in seek.flight's list */
    enum api_wait wait;
    uint64_t deadline_ns;
    uint32_t wait_ms;
    void (*done)(void *data, gyre_err err, const struct gyre_miss *miss);
    void *data;
    struct api_seek_call *next; /* [watch_lock] */
    bool listed;                /* [watch_lock] */
};

static void run_seek(const struct api_job *job);

static void queue_again(struct api_seek_call *call)
{
    struct gyre_store *store = call->seek.store;
    const struct api_job job = {
        .store = store, .shard = call->seek.shard, .run = run_seek, .call = call};
    api_pool_resume(&store->async, &job);
}

static bool unlist_locked(struct api_misses *misses, struct api_seek_call *call)
{
    struct api_seek_call **at = &misses->watched;
    if (!call->listed)
        return false;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    call->listed = false;
    return true;
}

static bool take(struct api_seek_call *call)
{
    struct api_misses *misses = &call->seek.store->misses;
    eng_lock_acquire(&misses->watch_lock);
    bool taken = unlist_locked(misses, call);
    eng_lock_release(&misses->watch_lock);
    return taken;
}

/* Under the flight's lock, on the thread that fills. */
static void on_change(void *data)
{
    struct api_seek_call *call = data;
    if (take(call))
        queue_again(call);
}

/* ---- The watcher ---- */

static bool is_due(const struct api_seek_call *call, uint64_t now_ns)
{
    struct gyre_store *store = call->seek.store;
    enum eng_flight_end how;
    if (now_ns >= call->deadline_ns ||
        atomic_load_explicit(&store->closing, memory_order_relaxed) != 0)
        return true;
    return call->wait == API_WAIT_THERE && eng_flight_ended(store->engine, &call->seek.row, &how);
}

/* The first call that is due, taken out; NULL if none is. */
static struct api_seek_call *take_due(struct api_misses *misses, uint64_t now_ns)
{
    eng_lock_acquire(&misses->watch_lock);
    struct api_seek_call *call = misses->watched;
    while (call != NULL && !is_due(call, now_ns))
        call = call->next;
    if (call != NULL)
        (void)unlist_locked(misses, call);
    eng_lock_release(&misses->watch_lock);
    return call;
}

/* Out of the flight's list, so that nobody is in its waker any more. */
static void release_waker(struct api_seek_call *call)
{
    struct api_flight *flight = call->seek.flight;
    if (call->wait != API_WAIT_HERE)
        return;
    eng_lock_acquire(&flight->lock);
    api_waker_unlist_locked(flight, &call->waker);
    eng_lock_release(&flight->lock);
}

/* One of the calls waits for another process, whose death nobody else may notice soon. */
static void look_after_owners(struct api_misses *misses, struct eng_store *engine)
{
    uint32_t process = UINT32_MAX;
    eng_lock_acquire(&misses->watch_lock);
    for (struct api_seek_call *call = misses->watched; call != NULL; call = call->next)
        if (call->wait == API_WAIT_THERE)
            process = call->seek.row.process;
    eng_lock_release(&misses->watch_lock);
    if (process != UINT32_MAX)
        (void)eng_processes_reap(engine);
}

static void watch(void *data)
{
    struct gyre_store *store = data;
    struct api_misses *misses = &store->misses;
    uint64_t looked_ns = eng_clock_mono_ns();
    for (;;) {
        eng_lock_acquire(&misses->watch_lock);
        while (misses->watched == NULL && !misses->stop)
            eng_cond_wait(&misses->watch, &misses->watch_lock);
        bool stop = misses->stop;
        eng_lock_release(&misses->watch_lock);
        if (stop)
            return;
        /* Before the look, so that what ends during it is not slept over. */
        uint32_t ended = eng_flights_ended(store->engine);
        uint64_t now_ns = eng_clock_mono_ns();
        struct api_seek_call *call;
        while ((call = take_due(misses, now_ns)) != NULL) {
            release_waker(call);
            queue_again(call);
        }
        if (now_ns - looked_ns >= API_SEEK_NS) {
            looked_ns = now_ns;
            look_after_owners(misses, store->engine);
        }
        eng_flights_wait(store->engine, ended, now_ns + API_SEEK_NS);
    }
}

void api_misses_stop(struct api_misses *misses)
{
    eng_lock_acquire(&misses->watch_lock);
    GYRE_CHECK(misses->watched == NULL);
    bool join = misses->has_watcher;
    misses->stop = true;
    eng_cond_broadcast(&misses->watch);
    eng_lock_release(&misses->watch_lock);
    if (join)
        eng_thread_join(&misses->watcher);
    misses->has_watcher = false;
    misses->stop = false;
}

/* ---- A call ---- */

/* Into the watcher's list. NO_MEMORY, BUSY: no watcher can be had. */
static gyre_err list(struct api_seek_call *call)
{
    struct gyre_store *store = call->seek.store;
    struct api_misses *misses = &store->misses;
    gyre_err err = GYRE_OK;
    eng_lock_acquire(&misses->watch_lock);
    if (!misses->has_watcher)
        err = eng_thread_start(&misses->watcher, "gyre-misses", watch, store);
    misses->has_watcher = misses->has_watcher || err == GYRE_OK;
    if (err == GYRE_OK) {
        call->next = misses->watched;
        misses->watched = call;
        call->listed = true;
        eng_cond_signal(&misses->watch);
    }
    eng_lock_release(&misses->watch_lock);
    return err;
}

/* Nothing is to be touched after this when it answers OK: the call may be on another thread. */
static gyre_err suspend(struct api_seek_call *call, enum api_wait wait)
{
    struct api_pool *pool = &call->seek.store->async;
    gyre_err err = api_pool_hold(pool);
    if (err != GYRE_OK)
        return err;
    call->wait = wait;
    if (wait == API_WAIT_THERE) {
        err = list(call);
    } else {
        struct api_flight *flight = call->seek.flight;
        eng_lock_acquire(&flight->lock);
        err = list(call);
        if (err == GYRE_OK) {
            call->waker = (struct api_waker){.waits_for_begin = true,
                                             .next = flight->wakers,
                                             .wake = on_change,
                                             .data = call,
                                             .listed = true};
            flight->wakers = &call->waker;
            api_flight_wake_locked(flight);
        }
        eng_lock_release(&flight->lock);
    }
    if (err != GYRE_OK)
        api_pool_let_go(pool);
    return err;
}

/* What a wait has come to: NOT_FOUND, look again; WOULD_BLOCK, go on waiting. */
static gyre_err conclude(struct api_seek_call *call, struct gyre_miss *miss_out)
{
    enum api_wait wait = call->wait;
    gyre_err err = GYRE_NOT_FOUND;
    enum eng_flight_end how;
    call->wait = API_WAIT_NOT;
    if (wait == API_WAIT_HERE) {
        eng_lock_acquire(&call->seek.flight->lock);
        err = api_seek_here_locked(&call->seek, miss_out);
        eng_lock_release(&call->seek.flight->lock);
        api_seek_end_here(&call->seek, miss_out);
    } else if (wait == API_WAIT_THERE) {
        if (!eng_flight_ended(call->seek.store->engine, &call->seek.row, &how)) {
            err = GYRE_WOULD_BLOCK;
        } else if (how == ENG_FLIGHT_PASSED) {
            miss_out->kind = GYRE_MISS_PASS;
            err = GYRE_OK;
        }
    }
    return err == GYRE_WOULD_BLOCK ? GYRE_TIMEOUT : err;
}

/* True when the call goes on later, and belongs to somebody else by now. */
static bool seek_on(struct api_seek_call *call, gyre_err *err_out, struct gyre_miss *miss_out)
{
    enum api_wait wait;
    *err_out = conclude(call, miss_out);
    while (*err_out == GYRE_NOT_FOUND) {
        *err_out = api_seek_once(&call->seek, miss_out, &wait);
        if (*err_out != GYRE_OK || wait == API_WAIT_NOT)
            return false;
        bool over = eng_clock_mono_ns() >= call->deadline_ns ||
                    atomic_load_explicit(&call->seek.store->closing, memory_order_relaxed) != 0;
        *err_out = over ? GYRE_TIMEOUT : suspend(call, wait);
        if (*err_out == GYRE_OK)
            return true;
        call->wait = wait;
        gyre_err now = conclude(call, miss_out);
        if (over || now == GYRE_OK)
            *err_out = now;
    }
    return false;
}

static void run_seek(const struct api_job *job)
{
    struct api_seek_call *call = job->call;
    struct gyre_store *store = job->store;
    struct gyre_miss miss = {0};
    gyre_err err;
    if (seek_on(call, &err, &miss))
        return;
    if (err == GYRE_TIMEOUT)
        err = atomic_load_explicit(&store->closing, memory_order_relaxed) != 0 ? GYRE_CLOSED
              : call->wait_ms == 0                                             ? GYRE_WOULD_BLOCK
                                                                               : GYRE_TIMEOUT;
    if (err != GYRE_OK)
        miss = (struct gyre_miss){0};
    call->done(call->data, err, &miss);
    free(call);
    api_leave(store, job->shard);
}

gyre_err gyre_miss_get_async(struct gyre_store *store, const struct gyre_key *key, uint32_t now,
                             unsigned flags, uint32_t wait_ms,
                             void (*done)(void *data, gyre_err err, const struct gyre_miss *miss),
                             void *data)
{
    if (done == NULL)
        return GYRE_INVALID;
    if (flags & GYRE_GET_NOWAIT)
        flags = (flags & ~(unsigned)GYRE_GET_NOWAIT) | GYRE_GET_LAZY;
    struct api_seek seek;
    gyre_err err = api_seek_init(&seek, store, key, now, flags);
    if (err != GYRE_OK)
        return err;
    struct api_seek_call *call = calloc(1, sizeof *call);
    if (call == NULL) {
        api_leave(store, seek.shard);
        return GYRE_NO_MEMORY;
    }
    call->seek = seek;
    call->deadline_ns = eng_clock_mono_ns() + wait_ms * UINT64_C(1000000);
    call->wait_ms = wait_ms;
    call->done = done;
    call->data = data;
    const struct api_job job = {.store = store, .shard = seek.shard, .run = run_seek, .call = call};
    err = api_pool_submit(&store->async, &job);
    if (err != GYRE_OK) {
        free(call);
        api_leave(store, seek.shard);
    }
    return err;
}

gyre_err gyre_drain(struct gyre_store *store, uint32_t timeout_ms)
{
    uint32_t shard;
    gyre_err err = api_enter(store, &shard);
    if (err != GYRE_OK)
        return err;
    struct api_misses *misses = &store->misses;
    uint64_t deadline_ns = eng_clock_mono_ns() + timeout_ms * UINT64_C(1000000);
    bool idle;
    do {
        idle = api_pool_drain(&store->async, deadline_ns);
        eng_lock_acquire(&misses->lock);
        bool in_time = true;
        while (misses->n_flights > 0 && in_time)
            in_time = eng_cond_wait_until(&misses->settled, &misses->lock, deadline_ns);
        bool landed = misses->n_flights == 0;
        eng_lock_release(&misses->lock);
        idle = landed && idle && api_pool_drain(&store->async, eng_clock_mono_ns());
    } while (!idle && eng_clock_mono_ns() < deadline_ns);
    api_leave(store, shard);
    return idle ? GYRE_OK : GYRE_TIMEOUT;
}
