#include "engine/runtime.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/base/io.h"
#include "engine/base/rank.h"
#include "engine/base/sys.h"
#include "engine/flight.h"
#include "engine/geometry.h"
#include "engine/locks.h"
#include "engine/parent.h"

#define RT_MAGIC UINT64_C(0x314d495452594721)

/* Differs between builds whose structures differ. */
static uint64_t layout(void)
{
    uint64_t sizes[] = {sizeof(struct eng_runtime_head),
                        sizeof(struct eng_process),
                        sizeof(struct eng_stripe_rt),
                        sizeof(struct eng_ring),
                        sizeof(struct eng_slot),
                        sizeof(struct eng_flights),
                        ENG_PINS,
                        ENG_GRANULE};
    uint64_t sum = 0;

    for (size_t i = 0; i < GYRE_ARRAY_LEN(sizes); i++)
        sum = sum * UINT64_C(1000003) + sizes[i];
    return sum;
}

/* Offsets of everything in the segment. */
static void lay_out(const struct eng_superblock *super, struct eng_runtime_head *head)
{
    uint64_t at = ENG_PAGE;

    memset(head, 0, sizeof *head);
    head->magic = RT_MAGIC;
    head->version = ENG_RT_VERSION;
    head->layout = layout();
    head->n_stripes = super->n_stripes;
    memcpy(head->uuid, super->uuid, sizeof head->uuid);
    head->process_off = at;
    at = eng_align_up(at + ENG_PROCESSES * sizeof(struct eng_process), ENG_PAGE);
    head->pin_off = at;
    at = eng_align_up(at + ENG_PINS * sizeof(struct eng_pin), ENG_PAGE);
    head->tenant_off = at;
    at = eng_align_up(at + ENG_TENANTS * sizeof(struct eng_tenant), ENG_PAGE);
    head->ban_off = at;
    at = eng_align_up(at + sizeof(struct eng_bans), ENG_PAGE);
    head->flight_off = at;
    at = eng_align_up(at + sizeof(struct eng_flights), ENG_PAGE);
    for (uint32_t i = 0; i < super->n_stripes; i++) {
        uint64_t n_slots = (uint64_t)super->stripes[i].n_buckets * ENG_BUCKET_ENTRIES;
        head->stripe_off[i] = at;
        at = eng_align_up(at + sizeof(struct eng_stripe_rt), ENG_PAGE);
        head->slot_off[i] = at;
        at = eng_align_up(at + n_slots * sizeof(struct eng_slot), ENG_PAGE);
        head->parent_off[i] = at;
        at = eng_align_up(at + eng_area_bytes(super, i) / ENG_PARENT_BYTES * sizeof(uint64_t),
                          ENG_PAGE);
        head->ghost_off[i] = at;
        at = eng_align_up(at + eng_ghost_places(n_slots) * sizeof(uint16_t), ENG_PAGE);
        head->granule_off[i] = at;
        at = eng_align_up(at + eng_area_bytes(super, i) / ENG_GRANULE * sizeof(uint32_t), ENG_PAGE);
    }
    head->bytes = at;
}

uint64_t eng_runtime_bytes(const struct eng_superblock *super)
{
    struct eng_runtime_head head;

    lay_out(super, &head);
    return head.bytes;
}

/* Makes the file, with all its pages, under a name that nobody uses. */
static gyre_err make_file(const struct eng_superblock *super, const char *dir, uint64_t bytes,
                          struct eng_runtime *rt)
{
    uint64_t nonce;
    uint64_t free_bytes;
    uint64_t size_bytes;
    gyre_err err;

    rt->fd = -1;
    TRY(eng_random_bytes(&nonce, sizeof nonce));
    int len = snprintf(rt->path, sizeof rt->path, "%s/gyre-%02x%02x%02x%02x-%016llx.rt", dir,
                       super->uuid[0], super->uuid[1], super->uuid[2], super->uuid[3],
                       (unsigned long long)nonce);
    if (len < 0 || (size_t)len >= sizeof rt->path)
        return GYRE_INVALID;
    TRY(eng_open_regular(AT_FDCWD, rt->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600,
                         &rt->fd));
    if (flock(rt->fd, LOCK_SH | LOCK_NB) != 0) { /* says that somebody is alive; see sweep */
        err = eng_err_of_errno(errno);
        unlink(rt->path);
        goto out;
    }
    TRY(eng_fs_space(rt->fd, &free_bytes, &size_bytes));
    if (free_bytes < bytes)
        err = GYRE_DISK_FULL;
    else
        err = eng_allocate(rt->fd, 0, bytes);
    if (err != GYRE_OK)
        unlink(rt->path);
out:
    if (err != GYRE_OK)
        eng_close(&rt->fd);
    return err;
}

/* ---- What the dead left behind ---- */

/* A file this young may be one that is just being made. */
#define SWEEP_AGE_S 60
/* A store whose processes were all killed goes on with its segment if it is opened within this
 * time. */
#define KEEP_AGE_S 3600

static bool is_segment_name(const char *name)
{
    size_t len = strlen(name);

    return len > 8 && strncmp(name, "gyre-", 5) == 0 && strcmp(name + len - 3, ".rt") == 0;
}

/* Whether its making came to an end: one that never did is of no use to anybody. */
static bool was_made(int fd)
{
    struct eng_runtime_head head;

    return eng_pread(fd, &head, sizeof head, 0) == GYRE_OK && head.magic == RT_MAGIC &&
           atomic_load_explicit(&head.state, memory_order_relaxed) != ENG_RT_MAKING;
}

/* Whoever uses a segment holds a lock on its file. */
static bool is_abandoned(int dir_fd, const char *name)
{
    struct stat status;
    bool abandoned = false;
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return false;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid()) {
        uint64_t age_s = was_made(fd) ? KEEP_AGE_S : SWEEP_AGE_S;
        abandoned = (uint64_t)status.st_mtim.tv_sec + age_s < eng_clock_real_s() &&
                    flock(fd, LOCK_EX | LOCK_NB) == 0;
    }
    eng_close(&fd);
    return abandoned;
}

/* A store whose processes were killed takes its segment up again, or removes it, at its next
 * opening. Some are never opened again, and shared memory is the machine's memory. */
static void sweep(const char *shm_dir)
{
    DIR *dir = opendir(shm_dir);
    const struct dirent *entry;

    if (dir == NULL)
        return;
    while ((entry = readdir(dir)) != NULL)
        if (is_segment_name(entry->d_name) && is_abandoned(dirfd(dir), entry->d_name))
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
}

void eng_runtime_touch(const struct eng_runtime *rt)
{
    (void)futimens(rt->fd, NULL); /* where it fails the segment is kept for an hour from before */
}

/* ---- Making one ---- */

static gyre_err init_stripe(const struct eng_superblock *super, struct eng_runtime *rt,
                            uint32_t stripe)
{
    uint8_t *base = (uint8_t *)rt->head;
    struct eng_stripe_rt *state = (void *)(base + rt->head->stripe_off[stripe]);
    uint64_t granules = eng_area_bytes(super, stripe) / ENG_GRANULE;
    gyre_err err;

    TRY(eng_mutex_init(&state->alloc_lock, ENG_RANK_ALLOC));
    TRY(eng_mutex_init(&state->clean_lock, ENG_RANK_CLEAN));
    TRY(eng_mutex_init(&state->sync_lock, ENG_RANK_NONE));
    memset(base + rt->head->granule_off[stripe], 0xff,
           granules * sizeof(uint32_t)); /* ENG_NO_SLOT */
out:
    return err;
}

/* Without a name of the boot nothing is ever attached to. */
static void name_boot(struct eng_runtime_head *head)
{
    uint8_t boot_id[16];

    if (eng_boot_id(boot_id) == GYRE_OK)
        memcpy(head->boot_id, boot_id, sizeof boot_id);
}

gyre_err eng_runtime_create(const struct eng_superblock *super, const char *shm_dir,
                            const char *store_dir, struct eng_runtime *rt_out)
{
    struct eng_runtime_head head;
    gyre_err err = GYRE_DISK_FULL;

    *rt_out = (struct eng_runtime){.fd = -1};
    lay_out(super, &head);
    name_boot(&head);
    if (shm_dir != NULL)
        sweep(shm_dir);
    if (shm_dir != NULL)
        err = make_file(super, shm_dir, head.bytes, rt_out);
    if (err != GYRE_OK)
        TRY(make_file(super, store_dir, head.bytes, rt_out));
    void *base = mmap(NULL, head.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rt_out->fd, 0);
    if (base == MAP_FAILED) {
        err = eng_err_of_errno(errno);
        goto out;
    }
    rt_out->head = base;
    rt_out->bytes = head.bytes;
    *rt_out->head = head;
    rt_out->made = true;
    TRY(eng_mutex_init(&rt_out->head->table_lock, ENG_RANK_TABLE));
    TRY(eng_mutex_init(&rt_out->head->leader_lock, ENG_RANK_NONE));
    TRY(eng_mutex_init(&rt_out->head->facts_lock, ENG_RANK_FACTS));
    struct eng_flights *flights = (void *)((uint8_t *)rt_out->head + head.flight_off);
    TRY(eng_mutex_init(&flights->lock, ENG_RANK_FLIGHT));
    for (uint32_t i = 0; i < ENG_MAX_POOLS; i++)
        atomic_init(&rt_out->head->pool_epoch[i], super->pools[i].epoch);
    atomic_init(&rt_out->head->features, super->feature_compat);
    for (uint32_t i = 0; i < super->n_stripes; i++)
        TRY(init_stripe(super, rt_out, i));
out:
    if (err != GYRE_OK)
        eng_runtime_close(rt_out, true);
    return err;
}

/* ---- Using one that is there ---- */

/* The making of a segment ends with its state, so whatever else is compared stands by then. */
static gyre_err check_head(const struct eng_superblock *super, const struct eng_runtime_head *head,
                           uint64_t file_bytes)
{
    static const char no_name[sizeof head->boot_id];
    struct eng_runtime_head want;

    lay_out(super, &want);
    name_boot(&want);
    if (file_bytes != want.bytes || head->magic != want.magic || head->version != want.version ||
        head->layout != want.layout || head->bytes != want.bytes ||
        head->n_stripes != want.n_stripes || memcmp(head->uuid, want.uuid, sizeof want.uuid) != 0 ||
        memcmp(head->boot_id, want.boot_id, sizeof want.boot_id) != 0 ||
        memcmp(want.boot_id, no_name, sizeof no_name) == 0 ||
        head->process_off != want.process_off || head->pin_off != want.pin_off ||
        memcmp(head->stripe_off, want.stripe_off, sizeof want.stripe_off) != 0 ||
        memcmp(head->slot_off, want.slot_off, sizeof want.slot_off) != 0 ||
        memcmp(head->granule_off, want.granule_off, sizeof want.granule_off) != 0)
        return GYRE_INCOMPATIBLE;
    return atomic_load_explicit(&head->state, memory_order_acquire) == ENG_RT_MAKING ? GYRE_STATE
                                                                                     : GYRE_OK;
}

gyre_err eng_runtime_attach(const struct eng_superblock *super, const char *path, uint64_t dev,
                            uint64_t ino, struct eng_runtime *rt_out)
{
    struct stat status;
    gyre_err err;

    *rt_out = (struct eng_runtime){.fd = -1};
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof rt_out->path)
        return GYRE_NO_STORE;
    memcpy(rt_out->path, path, len + 1);
    TRY(eng_open_regular(AT_FDCWD, path, O_RDWR | O_NOFOLLOW, 0, &rt_out->fd));
    if (fstat(rt_out->fd, &status) != 0 || status.st_dev != dev || status.st_ino != ino) {
        err = GYRE_NO_STORE;
        goto out;
    }
    if ((uint64_t)status.st_size < sizeof(struct eng_runtime_head)) {
        err = GYRE_INCOMPATIBLE;
        goto out;
    }
    if (flock(rt_out->fd, LOCK_SH | LOCK_NB) != 0) {
        err = GYRE_NO_STORE; /* it is just being swept */
        goto out;
    }
    rt_out->bytes = (uint64_t)status.st_size;
    void *base = mmap(NULL, rt_out->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rt_out->fd, 0);
    if (base == MAP_FAILED) {
        err = eng_err_of_errno(errno);
        goto out;
    }
    rt_out->head = base;
    err = check_head(super, rt_out->head, rt_out->bytes);
out:
    if (err != GYRE_OK)
        eng_runtime_close(rt_out, false);
    return err;
}

void eng_runtime_close(struct eng_runtime *rt, bool unlink_file)
{
    if (rt->head != NULL)
        munmap(rt->head, rt->bytes);
    if (rt->fd >= 0 && unlink_file)
        unlink(rt->path);
    eng_close(&rt->fd);
    rt->head = NULL;
}
