#include "engine/keeper.h"

#include <stdlib.h>

#include "engine/ban.h"
#include "engine/base/check.h"
#include "engine/base/lock.h"
#include "engine/base/step.h"
#include "engine/base/sys.h"
#include "engine/base/thread.h"
#include "engine/cleaner.h"
#include "engine/heat.h"
#include "engine/keep.h"
#include "engine/locks.h"
#include "engine/log.h"
#include "engine/pool.h"
#include "engine/process.h"
#include "engine/sync.h"

#define TARGET_SHARE 32
#define TARGET_MIN_BYTES (UINT64_C(1) << 20)
#define TARGET_MAX_BYTES (UINT64_C(32) << 20)
/* Runs beyond which cleaning ahead would push the oldest out of the queue. */
#define RUNS_ENOUGH (ENG_RUNS / 2)
#define SYNC_BYTES (UINT64_C(1) << 30)
#define PASS_NS UINT64_C(1000000000)     /* without being asked */
#define AGAIN_NS UINT64_C(50000000)      /* after another process's pass */
#define STALLED_NS UINT64_C(60000000000) /* of a pass whose process may have been stopped */
#define SWEEP_NS UINT64_C(60000000000)
#define HEAT_NS UINT64_C(600000000000) /* a file of a few bytes for each document */

struct eng_keeper {
    struct eng_store *store; /* [c] */
    struct eng_thread thread;
    struct eng_lock lock;
    struct eng_cond cond;
    bool stop;              /* [w] lock */
    _Atomic uint32_t asked; /* [a] 1: a pass is wanted */
    uint64_t reaped_ns;     /* [o] when the dead were last looked for */
    bool again;             /* [o] another process was at it */
};

uint64_t eng_clean_target_units(const struct eng_stripe *stripe, const struct eng_ring *ring)
{
    uint64_t share = ring->max_segments * stripe->segment_units / TARGET_SHARE;
    uint64_t least = TARGET_MIN_BYTES / ENG_UNIT;
    uint64_t most = TARGET_MAX_BYTES / ENG_UNIT;
    return share < least ? least : share > most ? most : share;
}

/* Cleaning ahead throws away what is oldest a little earlier, and spares writers the wait. A ring
 * that never evicts gains nothing by it, and a ring that does not fill up in one lap is left to its
 * writers. */
static void clean_ahead(struct eng_stripe *stripe, uint8_t ring_id)
{
    struct eng_ring *ring = eng_ring_of(stripe, ring_id);
    uint64_t target = eng_clean_target_units(stripe, ring);
    uint64_t lap = ring->max_segments * stripe->segment_units;
    uint64_t moved = 0;
    if ((stripe->store->super.pools[eng_ring_pool(ring_id)].flags & ENG_POOL_NEVER_EVICT) != 0)
        return;
    while (moved < lap) {
        if (eng_alloc_lock_bounded(stripe) != GYRE_OK)
            return;
        bool enough =
            ring->n_segments == 0 || ring->clean_units >= target || ring->n_runs >= RUNS_ENOUGH;
        eng_alloc_unlock(stripe);
        if (enough)
            return;
        struct eng_clean_step step;
        if (eng_clean_lock_bounded(stripe) != GYRE_OK)
            return;
        gyre_err err = eng_clean_step_locked(stripe, ring_id, 2 * target, false, &step);
        eng_clean_unlock(stripe);
        if (err !=
            GYRE_OK) /* a writer that needs the space will meet the same error and report it */
            return;
        moved += step.moved_units;
    }
}

static bool sync_is_due(struct eng_stripe *stripe)
{
    if (eng_alloc_lock_bounded(stripe) != GYRE_OK)
        return false;
    bool due = stripe->rt->written_units >= SYNC_BYTES / ENG_UNIT ||
               (stripe->rt->written_units > 0 && eng_log_horizon_low_locked(stripe));
    eng_alloc_unlock(stripe);
    return due;
}

/* What is kept or banned and need not be. Errors are met again by the next sweep; false: it should
 * come soon. */
static bool sweep(struct eng_store *store)
{
    gyre_err err = eng_keep_any(store) ? eng_keep_sweep(store, eng_clock_real_s()) : GYRE_OK;
    if (err == GYRE_OK && eng_bans_free(store) < ENG_BANS / 2)
        err = eng_ban_sweep(store, eng_clock_real_s());
    return err != GYRE_BUSY;
}

/* ---- Who keeps ---- */

/* One process at a time keeps the store, for a pass; its death passes the lock on. Two at a time
 * would do no harm, so a pass that takes too long, because its process was stopped, is no reason
 * for others to wait. What came of an interrupted pass is whole: each step has its own locks. */
static bool lead(struct eng_store *store, uint64_t now_ns, bool *held_out)
{
    struct eng_runtime_head *head = store->rt.head;
    uint64_t begun_ns = atomic_load_explicit(&head->pass_begun_ns, memory_order_relaxed);
    enum eng_mutex_result result = eng_mutex_trylock(&head->leader_lock);

    *held_out = result == ENG_MUTEX_OK || result == ENG_MUTEX_OWNER_DEAD;
    if (result == ENG_MUTEX_OWNER_DEAD)
        eng_mutex_consistent(&head->leader_lock);
    if (!*held_out && now_ns - begun_ns < STALLED_NS)
        return false;
    atomic_store_explicit(&head->pass_begun_ns, now_ns, memory_order_relaxed);
    return true;
}

static bool interval_over(const struct eng_store *store, uint64_t now_ns)
{
    uint64_t interval_ns = (uint64_t)store->sync_interval_ms * 1000000;
    uint64_t synced_ns = atomic_load_explicit(&store->rt.head->synced_ns, memory_order_relaxed);

    return interval_ns > 0 && now_ns - synced_ns >= interval_ns;
}

/* What cannot be saved now is saved another time; a power loss until then costs what was learned
 * since the last. */
static void save_heat(struct eng_store *store, uint64_t now_ns)
{
    uint64_t saved_ns = atomic_load_explicit(&store->rt.head->heat_ns, memory_order_relaxed);
    if (now_ns - saved_ns < HEAT_NS)
        return;
    atomic_store_explicit(&store->rt.head->heat_ns, now_ns, memory_order_relaxed);
    gyre_err err = eng_heat_save(store);
    (void)err;
}

static void keep(struct eng_store *store, uint64_t now_ns)
{
    bool all = interval_over(store, now_ns);
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        struct eng_stripe *stripe = &store->stripes[i];
        for (uint8_t ring = 0; ring < ENG_RINGS; ring++)
            if (eng_ring_of(stripe, ring)->n_segments > 0)
                clean_ahead(stripe, ring);
        if ((all || sync_is_due(stripe)) && eng_sync_stripe(stripe, false) != GYRE_OK)
            continue; /* tried again in time, and whoever asks for a sync gets the error */
    }
    if (all) {
        atomic_store_explicit(&store->rt.head->synced_ns, now_ns, memory_order_relaxed);
        save_heat(store, now_ns);
    }
    uint64_t swept_ns = atomic_load_explicit(&store->rt.head->swept_ns, memory_order_relaxed);
    if (swept_ns == 0 || now_ns - swept_ns >= SWEEP_NS) {
        atomic_store_explicit(&store->rt.head->swept_ns, now_ns, memory_order_relaxed);
        if (!sweep(store))
            atomic_store_explicit(&store->rt.head->swept_ns, 0, memory_order_relaxed);
    }
    eng_facts_settle(store);
}

/* Once a second at most: a system call for each process. */
static void look_after_dead(struct eng_keeper *keeper, uint64_t now_ns)
{
    if (now_ns - keeper->reaped_ns < PASS_NS)
        return;
    keeper->reaped_ns = now_ns;
    (void)eng_processes_reap(keeper->store);
    eng_runtime_touch(&keeper->store->rt);
}

/* Another process that is at it may be past what this one was asked for: then once more, soon. */
static void pass(struct eng_keeper *keeper)
{
    struct eng_store *store = keeper->store;
    uint64_t now_ns = eng_clock_mono_ns();
    bool held;
    keeper->again = !lead(store, now_ns, &held);
    if (keeper->again)
        return;
    look_after_dead(keeper, now_ns);
    GYRE_STEP("keeper.pass.begun");
    keep(store, now_ns);
    if (held)
        eng_mutex_unlock(&store->rt.head->leader_lock);
}

/* Sleeps until asked, stopped, or the time for a pass has come; false: stopped. */
static bool wait_for_work(struct eng_keeper *keeper)
{
    uint64_t deadline_ns = eng_clock_mono_ns() + (keeper->again ? AGAIN_NS : PASS_NS);
    eng_lock_acquire(&keeper->lock);
    /* Acquire pairs with the release in eng_keeper_wake (A): the pass sees what the asker did
     * before. */
    while (!keeper->stop && atomic_load_explicit(&keeper->asked, memory_order_acquire) == 0 &&
           eng_cond_wait_until(&keeper->cond, &keeper->lock, deadline_ns)) {
    }
    atomic_store_explicit(&keeper->asked, 0, memory_order_relaxed);
    bool go_on = !keeper->stop;
    eng_lock_release(&keeper->lock);
    return go_on;
}

static void run(void *data)
{
    struct eng_keeper *keeper = data;
    while (wait_for_work(keeper))
        pass(keeper);
}

gyre_err eng_keeper_start(struct eng_store *store)
{
    struct eng_keeper *keeper = calloc(1, sizeof *keeper);
    if (keeper == NULL)
        return GYRE_NO_MEMORY;
    keeper->store = store;
    eng_lock_init(&keeper->lock, ENG_RANK_KEEPER);
    eng_cond_init(&keeper->cond);
    store->keeper = keeper;
    gyre_err err = eng_thread_start(&keeper->thread, "gyre-keeper", run, keeper);
    if (err != GYRE_OK)
        eng_keeper_stop(store);
    return err;
}

void eng_keeper_stop(struct eng_store *store)
{
    struct eng_keeper *keeper = store->keeper;
    if (keeper == NULL)
        return;
    eng_lock_acquire(&keeper->lock);
    keeper->stop = true;
    eng_cond_signal(&keeper->cond);
    eng_lock_release(&keeper->lock);
    eng_thread_join(&keeper->thread);
    store->keeper = NULL;
    eng_cond_fini(&keeper->cond);
    eng_lock_fini(&keeper->lock);
    free(keeper);
}

/* Why a stale answer is safe: an asker that still sees 1 relies on a pass that has not begun, or
 * loses a request that the next one, or the second, makes good. */
void eng_keeper_wake(struct eng_store *store)
{
    struct eng_keeper *keeper = store->keeper;
    if (keeper == NULL || atomic_load_explicit(&keeper->asked, memory_order_relaxed) != 0)
        return;
    eng_lock_acquire(&keeper->lock);
    atomic_store_explicit(&keeper->asked, 1, memory_order_release); /* A */
    eng_cond_signal(&keeper->cond);
    eng_lock_release(&keeper->lock);
}
