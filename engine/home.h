/* The data directories of a store that is being opened, and the files in them by name.
 *
 * Owns:    a descriptor per directory, from eng_home_open to eng_home_close.
 * Threads: one. Blocks: for the disk. Allocates: paths.
 */
#pragma once

#include "engine/store.h"

#define ENG_VOLUME_NAME "volume.gyre"
#define ENG_NEW_VOLUME_NAME \
    "volume.gyre.new" /* a store that is being made; becomes ENG_VOLUME_NAME at the end */
#define ENG_LOCK_NAME "lock.gyre"
#define ENG_NAME_MAX 32

struct eng_home {
    const struct eng_open *open;
    int fds[ENG_MAX_STRIPES];
    uint32_t n_dirs;
    uint32_t main;   /* the one with the volume file; the first where there is none yet */
    bool made_store; /* by this opening, and none was there before */
    bool has_volume; /* something called ENG_VOLUME_NAME is there */
    bool in_use;     /* another process has the store open: nothing may be made or replaced */
    size_t made_from[ENG_MAX_STRIPES]; /* length of the shortest prefix of the directory's path that
                                          was made here; 0: all of it was there */
};

/* Opens the directories, making them (mode 0700, parents too) if a store may be made, and looks for
 * the volume file. All refusals are explained in open->message: INVALID, NO_STORE, ACCESS, FOREIGN
 * (two volume files), IO, NO_FILES; then no directory is left that was not there. */
GYRE_MUST_USE gyre_err eng_home_open(struct eng_home *home, const struct eng_open *open);
/* Looks for the volume file again. BUSY if it is in another directory than before; FOREIGN. */
GYRE_MUST_USE gyre_err eng_home_look(struct eng_home *home);
/* Explains that there is no volume file here and none may be made. NO_STORE; DAMAGED: there are
 * data files whose volume file is missing. */
GYRE_MUST_USE gyre_err eng_home_refuse_none(const struct eng_home *home);
void eng_home_close(struct eng_home *home);
/* Removes the directories that were made here, as far as they are empty; for refusals, before
 * closing. */
void eng_home_undo(const struct eng_home *home);

/* "stripe-0000.gyre". */
void eng_data_name(uint32_t stripe, char name_out[ENG_NAME_MAX]);
/* DIR/name, for messages and for the store; the caller frees it. NULL without memory. */
char *eng_home_path(const struct eng_home *home, uint32_t dir, const char *name);
/* The directory that has `name` in it, looking into `hint` first; false if none has. */
bool eng_home_find(const struct eng_home *home, const char *name, uint32_t hint, uint32_t *dir_out);
/* Opens a file of the store; refusals are explained. *path_out is the caller's to free, also on
 * failure; NULL without memory. */
GYRE_MUST_USE gyre_err eng_home_open_file(const struct eng_home *home, uint32_t dir,
                                          const char *name, int flags, int *fd_out,
                                          char **path_out);
