/* Opening small stores in a test's own directory. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/store.h"
#include "tests/harness/test.h"

#define STORE_BYTES (UINT64_C(64) << 20)

/* What a test opens with; `message` is filled by each opening. */
struct opening {
    struct eng_dir dirs[4];
    struct eng_open open;
    char message[1024];
};

static inline void opening_init(struct opening *o, const char *dir)
{
    memset(o, 0, sizeof *o);
    o->dirs[0].path = strdup(dir);
    o->open.dirs = o->dirs;
    o->open.n_dirs = 1;
    o->open.size_bytes = STORE_BYTES;
    o->open.may_create = true;
    o->open.message = o->message;
    o->open.message_size = sizeof o->message;
}

static inline void opening_fini(struct opening *o)
{
    for (uint32_t i = 0; i < o->open.n_dirs; i++)
        free(o->dirs[i].path);
}

/* Opens and insists that it works. */
static inline struct eng_store *open_ok(struct opening *o)
{
    struct eng_store *store = NULL;
    gyre_err err = eng_store_open(&o->open, &store);

    CHECK_MSG(err == GYRE_OK, "open: %s: %s", gyre_err_name(err), o->message);
    CHECK(store != NULL);
    return store;
}

/* Opens and insists on a refusal whose sentence has `words` in it and names a remedy. */
static inline void open_refused(struct opening *o, gyre_err expected, const char *words)
{
    struct eng_store *store = NULL;
    gyre_err err = eng_store_open(&o->open, &store);

    CHECK_MSG(err == expected, "open: %s (%s), expected %s", gyre_err_name(err), o->message,
              gyre_err_name(expected));
    CHECK(store == NULL);
    CHECK_MSG(strstr(o->message, words) != NULL, "\"%s\" does not say \"%s\"", o->message, words);
    CHECK_MSG(strchr(o->message, '\n') == NULL && strchr(o->message, ':') != NULL,
              "not one sentence: %s", o->message);
}

/* ---- Files ---- */

static inline char *in_dir(const char *dir, const char *name)
{
    static char paths[4][600];
    static unsigned turn;
    char *path = paths[turn++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static inline void make_and_close(struct opening *o)
{
    CHECK_OK(eng_store_close(open_ok(o), true));
}

static inline void change_byte(const char *path, uint64_t off, uint8_t mask)
{
    int fd = open(path, O_RDWR);
    uint8_t byte;

    CHECK(fd >= 0);
    CHECK(pread(fd, &byte, 1, (off_t)off) == 1);
    byte ^= mask;
    CHECK(pwrite(fd, &byte, 1, (off_t)off) == 1);
    close(fd);
}

static inline uint64_t size_of(const char *path)
{
    struct stat status;

    CHECK(stat(path, &status) == 0);
    return (uint64_t)status.st_size;
}

static inline bool exists(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0;
}

/* Disk space of everything in a directory. */
static inline uint64_t disk_space(const char *dir)
{
    char command[700];
    unsigned long long kib = 0;

    snprintf(command, sizeof command, "du -sk %s", dir);
    FILE *pipe = popen(command, "r");
    CHECK(pipe != NULL && fscanf(pipe, "%llu", &kib) == 1);
    pclose(pipe);
    return kib << 10;
}
