/* Why a store is not opened: each refusal has its sentence, and leaves what is there as it was. */
#include "tests/engine/open_store.h"

#include <sys/wait.h>

#include "engine/geometry.h"
#include "engine/seal.h"

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

    if (geteuid() != 0)
        test_skip("needs root, to become somebody else");
    opening_init(&o, test_path("data"));
    make_and_close(&o);
    CHECK(chmod(test_tmpdir(), 0755) == 0 && chmod(o.dirs[0].path, 0755) == 0);
    pid_t pid = test_fork();
    if (pid == 0) {
        CHECK(setgid(65534) == 0 && setuid(65534) == 0);
        open_refused(&o, GYRE_ACCESS, "may not write in this directory");
        _exit(0);
    }
    test_join(pid);
    CHECK(chmod(o.dirs[0].path, 0777) == 0);
    pid = test_fork();
    if (pid == 0) {
        CHECK(setgid(65534) == 0 && setuid(65534) == 0);
        open_refused(&o, GYRE_ACCESS, "lock.gyre: cannot open the file: Permission denied");
        _exit(0);
    }
    test_join(pid);
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

/* Whether the byte at `off` of the volume file, below the bans, belongs to a field; the rest of
 * each page is zero. */
static bool is_in_field(const struct eng_superblock *super, uint64_t off)
{
    const uint64_t at = off % ENG_PAGE;
    const uint64_t pools_end = offsetof(struct eng_superblock, pools[super->n_pools]);
    const uint64_t stripes = offsetof(struct eng_superblock, stripes);

    if (off < eng_header_off(0, 0))
        return at < pools_end ||
               (at >= stripes && at < stripes + super->n_stripes * sizeof super->stripes[0]);
    if (off < eng_header_off(super->n_stripes, 0))
        return at < offsetof(struct eng_stripe_header, zero_);
    for (uint32_t i = 0; i < super->n_stripes; i++) {
        for (unsigned copy = 0; copy < 2; copy++) {
            uint64_t table = eng_table_off(super, i, copy);
            uint64_t bytes = super->stripes[i].n_segments * sizeof(struct eng_segment_row);
            if (off >= table && off < table + bytes)
                return true;
        }
    }
    return false;
}

/* Changes a byte and opens the store: it does so, or says why not and does again once the byte is
 * what it was. */
static void check_changed_byte(struct opening *o, const char *path, uint64_t off)
{
    struct eng_store *store;

    change_byte(path, off, 0x41);
    gyre_err err = eng_store_open(&o->open, &store);
    if (err == GYRE_OK) {
        CHECK_OK(eng_store_close(store, true));
        return;
    }
    CHECK_MSG(o->message[0] != '\0', "byte %llu: no message", (unsigned long long)off);
    change_byte(path, off, 0x41);
}

/* Whatever byte of the metadata pages changes while the store is closed: it opens, or says why not.
 * A sample of all bytes; the long form adds every byte of every field. */
TEST(any_changed_byte_of_metadata_is_survived_or_explained)
{
    enum { STEP = 13 };
    struct opening o;
    char *path;

    opening_init(&o, test_path("data"));
    path = in_dir(o.dirs[0].path, "volume.gyre");
    make_and_close(&o);
    struct eng_store *store = open_ok(&o);
    struct eng_superblock super = store->super;
    CHECK_OK(eng_store_close(store, true));
    for (uint64_t off = 0; off < super.ban_off; off++) {
        if (off % STEP == test_seed() % STEP || (test_full() && is_in_field(&super, off)))
            check_changed_byte(&o, path, off);
    }
    make_and_close(&o);
    opening_fini(&o);
}
