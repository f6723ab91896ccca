/* The lock file: who has a store open, who is just opening or closing it, and where the runtime
 * segment is.
 *
 * Byte 0 is held by the one process that opens or closes the store, byte 16 + i says that process
 * slot i is alive; all vanish with their process. The file's text tells which boot of the machine,
 * which volume file and which runtime segment the store's users have, or had. Only an opening that
 * made the file and is refused removes it, while it holds byte 0; who locks a file therefore looks
 * whether it still has its name, or two processes could lock two files.
 *
 * Owns:    descriptor, locks and the place in this process's table of open stores, from acquire to
 *          release.
 * Threads: any.
 * Blocks:  for the disk, and for other processes that open or close the store, within a bound.
 * Allocates: a table row.
 */
#pragma once

#include "engine/home.h"

#define ENG_LOCK_WAIT_MS 30000 /* for others that open or close, where nothing else is said */

#define ENG_LOCK_OPEN 0   /* byte held while a process opens or closes the store */
#define ENG_LOCK_ALIVE 16 /* byte of process slot 0 */

struct eng_lockfile {
    int fd;
    char *path;
    dev_t dev;
    ino_t ino;
    bool made;    /* by this opening */
    bool entered; /* in this process's table */
};

/* Takes the opening lock of the store in home->main, creating the file if need be. LOCKED: this
 * process has the store open already, or another one has been opening or closing it for longer than
 * the wait; the message says which. UNSUPPORTED: the file system has no
 * working byte locks. BUSY: another process has just removed the file. ACCESS, INVALID, IO,
 * NO_FILES, NO_MEMORY. */
GYRE_MUST_USE gyre_err eng_lockfile_acquire(struct eng_lockfile *lock_out,
                                            const struct eng_home *home);
/* Removes the file if this opening made it: for refusals, before letting go. */
void eng_lockfile_undo(const struct eng_lockfile *lock, const struct eng_home *home);
/* Gives the opening lock back, and takes it again: false if another process keeps it for longer
 * than `wait_ms`. */
void eng_lockfile_opened(const struct eng_lockfile *lock);
GYRE_MUST_USE bool eng_lockfile_again(const struct eng_lockfile *lock, uint32_t wait_ms);
/* Lets go of everything; an empty one is allowed. */
void eng_lockfile_release(struct eng_lockfile *lock);

/* The table of this process's open stores, kept whole over a fork; and, in the child, the place of
 * a store that its parent had opened. NO_MEMORY. */
void eng_lockfile_fork_begin(void);
void eng_lockfile_fork_end(void);
GYRE_MUST_USE gyre_err eng_lockfile_inherit(struct eng_lockfile *lock);
/* Closes the descriptor of a store that is its parent's alone. */
void eng_lockfile_drop(struct eng_lockfile *lock);

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
