/* A store as a whole: made, opened, closed, refused. What is refused is left as it was. */
#include "tests/engine/open_store.h"

#include <sys/wait.h>

#include "engine/base/io.h"
#include "engine/geometry.h"
#include "engine/lockfile.h"
#include "engine/seal.h"

/* ---- Helpers ---- */

static char *in_dir(const char *dir, const char *name)
{
    static char paths[4][600];
    static unsigned turn;
    char *path = paths[turn++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static void make_and_close(struct opening *o)
{
    CHECK_OK(eng_store_close(open_ok(o), true));
}

static void change_byte(const char *path, uint64_t off, uint8_t mask)
{
    int fd = open(path, O_RDWR);
    uint8_t byte;

    CHECK(fd >= 0);
    CHECK(pread(fd, &byte, 1, (off_t)off) == 1);
    byte ^= mask;
    CHECK(pwrite(fd, &byte, 1, (off_t)off) == 1);
    close(fd);
}

static uint64_t size_of(const char *path)
{
    struct stat status;

    CHECK(stat(path, &status) == 0);
    return (uint64_t)status.st_size;
}

static bool exists(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0;
}

/* Disk space of everything in a directory. */
static uint64_t disk_space(const char *dir)
{
    char command[700];
    unsigned long long kib = 0;

    snprintf(command, sizeof command, "du -sk %s", dir);
    FILE *pipe = popen(command, "r");
    CHECK(pipe != NULL && fscanf(pipe, "%llu", &kib) == 1);
    pclose(pipe);
    return kib << 10;
}

/* ---- Round trip ---- */

TEST(a_new_store_opens_closes_and_opens_again)
{
    struct opening o;
    uint8_t uuid[16];

    opening_init(&o, test_path("data"));
    struct eng_store *store = open_ok(&o);
    memcpy(uuid, store->super.uuid, sizeof uuid);
    CHECK_EQ_INT(store->n_stripes, 1);
    char *rt_path = strdup(store->rt.path);
    CHECK(exists(rt_path));
    CHECK_OK(eng_store_close(store, true));
    CHECK(!exists(rt_path));
    free(rt_path);
    o.open.may_create = false;
    for (int i = 0; i < 3; i++) {
        store = open_ok(&o);
        CHECK_EQ_MEM(store->super.uuid, uuid, sizeof uuid);
        CHECK_OK(eng_store_close(store, i != 1));
    }
    opening_fini(&o);
}

TEST(inv_E40_files_stay_within_the_size_and_are_private)
{
    struct opening o;
    struct stat status;
    mode_t mask = umask(0);

    opening_init(&o, test_path("a/b/data"));
    o.open.size_bytes = UINT64_C(100) << 20;
    make_and_close(&o);
    CHECK(disk_space(o.dirs[0].path) <= o.open.size_bytes);
    CHECK(disk_space(o.dirs[0].path) > o.open.size_bytes * 9 / 10);
    CHECK(stat(test_path("a/b"), &status) == 0 && (status.st_mode & 0777) == 0700);
    CHECK(stat(in_dir(o.dirs[0].path, "volume.gyre"), &status) == 0 &&
          (status.st_mode & 0777) == 0600);
    umask(mask);
    opening_fini(&o);
}

TEST(stripes_are_spread_over_directories_which_may_be_named_in_any_order)
{
    struct opening o;
    char *swap;

    opening_init(&o, test_path("a"));
    o.dirs[1].path = strdup(test_path("b"));
    o.dirs[1].size_bytes = UINT64_C(300) << 20;
    o.open.n_dirs = 2;
    o.open.stripes = 4;
    struct eng_store *store = open_ok(&o);
    CHECK_EQ_INT(store->n_stripes, 4);
    CHECK_OK(eng_store_close(store, true));
    CHECK(exists(test_path("a/stripe-0000.gyre")));
    CHECK(exists(test_path("b/stripe-0001.gyre")));
    CHECK(disk_space(o.dirs[0].path) <= o.open.size_bytes);
    CHECK(disk_space(o.dirs[1].path) <= o.dirs[1].size_bytes);
    swap = o.dirs[0].path;
    o.dirs[0].path = o.dirs[1].path;
    o.dirs[1].path = swap;
    make_and_close(&o);
    o.open.n_dirs = 1;
    open_refused(&o, GYRE_DAMAGED, "volume.gyre is missing");
    o.open.n_dirs = 2;
    opening_fini(&o);
}

TEST(every_stripe_gets_keys_by_its_size)
{
    struct opening o;
    unsigned hits[4] = {0};
    struct test_rng rng = {test_seed()};

    opening_init(&o, test_path("a"));
    o.dirs[1].path = strdup(test_path("b"));
    o.dirs[1].size_bytes = UINT64_C(300) << 20;
    o.open.n_dirs = 2;
    o.open.stripes = 2;
    struct eng_store *store = open_ok(&o);
    for (int i = 0; i < 100000; i++)
        hits[eng_stripe_of(store, test_rng_next(&rng))->index]++;
    double share = (double)store->stripes[0].n_segments /
                   (store->stripes[0].n_segments + store->stripes[1].n_segments);
    CHECK(hits[0] > 100000 * (share - 0.02) && hits[0] < 100000 * (share + 0.02));
    CHECK(eng_stripe_of(store, 0) == &store->stripes[0]);
    CHECK(eng_stripe_of(store, UINT64_MAX) == &store->stripes[1]);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}

/* ---- Who may open ---- */

TEST(a_second_opening_is_refused_in_the_same_process_and_in_another)
{
    struct opening o;
    struct opening other;
    int status;
    char pid_text[32];

    opening_init(&o, test_path("data"));
    opening_init(&other, test_path("data"));
    struct eng_store *store = open_ok(&o);
    snprintf(pid_text, sizeof pid_text, "process %ld", (long)getpid());
    open_refused(&other, GYRE_LOCKED, "this process");
    for (int reset = 0; reset < 2; reset++) {
        pid_t pid = fork();
        if (pid == 0) {
            other.open.reset = reset;
            open_refused(&other, GYRE_LOCKED, pid_text);
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    open_refused(&other, GYRE_LOCKED, "this process"); /* the refusals have not dropped the lock */
    pid_t pid = fork();
    if (pid == 0) {
        open_refused(&other, GYRE_LOCKED, pid_text);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_OK(eng_store_close(store, true));
    make_and_close(&other);
    opening_fini(&o);
    opening_fini(&other);
}

TEST(a_reference_keeps_the_store_locked_after_close)
{
    struct opening o;

    opening_init(&o, test_path("data"));
    struct eng_store *store = open_ok(&o);
    eng_store_ref(store);
    CHECK_OK(eng_store_close(store, true));
    open_refused(&o, GYRE_LOCKED, "close it first");
    eng_store_unref(store);
    make_and_close(&o);
    opening_fini(&o);
}

/* ---- Refusals about paths ---- */

TEST(paths_that_cannot_be_a_store_are_refused)
{
    struct opening o;
    int fd;

    opening_init(&o, test_path("none"));
    o.open.may_create = false;
    open_refused(&o, GYRE_NO_STORE, "no such directory");
    CHECK(!exists(o.dirs[0].path));
    CHECK(mkdir(o.dirs[0].path, 0700) == 0);
    open_refused(&o, GYRE_NO_STORE, "no store here");
    CHECK(rmdir(o.dirs[0].path) == 0); /* nothing was left in it */
    opening_fini(&o);

    opening_init(&o, test_path("file"));
    fd = open(o.dirs[0].path, O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0 && close(fd) == 0);
    open_refused(&o, GYRE_INVALID, "not a directory");
    opening_fini(&o);

    opening_init(&o, test_path("file/below"));
    open_refused(&o, GYRE_INVALID, "not a directory");
    opening_fini(&o);

    opening_init(&o, "");
    open_refused(&o, GYRE_INVALID, "cannot be a data directory");
    opening_fini(&o);

    opening_init(&o, test_path("twice"));
    o.dirs[1].path = strdup(test_path("twice"));
    o.open.n_dirs = 2;
    open_refused(&o, GYRE_INVALID, "same directory");
    opening_fini(&o);
}

TEST(a_link_to_a_directory_is_as_good_as_the_directory)
{
    struct opening o;

    CHECK(mkdir(test_path("real"), 0700) == 0);
    CHECK(symlink(test_path("real"), test_path("link")) == 0);
    opening_init(&o, test_path("link"));
    make_and_close(&o);
    CHECK(exists(test_path("real/volume.gyre")));
    opening_fini(&o);
}

TEST(a_directory_without_write_permission_is_refused)
{
    struct opening o;
    int status;

    if (geteuid() != 0)
        test_skip("needs root, to become somebody else");
    opening_init(&o, test_path("data"));
    make_and_close(&o);
    CHECK(chmod(test_tmpdir(), 0755) == 0 && chmod(o.dirs[0].path, 0755) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(setgid(65534) == 0 && setuid(65534) == 0);
        open_refused(&o, GYRE_ACCESS, "may not write in this directory");
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(chmod(o.dirs[0].path, 0777) == 0);
    pid = fork();
    if (pid == 0) {
        CHECK(setgid(65534) == 0 && setuid(65534) == 0);
        open_refused(&o, GYRE_ACCESS, "lock.gyre: cannot open the file: Permission denied");
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    opening_fini(&o);
}

TEST(sizes_that_cannot_be_are_refused_and_nothing_is_made)
{
    struct opening o;

    opening_init(&o, test_path("data"));
    o.open.size_bytes = UINT64_C(63) << 20;
    open_refused(&o, GYRE_INVALID, "64 MiB or more");
    o.open.size_bytes = UINT64_C(1) << 50;
    open_refused(&o, GYRE_INVALID, "2 TiB"); /* 64 stripes of 16 TiB */
    o.open.size_bytes = UINT64_C(100) << 40;
    open_refused(&o, GYRE_DISK_FULL, "MiB free");
    o.open.size_bytes = UINT64_C(1) << 30;
    o.open.segment_bytes = 12345;
    open_refused(&o, GYRE_INVALID, "power of two");
    CHECK(!exists(test_path("data/volume.gyre")));
    CHECK(!exists(test_path("data/volume.gyre.new")));
    CHECK(!exists(test_path("data/stripe-0000.gyre")));
    opening_fini(&o);
}

/* ---- Refusals about files ---- */

TEST(files_of_the_wrong_kind_are_refused_even_by_a_reset)
{
    static const char *const names[] = {"volume.gyre", "stripe-0000.gyre", "lock.gyre"};

    for (size_t i = 0; i < 3; i++) {
        for (int reset = 0; reset < 2; reset++) {
            struct opening o;
            char name[32];
            snprintf(name, sizeof name, "data-%zu-%d", i, reset);
            opening_init(&o, test_path(name));
            make_and_close(&o);
            o.open.reset = reset;
            char *path = in_dir(o.dirs[0].path, names[i]);
            char *moved = in_dir(o.dirs[0].path, "moved");
            CHECK(rename(path, moved) == 0);
            CHECK(symlink(moved, path) == 0);
            open_refused(&o, GYRE_INVALID, names[i]);
            CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
            open_refused(&o, GYRE_INVALID, "plain file");
            CHECK(rmdir(path) == 0 && mkfifo(path, 0600) == 0);
            open_refused(&o, GYRE_INVALID, "plain file");
            CHECK(unlink(path) == 0 && rename(moved, path) == 0);
            o.open.reset = false;
            make_and_close(&o);
            opening_fini(&o);
        }
    }
}

TEST(files_of_the_wrong_length_are_refused)
{
    struct opening o;
    static const char *const names[] = {"volume.gyre", "stripe-0000.gyre"};

    opening_init(&o, test_path("data"));
    make_and_close(&o);
    for (size_t i = 0; i < 2; i++) {
        char *path = in_dir(o.dirs[0].path, names[i]);
        uint64_t size = size_of(path);
        CHECK(truncate(path, (off_t)size + 4096) == 0);
        open_refused(&o, GYRE_DAMAGED, "bytes long instead of");
        CHECK(truncate(path, (off_t)size) == 0);
        make_and_close(&o);
        CHECK(truncate(path, (off_t)size - 1) == 0);
        open_refused(&o, GYRE_DAMAGED, "bytes long instead of");
        CHECK(truncate(path, (off_t)size) == 0);
        make_and_close(&o);
    }
    CHECK(truncate(in_dir(o.dirs[0].path, "stripe-0000.gyre"), 10) == 0);
    open_refused(&o, GYRE_DAMAGED, "10 bytes long");
    CHECK(truncate(in_dir(o.dirs[0].path, "volume.gyre"), 100) == 0);
    open_refused(&o, GYRE_DAMAGED, "no superblock");
    CHECK(truncate(in_dir(o.dirs[0].path, "volume.gyre"), 0) == 0);
    open_refused(&o, GYRE_DAMAGED, "0 bytes long");
    opening_fini(&o);
}

TEST(data_files_of_another_store_or_stripe_are_refused)
{
    struct opening a;
    struct opening b;

    opening_init(&a, test_path("a"));
    opening_init(&b, test_path("b"));
    a.open.stripes = b.open.stripes = 2;
    make_and_close(&a);
    make_and_close(&b);
    CHECK(rename(test_path("a/stripe-0001.gyre"), test_path("kept")) == 0);
    CHECK(rename(test_path("b/stripe-0001.gyre"), test_path("a/stripe-0001.gyre")) == 0);
    open_refused(&a, GYRE_FOREIGN, "belongs to another store (uuid");
    open_refused(&b, GYRE_DAMAGED, "stripe-0001.gyre of this store is in none");
    CHECK(rename(test_path("a/stripe-0001.gyre"), test_path("b/stripe-0001.gyre")) == 0);
    CHECK(rename(test_path("a/stripe-0000.gyre"), test_path("a/stripe-0001.gyre")) == 0);
    CHECK(rename(test_path("kept"), test_path("a/stripe-0000.gyre")) == 0);
    open_refused(&a, GYRE_FOREIGN, "is data file 1 of this store, not 0");
    make_and_close(&b);
    opening_fini(&a);
    opening_fini(&b);
}

TEST(a_lost_data_file_is_replaced_only_when_asked)
{
    struct opening o;

    opening_init(&o, test_path("data"));
    o.open.stripes = 2;
    make_and_close(&o);
    CHECK(unlink(test_path("data/stripe-0001.gyre")) == 0);
    open_refused(&o, GYRE_DAMAGED, "put the file back");
    CHECK(!exists(test_path("data/stripe-0001.gyre")));
    o.open.replace_lost = true;
    make_and_close(&o);
    o.open.replace_lost = false;
    make_and_close(&o);
    opening_fini(&o);
}

TEST(two_volume_files_are_refused)
{
    struct opening a;
    struct opening b;

    opening_init(&a, test_path("a"));
    opening_init(&b, test_path("b"));
    make_and_close(&a);
    make_and_close(&b);
    a.dirs[1].path = strdup(test_path("b"));
    a.open.n_dirs = 2;
    open_refused(&a, GYRE_FOREIGN, "two stores");
    opening_fini(&a);
    opening_fini(&b);
}

/* ---- Superblocks and headers ---- */

TEST(inv_E42_either_copy_of_superblock_or_header_will_do)
{
    struct opening o;
    char *path;

    opening_init(&o, test_path("data"));
    path = in_dir(o.dirs[0].path, "volume.gyre");
    struct eng_store *store = open_ok(&o);
    struct eng_superblock super = store->super;
    CHECK_OK(eng_store_close(store, true));
    for (unsigned copy = 0; copy < 2; copy++) {
        change_byte(path, eng_superblock_off(copy) + 100, 1);
        make_and_close(&o);
        change_byte(path, eng_header_off(0, copy) + 100, 1);
        make_and_close(&o);
        change_byte(path, eng_table_off(&super, 0, copy) + 5, 1);
        make_and_close(&o);
    }
    for (unsigned copy = 0; copy < 2; copy++)
        change_byte(path, eng_superblock_off(copy) + 100 + copy, 1);
    open_refused(&o, GYRE_DAMAGED, "both copies of the superblock");
    for (unsigned copy = 0; copy < 2; copy++)
        change_byte(path, eng_superblock_off(copy) + 100 + copy, 1);
    for (unsigned copy = 0; copy < 2; copy++)
        change_byte(path, eng_header_off(0, copy) + 100 + copy, 1);
    open_refused(&o, GYRE_DAMAGED, "both copies of the header of stripe 0");
    o.open.reset = true;
    make_and_close(&o);
    opening_fini(&o);
}

TEST(another_format_version_is_refused_by_name)
{
    struct opening o;
    struct eng_superblock super;

    opening_init(&o, test_path("data"));
    make_and_close(&o);
    int fd = open(in_dir(o.dirs[0].path, "volume.gyre"), O_RDWR);
    CHECK(fd >= 0);
    for (unsigned copy = 0; copy < 2; copy++) {
        CHECK(pread(fd, &super, sizeof super, (off_t)eng_superblock_off(copy)) == sizeof super);
        super.major = 9;
        super.minor = 4;
        eng_superblock_seal(&super);
        CHECK(pwrite(fd, &super, sizeof super, (off_t)eng_superblock_off(copy)) == sizeof super);
    }
    close(fd);
    open_refused(&o, GYRE_INCOMPATIBLE, "format 9.4");
    opening_fini(&o);
}

/* ---- Making and replacing ---- */

TEST(a_reset_makes_a_new_store_and_leaves_other_files_alone)
{
    struct opening o;
    uint8_t uuid[16];
    int fd;

    opening_init(&o, test_path("data"));
    o.open.stripes = 3;
    struct eng_store *store = open_ok(&o);
    memcpy(uuid, store->super.uuid, sizeof uuid);
    CHECK_OK(eng_store_close(store, true));
    fd = open(test_path("data/mine.txt"), O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0 && close(fd) == 0);
    o.open.reset = true;
    o.open.stripes = 1;
    store = open_ok(&o);
    CHECK(memcmp(store->super.uuid, uuid, sizeof uuid) != 0);
    CHECK_OK(eng_store_close(store, true));
    CHECK(exists(test_path("data/mine.txt")));
    CHECK(!exists(test_path("data/stripe-0001.gyre")));
    opening_fini(&o);
}

TEST(a_reset_that_does_not_fit_leaves_the_old_store)
{
    struct opening o;

    opening_init(&o, test_path("data"));
    make_and_close(&o);
    o.open.reset = true;
    o.open.size_bytes = UINT64_C(100) << 40;
    open_refused(&o, GYRE_DISK_FULL, "free some space");
    o.open.reset = false;
    make_and_close(&o);
    opening_fini(&o);
}

TEST(inv_E43_data_files_without_a_volume_file_are_left_alone)
{
    struct opening o;

    opening_init(&o, test_path("data"));
    make_and_close(&o);
    CHECK(rename(test_path("data/volume.gyre"), test_path("kept")) == 0);
    open_refused(&o, GYRE_DAMAGED, "whose volume.gyre is missing");
    CHECK(size_of(test_path("data/stripe-0000.gyre")) > 0);
    CHECK(rename(test_path("kept"), test_path("data/volume.gyre")) == 0);
    make_and_close(&o);
    CHECK(unlink(test_path("data/volume.gyre")) == 0);
    o.open.reset = true;
    make_and_close(&o);
    opening_fini(&o);
}

/* The states that a crash while a store is made can leave behind, put together by hand. */
TEST(inv_E44_an_unfinished_store_is_recognised_and_made_again)
{
    struct opening o;
    struct eng_superblock super;
    int fd;

    opening_init(&o, test_path("data"));
    make_and_close(&o);
    CHECK(rename(test_path("data/volume.gyre"), test_path("data/volume.gyre.new")) == 0);
    make_and_close(&o); /* only the rename was missing */
    CHECK(!exists(test_path("data/volume.gyre.new")));

    fd = open(test_path("data/volume.gyre"), O_RDWR);
    CHECK(fd >= 0 && pread(fd, &super, sizeof super, 0) == sizeof super);
    super.generation = 0;
    eng_superblock_seal(&super);
    CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, &super, sizeof super, 0) == sizeof super &&
          close(fd) == 0);
    CHECK(rename(test_path("data/volume.gyre"), test_path("data/volume.gyre.new")) == 0);
    make_and_close(&o); /* nothing but the mark and data files */

    CHECK(rename(test_path("data/volume.gyre"), test_path("data/volume.gyre.new")) == 0);
    change_byte(test_path("data/stripe-0000.gyre"), 30, 1);
    open_refused(&o, GYRE_DAMAGED,
                 "whose volume.gyre is missing"); /* a data file of somebody else */
    CHECK(exists(test_path("data/stripe-0000.gyre")));
    CHECK(unlink(test_path("data/stripe-0000.gyre")) == 0);
    CHECK(truncate(test_path("data/volume.gyre.new"), 0) == 0);
    make_and_close(&o); /* crash before the mark was written */
    opening_fini(&o);
}

/* A mark left beside a whole store is removed. */
TEST(a_stale_mark_goes_at_the_next_opening)
{
    struct opening o;
    int fd;

    opening_init(&o, test_path("data"));
    make_and_close(&o);
    fd = open(test_path("data/volume.gyre.new"), O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0 && close(fd) == 0);
    make_and_close(&o);
    CHECK(!exists(test_path("data/volume.gyre.new")));
    opening_fini(&o);
}

TEST(the_runtime_segment_of_a_dead_process_is_removed)
{
    struct opening o;
    int status;
    struct eng_lock_note note;

    opening_init(&o, test_path("data"));
    pid_t pid = fork();
    if (pid == 0) {
        open_ok(&o);
        _exit(0); /* without closing */
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    struct eng_lockfile lock = {.fd = open(test_path("data/lock.gyre"), O_RDONLY)};
    CHECK(eng_lockfile_read(&lock, &note));
    close(lock.fd);
    CHECK(exists(note.rt_path));
    make_and_close(&o);
    CHECK(!exists(note.rt_path));
    opening_fini(&o);
}

/* Whatever byte of the metadata pages changes while the store is closed: it opens, or says why not.
 */
TEST(any_changed_byte_of_metadata_is_survived_or_explained)
{
    struct opening o;
    char *path;
    unsigned step = test_full() ? 1 : 13;

    opening_init(&o, test_path("data"));
    path = in_dir(o.dirs[0].path, "volume.gyre");
    make_and_close(&o);
    struct eng_store *store = open_ok(&o);
    uint64_t end = store->super.ban_off;
    CHECK_OK(eng_store_close(store, true));
    for (uint64_t off = test_seed() % step; off < end; off += step) {
        change_byte(path, off, 0x41);
        gyre_err err = eng_store_open(&o.open, &store);
        if (err == GYRE_OK)
            CHECK_OK(eng_store_close(store, true));
        else
            CHECK_MSG(o.message[0] != '\0', "byte %llu: no message", (unsigned long long)off);
        if (err != GYRE_OK)
            change_byte(path, off, 0x41);
    }
    make_and_close(&o);
    opening_fini(&o);
}
