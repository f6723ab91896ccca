/* Making a store; see volume.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/base/io.h"
#include "engine/base/step.h"
#include "engine/base/sys.h"
#include "engine/geometry.h"
#include "engine/header.h"
#include "engine/refuse.h"
#include "engine/runtime.h"
#include "engine/seal.h"
#include "engine/volume.h"

#define MIN_STORE_BYTES (UINT64_C(64) << 20)

/* ---- Sizes ---- */

/* The bytes each directory may use, the one for the volume file first. */
static gyre_err sizes_of(const struct eng_home *home, uint64_t sizes[ENG_MAX_STRIPES])
{
    const struct eng_open *open = home->open;
    const char *path = open->dirs[home->main].path;
    uint32_t sharing = 0;
    uint64_t total = 0;

    for (uint32_t d = 0; d < home->n_dirs; d++)
        sharing += open->dirs[d].size_bytes == 0;
    for (uint32_t d = 0; d < home->n_dirs; d++) {
        uint64_t bytes =
            open->dirs[d].size_bytes != 0 ? open->dirs[d].size_bytes : open->size_bytes / sharing;
        sizes[d] = bytes;
        if (!eng_add_checked(total, bytes, &total))
            return eng_refuse(open, GYRE_INVALID,
                              "%s: the sizes add up to more than 2^64 bytes: choose smaller ones",
                              path);
    }
    if (total < MIN_STORE_BYTES)
        return eng_refuse(open, GYRE_INVALID,
                          "%s: a store of %" PRIu64 " bytes is too small: give it 64 MiB or more",
                          path, total);
    uint64_t of_main = sizes[home->main];
    sizes[home->main] = sizes[0];
    sizes[0] = of_main;
    return GYRE_OK;
}

/* Directory 0 of the geometry is the one with the volume file. */
static uint32_t dir_of(const struct eng_home *home, uint32_t geometry_dir)
{
    return geometry_dir == 0 ? home->main : geometry_dir == home->main ? 0 : geometry_dir;
}

static gyre_err plan(const struct eng_home *home, struct eng_superblock *super)
{
    const struct eng_open *open = home->open;
    uint64_t sizes[ENG_MAX_STRIPES];
    char why[256] = "";
    gyre_err err;
    struct eng_geometry_want want = {
        sizes,       home->n_dirs, open->segment_bytes, open->stripes, open->average_object_bytes,
        open->pools, open->n_pools};

    TRY(sizes_of(home, sizes));
    err = eng_geometry_make(&want, super, why, sizeof why);
    if (err != GYRE_OK)
        return eng_refuse(open, err, "%s: %s: choose another size", open->dirs[home->main].path,
                          why);
    for (uint32_t i = 0; i < super->n_stripes; i++)
        super->stripes[i].data_dir = dir_of(home, super->stripes[i].data_dir);
    TRY(eng_random_bytes(super->uuid, sizeof super->uuid));
    TRY(eng_random_bytes(super->hash_seed, sizeof super->hash_seed));
    super->created_s = eng_clock_real_s();
out:
    return err;
}

/* ---- What is there ---- */

struct found {
    bool volume, fresh;                          /* volume.gyre, volume.gyre.new */
    bool data[ENG_MAX_STRIPES][ENG_MAX_STRIPES]; /* [dir][stripe] */
    uint64_t bytes[ENG_MAX_STRIPES];             /* disk space of these, by directory */
};

/* Whether a plain file of that name is there; anything else of that name is refused. */
static gyre_err look_at(const struct eng_home *home, uint32_t dir, const char *name,
                        bool *there_out, uint64_t *bytes)
{
    struct stat status;

    *there_out = false;
    if (fstatat(home->fds[dir], name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT)
            return GYRE_OK;
        return eng_refuse_io(home->open, eng_err_of_errno(errno), errno, home->open->dirs[dir].path,
                             "cannot look into the directory");
    }
    if (!S_ISREG(status.st_mode))
        return eng_refuse(home->open, GYRE_INVALID,
                          "%s/%s: is not a plain file, so it is not Gyre's and will not be "
                          "replaced: move it away, or name another directory",
                          home->open->dirs[dir].path, name);
    *there_out = true;
    *bytes += (uint64_t)status.st_blocks * 512;
    return GYRE_OK;
}

static gyre_err survey(const struct eng_home *home, struct found *found)
{
    char name[ENG_NAME_MAX];
    gyre_err err;

    memset(found, 0, sizeof *found);
    TRY(look_at(home, home->main, ENG_VOLUME_NAME, &found->volume, &found->bytes[home->main]));
    TRY(look_at(home, home->main, ENG_NEW_VOLUME_NAME, &found->fresh, &found->bytes[home->main]));
    for (uint32_t d = 0; d < home->n_dirs; d++) {
        for (uint32_t i = 0; i < ENG_MAX_STRIPES; i++) {
            eng_data_name(i, name);
            TRY(look_at(home, d, name, &found->data[d][i], &found->bytes[d]));
        }
    }
out:
    return err;
}

static bool is_zero(const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* Whether a data file was made for the store that volume.gyre.new was to become, and so never held
 * anything. */
static bool is_unfinished(const struct eng_home *home, uint32_t dir, uint32_t stripe,
                          const struct eng_superblock *fresh)
{
    struct eng_data_head head;
    char name[ENG_NAME_MAX];
    bool unfinished = false;
    size_t got = 0;
    int fd;
    const struct iovec piece = {&head, sizeof head};

    eng_data_name(stripe, name);
    if (eng_open_regular(home->fds[dir], name, O_RDONLY, 0, &fd) != GYRE_OK)
        return false;
    memset(&head, 0, sizeof head);
    if (eng_preadv(fd, &piece, 1, 0, &got) == GYRE_OK)
        unfinished = is_zero((const uint8_t *)&head, sizeof head) ||
                     eng_data_head_check(&head, fresh, stripe) == GYRE_OK;
    eng_close(&fd);
    return unfinished;
}

static bool read_fresh(const struct eng_home *home, struct eng_superblock *fresh)
{
    int fd;

    if (eng_open_regular(home->fds[home->main], ENG_NEW_VOLUME_NAME, O_RDONLY, 0, &fd) != GYRE_OK)
        return false;
    gyre_err err = eng_pread(fd, fresh, sizeof *fresh, 0);
    eng_close(&fd);
    if (err != GYRE_OK)
        return false;
    if (fresh->generation ==
        0) { /* the mark of an unfinished one; otherwise it is a superblock like any */
        struct eng_superblock as_if = *fresh;
        as_if.generation = 1;
        eng_superblock_seal(&as_if);
        struct eng_superblock again = *fresh;
        eng_superblock_seal(&again);
        return again.crc == fresh->crc &&
               eng_superblock_check(&as_if, as_if.volume_bytes) == GYRE_OK;
    }
    return eng_superblock_check(fresh, fresh->volume_bytes) == GYRE_OK;
}

/* Data files without a volume file are only removed if it is certain that nothing was ever stored
 * in them. */
static gyre_err check_leftovers(const struct eng_home *home, const struct found *found)
{
    struct eng_superblock fresh;
    char name[ENG_NAME_MAX];
    bool known = found->fresh && read_fresh(home, &fresh);

    for (uint32_t d = 0; d < home->n_dirs; d++) {
        for (uint32_t i = 0; i < ENG_MAX_STRIPES; i++) {
            if (!found->data[d][i] ||
                (known && i < fresh.n_stripes && is_unfinished(home, d, i, &fresh)))
                continue;
            eng_data_name(i, name);
            return eng_refuse(home->open, GYRE_DAMAGED,
                              "%s/%s: belongs to a store whose " ENG_VOLUME_NAME
                              " is missing: put that back, or start anew with --reset",
                              home->open->dirs[d].path, name);
        }
    }
    return GYRE_OK;
}

/* ---- Room ---- */

static uint64_t need_of(const struct eng_home *home, const struct eng_superblock *super,
                        uint32_t dir)
{
    uint64_t need = dir == home->main ? super->volume_bytes + ENG_SMALL_FILES : 0;

    for (uint32_t i = 0; i < super->n_stripes; i++)
        need += super->stripes[i].data_dir == dir ? eng_data_file_bytes(super, i) : 0;
    return need;
}

/* Looks before anything is changed; what is to be removed counts as free. */
static gyre_err check_room(const struct eng_home *home, const struct eng_superblock *super,
                           const struct found *found)
{
    for (uint32_t d = 0; d < home->n_dirs; d++) {
        struct stat own;
        struct stat other;
        uint64_t need = 0;
        uint64_t room;
        uint64_t size;
        gyre_err err = eng_fs_space(home->fds[d], &room, &size);
        if (err != GYRE_OK || fstat(home->fds[d], &own) != 0)
            return eng_refuse_io(home->open, GYRE_IO, errno, home->open->dirs[d].path,
                                 "cannot ask for free space");
        for (uint32_t i = 0; i < home->n_dirs; i++) {
            if (fstat(home->fds[i], &other) == 0 && other.st_dev == own.st_dev) {
                need += need_of(home, super, i);
                room += found->bytes[i];
            }
        }
        if (need > room) {
            /* Rounded so that who frees what is said has enough. */
            uint64_t need_mib = eng_div_up(need, UINT64_C(1) << 20), room_mib = room >> 20;
            return eng_refuse(home->open, GYRE_DISK_FULL,
                              "%s: the file system has %" PRIu64
                              " MiB free and the store needs %" PRIu64 " MiB, %" PRIu64
                              " MiB more: choose a smaller size, or free some space",
                              home->open->dirs[d].path, room_mib, need_mib, need_mib - room_mib);
        }
    }
    return GYRE_OK;
}

/* ---- Doing it ---- */

static gyre_err sync_dirs(const struct eng_home *home)
{
    for (uint32_t d = 0; d < home->n_dirs; d++) {
        gyre_err err = eng_sync_dir(home->fds[d]);
        if (err != GYRE_OK)
            return eng_refuse_io(home->open, err, errno, home->open->dirs[d].path,
                                 "cannot make the directory durable");
    }
    return GYRE_OK;
}

static void remove_data(const struct eng_home *home, const struct found *found)
{
    char name[ENG_NAME_MAX];

    for (uint32_t d = 0; d < home->n_dirs; d++) {
        for (uint32_t i = 0; i < ENG_MAX_STRIPES; i++) {
            if (found->data[d][i]) {
                eng_data_name(i, name);
                unlinkat(home->fds[d], name, 0);
            }
        }
    }
}

/* Announces the store to be made. */
static gyre_err write_mark(const struct eng_home *home, const struct eng_superblock *super,
                           int *fd_out)
{
    char *path;
    struct eng_superblock mark = *super;
    gyre_err err;

    TRY(eng_home_open_file(home, home->main, ENG_NEW_VOLUME_NAME, O_RDWR | O_CREAT | O_TRUNC,
                           fd_out, &path));
    eng_superblock_seal(&mark);
    err = eng_pwrite(*fd_out, &mark, sizeof mark, 0);
    if (err == GYRE_OK)
        err = eng_sync_data(*fd_out);
    if (err != GYRE_OK)
        err = eng_refuse_io(home->open, err, errno, path, "cannot write the file");
    else
        err = sync_dirs(home);
out:
    free(path);
    return err;
}

gyre_err eng_data_file_make(const struct eng_home *home, uint32_t dir,
                            const struct eng_superblock *super, uint32_t stripe)
{
    struct eng_data_head head = eng_data_head_of(super, stripe);
    char name[ENG_NAME_MAX];
    char *path;
    int fd;
    gyre_err err;

    eng_data_name(stripe, name);
    err = eng_home_open_file(home, dir, name, O_RDWR | O_CREAT | O_EXCL, &fd, &path);
    if (err == GYRE_OK) {
        err = eng_allocate(fd, 0, eng_data_file_bytes(super, stripe));
        GYRE_STEP("make.data_file.allocated");
        if (err == GYRE_OK)
            err = eng_pwrite(fd, &head, sizeof head, 0);
        if (err == GYRE_OK)
            err = eng_sync_data(fd);
        if (err != GYRE_OK) {
            err = eng_refuse_io(home->open, err, errno, path, "cannot make the file");
            unlinkat(home->fds[dir], name, 0);
        }
    }
    eng_close(&fd);
    free(path);
    return err;
}

/* Everything but the name. */
static gyre_err fill_volume(const struct eng_home *home, int fd, struct eng_superblock *super)
{
    gyre_err err;

    TRY(eng_allocate(fd, 0, super->volume_bytes));
    for (uint32_t i = 0; i < super->n_stripes; i++)
        TRY(eng_header_init(fd, super, i));
    TRY(eng_sync_data(fd));
    for (unsigned copy = 0; copy < 2; copy++) {
        super->generation = 1 + copy;
        eng_superblock_seal(super);
        TRY(eng_pwrite(fd, super, sizeof *super, eng_superblock_off(copy)));
    }
    TRY(eng_sync_data(fd));
out:
    if (err != GYRE_OK)
        err = eng_refuse(home->open, err,
                         "%s/" ENG_NEW_VOLUME_NAME
                         ": cannot write the file: %s: free some space, or look at the system log",
                         home->open->dirs[home->main].path, gyre_err_text(err));
    return err;
}

static gyre_err build(struct eng_home *home, struct eng_superblock *super, int fd)
{
    int dir_fd = home->fds[home->main];
    gyre_err err;

    for (uint32_t i = 0; i < super->n_stripes; i++) {
        if (home->open->progress != NULL)
            home->open->progress(home->open->progress_data, "making data files", i,
                                 super->n_stripes);
        TRY(eng_data_file_make(home, super->stripes[i].data_dir, super, i));
    }
    GYRE_STEP("make.data.made");
    TRY(sync_dirs(home));
    TRY(fill_volume(home, fd, super));
    GYRE_STEP("make.volume.durable");
    if (renameat(dir_fd, ENG_NEW_VOLUME_NAME, dir_fd, ENG_VOLUME_NAME) != 0)
        return eng_refuse_io(home->open, eng_err_of_errno(errno), errno,
                             home->open->dirs[home->main].path,
                             "cannot rename " ENG_NEW_VOLUME_NAME);
    GYRE_STEP("make.volume.renamed");
    TRY(sync_dirs(home));
    home->has_volume = true;
out:
    return err;
}

gyre_err eng_volume_make(struct eng_home *home, bool replace)
{
    struct eng_superblock super;
    struct found *found = malloc(sizeof *found);
    int fd = -1;
    gyre_err err;

    if (found == NULL)
        return eng_refuse(home->open, GYRE_NO_MEMORY, "%s: out of memory: free some",
                          home->open->dirs[0].path);
    TRY(plan(home, &super));
    TRY(survey(home, found));
    if (!replace)
        TRY(check_leftovers(home, found));
    TRY(check_room(home, &super, found));
    err = write_mark(home, &super, &fd);
    if (err != GYRE_OK) {
        if (!replace) /* what is there is of an unfinished store, whose mark is gone now */
            remove_data(home, found);
        unlinkat(home->fds[home->main], ENG_NEW_VOLUME_NAME, 0);
        goto out;
    }
    GYRE_STEP("make.mark.durable");
    /* The old volume file goes last: until then the old store, though incomplete, is still refused
     * rather than taken for a new one. */
    remove_data(home, found);
    GYRE_STEP("make.old_data.removed");
    if (found->volume)
        unlinkat(home->fds[home->main], ENG_VOLUME_NAME, 0);
    home->has_volume = false;
    err = sync_dirs(home);
    GYRE_STEP("make.old.removed");
    bool was_there = found->volume;
    if (err == GYRE_OK)
        err = build(home, &super, fd);
    if (err != GYRE_OK && survey(home, found) == GYRE_OK) {
        remove_data(home, found);
        unlinkat(home->fds[home->main], ENG_NEW_VOLUME_NAME, 0);
    }
    home->made_store = err == GYRE_OK && !was_there;
out:
    eng_close(&fd);
    free(found);
    return err;
}

void eng_volume_unmake(struct eng_home *home)
{
    int dir_fd = home->fds[home->main];
    struct found *found = malloc(sizeof *found);

    /* Under its first name it is a store that is being made: that can end halfway. */
    if (found != NULL && survey(home, found) == GYRE_OK &&
        renameat(dir_fd, ENG_VOLUME_NAME, dir_fd, ENG_NEW_VOLUME_NAME) == 0) {
        remove_data(home, found);
        unlinkat(dir_fd, ENG_NEW_VOLUME_NAME, 0);
    }
    free(found);
}
