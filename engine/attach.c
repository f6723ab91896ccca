#include "engine/attach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/admit.h"
#include "engine/ban.h"
#include "engine/base/check.h"
#include "engine/base/step.h"
#include "engine/base/sys.h"
#include "engine/directory.h"
#include "engine/header.h"
#include "engine/heat.h"
#include "engine/locks.h"
#include "engine/process.h"
#include "engine/recover.h"
#include "engine/refuse.h"
#include "engine/sync.h"
#include "engine/tenant.h"
#include "engine/volume.h"

#define SHM_DIR "/dev/shm"

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

/* Where things are in the runtime segment, made or found. */
static void find_in_runtime(struct eng_store *store)
{
    uint8_t *base = (uint8_t *)store->rt.head;

    store->pins = (struct eng_pin *)(void *)(base + store->rt.head->pin_off);
    store->tenants = (struct eng_tenant *)(void *)(base + store->rt.head->tenant_off);
    store->bans = (struct eng_bans *)(void *)(base + store->rt.head->ban_off);
    store->flights = (struct eng_flights *)(void *)(base + store->rt.head->flight_off);
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        struct eng_stripe *stripe = &store->stripes[i];
        stripe->rt = (struct eng_stripe_rt *)(void *)(base + store->rt.head->stripe_off[i]);
        stripe->slots = (struct eng_slot *)(void *)(base + store->rt.head->slot_off[i]);
        stripe->granules = (_Atomic uint32_t *)(void *)(base + store->rt.head->granule_off[i]);
        stripe->parents = (_Atomic uint64_t *)(void *)(base + store->rt.head->parent_off[i]);
        stripe->ghost = (uint16_t *)(void *)(base + store->rt.head->ghost_off[i]);
        stripe->n_ghost = eng_ghost_places((uint64_t)stripe->n_buckets * ENG_BUCKET_ENTRIES);
    }
}

static gyre_err join(struct eng_store *store, const struct eng_open *open)
{
    gyre_err err = eng_process_join(store);

    if (err == GYRE_BUSY)
        return eng_refuse(open, err,
                          "%s: %u processes have the store open, which is the limit: close it in "
                          "one of them",
                          store->lock->path, (unsigned)ENG_PROCESSES);
    if (err != GYRE_OK)
        return eng_refuse_io(open, err, errno, store->lock->path, "cannot lock the file");
    return err;
}

static gyre_err make_runtime(struct eng_store *store, const struct eng_home *home)
{
    const char *dir = home->open->dirs[home->main].path;
    gyre_err err = eng_runtime_create(&store->super, SHM_DIR, dir, &store->rt);

    if (err != GYRE_OK)
        return eng_refuse(home->open, err,
                          "%s: no room for the runtime segment of %llu MiB, neither in " SHM_DIR
                          " nor here: %s: free some space in one "
                          "of them",
                          dir, (unsigned long long)(eng_runtime_bytes(&store->super) >> 20) + 1,
                          gyre_err_text(err));
    find_in_runtime(store);
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        struct stat status;
        if (fstat(store->stripes[i].fd, &status) != 0)
            return eng_refuse_io(home->open, GYRE_IO, errno, store->stripes[i].path,
                                 "cannot look at the file");
        store->stripes[i].rt->data_dev = status.st_dev;
        store->stripes[i].rt->data_ino = status.st_ino;
    }
    return join(store, home->open);
}

/* The files must be those that the segment is about, not copies put in their place. */
static bool same_data_files(const struct eng_store *store)
{
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        const struct eng_stripe *stripe = &store->stripes[i];
        struct stat status;
        if (fstat(stripe->fd, &status) != 0 || status.st_dev != stripe->rt->data_dev ||
            status.st_ino != stripe->rt->data_ino)
            return false;
    }
    return true;
}

/* Takes up the segment that the note names: of processes that live, or that died in this boot.
 * NO_STORE: there is none that fits. */
static gyre_err take_up(struct eng_store *store, const struct eng_lock_note *note)
{
    gyre_err err;

    if (!is_same_boot(store, note))
        return GYRE_NO_STORE;
    TRY(eng_runtime_attach(&store->super, note->rt_path, note->rt_dev, note->rt_ino, &store->rt));
    find_in_runtime(store);
    if (!same_data_files(store)) {
        eng_runtime_close(&store->rt, false);
        err = GYRE_NO_STORE;
    }
out:
    return err;
}

/* Whether an earlier process left something in the meta pool. */
static bool meta_pool_filled(const struct eng_store *store)
{
    bool filled = false;

    for (uint32_t i = 0; i < store->n_stripes; i++)
        filled = filled || store->stripes[i].rt->rings[ENG_POOL_META].n_segments > 0;
    return filled;
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
    stripe->rt->header_generation = header.generation;
    stripe->rt->serial_synced = header.serial_synced;
    enum eng_recovery how = header.clean ? ENG_RECOVER_CLEAN
                            : same_boot  ? ENG_RECOVER_KILLED
                                         : ENG_RECOVER_POWER;
    err = eng_recover_stripe(stripe, &header, how, open->progress, open->progress_data, newer_out);
    if (err != GYRE_OK)
        return eng_refuse(open, err, "%s: cannot be recovered: %s: free memory and try again",
                          stripe->path, gyre_err_text(err));
    return GYRE_OK;
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

/* Nobody has it open, and no segment is left: from the files alone. */
static gyre_err open_anew(struct eng_store *store, const struct eng_home *home,
                          const struct eng_lock_note *note)
{
    const struct eng_open *open = home->open;
    gyre_err err;

    remove_stale_runtime(note);
    bool same_boot = is_same_boot(store, note);
    TRY(make_runtime(store, home));
    eng_retention_set(store, open->retention);
    err = eng_bans_load(store);
    if (err != GYRE_OK)
        return eng_refuse_io(open, err, errno, store->volume_path, "cannot read the ban table");
    TRY(open_stripes(store, open, same_boot));
    (void)eng_heat_load(store); /* what cannot be read begins cold */
    TRY(write_note(store, open));
    TRY(mark_open(store, open));
    atomic_store_explicit(&store->rt.head->meta_used, meta_pool_filled(store),
                          memory_order_relaxed);
    atomic_store_explicit(&store->rt.head->synced_ns, eng_clock_mono_ns(), memory_order_relaxed);
    /* Release: who finds it OPEN finds all of it made (B). */
    atomic_store_explicit(&store->rt.head->state, ENG_RT_OPEN, memory_order_release);
out:
    return err;
}

/* A death inside a stripe's lock may have left a tenant's sum off by a document. The stripes are
 * repaired first. */
static void recount_tenants(struct eng_store *store)
{
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        eng_alloc_lock(&store->stripes[i]);
        eng_alloc_unlock(&store->stripes[i]);
    }
    for (uint32_t t = 0; t < ENG_TENANTS; t++)
        atomic_store_explicit(&store->tenants[t].units, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        const struct eng_stripe *stripe = &store->stripes[i];
        for (uint32_t slot = 0; slot < stripe->n_buckets * ENG_BUCKET_ENTRIES; slot++)
            if (eng_directory_entry(stripe, slot) != 0)
                eng_tenant_count(store, stripe->slots[slot].tenant, stripe->slots[slot].units);
    }
}

/* Into a segment that is there. Without anybody alive the files may have been changed since, so
 * nothing counts as verified; all else is exact, once what the dead held is taken back. */
static gyre_err open_attached(struct eng_store *store, const struct eng_open *open, bool in_use)
{
    gyre_err err;

    TRY(join(store, open));
    GYRE_STEP("store.attach.joined");
    (void)eng_processes_reap(store);
    for (uint32_t i = 0; i < store->n_stripes && !in_use; i++)
        eng_directory_distrust(&store->stripes[i]);
    if (!in_use)
        recount_tenants(store);
    eng_retention_set(store, open->retention);
    if (atomic_load_explicit(&store->rt.head->state, memory_order_acquire) == ENG_RT_CLEAN) {
        TRY(mark_open(store, open));
        atomic_store_explicit(&store->rt.head->state, ENG_RT_OPEN, memory_order_release);
    }
out:
    return err;
}

static gyre_err refuse_in_use(const struct eng_store *store, const struct eng_open *open, pid_t pid,
                              const char *why)
{
    if (pid > 0)
        return eng_refuse(open, GYRE_LOCKED, "%s: the store is in use by process %ld%s",
                          store->lock->path, (long)pid, why);
    return eng_refuse(open, GYRE_LOCKED,
                      "%s: the store is in use by a process of another container or host%s",
                      store->lock->path, why);
}

gyre_err eng_attach_check(const struct eng_store *store, struct eng_home *home)
{
    pid_t pid;

    home->in_use = eng_processes_others(store, &pid);
    if (home->in_use && (home->open->reset || !home->has_volume))
        return refuse_in_use(store, home->open, pid,
                             ": stop it first, or use another data directory");
    return GYRE_OK;
}

gyre_err eng_attach(struct eng_store *store, const struct eng_home *home,
                    const struct eng_lock_note *note)
{
    pid_t pid;

    if (take_up(store, note) == GYRE_OK)
        return open_attached(store, home->open, home->in_use);
    if (!home->in_use)
        return open_anew(store, home, note);
    (void)eng_processes_others(store, &pid);
    return refuse_in_use(store, home->open, pid,
                         ", whose runtime segment this one cannot share: run the same version, and "
                         "let them see the same " SHM_DIR);
}
