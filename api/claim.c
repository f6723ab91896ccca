/* Counting who is inside a store, and ending it when the last one leaves.
 *
 * Each thread counts in a shard of its own, so that readers on many cores do not pass one cache
 * line around. The price is paid by the closer, who adds all shards up.
 */
#include "api/store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/check.h"
#include "engine/inherit.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gyre_store *all_stores; /* keeps them reachable for leak checkers */
static struct gyre_store *free_stores;

static _Atomic uint32_t next_shard;
static _Thread_local uint32_t my_shard; /* plus one; 0: not chosen yet */

void api_stores_lock(void)
{
    pthread_mutex_lock(&list_lock);
}

void api_stores_unlock(void)
{
    pthread_mutex_unlock(&list_lock);
}

void api_stores_each(void (*visit)(struct gyre_store *store))
{
    for (struct gyre_store *store = all_stores; store != NULL; store = store->next_all)
        visit(store);
}

static uint32_t shard_of_thread(void)
{
    if (unlikely(my_shard == 0))
        my_shard = 1 + atomic_fetch_add_explicit(&next_shard, 1, memory_order_relaxed) % API_SHARDS;
    return my_shard - 1;
}

static uint64_t count_all(struct gyre_store *store)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < API_SHARDS; i++)
        sum += atomic_load_explicit(&store->shards[i].word, memory_order_seq_cst);
    return sum;
}

static bool calls_left(struct gyre_store *store)
{
    return (count_all(store) & UINT32_MAX) != 0;
}

/* ENDING -> CLOSED, on the thread that made it ENDING. */
static gyre_err end_store(struct gyre_store *store, bool clean)
{
    api_misses_stop(&store->misses);
    api_pool_stop(&store->async);
    gyre_err err = eng_store_close(store->engine, clean);
    eng_lock_acquire(&store->lock);
    store->state = API_CLOSED;
    eng_lock_release(&store->lock);
    return err;
}

/* Does what has become due after somebody left a store that is being closed. */
static void settle(struct gyre_store *store)
{
    bool end = false, unused = false;
    eng_lock_acquire(&store->lock);
    eng_cond_broadcast(&store->settled);
    if (store->state == API_CLOSING && !store->closer_waits && !calls_left(store)) {
        store->state = API_ENDING;
        end = true;
    }
    eng_lock_release(&store->lock);
    if (end)
        (void)!end_store(store,
                         false); /* gyre_close has answered TIMEOUT: nobody is left to tell */

    eng_lock_acquire(&store->lock);
    struct eng_store *engine = store->engine;
    if (store->state == API_CLOSED && count_all(store) == 0) {
        store->state = API_FREE;
        store->engine = NULL;
        unused = true;
    }
    eng_lock_release(&store->lock);
    if (unused) {
        eng_store_unref(engine);
        api_store_untake(store);
    }
}

/* A store that is closing, or one of the parent's in a forked child. */
static gyre_err refuse_or_join(struct gyre_store *store, uint32_t shard, uint32_t *shard_out)
{
    if (atomic_load_explicit(&store->forked, memory_order_acquire) == 0) {
        bool looking = atomic_load_explicit(&store->closing, memory_order_relaxed) == API_LOOKING;
        api_leave(store, shard);
        return looking ? GYRE_ACCESS : GYRE_CLOSED;
    }
    atomic_fetch_sub_explicit(&store->shards[shard].word, API_ONE_CALL, memory_order_seq_cst);
    gyre_err err = api_store_join(store);
    return err == GYRE_OK ? api_enter(store, shard_out) : err;
}

/* Pairs: the count is raised before `closing` is read (A), and the closer sets `closing` before it
 * adds the counts up (B). So either this call sees the store closing, or the closer sees the call.
 */
gyre_err api_enter(struct gyre_store *store, uint32_t *shard_out)
{
    *shard_out = 0;
    if (unlikely(store == NULL))
        return GYRE_INVALID;
    uint32_t shard = shard_of_thread();
    atomic_fetch_add_explicit(&store->shards[shard].word, API_ONE_CALL,
                              memory_order_seq_cst); /* A */
    if (unlikely(atomic_load_explicit(&store->closing, memory_order_seq_cst) != 0))
        return refuse_or_join(store, shard, shard_out);
    *shard_out = shard;
    return GYRE_OK;
}

gyre_err api_enter_looking(struct gyre_store *store, uint32_t *shard_out)
{
    *shard_out = 0;
    if (store == NULL)
        return GYRE_INVALID;
    if (atomic_load_explicit(&store->closing, memory_order_seq_cst) != API_LOOKING)
        return api_enter(store, shard_out);
    uint32_t shard = shard_of_thread();
    atomic_fetch_add_explicit(&store->shards[shard].word, API_ONE_CALL,
                              memory_order_seq_cst); /* A */
    if (atomic_load_explicit(&store->closing, memory_order_seq_cst) != API_LOOKING) {
        api_leave(store, shard);
        return GYRE_CLOSED;
    }
    *shard_out = shard;
    return GYRE_OK;
}

/* The look at `closing` comes after the count was given up: the structure is still a store's, if
 * perhaps another's, and settle() acts on nothing but what it finds under the lock. */
static void give_up(struct gyre_store *store, uint32_t shard, uint64_t count)
{
    atomic_fetch_sub_explicit(&store->shards[shard].word, count, memory_order_seq_cst);
    if (unlikely(atomic_load_explicit(&store->closing, memory_order_seq_cst) != 0))
        settle(store);
}

void api_leave(struct gyre_store *store, uint32_t shard)
{
    give_up(store, shard, API_ONE_CALL);
}

void api_claim(struct gyre_store *store, uint32_t shard)
{
    atomic_fetch_add_explicit(&store->shards[shard].word, API_ONE_CLAIM, memory_order_relaxed);
}

void api_leave_with_claim(struct gyre_store *store, uint32_t shard)
{
    give_up(store, shard, API_ONE_CALL - API_ONE_CLAIM);
}

void api_unclaim(struct gyre_store *store, uint32_t shard)
{
    give_up(store, shard, API_ONE_CLAIM);
}

struct gyre_store *api_store_take(void)
{
    pthread_mutex_lock(&list_lock);
    struct gyre_store *store = free_stores;
    if (store != NULL)
        free_stores = store->next_free;
    else if ((store = aligned_alloc(64, sizeof *store)) != NULL) {
        memset(store, 0, sizeof *store);
        atomic_store_explicit(&store->closing, 1, memory_order_relaxed);
        eng_lock_init(&store->lock, 0);
        eng_cond_init(&store->settled);
        api_pool_init(&store->async);
        api_misses_init(&store->misses);
        store->next_all = all_stores;
        all_stores = store;
    }
    pthread_mutex_unlock(&list_lock);
    return store;
}

void api_store_untake(struct gyre_store *store)
{
    pthread_mutex_lock(&list_lock);
    store->next_free = free_stores;
    free_stores = store;
    pthread_mutex_unlock(&list_lock);
}

void api_store_opened(struct gyre_store *store, struct eng_store *engine, uint32_t async_threads)
{
    eng_store_ref(engine);
    eng_lock_acquire(&store->lock);
    GYRE_CHECK(store->state == API_FREE);
    store->engine = engine;
    store->state = API_OPEN;
    store->closer_waits = false;
    store->life = api_next_life();
    api_pool_start(&store->async, async_threads);
    eng_lock_release(&store->lock);
    atomic_store_explicit(&store->closing, engine->read_only ? API_LOOKING : 0,
                          memory_order_seq_cst);
}

/* In a child that never used it: the mappings go, and nothing else is touched. */
static gyre_err close_forked(struct gyre_store *store)
{
    struct eng_store *engine = store->engine;
    eng_lock_acquire(&store->lock);
    store->state = API_FREE;
    store->engine = NULL;
    atomic_store_explicit(&store->forked, 0, memory_order_release);
    eng_lock_release(&store->lock);
    eng_store_forget(engine);
    api_store_untake(store);
    return GYRE_OK;
}

gyre_err api_store_close(struct gyre_store *store, uint64_t deadline_ns)
{
    if (atomic_load_explicit(&store->forked, memory_order_acquire) != 0)
        return close_forked(store);
    eng_lock_acquire(&store->lock);
    if (store->state != API_OPEN) {
        eng_lock_release(&store->lock);
        return GYRE_CLOSED;
    }
    store->state = API_CLOSING;
    store->closer_waits = true;
    atomic_store_explicit(&store->closing, 1, memory_order_seq_cst); /* B */
    bool left = calls_left(store);
    while (left && eng_cond_wait_until(&store->settled, &store->lock, deadline_ns))
        left = calls_left(store);
    left = left && calls_left(store);
    store->closer_waits = false;
    if (!left)
        store->state = API_ENDING;
    eng_lock_release(&store->lock);

    gyre_err err = left ? GYRE_TIMEOUT : end_store(store, true);
    settle(store);
    return err;
}
