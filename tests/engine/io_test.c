/* Transfers are finished whatever the kernel does in between; refusals come back as the right
 * error. */
#include "engine/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/harness/test.h"

/* What the stand-ins for the system calls below do: 0 passes them through. */
static struct {
    bool choppy;         /* transfers are interrupted or cut short at random */
    bool no_progress;    /* writes take nothing */
    int fallocate_errno; /* fallocate fails so */
    struct test_rng rng;
} world;

static ssize_t chopped(long call, int fd, const struct iovec *pieces, int n, off_t off)
{
    struct iovec cut[64];
    if (world.no_progress)
        return 0;
    if (!world.choppy)
        return syscall(call, fd, pieces, n, off, 0);
    if (test_rng_below(&world.rng, 4) == 0) {
        errno = EINTR;
        return -1;
    }
    size_t budget = 1 + test_rng_below(&world.rng, 700);
    int kept = 0;
    for (; kept < n && kept < 64 && budget > 0; kept++) {
        cut[kept] = pieces[kept];
        cut[kept].iov_len = cut[kept].iov_len < budget ? cut[kept].iov_len : budget;
        budget -= cut[kept].iov_len;
    }
    return syscall(call, fd, cut, kept, off, 0);
}

/* These stand in for the C library's, in this program only. */
ssize_t pwritev(int fd, const struct iovec *pieces, int n, off_t off)
{
    return chopped(SYS_pwritev, fd, pieces, n, off);
}

ssize_t preadv(int fd, const struct iovec *pieces, int n, off_t off)
{
    return chopped(SYS_preadv, fd, pieces, n, off);
}

int fallocate(int fd, int mode, off_t off, off_t len)
{
    if (world.fallocate_errno == 0)
        return (int)syscall(SYS_fallocate, fd, mode, off, len);
    errno = world.fallocate_errno;
    return -1;
}

static int new_file(const char *name)
{
    int fd;
    CHECK_OK(eng_open_regular(AT_FDCWD, test_path(name), O_RDWR | O_CREAT | O_EXCL, 0600, &fd));
    return fd;
}

TEST(errno_becomes_the_right_error)
{
    CHECK_ERR(eng_err_of_errno(ENOSPC), GYRE_DISK_FULL);
    CHECK_ERR(eng_err_of_errno(EDQUOT), GYRE_DISK_FULL);
    CHECK_ERR(eng_err_of_errno(EACCES), GYRE_ACCESS);
    CHECK_ERR(eng_err_of_errno(EPERM), GYRE_ACCESS);
    CHECK_ERR(eng_err_of_errno(EROFS), GYRE_ACCESS);
    CHECK_ERR(eng_err_of_errno(EMFILE), GYRE_NO_FILES);
    CHECK_ERR(eng_err_of_errno(ENFILE), GYRE_NO_FILES);
    CHECK_ERR(eng_err_of_errno(ENOMEM), GYRE_NO_MEMORY);
    CHECK_ERR(eng_err_of_errno(EIO), GYRE_IO);
    CHECK_ERR(eng_err_of_errno(ENOENT), GYRE_NO_STORE);
    CHECK_ERR(eng_err_of_errno(EOPNOTSUPP), GYRE_UNSUPPORTED);
    for (int e = 0; e < 200; e++)
        CHECK(eng_err_of_errno(e) != GYRE_OK);
}

/* Random cuts of random bytes into pieces, many more than fit one call, empty ones among them. */
TEST(transfers_are_finished_through_interrupts_and_short_calls)
{
    enum { BYTES = 20000, MOST = 150 };
    world.rng.state = test_seed();
    uint8_t *out = malloc(BYTES);
    uint8_t *in = malloc(BYTES);
    CHECK(out != NULL && in != NULL);
    int fd = new_file("f");
    world.choppy = true;
    for (int round = 0; round < 100; round++) {
        struct iovec to[MOST];
        struct iovec from[MOST];
        size_t n = 1 + test_rng_below(&world.rng, MOST);
        size_t at = 0;
        test_rng_fill(&world.rng, out, BYTES);
        memset(in, 0, BYTES);
        for (size_t i = 0; i < n; i++) {
            size_t len = test_rng_below(&world.rng, 4) == 0 ? 0 : test_rng_below(&world.rng, 130);
            from[i] = (struct iovec){len == 0 ? NULL : out + at, len};
            to[i] = (struct iovec){len == 0 ? NULL : in + at, len};
            at += len;
        }
        uint64_t off = test_rng_below(&world.rng, 100000);
        size_t got;
        CHECK_OK(eng_pwritev(fd, from, n, off));
        CHECK_OK(eng_preadv(fd, to, n, off, &got));
        CHECK_EQ_U64(got, at);
        CHECK_EQ_MEM(in, out, at);
        memset(in, 0, BYTES);
        CHECK_OK(eng_pread(fd, in, at, off));
        CHECK_EQ_MEM(in, out, at);
    }
    eng_close(&fd);
    free(in);
    free(out);
}

TEST(a_file_that_ends_early_is_noticed)
{
    char buffer[10] = {0};
    size_t got;
    int fd = new_file("short");
    CHECK_OK(eng_pwrite(fd, "abcdef", 6, 0));
    CHECK_ERR(eng_pread(fd, buffer, 7, 0), GYRE_DAMAGED);
    CHECK_ERR(eng_pread(fd, buffer, 1, 6), GYRE_DAMAGED);
    CHECK_OK(eng_pread(fd, buffer, 6, 0));
    CHECK_OK(eng_pread(fd, buffer, 0, 100));
    const struct iovec pieces[] = {{buffer, 4}, {buffer + 4, 6}};
    CHECK_OK(eng_preadv(fd, pieces, 2, 0, &got));
    CHECK_EQ_U64(got, 6);
    CHECK_EQ_STR(buffer, "abcdef");
    CHECK_OK(eng_preadv(fd, pieces, 2, 60, &got));
    CHECK_EQ_U64(got, 0);
    eng_close(&fd);
}

TEST(writes_that_cannot_be_finished_say_why)
{
    int full = open("/dev/full", O_RDWR | O_CLOEXEC);
    CHECK(full >= 0);
    CHECK_ERR(eng_pwrite(full, "x", 1, 0), GYRE_DISK_FULL);
    eng_close(&full);
    CHECK_EQ_INT(full, -1);
    eng_close(&full);

    int fd = new_file("limited");
    CHECK_ERR(eng_pwrite(fd, "x", 1, UINT64_MAX), GYRE_TOO_LARGE);
    CHECK_ERR(eng_pwrite(fd, "x", 1, (uint64_t)INT64_MAX + 1), GYRE_TOO_LARGE);
    const struct rlimit limit = {1000, 1000};
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    char bytes[1500] = {0};
    CHECK_ERR(eng_pwrite(fd, bytes, sizeof bytes, 0), GYRE_DISK_FULL);
    world.no_progress = true;
    CHECK_ERR(eng_pwrite(fd, bytes, 10, 0), GYRE_IO);
    CHECK_OK(eng_pwrite(fd, bytes, 0, 0));
    eng_close(&fd);
}

TEST(only_regular_files_are_opened)
{
    int fd = new_file("real");
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    eng_close(&fd);
    CHECK(symlink(test_path("real"), test_path("link")) == 0);
    CHECK(mkfifo(test_path("fifo"), 0600) == 0);
    CHECK(mkdir(test_path("dir"), 0700) == 0);

    static const char *const refused[] = {"link", "fifo", "dir"};
    static const int modes[] = {O_RDONLY, O_WRONLY, O_RDWR};
    for (size_t i = 0; i < 9; i++) {
        fd = 99;
        CHECK_ERR(eng_open_regular(AT_FDCWD, test_path(refused[i / 3]), modes[i % 3], 0, &fd),
                  GYRE_INVALID);
        CHECK_EQ_INT(fd, -1);
    }
    CHECK_ERR(eng_open_regular(AT_FDCWD, test_path("none"), O_RDWR, 0, &fd), GYRE_NO_STORE);
    CHECK_ERR(eng_open_regular(AT_FDCWD, test_path("real"), O_RDWR | O_CREAT | O_EXCL, 0600, &fd),
              GYRE_EXISTS);
    CHECK_EQ_INT(fd, -1);
}

TEST(descriptors_that_run_out_are_reported)
{
    int fd = new_file("real");
    eng_close(&fd);
    const char *path = test_path("real");
    struct rlimit before;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const struct rlimit none = {0, before.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    gyre_err err = eng_open_regular(AT_FDCWD, path, O_RDWR, 0, &fd);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK_ERR(err, GYRE_NO_FILES);
}

TEST(directories_are_opened_and_synced)
{
    int dir;
    int fd;
    CHECK_OK(eng_open_dir(AT_FDCWD, test_tmpdir(), &dir));
    CHECK_OK(eng_open_regular(dir, "below", O_RDWR | O_CREAT, 0600, &fd));
    CHECK_OK(eng_pwrite(fd, "abc", 3, 0));
    CHECK_OK(eng_sync_data(fd));
    CHECK_OK(eng_sync_dir(dir));
    uint64_t size;
    CHECK_OK(eng_file_size(fd, &size));
    CHECK_EQ_U64(size, 3);
    eng_close(&fd);
    CHECK_ERR(eng_open_dir(dir, "below", &fd), GYRE_INVALID);
    CHECK_ERR(eng_open_dir(dir, "none", &fd), GYRE_NO_STORE);
    CHECK_EQ_INT(fd, -1);
    eng_close(&dir);
    CHECK_ERR(eng_sync_data(-1), GYRE_IO);
    CHECK_ERR(eng_sync_dir(-1), GYRE_IO);
    CHECK_ERR(eng_file_size(-1, &size), GYRE_IO);
}

/* Else what a program prints after it was started with `>&-` ends up in the store. */
TEST(standard_streams_that_are_closed_are_left_to_themselves)
{
    int kept = dup(STDIN_FILENO);
    int file;
    int dir;
    close(STDIN_FILENO);
    gyre_err file_err =
        eng_open_regular(AT_FDCWD, test_path("file"), O_RDWR | O_CREAT, 0600, &file);
    gyre_err dir_err = eng_open_dir(AT_FDCWD, test_tmpdir(), &dir);
    bool is_free = fcntl(STDIN_FILENO, F_GETFD) < 0;
    if (kept >= 0)
        dup2(kept, STDIN_FILENO);
    eng_close(&kept);
    CHECK_OK(file_err);
    CHECK_OK(dir_err);
    CHECK(is_free);
    CHECK(file > STDERR_FILENO && dir > STDERR_FILENO);
    CHECK((fcntl(file, F_GETFD) & FD_CLOEXEC) != 0 && (fcntl(dir, F_GETFD) & FD_CLOEXEC) != 0);
    eng_close(&dir);
    eng_close(&file);
}

static void check_allocation(gyre_err (*allocate)(int fd, uint64_t off, uint64_t len), int fd)
{
    struct stat st;
    char buffer[4] = {0};
    CHECK_OK(eng_pwrite(fd, "keep", 4, 0));
    CHECK_OK(allocate(fd, 0, 1 << 20));
    CHECK(fstat(fd, &st) == 0);
    CHECK_EQ_INT(st.st_size, 1 << 20);
    CHECK_OK(eng_pread(fd, buffer, 4, 0));
    CHECK_EQ_MEM(buffer, "keep", 4);
    CHECK_OK(eng_pread(fd, buffer, 4, (1 << 20) - 4));
    CHECK_EQ_MEM(buffer, "\0\0\0\0", 4);

    CHECK_OK(allocate(fd, 4096, 4096));
    CHECK_OK(allocate(fd, 1 << 20, 0));
    CHECK_ERR(allocate(fd, 0, UINT64_C(1) << 63), GYRE_TOO_LARGE);
    CHECK_ERR(allocate(fd, UINT64_MAX, 2), GYRE_TOO_LARGE);
    CHECK(fstat(fd, &st) == 0);
    CHECK_EQ_INT(st.st_size, 1 << 20);
    eng_close(&fd);
}

TEST(allocation_grows_a_file_and_keeps_its_bytes)
{
    struct stat st;
    check_allocation(eng_allocate, new_file("blocks"));
    CHECK(stat(test_path("blocks"), &st) == 0);
    CHECK(st.st_blocks * 512 >= 1 << 20);
}

TEST(allocation_falls_back_where_the_file_system_cannot)
{
    check_allocation(eng_allocate_sparse, new_file("sparse"));
    world.fallocate_errno = EOPNOTSUPP;
    check_allocation(eng_allocate, new_file("fallback"));
    world.fallocate_errno = ENOSYS;
    check_allocation(eng_allocate, new_file("fallback2"));
}

TEST(a_full_disk_leaves_the_file_as_it_was)
{
    uint64_t size;
    uint64_t free_bytes;
    uint64_t fs_bytes;
    int fd = new_file("full");
    CHECK_OK(eng_pwrite(fd, "keep", 4, 0));
    CHECK_OK(eng_fs_space(fd, &free_bytes, &fs_bytes));
    CHECK(free_bytes > 0 && free_bytes <= fs_bytes);
    CHECK_ERR(eng_allocate_sparse(fd, 0, free_bytes + (UINT64_C(1) << 40)), GYRE_DISK_FULL);
    world.fallocate_errno = ENOSPC;
    CHECK_ERR(eng_allocate(fd, 0, 1 << 20), GYRE_DISK_FULL);
    CHECK_EQ_INT(errno, ENOSPC);
    CHECK_OK(eng_file_size(fd, &size));
    CHECK_EQ_U64(size, 4);
    eng_close(&fd);
}
