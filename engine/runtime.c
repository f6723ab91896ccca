#include "engine/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/base/io.h"
#include "engine/base/sys.h"
#include "engine/geometry.h"
#include "engine/locks.h"

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
    for (uint32_t i = 0; i < super->n_stripes; i++) {
        uint64_t n_slots = (uint64_t)super->stripes[i].n_buckets * ENG_BUCKET_ENTRIES;
        head->stripe_off[i] = at;
        at = eng_align_up(at + sizeof(struct eng_stripe_rt), ENG_PAGE);
        head->slot_off[i] = at;
        at = eng_align_up(at + n_slots * sizeof(struct eng_slot), ENG_PAGE);
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
