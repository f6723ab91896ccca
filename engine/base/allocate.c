#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "engine/base/bits.h"
#include "engine/base/io.h"

static gyre_err set_size(int fd, uint64_t size)
{
    int rc;
    do
        rc = ftruncate(fd, (off_t)size);
    while (rc != 0 && errno == EINTR);
    return rc != 0 ? eng_err_of_errno(errno) : GYRE_OK;
}

/* Present size of the file, and the end of a span that a file can have. */
static gyre_err span_end(int fd, uint64_t off, uint64_t len, uint64_t *size_out, uint64_t *end_out)
{
    *end_out = 0;
    gyre_err err = eng_file_size(fd, size_out);
    if (err != GYRE_OK)
        return err;
    if (!eng_add_checked(off, len, end_out) || *end_out > (uint64_t)INT64_MAX)
        return GYRE_TOO_LARGE;
    return GYRE_OK;
}

gyre_err eng_allocate(int fd, uint64_t off, uint64_t len)
{
    uint64_t size;
    uint64_t end;
    gyre_err err = span_end(fd, off, len, &size, &end);
    if (err != GYRE_OK || len == 0)
        return err;

    int rc;
    do
        rc = fallocate(fd, 0, (off_t)off, (off_t)len);
    while (rc != 0 && errno == EINTR);
    if (rc == 0)
        return GYRE_OK;
    if (errno == EOPNOTSUPP || errno == ENOSYS)
        return eng_allocate_sparse(fd, off, len);

    /* Blocks were added up to the point where the disk was full; the first error is the one to
     * report. */
    int saved = errno;
    err = eng_err_of_errno(saved);
    if (end > size)
        (void)!set_size(fd, size);
    errno = saved;
    return err;
}

gyre_err eng_allocate_sparse(int fd, uint64_t off, uint64_t len)
{
    uint64_t size;
    uint64_t end;
    uint64_t free_bytes;
    uint64_t fs_bytes;
    gyre_err err;

    TRY(span_end(fd, off, len, &size, &end));
    if (end <= size)
        goto out;
    TRY(eng_fs_space(fd, &free_bytes, &fs_bytes));
    if (end - size > free_bytes)
        TRY(GYRE_DISK_FULL);
    TRY(set_size(fd, end));
out:
    return err;
}

gyre_err eng_fs_space(int fd, uint64_t *free_out, uint64_t *size_out)
{
    struct statvfs fs;
    int rc;
    *free_out = 0;
    *size_out = 0;
    do
        rc = fstatvfs(fd, &fs);
    while (rc != 0 && errno == EINTR);
    if (rc != 0)
        return eng_err_of_errno(errno);
    *free_out = (uint64_t)fs.f_bavail * fs.f_frsize;
    *size_out = (uint64_t)fs.f_blocks * fs.f_frsize;
    return GYRE_OK;
}
