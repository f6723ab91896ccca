/* The lock file: who has a store open, and what the last one left behind.
 *
 * Byte 0 is held for as long as a store is open, byte 16 + i says that process slot i is alive;
 * both vanish with the process. The file's text tells which boot of the machine, which volume file
 * and which runtime segment the last opener had. Only an opening that made the file and is refused
 * removes it, while it holds the lock; who locks a file therefore looks whether it still has its
 * name, or two processes could lock two files.
 *
 * Owns:    descriptor, locks and the place in this process's table of open stores, from acquire to
 * release. Threads: any; opening and closing are serialised within the process. Blocks:  for the
 * disk. Allocates: a table row.
 */
#pragma once

#include "engine/home.h"

#define ENG_LOCK_OPEN 0   /* byte held by the process that has the store open */
#define ENG_LOCK_ALIVE 16 /* byte of process slot 0 */

struct eng_lockfile {
    int fd;
    char *path;
    dev_t dev;
    ino_t ino;
    bool made; /* by this opening */
};

/* Takes the lock of the store in home->main, creating the file if need be. LOCKED: another process,
 * or this one, has the store open; the message says which. UNSUPPORTED: the file system has no
 * working byte locks. BUSY: another process has just removed the file. ACCESS, INVALID, IO,
 * NO_FILES, NO_MEMORY. */
GYRE_MUST_USE gyre_err eng_lockfile_acquire(struct eng_lockfile *lock_out,
                                            const struct eng_home *home);
/* Removes the file if this opening made it: for refusals, before letting go. */
void eng_lockfile_undo(const struct eng_lockfile *lock, const struct eng_home *home);
/* Lets go; an empty one is allowed. */
void eng_lockfile_release(struct eng_lockfile *lock);

/* What an opener writes down for the next. */
struct eng_lock_note {
    char boot_id[40];
    uint64_t volume_dev, volume_ino;
    char rt_path[512]; /* empty: none */
    uint64_t rt_dev, rt_ino;
};

/* Reads the note of the last opener; false and an empty note if there is none or it makes no sense.
 */
bool eng_lockfile_read(const struct eng_lockfile *lock, struct eng_lock_note *note_out);
/* Replaces it. IO, DISK_FULL. */
GYRE_MUST_USE gyre_err eng_lockfile_write(const struct eng_lockfile *lock,
                                          const struct eng_lock_note *note);
/* This boot of the machine in text; empty if unknown. */
void eng_boot_text(char text_out[40]);
