/* Stores in a forked child.
 *
 * The child has copies of its parent's structures, its descriptors and mappings, and one thread. It
 * is no process of the store yet: its parent's slot, pins, reservations and threads are the
 * parent's. So at the fork each open store is marked, which makes the first call look here; that
 * call joins the store as a process of its own, with a slot, a keeper and slabs of its own. What
 * the parent had open is left alone: handles and puts know the life they were made in.
 *
 * Before the fork the library's process-wide locks are taken, so that no list is found half
 * changed. Locks inside a store are made anew: whoever held one is not in the child.
 */
#include "api/store.h"

#include <pthread.h>

#include "engine/base/check.h"
#include "engine/inherit.h"
#include "engine/lockfile.h"

#include "api/deferred.h"
#include "api/stage.h"

static _Atomic uint32_t lives;
static pthread_mutex_t join_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

uint32_t api_next_life(void)
{
    return atomic_fetch_add_explicit(&lives, 1, memory_order_relaxed) + 1;
}

static void prepare(void)
{
    eng_lockfile_fork_begin();
    api_stage_lock();
    api_deferred_lock();
    api_stores_lock();
}

static void in_parent(void)
{
    api_stores_unlock();
    api_deferred_unlock();
    api_stage_unlock();
    eng_lockfile_fork_end();
}

/* The only thread there is. A store that was being closed stays closed. */
static void mark_forked(struct gyre_store *store)
{
    for (uint32_t i = 0; i < API_SHARDS; i++)
        atomic_store_explicit(&store->shards[i].word, 0, memory_order_relaxed);
    bool open = store->state == API_OPEN && !store->engine->read_only;
    bool looking = store->state == API_OPEN && store->engine->read_only;
    eng_lock_init(&store->lock, 0);
    eng_cond_init(&store->settled);
    uint32_t threads = store->async.wanted;
    store->async = (struct api_pool){0};
    api_pool_init(&store->async);
    api_pool_start(&store->async, threads);
    api_misses_init(&store->misses);
    store->life = api_next_life();
    store->closer_waits = false;
    atomic_store_explicit(&store->closing, looking ? API_LOOKING : 1, memory_order_relaxed);
    atomic_store_explicit(&store->forked,
                          open || atomic_load_explicit(&store->forked, memory_order_relaxed) != 0,
                          memory_order_relaxed);
}

static void in_child(void)
{
    pthread_mutex_init(&join_lock, NULL);
    api_stores_each(mark_forked);
    api_deferred_forget();
    in_parent();
}

static void register_handlers(void)
{
    int rc = pthread_atfork(prepare, in_parent, in_child);
    GYRE_CHECK(rc == 0);
}

void api_fork_register(void)
{
    pthread_once(&once, register_handlers);
}

gyre_err api_store_join(struct gyre_store *store)
{
    gyre_err err = GYRE_OK;
    pthread_mutex_lock(&join_lock);
    if (atomic_load_explicit(&store->forked, memory_order_acquire) != 0) {
        err = eng_store_inherit(store->engine);
        if (err == GYRE_OK) {
            atomic_store_explicit(&store->forked, 0, memory_order_release);
            atomic_store_explicit(&store->closing, 0, memory_order_seq_cst);
        }
    }
    pthread_mutex_unlock(&join_lock);
    return err;
}
