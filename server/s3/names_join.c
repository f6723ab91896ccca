/* Opening the file of the index and bringing it into step with the store; and leaving it.
 *
 * Every process that writes holds a byte of a lock file and has a row with its mark: what it stored
 * before the mark is in the index. Whoever finds a row whose byte nobody holds has met a process
 * that died, and looks through what the store got since that mark. A process that ends in order
 * takes its row away, and the last one to do so leaves a mark for all.
 *
 * A file that is damaged is unlinked, not mended, and its successor is made from the whole store.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/check.h"
#include "server/log.h"
#include "server/s3/names_internal.h"

enum { MAKER_BYTE = SRV_NAMES_WRITERS_MAX, GROUP = 512, CACHE_KIB = 16 << 10 };

/* ---- Locks ---- */

static bool set_lock(const struct srv_names *names, off_t byte, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    return fcntl(names->lock_fd, F_OFD_SETLK, &lock) == 0;
}

/* Nobody said that what a link leads to is ours to write, so it is taken away. */
static bool remove_link(const char *path)
{
    struct stat status;

    if (lstat(path, &status) != 0 || !S_ISLNK(status.st_mode) || unlink(path) != 0)
        return false;
    srv_log(SRV_LOG_WARN, "%s: was a symbolic link, which is not followed: made anew", path);
    return true;
}

static bool open_locks(struct srv_names *names)
{
    char path[SRV_NAMES_PATH_MAX + 8];

    if (names->lock_fd >= 0)
        return true;
    snprintf(path, sizeof path, "%s-writers", names->path);
    do
        names->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    while (names->lock_fd < 0 && errno == ELOOP && remove_link(path));
    if (names->lock_fd < 0)
        snprintf(names->db.message, sizeof names->db.message, "%s-writers: %s", "names.sqlite",
                 strerror(errno));
    return names->lock_fd >= 0;
}

/* ---- The file ---- */

/* A WAL does not say which file it belongs to, so beside a file that somebody put in place it would
 * be read into the wrong one. Hence the lock file says which file is the one we wrote to. */
struct identity {
    uint64_t device, inode;
};

static struct identity identity_of_path(const char *path, uint64_t *size_out)
{
    struct stat status;

    if (lstat(path, &status) != 0)
        status = (struct stat){0};
    if (size_out != NULL)
        *size_out = (uint64_t)status.st_size;
    return (struct identity){status.st_dev, status.st_ino};
}

static bool is_same(struct identity a, struct identity b)
{
    return a.device == b.device && a.inode == b.inode;
}

static struct identity written_to(const struct srv_names *names)
{
    struct identity identity;

    if (pread(names->lock_fd, &identity, sizeof identity, 0) != (ssize_t)sizeof identity)
        identity = (struct identity){0};
    return identity;
}

static void note_identity(struct srv_names *names)
{
    struct identity identity = identity_of_path(names->path, NULL);

    pthread_mutex_lock(&names->readers_lock);
    names->device = identity.device;
    names->inode = identity.inode;
    pthread_mutex_unlock(&names->readers_lock);
    /* If it cannot be written, the next one to come makes the index anew. */
    if (pwrite(names->lock_fd, &identity, sizeof identity, 0) != (ssize_t)sizeof identity)
        (void)ftruncate(names->lock_fd, 0);
}

bool srv_names_is_in_place(const struct srv_names *names)
{
    uint64_t size;
    struct identity here = identity_of_path(names->path, &size);

    return is_same(here, (struct identity){names->device, names->inode}) && size > 0;
}

static void path_with(const struct srv_names *names, const char *suffix,
                      char path_out[SRV_NAMES_PATH_MAX + 8])
{
    snprintf(path_out, SRV_NAMES_PATH_MAX + 8, "%s%s", names->path, suffix);
}

static bool has_file(const struct srv_names *names, const char *suffix)
{
    char path[SRV_NAMES_PATH_MAX + 8];
    uint64_t size;

    path_with(names, suffix, path);
    (void)identity_of_path(path, &size);
    return size > 0;
}

/* Whether what lies there could be read together with a WAL of another file. */
static bool is_mixed(const struct srv_names *names)
{
    struct identity here = identity_of_path(names->path, NULL);

    return !is_same(here, written_to(names)) &&
           (has_file(names, "-wal") || has_file(names, "-shm"));
}

static const char *const suffixes[] = {"", "-wal", "-shm"};

enum { N_SUFFIXES = sizeof suffixes / sizeof suffixes[0] };

/* A file that lacks one of the others is not whole. */
static bool was_linked(const struct srv_names *names)
{
    char path[SRV_NAMES_PATH_MAX + 8];
    bool was = false;

    for (size_t i = 0; i < N_SUFFIXES; i++) {
        path_with(names, suffixes[i], path);
        was = remove_link(path) || was;
    }
    return was;
}

/* Only one process at a time throws a file away, and not the one that another made meanwhile. */
static bool discard(struct srv_names *names)
{
    struct identity ours = {names->device, names->inode};
    char path[SRV_NAMES_PATH_MAX + 8];

    if (!set_lock(names, MAKER_BYTE, F_WRLCK))
        return false;
    struct identity here = identity_of_path(names->path, NULL);
    bool is_anothers = is_same(here, written_to(names)) && !is_same(here, ours) && ours.inode != 0;
    for (size_t i = 0; i < N_SUFFIXES && !is_anothers; i++) {
        path_with(names, suffixes[i], path);
        (void)unlink(path);
    }
    set_lock(names, MAKER_BYTE, F_UNLCK);
    names->is_damaged = false;
    names->was_moved = true;
    return true;
}

static bool open_file(struct srv_names *names)
{
    names->is_damaged = was_linked(names) || names->is_damaged;
    if ((names->is_damaged || is_mixed(names)) && !discard(names))
        return false;
    atomic_fetch_add_explicit(&names->generation, 1, memory_order_acq_rel);
    enum srv_names_fault fault =
        srv_names_db_open(&names->db, names->path, true, CACHE_KIB, names->wal_bytes);
    note_identity(names);
    if (fault != SRV_NAMES_FINE)
        srv_names_fail(names, fault);
    return fault == SRV_NAMES_FINE;
}

/* ---- Who writes ---- */

struct census {
    struct srv_names *names;
    bool has_row[SRV_NAMES_WRITERS_MAX];
    bool is_dead[SRV_NAMES_WRITERS_MAX]; /* its byte is locked by us now */
    bool had_own;                        /* we had a row already */
    size_t n_alive;                      /* besides us */
    size_t n_dead;
    struct srv_names_mark *marks; /* of the dead, in the order of their slots */
};

static void count_writer(void *data, int slot, const struct srv_names_mark *mark)
{
    struct census *census = data;
    struct srv_names *names = census->names;

    if (slot < 0 || slot >= SRV_NAMES_WRITERS_MAX)
        return;
    census->has_row[slot] = true;
    if (slot == names->slot) {
        census->had_own = true;
        return;
    }
    if (!set_lock(names, slot, F_WRLCK)) {
        census->n_alive++;
        return;
    }
    struct srv_names_mark *more =
        realloc(census->marks, (census->n_dead + 1) * sizeof *census->marks);
    if (more == NULL) {
        set_lock(names, slot, F_UNLCK); /* somebody finds it again */
        census->n_alive++;
        return;
    }
    census->marks = more;
    census->marks[census->n_dead++] = *mark;
    census->is_dead[slot] = true;
}

static void end_census(struct census *census)
{
    for (int slot = 0; slot < SRV_NAMES_WRITERS_MAX; slot++)
        if (census->is_dead[slot])
            set_lock(census->names, slot, F_UNLCK);
    free(census->marks);
}

/* A byte that nobody holds and whose row would not overwrite that of a dead one. */
static void choose_slot(struct srv_names *names, const struct census *census)
{
    for (int slot = 0; slot < SRV_NAMES_WRITERS_MAX && names->slot < 0; slot++)
        if (!census->has_row[slot] && set_lock(names, slot, F_WRLCK))
            names->slot = slot;
}

static enum srv_names_fault bury(struct srv_names *names, const struct census *census)
{
    enum srv_names_fault fault = SRV_NAMES_FINE;

    for (int slot = 0; slot < SRV_NAMES_WRITERS_MAX && fault == SRV_NAMES_FINE; slot++)
        if (census->is_dead[slot])
            fault = srv_names_db_delete_writer(&names->db, slot);
    return fault;
}

/* ---- Catching up ---- */

static bool take_object(void *data, const struct gyre_handle *handle)
{
    struct srv_names *names = data;
    struct srv_s3_meta meta;
    char name[SRV_NAME_MAX];
    size_t len;
    const void *bytes = gyre_handle_meta(handle, &len);

    if (!srv_s3_meta_decode(bytes, len, &meta) || !srv_names_lists(names, meta.bucket))
        return true;
    len = srv_name_write(meta.bucket, meta.key, name);
    srv_names_again(names, (struct srv_str){name, len});
    if (names->n_again >= GROUP)
        srv_names_flush(names);
    return names->db.db != NULL && !srv_names_is_stopping(names);
}

/* Lists what was stored since the mark, or everything. False if it did not get to the end. */
static bool catch_up(struct srv_names *names, const struct srv_names_mark *mark)
{
    gyre_err err = mark == NULL ? gyre_each(names->store, GYRE_POOL_MAIN, take_object, names)
                                : gyre_each_since(names->store, GYRE_POOL_MAIN, mark->bytes,
                                                  mark->len, take_object, names);

    if (err == GYRE_FOREIGN) {
        snprintf(names->db.message, sizeof names->db.message, "it belongs to another store");
        srv_names_fail(names, SRV_NAMES_DAMAGED);
        return false;
    }
    if (names->db.db != NULL)
        srv_names_flush(names);
    return err == GYRE_OK && names->db.db != NULL && !srv_names_is_stopping(names);
}

/* What the state of a file says, and what follows for us. */
struct plan {
    bool is_complete;
    struct srv_names_mark mark;
    char *unlisted;    /* as it was then */
    const char *asked; /* as it is to be */
};

/* Whether all buckets that had no index still have none: what such a bucket holds is not listed. */
static bool is_wide_enough(const struct srv_names *names, const struct plan *plan)
{
    for (const char *line = plan->unlisted; line != NULL && *line != 0;) {
        size_t len = strcspn(line, "\n");
        if (srv_names_lists(names, (struct srv_str){line, len}))
            return false;
        line += len + (line[len] != 0);
    }
    return true;
}

static enum srv_names_fault set_state(struct srv_names *names, const struct plan *plan,
                                      const struct census *census)
{
    enum srv_names_fault fault = srv_names_db_run(&names->db, SRV_NAMES_BEGIN_WRITE);

    if (fault == SRV_NAMES_FINE)
        fault = srv_names_db_set_state(&names->db, true, &plan->mark, plan->asked);
    if (fault == SRV_NAMES_FINE)
        fault = bury(names, census);
    if (fault == SRV_NAMES_FINE)
        fault = srv_names_db_run(&names->db, SRV_NAMES_COMMIT);
    if (fault != SRV_NAMES_FINE)
        srv_names_db_rollback(&names->db);
    return fault;
}

static bool is_empty(struct gyre_store *store)
{
    struct gyre_stats stats = {.struct_size = sizeof stats};

    return gyre_stat(store, &stats) == GYRE_OK && stats.documents == 0;
}

/* Lists the whole store. One process does it; the others wait for the state to say so. */
static bool make(struct srv_names *names, struct plan *plan)
{
    struct srv_names_mark *mark = &plan->mark;

    if (!set_lock(names, MAKER_BYTE, F_WRLCK))
        return false;
    enum srv_log_level level = is_empty(names->store) ? SRV_LOG_DEBUG : SRV_LOG_INFO;
    srv_log(level, "%s: making the index of names from the store", names->path);
    bool ok = gyre_mark(names->store, mark->bytes, sizeof mark->bytes, &mark->len) == GYRE_OK &&
              catch_up(names, NULL);
    set_lock(names, MAKER_BYTE, F_UNLCK);
    if (ok)
        srv_log(level, "%s: the index of names is complete", names->path);
    return ok;
}

static bool step_in(struct srv_names *names, const struct census *census, struct plan *plan)
{
    bool ok = true;

    if (!plan->is_complete || !is_wide_enough(names, plan))
        return make(names, plan);
    /* Nobody has a row: what was stored since the last one left is unknown to all. A file that took
     * another's place was made without regard to what we stored meanwhile. */
    bool nobody = census->n_alive + census->n_dead == 0 && !census->had_own;
    bool from_state = nobody || names->was_moved;
    if (from_state)
        ok = catch_up(names, &plan->mark);
    for (size_t i = 0; ok && i < census->n_dead; i++)
        ok = catch_up(names, &census->marks[i]);
    if (ok && names->has_missed)
        ok = catch_up(names, &names->mark);
    return ok;
}

/* Our row, the rows of others, and the state, all of one moment. */
static enum srv_names_fault look_around(struct srv_names *names, struct census *census,
                                        struct plan *plan)
{
    enum srv_names_fault fault = srv_names_db_run(&names->db, SRV_NAMES_BEGIN_WRITE);

    if (fault == SRV_NAMES_FINE)
        fault = srv_names_db_state(&names->db, &plan->is_complete, &plan->mark, &plan->unlisted);
    if (fault == SRV_NAMES_FINE)
        fault = srv_names_db_writers(&names->db, count_writer, census);
    if (fault == SRV_NAMES_FINE) {
        choose_slot(names, census);
        if (names->slot < 0) {
            snprintf(names->db.message, sizeof names->db.message,
                     "more than %d processes write to it", SRV_NAMES_WRITERS_MAX);
            fault = SRV_NAMES_TROUBLE;
        }
    }
    if (fault == SRV_NAMES_FINE)
        fault = srv_names_db_set_writer(&names->db, names->slot, &names->mark);
    if (fault == SRV_NAMES_FINE)
        fault = srv_names_db_run(&names->db, SRV_NAMES_COMMIT);
    if (fault != SRV_NAMES_FINE)
        srv_names_db_rollback(&names->db);
    return fault;
}

/* Unless other buckets have got an index meanwhile. */
static void set_ready(struct srv_names *names)
{
    pthread_mutex_lock(&names->lock);
    if (!atomic_load_explicit(&names->is_resized, memory_order_acquire))
        atomic_store_explicit(&names->is_ready, true, memory_order_release);
    pthread_mutex_unlock(&names->lock);
}

void srv_names_join(struct srv_names *names)
{
    struct census census = {.names = names};
    struct plan *plan = calloc(1, sizeof *plan);

    if (plan == NULL || !open_locks(names) || !open_file(names))
        goto out;
    plan->asked = atomic_load_explicit(&names->unlisted, memory_order_acquire)->lines;
    enum srv_names_fault fault = look_around(names, &census, plan);
    if (fault != SRV_NAMES_FINE) {
        srv_names_fail(names, fault);
        goto out;
    }
    if (!step_in(names, &census, plan)) {
        srv_names_db_close(&names->db);
        goto out;
    }
    fault = set_state(names, plan, &census);
    if (fault != SRV_NAMES_FINE) {
        srv_names_fail(names, fault);
        goto out;
    }
    names->has_missed = names->was_moved = names->has_complained = false;
    set_ready(names);
out:
    end_census(&census);
    if (plan != NULL)
        free(plan->unlisted);
    free(plan);
}

void srv_names_mourn(struct srv_names *names)
{
    struct census census = {.names = names};
    enum srv_names_fault fault = srv_names_db_writers(&names->db, count_writer, &census);
    bool ok = fault == SRV_NAMES_FINE && census.n_dead > 0;

    for (size_t i = 0; ok && i < census.n_dead; i++)
        ok = catch_up(names, &census.marks[i]);
    if (ok)
        fault = bury(names, &census);
    if (fault != SRV_NAMES_FINE)
        srv_names_fail(names, fault);
    end_census(&census);
}

/* ---- The end ---- */

static void leave_mark(struct srv_names *names, const struct srv_names_mark *mark)
{
    struct census census = {.names = names};
    bool is_complete;
    struct srv_names_mark *old = malloc(sizeof *old);
    char *unlisted = NULL;
    enum srv_names_fault fault = SRV_NAMES_TROUBLE;

    if (old != NULL)
        fault = srv_names_db_run(&names->db, SRV_NAMES_BEGIN_WRITE);
    if (fault == SRV_NAMES_FINE)
        fault = srv_names_db_writers(&names->db, count_writer, &census);
    if (fault == SRV_NAMES_FINE)
        fault = srv_names_db_delete_writer(&names->db, names->slot);
    if (fault == SRV_NAMES_FINE && census.n_alive + census.n_dead == 0)
        fault = srv_names_db_state(&names->db, &is_complete, old, &unlisted);
    if (fault == SRV_NAMES_FINE && unlisted != NULL && is_complete)
        fault = srv_names_db_set_state(&names->db, true, mark, unlisted);
    if (fault == SRV_NAMES_FINE)
        fault = srv_names_db_run(&names->db, SRV_NAMES_COMMIT);
    if (fault != SRV_NAMES_FINE)
        srv_names_db_rollback(&names->db);
    free(unlisted);
    free(old);
    end_census(&census);
}

void srv_names_part(struct srv_names *names)
{
    struct srv_names_mark mark;

    srv_names_flush(names);
    /* Nobody is inside any more, so all that is older than this mark has been noted. */
    if (names->db.db != NULL && srv_names_is_ready(names) &&
        gyre_mark(names->store, mark.bytes, sizeof mark.bytes, &mark.len) == GYRE_OK)
        leave_mark(names, &mark);
    srv_names_db_close(&names->db);
}
