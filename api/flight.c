/* Flights: finding who fetches an object, becoming the one who does, and waiting for it. */
#include "api/miss.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/check.h"
#include "engine/base/sys.h"
#include "engine/pin.h"

#include "api/seek.h"
#include "api/store.h"

void api_misses_init(struct api_misses *misses)
{
    *misses = (struct api_misses){0};
    eng_lock_init(&misses->lock, 0);
    eng_cond_init(&misses->settled);
    eng_lock_init(&misses->watch_lock, 0);
    eng_cond_init(&misses->watch);
}

/* ---- The table ---- */

/* Keys are digests, so any of their bytes will do. */
static struct api_flight **chain_of(struct api_misses *misses, const struct gyre_key *key)
{
    return &misses->chains[key->bytes[7] % API_FLIGHT_CHAINS];
}

static struct api_flight *find_locked(struct api_misses *misses, const struct gyre_key *key,
                                      uint8_t pool)
{
    struct api_flight *flight = *chain_of(misses, key);
    while (flight != NULL && (flight->pool != pool || memcmp(&flight->key, key, sizeof *key) != 0))
        flight = flight->next;
    return flight;
}

/* NULL without memory. The caller is inside a call of the store. */
static struct api_flight *make_locked(struct api_seek *seek)
{
    struct api_misses *misses = &seek->store->misses;
    struct api_flight *flight = calloc(1, sizeof *flight);
    if (flight == NULL)
        return NULL;
    flight->store = seek->store;
    flight->key = seek->key;
    flight->pool = seek->pool;
    flight->life = seek->store->life;
    flight->shard = seek->shard;
    flight->row = seek->row;
    flight->refs = 1;
    flight->err = GYRE_STATE;
    eng_lock_init(&flight->lock, 0);
    eng_cond_init(&flight->changed);
    struct api_flight **chain = chain_of(misses, &seek->key);
    flight->next = *chain;
    *chain = flight;
    misses->n_flights++;
    api_claim(seek->store, seek->shard);
    return flight;
}

void api_flight_unlist(struct api_flight *flight)
{
    struct api_misses *misses = &flight->store->misses;
    eng_lock_acquire(&misses->lock);
    struct api_flight **at = chain_of(misses, &flight->key);
    while (*at != flight)
        at = &(*at)->next;
    *at = flight->next;
    misses->n_flights--;
    eng_cond_broadcast(&misses->settled);
    eng_lock_release(&misses->lock);
}

static void destroy(struct api_flight *flight)
{
    struct gyre_store *store = flight->store;
    uint32_t shard = flight->shard;
    for (size_t i = 0; i < flight->n_extents; i++)
        eng_pin_release(store->engine, flight->extents[i].pin);
    free(flight->extents);
    free(flight->small);
    free(flight->meta);
    eng_cond_fini(&flight->changed);
    eng_lock_fini(&flight->lock);
    free(flight);
    api_unclaim(store, shard);
}

void api_flight_unref(struct api_flight *flight)
{
    struct api_misses *misses = &flight->store->misses;
    eng_lock_acquire(&misses->lock);
    bool last = --flight->refs == 0;
    eng_lock_release(&misses->lock);
    if (last)
        destroy(flight);
}

void api_flight_wake_locked(struct api_flight *flight)
{
    struct api_waker **at = &flight->wakers;
    while (*at != NULL) {
        struct api_waker *waker = *at;
        if (flight->state == API_FETCHING ||
            (flight->state == API_BEGUN && !waker->waits_for_begin &&
             flight->readable <= waker->offset)) {
            at = &waker->next;
            continue;
        }
        *at = waker->next;
        waker->listed = false;
        waker->wake(waker->data);
    }
    eng_cond_broadcast(&flight->changed);
}

void api_waker_unlist_locked(struct api_flight *flight, struct api_waker *waker)
{
    struct api_waker **at = &flight->wakers;
    while (waker->listed && *at != waker)
        at = &(*at)->next;
    if (waker->listed)
        *at = waker->next;
    waker->listed = false;
}

/* ---- Looking ---- */

static gyre_err open_hit(const struct api_seek *seek, unsigned more_flags,
                         struct gyre_miss *miss_out)
{
    gyre_err err = api_handle_open(seek->store, &seek->key, seek->now, seek->flags | more_flags,
                                   &miss_out->handle);
    if (err != GYRE_OK)
        return err;
    miss_out->handle->shard = seek->shard;
    api_claim(seek->store, seek->shard);
    miss_out->kind = GYRE_MISS_HIT;
    return GYRE_OK;
}

static bool is_miss(gyre_err err)
{
    return err == GYRE_NOT_FOUND || err == GYRE_EXPIRED;
}

/* The caller has just become the one to fetch. Who fetched before may have stored the object after
 * it was looked for, so it is looked for once more. */
static gyre_err take_off(const struct api_seek *seek, struct api_flight *flight,
                         struct gyre_miss *miss_out)
{
    gyre_err err = open_hit(seek, API_GET_NO_COUNT, miss_out);
    if (is_miss(err)) {
        miss_out->fill = api_fill_make(flight);
        err = miss_out->fill == NULL ? GYRE_NO_MEMORY : GYRE_OK;
        if (err == GYRE_OK) {
            miss_out->kind = GYRE_MISS_FILL;
            return GYRE_OK;
        }
    }
    api_flight_end(flight, API_BROKEN, GYRE_STATE);
    return err;
}

/* Finds who fetches it, or makes it the caller. BUSY, NO_MEMORY. */
static gyre_err find_flight(struct api_seek *seek, struct api_flight **made_out,
                            enum api_wait *wait_out)
{
    struct api_misses *misses = &seek->store->misses;
    *made_out = NULL;
    eng_lock_acquire(&misses->lock);
    gyre_err err = GYRE_OK;
    seek->flight = find_locked(misses, &seek->key, seek->pool);
    if (seek->flight != NULL) {
        seek->flight->refs++;
        *wait_out = API_WAIT_HERE;
        goto out;
    }
    err = eng_flight_begin(seek->store->engine, seek->pool, seek->key.bytes, &seek->row);
    if (err == GYRE_EXISTS) {
        *wait_out = API_WAIT_THERE;
        err = GYRE_OK;
        goto out;
    }
    if (err == GYRE_BUSY)
        goto out;
    *made_out = make_locked(seek);
    err = *made_out == NULL ? GYRE_NO_MEMORY : GYRE_OK;
    if (*made_out == NULL)
        eng_flight_end(seek->store->engine, &seek->row, ENG_FLIGHT_GIVEN_UP);
out:
    eng_lock_release(&misses->lock);
    return err;
}

gyre_err api_seek_once(struct api_seek *seek, struct gyre_miss *miss_out, enum api_wait *wait_out)
{
    struct api_flight *made;
    *miss_out = (struct gyre_miss){0};
    *wait_out = API_WAIT_NOT;
    gyre_err err = open_hit(seek, seek->looked ? API_GET_NO_COUNT : 0, miss_out);
    seek->looked = true;
    if (!is_miss(err))
        return err;
    err = find_flight(seek, &made, wait_out);
    return err == GYRE_OK && made != NULL ? take_off(seek, made, miss_out) : err;
}

gyre_err api_seek_here_locked(struct api_seek *seek, struct gyre_miss *miss_out)
{
    struct api_flight *flight = seek->flight;
    switch (flight->state) {
    case API_FETCHING: return GYRE_WOULD_BLOCK;
    case API_BEGUN:
        miss_out->follow = api_follow_make_locked(flight);
        miss_out->kind = miss_out->follow != NULL ? GYRE_MISS_FOLLOW : GYRE_MISS_NONE;
        return miss_out->follow != NULL ? GYRE_OK : GYRE_NO_MEMORY;
    case API_PASSED: miss_out->kind = GYRE_MISS_PASS; return GYRE_OK;
    case API_STORED:
    case API_BROKEN: break;
    }
    return GYRE_NOT_FOUND;
}

void api_seek_end_here(struct api_seek *seek, const struct gyre_miss *miss)
{
    if (miss->kind != GYRE_MISS_FOLLOW) /* which keeps the reference */
        api_flight_unref(seek->flight);
    seek->flight = NULL;
}

/* ---- Waiting ---- */

static bool is_closing(struct gyre_store *store)
{
    return atomic_load_explicit(&store->closing, memory_order_relaxed) != 0;
}

static uint64_t next_look(uint64_t deadline_ns)
{
    uint64_t next_ns = eng_clock_mono_ns() + API_SEEK_NS;
    return next_ns < deadline_ns ? next_ns : deadline_ns;
}

/* NOT_FOUND: it has ended, look again. TIMEOUT: it goes on. */
static gyre_err wait_here(struct api_seek *seek, uint64_t deadline_ns, struct gyre_miss *miss_out)
{
    struct api_flight *flight = seek->flight;
    eng_lock_acquire(&flight->lock);
    gyre_err err = api_seek_here_locked(seek, miss_out);
    while (err == GYRE_WOULD_BLOCK && eng_clock_mono_ns() < deadline_ns &&
           !is_closing(seek->store)) {
        eng_cond_wait_until(&flight->changed, &flight->lock, next_look(deadline_ns));
        err = api_seek_here_locked(seek, miss_out);
    }
    eng_lock_release(&flight->lock);
    api_seek_end_here(seek, miss_out);
    return err == GYRE_WOULD_BLOCK ? GYRE_TIMEOUT : err;
}

/* The same for a fetch of another process. */
static gyre_err wait_there(struct api_seek *seek, uint64_t deadline_ns, struct gyre_miss *miss_out)
{
    enum eng_flight_end how;
    bool ended = false;
    do {
        ended = eng_flight_wait(seek->store->engine, &seek->row, next_look(deadline_ns), &how);
    } while (!ended && eng_clock_mono_ns() < deadline_ns && !is_closing(seek->store));
    if (!ended)
        return GYRE_TIMEOUT;
    if (how != ENG_FLIGHT_PASSED)
        return GYRE_NOT_FOUND;
    miss_out->kind = GYRE_MISS_PASS;
    return GYRE_OK;
}

static gyre_err seek_until(struct api_seek *seek, uint64_t deadline_ns, struct gyre_miss *miss_out)
{
    gyre_err err;
    do {
        enum api_wait wait;
        err = api_seek_once(seek, miss_out, &wait);
        if (err == GYRE_OK && wait == API_WAIT_HERE)
            err = wait_here(seek, deadline_ns, miss_out);
        else if (err == GYRE_OK && wait == API_WAIT_THERE)
            err = wait_there(seek, deadline_ns, miss_out);
        if (is_closing(seek->store) && err != GYRE_OK)
            return GYRE_CLOSED;
    } while (err == GYRE_NOT_FOUND);
    return err;
}

gyre_err api_seek_init(struct api_seek *seek, struct gyre_store *store, const struct gyre_key *key,
                       uint32_t now, unsigned flags)
{
    if (key == NULL || (flags & ~API_GET_FLAGS) != 0)
        return GYRE_INVALID;
    *seek = (struct api_seek){.store = store, .key = *key, .now = now, .flags = flags};
    gyre_err err = api_enter(store, &seek->shard);
    if (err != GYRE_OK)
        return err;
    seek->pool = api_pool_of(flags);
    if (flags >= API_ONE_POOL && !api_pool_usable(store, seek->pool)) {
        api_leave(store, seek->shard);
        return GYRE_INVALID;
    }
    return GYRE_OK;
}

gyre_err gyre_miss_get(struct gyre_store *store, const struct gyre_key *key, uint32_t now,
                       unsigned flags, uint32_t wait_ms, struct gyre_miss *miss_out)
{
    struct api_seek seek;
    if (miss_out == NULL)
        return GYRE_INVALID;
    *miss_out = (struct gyre_miss){0};
    gyre_err err = api_seek_init(&seek, store, key, now, flags);
    if (err != GYRE_OK)
        return err;
    uint64_t deadline_ns = eng_clock_mono_ns() + wait_ms * UINT64_C(1000000);
    err = seek_until(&seek, deadline_ns, miss_out);
    if (err == GYRE_TIMEOUT && wait_ms == 0)
        err = GYRE_WOULD_BLOCK;
    api_leave(store, seek.shard);
    return err;
}
