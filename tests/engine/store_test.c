/* A store as a whole: made, opened, closed, made anew. */
#include "engine/base/filelock.h"
#include "tests/engine/open_store.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "engine/base/io.h"
#include "engine/geometry.h"
#include "engine/lockfile.h"
#include "engine/seal.h"

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

/* Runs one opening in another process: with `refusal` it must be refused, and say so. */
static void open_elsewhere(struct opening *o, const char *refusal)
{
    pid_t pid = test_fork();

    if (pid == 0) {
        if (refusal != NULL)
            open_refused(o, GYRE_LOCKED, refusal);
        else
            CHECK_OK(eng_store_close(open_ok(o), true));
        _exit(0);
    }
    test_join(pid);
}

TEST(a_second_opening_is_refused_in_the_same_process_and_welcome_in_another)
{
    struct opening o;
    struct opening other;
    char pid_text[32];

    opening_init(&o, test_path("data"));
    opening_init(&other, test_path("data"));
    struct eng_store *store = open_ok(&o);
    snprintf(pid_text, sizeof pid_text, "process %ld", (long)getpid());
    open_refused(&other, GYRE_LOCKED, "this process");
    open_elsewhere(&other, NULL);
    open_refused(&other, GYRE_LOCKED, "this process"); /* the refusals have not dropped the lock */
    other.open.reset = true;
    open_elsewhere(&other, pid_text);
    other.open.reset = false;
    open_elsewhere(&other, NULL);
    CHECK_OK(eng_store_close(store, true));
    make_and_close(&other);
    opening_fini(&o);
    opening_fini(&other);
}

/* A segment that others cannot share, or whose file is gone, is no reason to make a second one. */
TEST(inv_E53_a_store_in_use_is_shared_by_its_own_segment_or_not_at_all)
{
    struct opening o;
    struct opening other;

    opening_init(&o, test_path("data"));
    opening_init(&other, test_path("data"));
    struct eng_store *store = open_ok(&o);
    uint64_t layout = store->rt.head->layout;
    store->rt.head->layout++;
    open_elsewhere(&other, "same version");
    store->rt.head->layout = layout;
    open_elsewhere(&other, NULL);
    CHECK(unlink(store->rt.path) == 0);
    open_elsewhere(&other, "/dev/shm");
    CHECK_OK(eng_store_close(store, true));
    make_and_close(&other);
    opening_fini(&o);
    opening_fini(&other);
}

TEST(an_opening_that_lasts_is_waited_for_within_a_bound)
{
    struct opening o;
    int go[2];
    int status;
    char byte = 0;

    opening_init(&o, test_path("data"));
    make_and_close(&o);
    CHECK(pipe(go) == 0);
    pid_t pid = test_fork();
    if (pid == 0) {
        int fd = open(in_dir(test_path("data"), "lock.gyre"), O_RDWR);
        CHECK_OK(eng_filelock_try(fd, 0, ENG_FILELOCK_EXCLUSIVE));
        CHECK(write(go[1], &byte, 1) == 1);
        for (;;)
            pause();
    }
    CHECK(read(go[0], &byte, 1) == 1);
    o.open.lock_wait_ms = 50;
    open_refused(&o, GYRE_LOCKED, "still opening or closing");
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
    make_and_close(&o);
    opening_fini(&o);
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

/* ---- Refusals leave nothing ---- */

TEST(inv_E43_a_refused_opening_leaves_no_file_or_directory)
{
    struct opening o;
    struct rlimit files;

    opening_init(&o, test_path("x/y/z"));
    o.open.size_bytes = UINT64_C(1) << 20;
    open_refused(&o, GYRE_INVALID, "too small");
    CHECK(!exists(test_path("x")));
    o.open.size_bytes = UINT64_C(100) << 40;
    open_refused(&o, GYRE_DISK_FULL, "free some space");
    CHECK(!exists(test_path("x")));
    CHECK(mkdir(test_path("x"), 0700) == 0);
    open_refused(&o, GYRE_DISK_FULL, "free some space");
    CHECK(exists(test_path("x")) && !exists(test_path("x/y")));
    o.open.reset = true;
    open_refused(&o, GYRE_DISK_FULL, "free some space");
    CHECK(exists(test_path("x")) && !exists(test_path("x/y")));
    o.open.reset = false;
    CHECK(mkdir(test_path("x/y"), 0700) == 0 && mkdir(test_path("x/y/z"), 0700) == 0);
    open_refused(&o, GYRE_DISK_FULL, "free some space");
    CHECK(rmdir(test_path("x/y/z")) == 0); /* it is empty */

    /* The second directory cannot be made after the first one was. */
    o.open.size_bytes = STORE_BYTES;
    o.dirs[1].path = strdup(test_path("x/file/d"));
    o.open.n_dirs = 2;
    int fd = open(test_path("x/file"), O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0 && close(fd) == 0);
    struct eng_store *store;
    CHECK(eng_store_open(&o.open, &store) != GYRE_OK);
    CHECK(exists(test_path("x/y")) && !exists(test_path("x/y/z")));

    /* A data file that outgrows the limit: the disk is full halfway. */
    signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &files) == 0);
    const struct rlimit small = {UINT64_C(8) << 20, files.rlim_max};
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    free(o.dirs[1].path);
    o.open.n_dirs = 1;
    CHECK(eng_store_open(&o.open, &store) != GYRE_OK);
    CHECK(setrlimit(RLIMIT_FSIZE, &files) == 0);
    CHECK(!exists(test_path("x/y/z")));
    make_and_close(&o);
    opening_fini(&o);
}

/* Wherever it ends: at the lock, a data file, the volume, the runtime segment. */
TEST(inv_E43_an_opening_that_runs_out_of_files_leaves_none)
{
    struct opening o;
    struct rlimit files;
    struct eng_store *store;
    gyre_err err = GYRE_NO_FILES;
    unsigned refused = 0;

    opening_init(&o, test_path("data"));
    CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
    for (rlim_t n = 3; err != GYRE_OK && n < 64; n++) {
        const struct rlimit few = {n, files.rlim_max};
        CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
        err = eng_store_open(&o.open, &store);
        CHECK_MSG(err == GYRE_OK || !exists(o.dirs[0].path), "%s: %s", gyre_err_name(err),
                  o.message);
        refused += err != GYRE_OK;
    }
    CHECK_OK(err);
    CHECK(refused > 4);
    CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}

TEST(inv_E43_a_refused_opening_of_a_store_leaves_no_lock_file)
{
    struct opening o;

    opening_init(&o, test_path("data"));
    make_and_close(&o);
    CHECK(unlink(test_path("data/lock.gyre")) == 0);
    CHECK(rename(test_path("data/stripe-0000.gyre"), test_path("kept")) == 0);
    open_refused(&o, GYRE_DAMAGED, "is in none of the data directories");
    CHECK(!exists(test_path("data/lock.gyre")));
    CHECK(rename(test_path("kept"), test_path("data/stripe-0000.gyre")) == 0);
    make_and_close(&o);
    CHECK(exists(test_path("data/lock.gyre")));
    opening_fini(&o);
}

TEST(a_directory_that_the_store_does_not_use_is_refused)
{
    struct opening o;

    opening_init(&o, test_path("data"));
    make_and_close(&o);
    o.dirs[1].path = strdup(test_path("more"));
    o.open.n_dirs = 2;
    open_refused(&o, GYRE_INVALID, "cannot be enlarged yet");
    CHECK(strstr(o.message, o.dirs[1].path) == o.message && !exists(o.dirs[1].path));
    o.open.replace_lost = true;
    open_refused(&o, GYRE_INVALID, "cannot be enlarged yet");
    o.open.reset = true;
    make_and_close(&o);
    CHECK(exists(test_path("more/stripe-0001.gyre")));
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
    struct eng_lock_note note;

    opening_init(&o, test_path("data"));
    pid_t pid = test_fork();
    if (pid == 0) {
        open_ok(&o);
        _exit(0); /* without closing */
    }
    test_join(pid);
    struct eng_lockfile lock = {.fd = open(test_path("data/lock.gyre"), O_RDONLY)};
    CHECK(eng_lockfile_read(&lock, &note));
    close(lock.fd);
    CHECK(exists(note.rt_path));
    make_and_close(&o);
    CHECK(!exists(note.rt_path));
    opening_fini(&o);
}
