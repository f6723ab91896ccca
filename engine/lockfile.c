#include "engine/lockfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/check.h"
#include "engine/base/filelock.h"
#include "engine/base/io.h"
#include "engine/base/step.h"
#include "engine/base/sys.h"
#include "engine/refuse.h"

/* Record locks do not keep a process from itself, and closing any descriptor of the file drops them
 * all: so the stores this process has open are known here, and their lock files are not touched
 * again. */
struct open_row {
    struct open_row *next;
    dev_t dev;
    ino_t ino;
    pid_t pid; /* the rows of a parent mean nothing in its forked child */
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct open_row *table; /* [table_lock] */

static bool is_open_here(dev_t dev, ino_t ino)
{
    for (const struct open_row *row = table; row != NULL; row = row->next)
        if (row->dev == dev && row->ino == ino && row->pid == getpid())
            return true;
    return false;
}

static gyre_err enter_table(dev_t dev, ino_t ino)
{
    struct open_row *row = malloc(sizeof *row);

    if (row == NULL)
        return GYRE_NO_MEMORY;
    *row = (struct open_row){.next = table, .dev = dev, .ino = ino, .pid = getpid()};
    table = row;
    return GYRE_OK;
}

static void leave_table(dev_t dev, ino_t ino)
{
    for (struct open_row **at = &table; *at != NULL; at = &(*at)->next) {
        if ((*at)->dev == dev && (*at)->ino == ino && (*at)->pid == getpid()) {
            struct open_row *row = *at;
            *at = row->next;
            free(row);
            return;
        }
    }
}

static gyre_err refuse_locked(const struct eng_lockfile *lock, const struct eng_home *home)
{
    pid_t pid = 0;
    bool held;
    gyre_err err = eng_filelock_probe(lock->fd, ENG_LOCK_OPEN, &held, &pid);

    if (err == GYRE_OK && pid > 0)
        return eng_refuse(home->open, GYRE_LOCKED,
                          "%s: process %ld is still opening or closing the store: wait for it, or "
                          "stop it, and try again",
                          lock->path, (long)pid);
    return eng_refuse(home->open, GYRE_LOCKED,
                      "%s: a process of another container or host is still opening or closing the "
                      "store: wait for it, or stop it, and try again",
                      lock->path);
}

/* The first looks are close together, for most openings take milliseconds. The kernel's own wait
 * has no bound, and an opener may have been stopped. */
static gyre_err wait_for_opening(int fd, uint32_t wait_ms)
{
    uint64_t deadline_ns = eng_clock_mono_ns() + (uint64_t)wait_ms * 1000000;
    struct timespec pause = {.tv_nsec = 1000000};

    for (;;) {
        gyre_err err = eng_filelock_try(fd, ENG_LOCK_OPEN, ENG_FILELOCK_EXCLUSIVE);
        if (err != GYRE_LOCKED || eng_clock_mono_ns() >= deadline_ns)
            return err;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 50000000)
            pause.tv_nsec *= 2;
    }
}

/* Whether the name still leads to the file that is locked: an opener that was refused removes the
 * one it had made. */
static bool is_in_place(const struct eng_lockfile *lock, const struct eng_home *home)
{
    struct stat status;

    return fstatat(home->fds[home->main], ENG_LOCK_NAME, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           status.st_dev == lock->dev && status.st_ino == lock->ino;
}

/* Opens the file and enters it into the table. The caller holds table_lock. */
static gyre_err take_file(struct eng_lockfile *lock, const struct eng_home *home)
{
    struct stat status;
    gyre_err err;

    lock->made = fstatat(home->fds[home->main], ENG_LOCK_NAME, &status, AT_SYMLINK_NOFOLLOW) != 0;
    if (!lock->made && is_open_here(status.st_dev, status.st_ino))
        return eng_refuse(home->open, GYRE_LOCKED,
                          "%s/" ENG_LOCK_NAME
                          ": this process has the store open already: close it first",
                          home->open->dirs[home->main].path);
    TRY(eng_home_open_file(home, home->main, ENG_LOCK_NAME, O_RDWR | O_CREAT, &lock->fd,
                           &lock->path));
    if (fstat(lock->fd, &status) != 0)
        return eng_refuse_io(home->open, GYRE_IO, errno, lock->path, "cannot look at the file");
    lock->dev = status.st_dev;
    lock->ino = status.st_ino;
    TRY(enter_table(lock->dev, lock->ino));
    lock->entered = true;
out:
    return err;
}

/* Waits for the opening lock. */
static gyre_err take_lock(const struct eng_lockfile *lock, const struct eng_home *home)
{
    uint32_t wait_ms = home->open->lock_wait_ms;
    gyre_err err = wait_for_opening(lock->fd, wait_ms != 0 ? wait_ms : ENG_LOCK_WAIT_MS);

    if (err == GYRE_LOCKED)
        return refuse_locked(lock, home);
    if (err != GYRE_OK)
        return eng_refuse(home->open, err,
                          "%s: the file system has no working byte locks (NFS without lockd?): put "
                          "the store on a local file system",
                          lock->path);
    if (!is_in_place(lock, home))
        return eng_refuse(home->open, GYRE_BUSY,
                          "%s: another process has just removed the file: try again", lock->path);
    return GYRE_OK;
}

void eng_lockfile_undo(const struct eng_lockfile *lock, const struct eng_home *home)
{
    bool in_use = true;
    pid_t pid;

    /* Two openings can both have found no file; the other one may be using it by now. */
    if (lock->fd >= 0 && lock->made &&
        eng_filelock_probe_range(lock->fd, ENG_LOCK_ALIVE, ENG_PROCESSES, &in_use, &pid) ==
            GYRE_OK &&
        !in_use)
        unlinkat(home->fds[home->main], ENG_LOCK_NAME, 0);
}

static void let_go_locked(struct eng_lockfile *lock)
{
    eng_close(&lock->fd); /* drops the locks */
    if (lock->entered)
        leave_table(lock->dev, lock->ino);
    free(lock->path);
    *lock = (struct eng_lockfile){.fd = -1};
}

gyre_err eng_lockfile_acquire(struct eng_lockfile *lock_out, const struct eng_home *home)
{
    *lock_out = (struct eng_lockfile){.fd = -1};
    pthread_mutex_lock(&table_lock);
    gyre_err err = take_file(lock_out, home);
    pthread_mutex_unlock(&table_lock);
    GYRE_STEP("lockfile.take.opened");
    if (err == GYRE_OK)
        err = take_lock(lock_out, home);
    if (err == GYRE_OK)
        return err;
    if (err != GYRE_LOCKED && err != GYRE_BUSY) /* else somebody else's */
        eng_lockfile_undo(lock_out, home);
    pthread_mutex_lock(&table_lock);
    let_go_locked(lock_out);
    pthread_mutex_unlock(&table_lock);
    return err;
}

void eng_lockfile_opened(const struct eng_lockfile *lock)
{
    eng_filelock_drop(lock->fd, ENG_LOCK_OPEN);
}

bool eng_lockfile_again(const struct eng_lockfile *lock, uint32_t wait_ms)
{
    return wait_for_opening(lock->fd, wait_ms) == GYRE_OK;
}

void eng_lockfile_release(struct eng_lockfile *lock)
{
    if (lock->fd < 0)
        return;
    pthread_mutex_lock(&table_lock);
    let_go_locked(lock);
    pthread_mutex_unlock(&table_lock);
}

/* ---- Fork ---- */

void eng_lockfile_fork_begin(void)
{
    pthread_mutex_lock(&table_lock);
}

void eng_lockfile_fork_end(void)
{
    pthread_mutex_unlock(&table_lock);
}

gyre_err eng_lockfile_inherit(struct eng_lockfile *lock)
{
    pthread_mutex_lock(&table_lock);
    gyre_err err = enter_table(lock->dev, lock->ino);
    pthread_mutex_unlock(&table_lock);
    return err;
}

void eng_lockfile_drop(struct eng_lockfile *lock)
{
    eng_close(&lock->fd);
    free(lock->path);
    lock->path = NULL;
}

/* ---- The note ---- */

bool eng_lockfile_read(const struct eng_lockfile *lock, struct eng_lock_note *note_out)
{
    char text[1024] = "";
    unsigned long long dev;
    unsigned long long ino;
    unsigned long long rt_dev;
    unsigned long long rt_ino;
    int path_at = -1;
    size_t got = 0;
    const struct iovec piece = {text, sizeof text - 1};

    *note_out = (struct eng_lock_note){0};
    if (eng_preadv(lock->fd, &piece, 1, 0, &got) != GYRE_OK || memchr(text, '\0', got) != NULL)
        return false;
    text[got] = '\0';
    int n = sscanf(text, "gyre-lock 1\nboot %39s\nvolume %llu %llu\nrt %llu %llu%n",
                   note_out->boot_id, &dev, &ino, &rt_dev, &rt_ino, &path_at);
    char *end = path_at > 0 && text[path_at] == ' ' ? strchr(text + ++path_at, '\n') : NULL;
    if (n != 5 || end == NULL ||
        (size_t)(end - text) - (size_t)path_at >= sizeof note_out->rt_path) {
        *note_out = (struct eng_lock_note){0};
        return false;
    }
    memcpy(note_out->rt_path, text + path_at, (size_t)(end - text) - (size_t)path_at);
    note_out->volume_dev = dev;
    note_out->volume_ino = ino;
    note_out->rt_dev = rt_dev;
    note_out->rt_ino = rt_ino;
    return true;
}

gyre_err eng_lockfile_write(const struct eng_lockfile *lock, const struct eng_lock_note *note)
{
    char text[1024];
    const char *boot = note->boot_id[0] != '\0' ? note->boot_id : "unknown";
    int len = snprintf(
        text, sizeof text,
        "gyre-lock 1\nboot %s\nvolume %" PRIu64 " %" PRIu64 "\nrt %" PRIu64 " %" PRIu64 " %s\n",
        boot, note->volume_dev, note->volume_ino, note->rt_dev, note->rt_ino, note->rt_path);

    GYRE_CHECK(len > 0 && (size_t)len < sizeof text);
    if (ftruncate(lock->fd, len) != 0)
        return eng_err_of_errno(errno);
    return eng_pwrite(lock->fd, text, (size_t)len, 0);
}

void eng_boot_text(char text_out[40])
{
    uint8_t id[16];

    text_out[0] = '\0';
    if (eng_boot_id(id) != GYRE_OK)
        return;
    for (size_t i = 0; i < sizeof id; i++)
        snprintf(text_out + 2 * i, 3, "%02x", id[i]);
}
