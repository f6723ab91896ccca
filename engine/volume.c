#include "engine/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/check.h"
#include "engine/base/io.h"
#include "engine/fault.h"
#include "engine/geometry.h"
#include "engine/header.h"
#include "engine/refuse.h"
#include "engine/seal.h"

static int open_flags(const struct eng_home *home)
{
    return home->open->read_only ? O_RDONLY : O_RDWR;
}

/* ---- The volume file ---- */

/* Both copies were read; picks the newest that is valid. */
static gyre_err pick_superblock(const struct eng_open *open, const char *path,
                                const struct eng_superblock copies[2],
                                struct eng_superblock *super_out)
{
    gyre_err errs[2];

    for (unsigned i = 0; i < 2; i++)
        errs[i] = eng_superblock_check(&copies[i], copies[i].volume_bytes);
    if (errs[0] == GYRE_OK || errs[1] == GYRE_OK) {
        unsigned newer = errs[1] == GYRE_OK &&
                         (errs[0] != GYRE_OK || copies[1].generation > copies[0].generation);
        *super_out = copies[newer];
        return GYRE_OK;
    }
    for (unsigned i = 0; i < 2; i++) {
        if (errs[i] == GYRE_INCOMPATIBLE)
            return eng_refuse(open, GYRE_INCOMPATIBLE,
                              "%s: was written in format %u.%u and this program reads format %u: "
                              "use the program that wrote it, or start "
                              "anew with --reset",
                              path, copies[i].major, copies[i].minor, ENG_FORMAT_MAJOR);
    }
    if (errs[0] == GYRE_NO_STORE && errs[1] == GYRE_NO_STORE)
        return eng_refuse(
            open, GYRE_DAMAGED,
            "%s: is not a Gyre volume: put the right file back, or start anew with --reset", path);
    return eng_refuse(
        open, GYRE_DAMAGED,
        "%s: both copies of the superblock are damaged: put a good copy of the file back, or start "
        "anew with --reset",
        path);
}

static gyre_err read_superblock(struct eng_store *store, const struct eng_open *open)
{
    struct eng_superblock copies[2];
    const char *path = store->volume_path;
    uint64_t bytes;
    gyre_err err;

    TRY(eng_file_size(store->volume_fd, &bytes));
    if (bytes < sizeof copies)
        return eng_refuse(
            open, GYRE_DAMAGED,
            "%s: is only %" PRIu64
            " bytes long and has no superblock: put a good copy back, or start anew with --reset",
            path, bytes);
    err = eng_pread(store->volume_fd, copies, sizeof copies, 0);
    if (err != GYRE_OK)
        return eng_refuse_io(open, err, errno, path, "cannot read the superblock");
    TRY(pick_superblock(open, path, copies, &store->super));
    if (store->super.volume_bytes != bytes)
        return eng_refuse(open, GYRE_DAMAGED,
                          "%s: is %" PRIu64 " bytes long instead of %" PRIu64
                          ": put a good copy back, or start anew with --reset",
                          path, bytes, store->super.volume_bytes);
out:
    return err;
}

gyre_err eng_superblock_heal(struct eng_store *store)
{
    struct eng_superblock copy;
    gyre_err err = GYRE_OK;

    for (unsigned i = 0; i < 2; i++) {
        TRY(eng_pread(store->volume_fd, &copy, sizeof copy, eng_superblock_off(i)));
        if (eng_superblock_check(&copy, store->super.volume_bytes) == GYRE_OK)
            continue;
        store->super.generation++;
        eng_superblock_seal(&store->super);
        TRY(eng_pwrite(store->volume_fd, &store->super, sizeof store->super,
                       eng_superblock_off(i)));
        TRY(eng_sync_data(store->volume_fd));
    }
out:
    return err;
}

static gyre_err map_volume(struct eng_store *store, const struct eng_open *open)
{
    int protection = open->read_only ? PROT_READ : PROT_READ | PROT_WRITE;
    void *base = mmap(NULL, store->super.volume_bytes, protection, MAP_SHARED, store->volume_fd, 0);

    if (base == MAP_FAILED)
        return eng_refuse_io(open, eng_err_of_errno(errno), errno, store->volume_path,
                             "cannot map the file");
    store->volume = base;
    return GYRE_OK;
}

/* ---- Data files ---- */

static const char *uuid_text(const uint8_t uuid[16], char text[33])
{
    for (size_t i = 0; i < 16; i++)
        snprintf(text + 2 * i, 3, "%02x", uuid[i]);
    return text;
}

static gyre_err refuse_head(const struct eng_store *store, const struct eng_open *open,
                            const struct eng_stripe *stripe, const struct eng_data_head *head,
                            gyre_err err)
{
    char found[33];
    char expected[33];

    if (err == GYRE_INCOMPATIBLE)
        return eng_refuse(open, err,
                          "%s: was written in format %u.%u and this program reads format %u: use "
                          "the program that wrote it, or start anew "
                          "with --reset",
                          stripe->path, head->major, head->minor, ENG_FORMAT_MAJOR);
    if (err == GYRE_FOREIGN && memcmp(head->uuid, store->super.uuid, sizeof head->uuid) == 0)
        return eng_refuse(
            open, err,
            "%s: is data file %u of this store, not %u: give the files their own names back",
            stripe->path, head->stripe, stripe->index);
    if (err == GYRE_FOREIGN)
        return eng_refuse(open, err,
                          "%s: belongs to another store (uuid %s, expected %s): put the right file "
                          "back, or start anew with --reset",
                          stripe->path, uuid_text(head->uuid, found),
                          uuid_text(store->super.uuid, expected));
    return eng_refuse(open, err,
                      "%s: its first page is damaged: put a good copy of the file back, or start "
                      "anew with --reset",
                      stripe->path);
}

static gyre_err check_data_file(const struct eng_store *store, const struct eng_open *open,
                                const struct eng_stripe *stripe)
{
    uint64_t expected = eng_data_file_bytes(&store->super, stripe->index);
    struct eng_data_head head;
    uint64_t bytes;
    gyre_err err;

    TRY(eng_file_size(stripe->fd, &bytes));
    if (bytes < sizeof head)
        return eng_refuse(open, GYRE_DAMAGED,
                          "%s: is %" PRIu64 " bytes long instead of %" PRIu64
                          ": put a good copy back, or start anew with --reset",
                          stripe->path, bytes, expected);
    err = eng_pread(stripe->fd, &head, sizeof head, 0);
    if (err != GYRE_OK)
        return eng_refuse_io(open, err, errno, stripe->path, "cannot read the first page");
    err = eng_data_head_check(&head, &store->super, stripe->index);
    if (err != GYRE_OK)
        return refuse_head(store, open, stripe, &head, err);
    if (bytes != expected)
        return eng_refuse(open, GYRE_DAMAGED,
                          "%s: is %" PRIu64 " bytes long instead of %" PRIu64
                          ": put a good copy back, or start anew with --reset",
                          stripe->path, bytes, expected);
out:
    return err;
}

/* Where a lost data file is made anew. */
static uint32_t lost_dir(const struct eng_store *store, const struct eng_home *home, uint32_t index)
{
    uint32_t dir = store->super.stripes[index].data_dir;

    return dir < home->n_dirs ? dir : home->main;
}

/* A lost file that may be replaced: its documents become misses, and its index starts empty. */
static gyre_err replace_data_file(struct eng_store *store, const struct eng_home *home,
                                  uint32_t index, uint32_t *dir_out)
{
    const struct eng_stripe_row *row = &store->super.stripes[index];
    gyre_err err;

    *dir_out = lost_dir(store, home, index);
    memset(store->volume + row->directory_off, 0,
           (size_t)row->n_buckets * sizeof(struct eng_bucket));
    err = eng_header_init(store->volume_fd, &store->super, index);
    if (err == GYRE_OK)
        err = eng_sync_data(store->volume_fd);
    if (err != GYRE_OK)
        return eng_refuse_io(home->open, err, errno, store->volume_path,
                             "cannot clear the index of a lost data file");
    return eng_data_file_make(home, *dir_out, &store->super, index);
}

static gyre_err open_data_file(struct eng_store *store, const struct eng_home *home, uint32_t index)
{
    struct eng_stripe *stripe = &store->stripes[index];
    char name[ENG_NAME_MAX];
    uint32_t dir;
    gyre_err err;

    eng_data_name(index, name);
    if (!eng_home_find(home, name, store->super.stripes[index].data_dir, &dir)) {
        if (!home->open->replace_lost || home->in_use)
            return eng_refuse(home->open, GYRE_DAMAGED,
                              "%s: data file %s of this store is in none of the data directories: "
                              "name its directory, put the file back, or "
                              "start anew with --reset",
                              store->volume_path, name);
        TRY(replace_data_file(store, home, index, &dir));
    }
    TRY(eng_home_open_file(home, dir, name, open_flags(home), &stripe->fd, &stripe->path));
    TRY(check_data_file(store, home->open, stripe));
out:
    return err;
}

/* A directory that holds no file of the store, and gets none, would stay unused without a word. A
 * data file that is missing is the graver fault, and is reported when it is opened. */
static gyre_err check_dirs(const struct eng_store *store, const struct eng_home *home)
{
    bool used[ENG_MAX_STRIPES] = {false};

    used[home->main] = true;
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        char name[ENG_NAME_MAX];
        uint32_t dir;
        eng_data_name(i, name);
        if (eng_home_find(home, name, store->super.stripes[i].data_dir, &dir))
            used[dir] = true;
        else if (home->open->replace_lost && !home->in_use)
            used[lost_dir(store, home, i)] = true;
        else
            return GYRE_OK;
    }
    for (uint32_t dir = 0; dir < home->n_dirs; dir++)
        if (!used[dir])
            return eng_refuse(
                home->open, GYRE_INVALID,
                "%s: holds no file of the store in %s, and a store cannot be enlarged "
                "yet: leave this directory out, or start anew with --reset",
                home->open->dirs[dir].path, home->open->dirs[home->main].path);
    return GYRE_OK;
}

static gyre_err map_data(struct eng_store *store, const struct eng_open *open, uint32_t index)
{
    struct eng_stripe *stripe = &store->stripes[index];
    void *base =
        mmap(NULL, stripe->area_bytes, PROT_READ, MAP_SHARED, stripe->fd, (off_t)ENG_DATA_START);

    if (base == MAP_FAILED)
        return eng_refuse_io(open, eng_err_of_errno(errno), errno, stripe->path,
                             "cannot map the file");
    stripe->data = base;
    eng_fault_watch(base, stripe->area_bytes, stripe->fd, ENG_DATA_START);
    return GYRE_OK;
}

static void describe_stripe(struct eng_store *store, uint32_t index)
{
    struct eng_stripe *stripe = &store->stripes[index];
    const struct eng_stripe_row *row = &store->super.stripes[index];

    stripe->store = store;
    stripe->index = index;
    stripe->fd = -1;
    stripe->area_bytes = eng_area_bytes(&store->super, index);
    stripe->segment_units = store->super.segment_bytes >> ENG_UNIT_SHIFT;
    stripe->n_buckets = row->n_buckets;
    stripe->n_segments = row->n_segments;
    stripe->crc_seed = eng_crc_seed(store->super.uuid, index);
    stripe->buckets = (struct eng_bucket *)(void *)(store->volume + row->directory_off);
    store->stripe_end[index] = (index > 0 ? store->stripe_end[index - 1] : 0) + row->n_segments;
}

/* A look-up must not wait for the disk, so the directories come in now and stay if the system lets
 * them. */
void eng_volume_keep(struct eng_store *store)
{
    bool locked = true;

    for (uint32_t i = 0; i < store->n_stripes; i++) {
        void *base = store->stripes[i].buckets;
        size_t len = (size_t)store->stripes[i].n_buckets * sizeof(struct eng_bucket);
        if (madvise(base, len, MADV_WILLNEED) != 0 || mlock(base, len) != 0)
            locked = false;
    }
    store->directory_locked = locked;
}

gyre_err eng_volume_open(struct eng_store *store, const struct eng_home *home)
{
    gyre_err err;

    store->volume_fd = -1;
    TRY(eng_home_open_file(home, home->main, ENG_VOLUME_NAME, open_flags(home), &store->volume_fd,
                           &store->volume_path));
    TRY(read_superblock(store, home->open));
    TRY(map_volume(store, home->open));
    store->n_stripes = store->super.n_stripes;
    for (uint32_t i = 0; i < store->n_stripes; i++)
        describe_stripe(store, i);
    TRY(check_dirs(store, home));
    for (uint32_t i = 0; i < store->n_stripes; i++)
        TRY(open_data_file(store, home, i));
    for (uint32_t i = 0; i < store->n_stripes; i++)
        TRY(map_data(store, home->open, i));
    eng_volume_keep(store);
out:
    if (err != GYRE_OK)
        eng_volume_close(store);
    return err;
}

void eng_volume_close(struct eng_store *store)
{
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        struct eng_stripe *stripe = &store->stripes[i];
        eng_fault_unwatch(stripe->data);
        if (stripe->data != NULL)
            munmap((void *)(uintptr_t)stripe->data, stripe->area_bytes);
        stripe->data = NULL;
        eng_close(&stripe->fd);
        free(stripe->path);
        stripe->path = NULL;
    }
    if (store->volume != NULL)
        munmap(store->volume, store->super.volume_bytes);
    store->volume = NULL;
    eng_close(&store->volume_fd);
    free(store->volume_path);
    store->volume_path = NULL;
    store->n_stripes = 0;
}
