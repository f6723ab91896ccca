#include "engine/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/attach.h"
#include "engine/base/check.h"
#include "engine/base/hash.h"
#include "engine/base/io.h"
#include "engine/base/step.h"
#include "engine/heat.h"
#include "engine/keeper.h"
#include "engine/lockfile.h"
#include "engine/process.h"
#include "engine/refuse.h"
#include "engine/slab.h"
#include "engine/sync.h"
#include "engine/volume.h"

/* Far above what the longest hold takes on a slow disk: two pages made durable. */
#define LOCK_WAIT_NS UINT64_C(10000000000)

/* ---- Looking around ---- */

/* Shares of the hash's range follow the stripes' sizes, so that all of them turn over at the same
 * pace. */
struct eng_stripe *eng_stripe_of(struct eng_store *store, uint64_t hash)
{
    uint32_t low = 0;
    uint32_t high = store->n_stripes - 1;
    uint32_t point;

    if (high == 0)
        return &store->stripes[0];
    point = (uint32_t)((hash >> 32) * store->stripe_end[high] >> 32);
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (point < store->stripe_end[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return &store->stripes[low];
}

void eng_store_ref(struct eng_store *store)
{
    atomic_fetch_add_explicit(&store->refs, 1,
                              memory_order_relaxed); /* the caller has one already */
}

/* ---- Taking apart ---- */

/* The last one out removes the segment; so does a refused opening that had made it. Where the
 * opening lock is not to be had, somebody else may just be attaching. */
static void leave(struct eng_store *store)
{
    bool locked = store->lock != NULL && store->lock->fd >= 0 &&
                  (!store->joined || eng_lockfile_again(store->lock, ENG_LOCK_WAIT_MS));
    bool last = locked && store->joined && !eng_processes_others(store, NULL);
    eng_process_leave(store);
    eng_runtime_close(&store->rt, store->rt.made || (last && store->opened));
}

static void destroy(struct eng_store *store)
{
    for (uint32_t i = 0; i < store->n_stripes; i++)
        eng_slabs_destroy(store->stripes[i].slabs);
    leave(store);
    eng_volume_close(store);
    if (store->lock != NULL)
        eng_lockfile_release(store->lock);
    free(store->lock);
    free(store);
}

void eng_store_unref(struct eng_store *store)
{
    /* Release: what this holder did is over before the last one frees (A). */
    if (atomic_fetch_sub_explicit(&store->refs, 1, memory_order_release) != 1)
        return;
    atomic_thread_fence(memory_order_acquire); /* Pairs with A */
    destroy(store);
}

/* Whoever has the store open alone leaves it clean. What the dead had reserved or pinned is
 * nobody's by then. Others still write: they, or the last of them, will do it. */
static gyre_err close_synced(struct eng_store *store)
{
    gyre_err err;

    for (uint32_t i = 0; i < store->n_stripes; i++)
        eng_slabs_retire(&store->stripes[i]);
    if (!eng_lockfile_again(store->lock, ENG_LOCK_WAIT_MS))
        return eng_sync_store(store, false);
    bool last = !eng_processes_others(store, NULL);
    if (last)
        (void)eng_processes_reap(store);
    GYRE_STEP("store.close.looked");
    err = eng_sync_store(store, last);
    if (last) {
        gyre_err cold = eng_heat_save(store);
        (void)cold; /* it is advice: without it the next run begins cold */
    }
    if (last && err == GYRE_OK)
        atomic_store_explicit(&store->rt.head->state, ENG_RT_CLEAN, memory_order_release);
    eng_lockfile_opened(store->lock);
    return err;
}

gyre_err eng_store_close(struct eng_store *store, bool clean)
{
    gyre_err err = GYRE_OK;

    atomic_store_explicit(&store->closing, 1, memory_order_release);
    eng_keeper_stop(store);
    if (clean && !store->read_only)
        err = close_synced(store);
    eng_store_unref(store);
    return err;
}

/* ---- Putting together ---- */

static gyre_err open_locked(struct eng_store *store, struct eng_home *home)
{
    const struct eng_open *open = home->open;
    struct eng_lock_note note;
    gyre_err err;

    TRY(eng_home_look(
        home)); /* another process may have made or removed a store before we had the lock */
    if (!home->has_volume && !open->may_create && !open->reset)
        return eng_home_refuse_none(home);
    TRY(eng_attach_check(store, home));
    eng_lockfile_read(store->lock, &note);
    if (open->reset)
        TRY(eng_volume_make(home, true));
    else if (!home->has_volume)
        TRY(eng_volume_make(home, false));
    TRY(eng_volume_open(store, home));
    for (uint32_t i = 0; i < store->n_stripes; i++)
        TRY(eng_slabs_create(&store->stripes[i].slabs));
    TRY(eng_attach(store, home, &note));
    if (home->has_volume)
        unlinkat(home->fds[home->main], ENG_NEW_VOLUME_NAME,
                 0); /* of a making that ended halfway before a store was put here */
out:
    return err;
}

/* Leaves nothing behind that a refused opening has made, and lets go of the lock after that. */
static void undo(struct eng_store *store, struct eng_home *home)
{
    if (home->made_store)
        eng_volume_unmake(home);
    if (store->lock != NULL)
        eng_lockfile_undo(store->lock, home);
    eng_store_unref(store);
    eng_home_undo(home);
}

/* Again where another opening, which was refused, has just removed the file it had made. */
static gyre_err take_lock(struct eng_store *store, const struct eng_home *home)
{
    enum { TRIES = 8 };
    gyre_err err = GYRE_BUSY;

    for (int i = 0; i < TRIES && err == GYRE_BUSY; i++) {
        err = eng_lockfile_acquire(store->lock, home);
        if (err == GYRE_OK && home->open->message != NULL && home->open->message_size > 0)
            home->open->message[0] = '\0';
    }
    return err;
}

/* The files alone: they are mapped for reading, whoever writes them meanwhile. */
static gyre_err open_to_look(struct eng_store *store, struct eng_home *home)
{
    return home->has_volume ? eng_volume_open(store, home) : eng_home_refuse_none(home);
}

gyre_err eng_store_open(const struct eng_open *open, struct eng_store **store_out)
{
    struct eng_home home;
    struct eng_store *store;
    gyre_err err;

    *store_out = NULL;
    if (open->message != NULL && open->message_size > 0)
        open->message[0] = '\0';
    err = eng_home_open(&home, open);
    if (err != GYRE_OK)
        return err;
    store = calloc(1, sizeof *store);
    if (store == NULL) {
        eng_home_undo(&home);
        eng_home_close(&home);
        return eng_refuse(open, GYRE_NO_MEMORY, "%s: out of memory: free some", open->dirs[0].path);
    }
    atomic_store_explicit(&store->refs, 1, memory_order_relaxed);
    store->volume_fd = -1;
    store->rt.fd = -1;
    store->sync_interval_ms = open->sync_interval_ms;
    store->lock_wait_ns = LOCK_WAIT_NS;
    store->hollow = open->hollow;
    store->read_only = open->read_only;
    if (open->read_only) {
        err = open_to_look(store, &home);
        if (err == GYRE_OK)
            *store_out = store;
        else
            eng_store_unref(store);
        eng_home_close(&home);
        return err;
    }
    if (!home.has_volume && !open->may_create && !open->reset) {
        err = eng_home_refuse_none(&home);
        goto out;
    }
    store->lock = calloc(1, sizeof *store->lock);
    if (store->lock == NULL) {
        err = eng_refuse(open, GYRE_NO_MEMORY, "%s: out of memory: free some", open->dirs[0].path);
        goto out;
    }
    store->lock->fd = -1;
    TRY(take_lock(store, &home));
    TRY(open_locked(store, &home));
    if (!open->hollow)
        err = eng_keeper_start(store);
    if (err != GYRE_OK)
        err = eng_refuse(open, err,
                         "%s: cannot start a thread: raise the limit on processes (ulimit -u)",
                         open->dirs[0].path);
out:
    if (err != GYRE_OK) {
        undo(store, &home);
    } else {
        store->rt.made = false;
        store->opened = true;
        eng_lockfile_opened(store->lock);
        *store_out = store;
    }
    eng_home_close(&home);
    return err;
}
