/* Images of a store's files: copies as a crash would leave them, pages kept to be put back. */
#pragma once

#include "engine/geometry.h"
#include "tests/engine/numbered.h"
#include "tests/engine/open_store.h"

/* From 0 bytes to some parts, by number; versions differ in length. */
static inline size_t len_of(uint32_t number, uint32_t version)
{
    static const size_t lens[] = {0,     1,     100,   4000,   16100,      16300,  30000,
                                  65535, 65536, 66000, 250000, 262144 + 7, 600000, 2000};

    return lens[number % (sizeof lens / sizeof lens[0])] + version * 3;
}

/* Copies a store's files as they are now; the copy has other inodes, so it is opened as after a
 * power loss. */
static inline void copy_files(const char *from, const char *to)
{
    char command[1300];

    snprintf(command, sizeof command, "rm -rf '%s' && cp -r --sparse=always '%s' '%s'", to, from,
             to);
    CHECK(system(command) == 0);
}

static inline void put_many(struct eng_store *store, uint32_t n, uint32_t version)
{
    for (uint32_t i = 0; i < n; i++)
        object_put(store, i, version, len_of(i, version));
}

static inline void expect_version(struct eng_store *store, uint32_t n, uint32_t version)
{
    for (uint32_t i = 0; i < n; i++)
        CHECK_MSG(object_version(store, i, len_of) == version, "object %u is not version %u", i,
                  version);
}

static inline uint64_t recovered(struct eng_store *store)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < ENG_COUNTER_SHARDS; i++)
        sum += atomic_load(&store->process->counters[i].recovered_documents);
    return sum;
}

/* A part of a file, kept to be put back: pages that had not reached the disk. */
struct pages {
    uint8_t *bytes;
    size_t len;
    uint64_t off;
};

static inline struct pages read_pages(const char *path, uint64_t off, size_t len)
{
    struct pages pages = {malloc(len), len, off};
    int fd = open(path, O_RDONLY);

    CHECK(fd >= 0 && pages.bytes != NULL);
    CHECK(pread(fd, pages.bytes, len, (off_t)off) == (ssize_t)len);
    close(fd);
    return pages;
}

static inline void write_pages(const char *path, const struct pages *pages)
{
    int fd = open(path, O_WRONLY);

    CHECK(fd >= 0);
    CHECK(pwrite(fd, pages->bytes, pages->len, (off_t)pages->off) == (ssize_t)pages->len);
    close(fd);
}

static inline struct pages read_directory(const struct eng_store *store)
{
    const struct eng_stripe_row *row = &store->super.stripes[0];

    return read_pages(store->volume_path, row->directory_off, (size_t)row->n_buckets * 64);
}
