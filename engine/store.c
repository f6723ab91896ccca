#include "engine/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/check.h"
#include "engine/base/hash.h"
#include "engine/ban.h"
#include "engine/base/io.h"
#include "engine/base/rank.h"
#include "engine/header.h"
#include "engine/keeper.h"
#include "engine/lockfile.h"
#include "engine/recover.h"
#include "engine/refuse.h"
#include "engine/slab.h"
#include "engine/sync.h"
#include "engine/volume.h"

#define SHM_DIR "/dev/shm"

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

static void destroy(struct eng_store *store)
{
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        eng_slabs_destroy(store->stripes[i].slabs);
        if (store->stripes[i].rt != NULL)
            eng_lock_fini(&store->stripes[i].sync_lock);
    }
    eng_runtime_close(&store->rt, true);
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

gyre_err eng_store_close(struct eng_store *store, bool clean)
{
    gyre_err err = GYRE_OK;

    atomic_store_explicit(&store->closing, 1, memory_order_release);
    eng_keeper_stop(store);
    if (clean)
        err = eng_sync_store(store, true);
    eng_store_unref(store);
    return err;
}

/* ---- Putting together ---- */

/* Another opener's runtime segment is of no use once nobody holds the lock; it goes if it still is
 * the file that was noted. */
static void remove_stale_runtime(const struct eng_lock_note *note)
{
    const char *name = strrchr(note->rt_path, '/');
    struct stat status;

    /* The note is a file anybody may have written: nothing but a runtime segment is removed for it.
     */
    if (note->rt_path[0] != '/' || strncmp(name, "/gyre-", 6) != 0 || strlen(name) < 9 ||
        strcmp(name + strlen(name) - 3, ".rt") != 0)
        return;
    if (lstat(note->rt_path, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_dev == note->rt_dev && status.st_ino == note->rt_ino)
        unlink(note->rt_path);
}

/* Whether the page cache that the last opener wrote to is the one we read from. */
static bool is_same_boot(const struct eng_store *store, const struct eng_lock_note *note)
{
    struct stat status;
    char boot[40];

    eng_boot_text(boot);
    return boot[0] != '\0' && strcmp(boot, note->boot_id) == 0 &&
           fstat(store->volume_fd, &status) == 0 && status.st_dev == note->volume_dev &&
           status.st_ino == note->volume_ino;
}

static gyre_err write_note(const struct eng_store *store, const struct eng_open *open)
{
    struct eng_lock_note note = {0};
    struct stat status;
    char *resolved;
    gyre_err err;

    eng_boot_text(note.boot_id);
    if (fstat(store->volume_fd, &status) == 0) {
        note.volume_dev = status.st_dev;
        note.volume_ino = status.st_ino;
    }
    if (fstat(store->rt.fd, &status) == 0) {
        note.rt_dev = status.st_dev;
        note.rt_ino = status.st_ino;
    }
    resolved = realpath(store->rt.path, NULL);
    if (resolved != NULL && strlen(resolved) < sizeof note.rt_path &&
        strchr(resolved, '\n') == NULL)
        memcpy(note.rt_path, resolved, strlen(resolved) + 1);
    free(resolved);
    err = eng_lockfile_write(store->lock, &note);
    if (err != GYRE_OK)
        return eng_refuse_io(open, err, errno, store->lock->path, "cannot write the file");
    return err;
}

static gyre_err make_runtime(struct eng_store *store, const struct eng_home *home)
{
    const char *dir = home->open->dirs[home->main].path;
    gyre_err err = eng_runtime_create(&store->super, SHM_DIR, dir, &store->rt);
    uint8_t *base = (uint8_t *)store->rt.head;

    if (err != GYRE_OK)
        return eng_refuse(home->open, err,
                          "%s: no room for the runtime segment of %llu MiB, neither in " SHM_DIR
                          " nor here: %s: free some space in one "
                          "of them",
                          dir, (unsigned long long)(eng_runtime_bytes(&store->super) >> 20) + 1,
                          gyre_err_text(err));
    store->process_index = 0;
    store->process = (struct eng_process *)(void *)(base + store->rt.head->process_off);
    atomic_store_explicit(&store->process->pid, (uint32_t)getpid(), memory_order_relaxed);
    store->pins = (struct eng_pin *)(void *)(base + store->rt.head->pin_off);
    store->tenants = (struct eng_tenant *)(void *)(base + store->rt.head->tenant_off);
    store->bans = (struct eng_bans *)(void *)(base + store->rt.head->ban_off);
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        struct eng_stripe *stripe = &store->stripes[i];
        stripe->rt = (struct eng_stripe_rt *)(void *)(base + store->rt.head->stripe_off[i]);
        stripe->slots = (struct eng_slot *)(void *)(base + store->rt.head->slot_off[i]);
        stripe->granules = (_Atomic uint32_t *)(void *)(base + store->rt.head->granule_off[i]);
        stripe->parents = (_Atomic uint64_t *)(void *)(base + store->rt.head->parent_off[i]);
        stripe->ghost = (uint16_t *)(void *)(base + store->rt.head->ghost_off[i]);
        stripe->n_ghost = eng_ghost_places((uint64_t)stripe->n_buckets * ENG_BUCKET_ENTRIES);
        stripe->rt->policy.retention = home->open->retention;
        atomic_store_explicit(
            &stripe->rt->policy.mode,
            home->open->retention == ENG_RETENTION_RECENCY ? ENG_MODE_R : ENG_MODE_F,
            memory_order_relaxed);
        eng_lock_init(&stripe->sync_lock, ENG_RANK_NONE);
    }
    return GYRE_OK;
}

static gyre_err open_stripe(struct eng_store *store, const struct eng_open *open, uint32_t index,
                            bool same_boot, struct eng_newer *newer_out)
{
    struct eng_stripe *stripe = &store->stripes[index];
    struct eng_stripe_header header;
    gyre_err err;

    err = eng_header_read(store->volume_fd, &store->super, index, &header, stripe->rt->segments);
    if (err == GYRE_DAMAGED)
        return eng_refuse(open, err,
                          "%s: both copies of the header of stripe %u are damaged: put a good copy "
                          "of the file back, or start anew with "
                          "--reset",
                          store->volume_path, index);
    if (err != GYRE_OK)
        return eng_refuse_io(open, err, errno, store->volume_path, "cannot read a stripe header");
    stripe->header_generation = header.generation;
    stripe->serial_synced = header.serial_synced;
    TRY(eng_slabs_create(&stripe->slabs));
    enum eng_recovery how = header.clean ? ENG_RECOVER_CLEAN
                            : same_boot  ? ENG_RECOVER_KILLED
                                         : ENG_RECOVER_POWER;
    err = eng_recover_stripe(stripe, &header, how, open->progress, open->progress_data, newer_out);
    if (err != GYRE_OK)
        return eng_refuse(open, err, "%s: cannot be recovered: %s: free memory and try again",
                          stripe->path, gyre_err_text(err));
out:
    return err;
}

static gyre_err open_stripes(struct eng_store *store, const struct eng_open *open, bool same_boot)
{
    struct eng_newer newer[ENG_MAX_STRIPES] = {0};
    gyre_err err = GYRE_OK;

    for (uint32_t i = 0; i < store->n_stripes; i++)
        TRY(open_stripe(store, open, i, same_boot, &newer[i]));
    for (uint32_t i = 0; i < store->n_stripes; i++)
        eng_recover_objects(&store->stripes[i], &newer[i]);
out:
    for (uint32_t i = 0; i < store->n_stripes; i++)
        free(newer[i].offsets);
    return err;
}

/* From here on the store is marked as open, durably, before anything is written to it. */
static gyre_err mark_open(struct eng_store *store, const struct eng_open *open)
{
    gyre_err err = eng_superblock_heal(store);

    if (err == GYRE_OK)
        err = eng_sync_store(store, false);
    if (err != GYRE_OK)
        return eng_refuse_io(open, err, errno, store->volume_path,
                             "cannot write the stripe headers");
    return err;
}

static gyre_err open_locked(struct eng_store *store, struct eng_home *home)
{
    const struct eng_open *open = home->open;
    struct eng_lock_note note;
    gyre_err err;

    TRY(eng_home_look(
        home)); /* another process may have made or removed a store before we had the lock */
    if (!home->has_volume && !open->may_create && !open->reset)
        return eng_refuse(open, GYRE_NO_STORE,
                          "%s: there is no store here: check the path, or let a new store be made",
                          open->dirs[0].path);
    eng_lockfile_read(store->lock, &note);
    if (open->reset)
        TRY(eng_volume_make(home, true));
    else if (!home->has_volume)
        TRY(eng_volume_make(home, false));
    TRY(eng_volume_open(store, home));
    remove_stale_runtime(&note);
    bool same_boot = is_same_boot(store, &note);
    TRY(make_runtime(store, home));
    err = eng_bans_load(store);
    if (err != GYRE_OK)
        return eng_refuse_io(open, err, errno, store->volume_path, "cannot read the ban table");
    TRY(open_stripes(store, open, same_boot));
    TRY(write_note(store, open));
    TRY(mark_open(store, open));
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
    store->hollow = open->hollow;
    if (!home.has_volume && !open->may_create && !open->reset) {
        err = eng_refuse(open, GYRE_NO_STORE,
                         "%s: there is no store here: check the path, or let a new store be made",
                         open->dirs[0].path);
        goto out;
    }
    store->lock = calloc(1, sizeof *store->lock);
    if (store->lock == NULL) {
        err = eng_refuse(open, GYRE_NO_MEMORY, "%s: out of memory: free some", open->dirs[0].path);
        goto out;
    }
    store->lock->fd = -1;
    TRY(eng_lockfile_acquire(store->lock, &home));
    TRY(open_locked(store, &home));
    if (!open->hollow)
        err = eng_keeper_start(store);
    if (err != GYRE_OK)
        err = eng_refuse(open, err,
                         "%s: cannot start a thread: raise the limit on processes (ulimit -u)",
                         open->dirs[0].path);
out:
    if (err != GYRE_OK)
        undo(store, &home);
    else
        *store_out = store;
    eng_home_close(&home);
    return err;
}
