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
#include "engine/base/sys.h"
#include "engine/geometry.h"
#include "engine/locks.h"
#include "engine/parent.h"

#define RT_MAGIC UINT64_C(0x314d495452594721)

/* Offsets of everything in the segment. */
static void lay_out(const struct eng_superblock *super, struct eng_runtime_head *head)
{
    uint64_t at = ENG_PAGE;

    memset(head, 0, sizeof *head);
    head->magic = RT_MAGIC;
    head->version = ENG_RT_VERSION;
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

#define SWEEP_AGE_S 60 /* a file this young may be one that is just being made */

static bool is_segment_name(const char *name)
{
    size_t len = strlen(name);

    return len > 8 && strncmp(name, "gyre-", 5) == 0 && strcmp(name + len - 3, ".rt") == 0;
}

/* Whoever uses a segment holds a lock on its file. */
static bool is_abandoned(int dir_fd, const char *name)
{
    struct stat status;
    bool abandoned = false;
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return false;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        (uint64_t)status.st_mtim.tv_sec + SWEEP_AGE_S < eng_clock_real_s())
        abandoned = flock(fd, LOCK_EX | LOCK_NB) == 0;
    eng_close(&fd);
    return abandoned;
}

/* A store whose process was killed removes its segment at its next opening. Some are never opened
 * again, and shared memory is the machine's memory. */
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
    memset(base + rt->head->granule_off[stripe], 0xff,
           granules * sizeof(uint32_t)); /* ENG_NO_SLOT */
out:
    return err;
}

gyre_err eng_runtime_create(const struct eng_superblock *super, const char *shm_dir,
                            const char *store_dir, struct eng_runtime *rt_out)
{
    struct eng_runtime_head head;
    gyre_err err = GYRE_DISK_FULL;

    *rt_out = (struct eng_runtime){.fd = -1};
    lay_out(super, &head);
    uint8_t boot_id[16];
    if (eng_boot_id(boot_id) == GYRE_OK)
        memcpy(head.boot_id, boot_id, sizeof boot_id);
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
    TRY(eng_mutex_init(&rt_out->head->facts_lock, ENG_RANK_FACTS));
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

void eng_runtime_close(struct eng_runtime *rt, bool unlink_file)
{
    if (rt->head != NULL)
        munmap(rt->head, rt->bytes);
    if (rt->fd >= 0 && unlink_file)
        unlink(rt->path);
    eng_close(&rt->fd);
    rt->head = NULL;
}
