#include "engine/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/check.h"

/* Pieces handed to the kernel at once; more go in turns. */
enum { WINDOW_PIECES = 32 };

gyre_err eng_err_of_errno(int errno_value)
{
    switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return GYRE_DISK_FULL;
    case EACCES:
    case EPERM:
    case EROFS: return GYRE_ACCESS;
    case EMFILE:
    case ENFILE: return GYRE_NO_FILES;
    case ENOMEM: return GYRE_NO_MEMORY;
    case ENOENT: return GYRE_NO_STORE;
    case EEXIST: return GYRE_EXISTS;
    case EAGAIN:
    case EBUSY:
    case ETXTBSY: return GYRE_BUSY;
    case ENOSYS:
    case EOPNOTSUPP: return GYRE_UNSUPPORTED;
    case EINVAL:
    case ELOOP:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
    case ENXIO:
    case ESPIPE: return GYRE_INVALID;
    default: return GYRE_IO;
    }
}

/* Where a transfer stands: piece `at`, of which `skip` bytes are done. */
struct cursor {
    const struct iovec *pieces;
    size_t n_pieces;
    size_t at;
    size_t skip;
};

/* Fills the window with what is left, without empty pieces, which could not be told from an end of
 * file. Returns how many. */
static int next_window(struct cursor *cursor, struct iovec window[WINDOW_PIECES])
{
    int n = 0;
    while (cursor->at < cursor->n_pieces && cursor->skip == cursor->pieces[cursor->at].iov_len) {
        cursor->at++;
        cursor->skip = 0;
    }
    size_t skip = cursor->skip;
    for (size_t i = cursor->at; i < cursor->n_pieces && n < WINDOW_PIECES; i++, skip = 0) {
        if (cursor->pieces[i].iov_len == skip)
            continue;
        window[n++] = (struct iovec){(char *)cursor->pieces[i].iov_base + skip,
                                     cursor->pieces[i].iov_len - skip};
    }
    return n;
}

static void advance(struct cursor *cursor, size_t done)
{
    while (done > 0) {
        size_t left = cursor->pieces[cursor->at].iov_len - cursor->skip;
        size_t step = done < left ? done : left;
        cursor->skip += step;
        done -= step;
        if (step == left) {
            cursor->at++;
            cursor->skip = 0;
        }
    }
}

typedef ssize_t transfer_call(int fd, const struct iovec *pieces, int n_pieces, off_t off);

/* Repeats the call until all pieces are done or it answers zero, which ends a read and is no answer
 * to a write. */
static gyre_err transfer(transfer_call *call, int fd, const struct iovec *pieces, size_t n_pieces,
                         uint64_t off, size_t *done_out)
{
    struct cursor cursor = {pieces, n_pieces, 0, 0};
    struct iovec window[WINDOW_PIECES];
    int n;
    *done_out = 0;
    while ((n = next_window(&cursor, window)) > 0) {
        if (off > (uint64_t)INT64_MAX - *done_out)
            return GYRE_TOO_LARGE;
        ssize_t done = call(fd, window, n, (off_t)(off + *done_out));
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return eng_err_of_errno(errno);
        if (done == 0)
            break;
        advance(&cursor, (size_t)done);
        *done_out += (size_t)done;
    }
    return GYRE_OK;
}

static size_t total_bytes(const struct iovec *pieces, size_t n_pieces)
{
    size_t total = 0;
    for (size_t i = 0; i < n_pieces; i++)
        total += pieces[i].iov_len;
    return total;
}

gyre_err eng_pwritev(int fd, const struct iovec *pieces, size_t n_pieces, uint64_t off)
{
    size_t done;
    gyre_err err = transfer(pwritev, fd, pieces, n_pieces, off, &done);
    if (err == GYRE_OK && done != total_bytes(pieces, n_pieces))
        return GYRE_IO; /* the device takes nothing and gives no reason */
    return err;
}

gyre_err eng_pwrite(int fd, const void *bytes, size_t len, uint64_t off)
{
    const struct iovec piece = {(void *)(uintptr_t)bytes, len};
    return eng_pwritev(fd, &piece, 1, off);
}

gyre_err eng_preadv(int fd, const struct iovec *pieces, size_t n_pieces, uint64_t off,
                    size_t *read_out)
{
    return transfer(preadv, fd, pieces, n_pieces, off, read_out);
}

gyre_err eng_pread(int fd, void *buffer, size_t len, uint64_t off)
{
    const struct iovec piece = {buffer, len};
    size_t done;
    gyre_err err = transfer(preadv, fd, &piece, 1, off, &done);
    if (err == GYRE_OK && done != len)
        return GYRE_DAMAGED;
    return err;
}

/* A program started with a standard stream closed still prints to its number, and would print into
 * the file that has come to bear it. After SQLite's SQLITE_MINIMUM_FILE_DESCRIPTOR. */
static int above_standard_streams(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    eng_close(&fd);
    return moved;
}

static gyre_err open_retrying(int dirfd, const char *name, int flags, mode_t mode, int *fd_out)
{
    do
        *fd_out = above_standard_streams(openat(dirfd, name, flags | O_CLOEXEC, mode));
    while (*fd_out < 0 && errno == EINTR);
    return *fd_out < 0 ? eng_err_of_errno(errno) : GYRE_OK;
}

/* O_NONBLOCK keeps the open of a FIFO from waiting for its other end; regular files do not know it.
 */
gyre_err eng_open_regular(int dirfd, const char *name, int flags, mode_t mode, int *fd_out)
{
    struct stat st;
    gyre_err err;

    TRY(open_retrying(dirfd, name, flags | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, mode, fd_out));
    if (fstat(*fd_out, &st) != 0)
        TRY(eng_err_of_errno(errno));
    if (!S_ISREG(st.st_mode))
        TRY(GYRE_INVALID);
out:
    if (err != GYRE_OK)
        eng_close(fd_out);
    return err;
}

gyre_err eng_open_dir(int dirfd, const char *name, int *fd_out)
{
    return open_retrying(dirfd, name, O_RDONLY | O_DIRECTORY, 0, fd_out);
}

/* Linux frees the number even when close is interrupted; a second try could hit another thread's
 * file. */
void eng_close(int *fd)
{
    int saved = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = saved;
}

gyre_err eng_file_size(int fd, uint64_t *size_out)
{
    struct stat st;
    *size_out = 0;
    if (fstat(fd, &st) != 0)
        return eng_err_of_errno(errno);
    *size_out = (uint64_t)st.st_size;
    return GYRE_OK;
}

gyre_err eng_sync_data(int fd)
{
    int rc;
    do
        rc = fdatasync(fd);
    while (rc != 0 && errno == EINTR);
    return rc != 0 ? eng_err_of_errno(errno) : GYRE_OK;
}

gyre_err eng_sync_dir(int dirfd)
{
    int rc;
    do
        rc = fsync(dirfd);
    while (rc != 0 && errno == EINTR);
    return rc != 0 ? eng_err_of_errno(errno) : GYRE_OK;
}
