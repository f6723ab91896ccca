#include "engine/home.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/check.h"
#include "engine/base/io.h"
#include "engine/refuse.h"

void eng_data_name(uint32_t stripe, char name_out[ENG_NAME_MAX])
{
    snprintf(name_out, ENG_NAME_MAX, "stripe-%04u.gyre", (unsigned)stripe);
}

char *eng_home_path(const struct eng_home *home, uint32_t dir, const char *name)
{
    char *path;

    return asprintf(&path, "%s/%s", home->open->dirs[dir].path, name) < 0 ? NULL : path;
}

/* Makes a directory and its parents. Losing a race against another process that makes the same is
 * fine. */
static gyre_err make_dir(struct eng_home *home, uint32_t dir)
{
    const struct eng_open *open = home->open;
    const char *path = open->dirs[dir].path;
    char prefix[PATH_MAX];
    size_t len = strlen(path);

    if (len == 0 || len >= sizeof prefix)
        return eng_refuse(open, GYRE_INVALID,
                          "\"%s\": a path of %zu bytes cannot be a data directory: name another",
                          path, len);
    for (size_t i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(prefix, path, i);
        prefix[i] = '\0';
        if (mkdir(prefix, 0700) == 0) {
            if (home->made_from[dir] == 0)
                home->made_from[dir] = i;
        } else if (errno != EEXIST && errno != EISDIR) {
            int reason = errno;
            return eng_refuse_io(open, eng_err_of_errno(reason), reason, prefix,
                                 "cannot make the directory");
        }
    }
    return GYRE_OK;
}

/* The deepest first; one that somebody else uses by now is not empty, or will be missed by nobody.
 */
static void unmake_dir(const struct eng_home *home, uint32_t dir)
{
    const char *path = home->open->dirs[dir].path;
    char prefix[PATH_MAX];

    if (home->made_from[dir] == 0)
        return;
    for (size_t i = strlen(path); i >= home->made_from[dir]; i--) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(prefix, path, i);
        prefix[i] = '\0';
        rmdir(prefix);
    }
}

void eng_home_undo(const struct eng_home *home)
{
    for (uint32_t dir = home->n_dirs; dir-- > 0;)
        unmake_dir(home, dir);
}

static gyre_err open_one(struct eng_home *home, uint32_t dir)
{
    const struct eng_open *open = home->open;
    const char *path = open->dirs[dir].path;
    bool may_make = open->may_create || open->reset;
    gyre_err err = eng_open_dir(AT_FDCWD, path, &home->fds[dir]);
    int reason = errno;

    if (err == GYRE_NO_STORE && may_make) {
        err = make_dir(home, dir);
        if (err != GYRE_OK)
            return err;
        err = eng_open_dir(AT_FDCWD, path, &home->fds[dir]);
        reason = errno;
    }
    if (err == GYRE_NO_STORE)
        return eng_refuse(
            open, err, "%s: there is no such directory: check the path, or let a new store be made",
            path);
    if (err == GYRE_INVALID)
        return eng_refuse(
            open, err,
            "%s: is not a directory: name the directory that holds the store, not a file", path);
    if (err != GYRE_OK)
        return eng_refuse_io(open, err, reason, path, "cannot open the directory");
    if (!open->read_only && faccessat(home->fds[dir], ".", W_OK | X_OK, AT_EACCESS) != 0)
        return eng_refuse(open, GYRE_ACCESS,
                          "%s: user %u may not write in this directory: run as its owner, or give "
                          "this user write permission",
                          path, (unsigned)geteuid());
    return GYRE_OK;
}

/* The same directory named twice would make two files of one name. */
static gyre_err check_distinct(const struct eng_home *home, uint32_t dir)
{
    struct stat own;
    struct stat other;

    if (fstat(home->fds[dir], &own) != 0)
        return eng_refuse_io(home->open, GYRE_IO, errno, home->open->dirs[dir].path,
                             "cannot look at the directory");
    for (uint32_t i = 0; i < dir; i++) {
        if (fstat(home->fds[i], &other) == 0 && own.st_dev == other.st_dev &&
            own.st_ino == other.st_ino)
            return eng_refuse(home->open, GYRE_INVALID,
                              "%s: is the same directory as %s: name each directory once",
                              home->open->dirs[dir].path, home->open->dirs[i].path);
    }
    return GYRE_OK;
}

static bool has(const struct eng_home *home, uint32_t dir, const char *name)
{
    struct stat status;

    return fstatat(home->fds[dir], name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Directories may be named in another order than when the store was made. */
static gyre_err find_volume(struct eng_home *home)
{
    for (uint32_t dir = 0; dir < home->n_dirs; dir++) {
        if (!has(home, dir, ENG_VOLUME_NAME))
            continue;
        if (home->has_volume)
            return eng_refuse(home->open, GYRE_FOREIGN,
                              "%s and %s: both hold a " ENG_VOLUME_NAME
                              ": they belong to two stores, name the directories of one",
                              home->open->dirs[home->main].path, home->open->dirs[dir].path);
        home->has_volume = true;
        home->main = dir;
    }
    return GYRE_OK;
}

gyre_err eng_home_refuse_none(const struct eng_home *home)
{
    for (uint32_t dir = 0; dir < home->n_dirs; dir++) {
        for (uint32_t stripe = 0; stripe < ENG_MAX_STRIPES; stripe++) {
            char name[ENG_NAME_MAX];
            eng_data_name(stripe, name);
            if (has(home, dir, name))
                return eng_refuse(home->open, GYRE_DAMAGED,
                                  "%s/%s: belongs to a store whose " ENG_VOLUME_NAME
                                  " is missing: put that back, or make a new store with --reset",
                                  home->open->dirs[dir].path, name);
        }
    }
    return eng_refuse(home->open, GYRE_NO_STORE,
                      "%s: there is no store here: check the path, or let a new store be made",
                      home->open->dirs[0].path);
}

gyre_err eng_home_look(struct eng_home *home)
{
    uint32_t before = home->main;
    gyre_err err;

    home->has_volume = false;
    TRY(find_volume(home));
    if (home->has_volume && home->main != before)
        return eng_refuse(home->open, GYRE_BUSY,
                          "%s: another process is making a store here: try again",
                          home->open->dirs[home->main].path);
    home->main = before;
out:
    return err;
}

gyre_err eng_home_open(struct eng_home *home, const struct eng_open *open)
{
    gyre_err err;

    *home = (struct eng_home){.open = open};
    if (open->n_dirs == 0 || open->n_dirs > ENG_MAX_STRIPES)
        return eng_refuse(open, GYRE_INVALID, "%u data directories: name 1 to %u",
                          (unsigned)open->n_dirs, ENG_MAX_STRIPES);
    for (uint32_t dir = 0; dir < ENG_MAX_STRIPES; dir++)
        home->fds[dir] = -1;
    home->n_dirs = open->n_dirs;
    for (uint32_t dir = 0; dir < home->n_dirs; dir++) {
        TRY(open_one(home, dir));
        TRY(check_distinct(home, dir));
    }
    TRY(find_volume(home));
out:
    if (err != GYRE_OK) {
        eng_home_undo(home);
        eng_home_close(home);
    }
    return err;
}

void eng_home_close(struct eng_home *home)
{
    for (uint32_t dir = 0; dir < home->n_dirs; dir++)
        eng_close(&home->fds[dir]);
    home->n_dirs = 0;
}

bool eng_home_find(const struct eng_home *home, const char *name, uint32_t hint, uint32_t *dir_out)
{
    *dir_out = 0;
    for (uint32_t i = 0; i < home->n_dirs; i++) {
        uint32_t dir = hint < home->n_dirs ? (hint + i) % home->n_dirs : i;
        if (has(home, dir, name)) {
            *dir_out = dir;
            return true;
        }
    }
    return false;
}

gyre_err eng_home_open_file(const struct eng_home *home, uint32_t dir, const char *name, int flags,
                            int *fd_out, char **path_out)
{
    gyre_err err;

    *fd_out = -1;
    *path_out = eng_home_path(home, dir, name);
    if (*path_out == NULL)
        return GYRE_NO_MEMORY;
    errno = 0;
    err = eng_open_regular(home->fds[dir], name, flags, 0600, fd_out);
    if (err == GYRE_INVALID)
        return eng_refuse(home->open, err,
                          "%s: is a symbolic link, directory or device where a plain file must be: "
                          "move it away, or name another directory",
                          *path_out);
    if (err != GYRE_OK)
        return eng_refuse_io(home->open, err, errno, *path_out, "cannot open the file");
    return GYRE_OK;
}
