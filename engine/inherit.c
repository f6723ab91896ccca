#include "engine/inherit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/check.h"
#include "engine/keeper.h"
#include "engine/lockfile.h"
#include "engine/process.h"
#include "engine/slab.h"
#include "engine/sync.h"
#include "engine/volume.h"

#define JOIN_WAIT_MS 10000

/* The segment that is mapped here is the one that others share, or shared when they died. The last
 * to close removes it, and its name is never used again. */
static bool is_current(const struct eng_store *store)
{
    struct eng_lock_note note;
    struct stat own;
    struct stat named;

    return eng_lockfile_read(store->lock, &note) && fstat(store->rt.fd, &own) == 0 &&
           own.st_dev == note.rt_dev && own.st_ino == note.rt_ino &&
           lstat(note.rt_path, &named) == 0 && named.st_dev == own.st_dev &&
           named.st_ino == own.st_ino;
}

/* What the parent's threads and locks were about is not the child's: its memory is given up, for
 * nobody knows what state it is in. */
static void begin_life(struct eng_store *store)
{
    store->joined = false;
    store->keeper = NULL;
    store->rt.made = false;
    for (uint32_t i = 0; i < store->n_stripes; i++)
        store->stripes[i].slabs = NULL;
    atomic_store_explicit(&store->refs, 2,
                          memory_order_relaxed); /* the opener's and the caller's */
    atomic_store_explicit(&store->closing, 0, memory_order_relaxed);
    atomic_store_explicit(&store->active, 0, memory_order_relaxed);
}

static gyre_err join_locked(struct eng_store *store)
{
    gyre_err err = GYRE_CLOSED;

    if (!is_current(store))
        return err;
    TRY(eng_process_join(store));
    (void)eng_processes_reap(store);
    if (atomic_load_explicit(&store->rt.head->state, memory_order_acquire) == ENG_RT_CLEAN) {
        TRY(eng_sync_store(store, false));
        atomic_store_explicit(&store->rt.head->state, ENG_RT_OPEN, memory_order_release);
    }
    TRY(eng_keeper_start(store));
out:
    return err;
}

/* What a failed attempt took. */
static void undo(struct eng_store *store)
{
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        eng_slabs_destroy(store->stripes[i].slabs);
        store->stripes[i].slabs = NULL;
    }
    eng_process_leave(store);
}

gyre_err eng_store_inherit(struct eng_store *store)
{
    gyre_err err = GYRE_OK;

    begin_life(store);
    if (!eng_lockfile_again(store->lock, JOIN_WAIT_MS))
        return GYRE_LOCKED;
    for (uint32_t i = 0; i < store->n_stripes; i++)
        TRY(eng_slabs_create(&store->stripes[i].slabs));
    TRY(join_locked(store));
    TRY(eng_lockfile_inherit(store->lock));
    eng_volume_keep(store); /* locks on memory are not inherited either */
out:
    if (err != GYRE_OK) {
        eng_keeper_stop(store);
        undo(store);
    }
    eng_lockfile_opened(store->lock);
    return err;
}

void eng_store_forget(struct eng_store *store)
{
    eng_runtime_close(&store->rt, false);
    eng_volume_close(store);
    eng_lockfile_drop(store->lock);
    free(store->lock);
    free(store);
}
