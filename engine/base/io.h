/* File calls that finish what they begin and answer with gyre_err.
 *
 * Interrupted and short calls are continued. `errno` is left as the system set it, so a message can
 * still quote it. Descriptors opened here are never those of the standard streams, closed or not.
 *
 * Owns:    descriptors returned belong to the caller, who closes them with eng_close.
 * Threads: any. Blocks: for the disk. Allocates: nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "engine/base/gyre_err.h"

/* The error for an errno value, never GYRE_OK:
 *
 *     DISK_FULL    ENOSPC EDQUOT EFBIG
 *     ACCESS       EACCES EPERM EROFS
 *     NO_FILES     EMFILE ENFILE
 *     NO_MEMORY    ENOMEM
 *     NO_STORE     ENOENT
 *     EXISTS       EEXIST
 *     BUSY         EAGAIN EBUSY ETXTBSY
 *     UNSUPPORTED  ENOSYS EOPNOTSUPP
 *     INVALID      EINVAL ELOOP ENOTDIR EISDIR ENAMETOOLONG ENXIO ESPIPE
 *     IO           EIO and all others
 */
GYRE_MUST_USE gyre_err eng_err_of_errno(int errno_value);

/* Writes all pieces at `off`. On an error any part of them may have been written. DISK_FULL, IO and
 * as eng_err_of_errno. */
GYRE_MUST_USE gyre_err eng_pwritev(int fd, const struct iovec *pieces, size_t n_pieces,
                                   uint64_t off);
GYRE_MUST_USE gyre_err eng_pwrite(int fd, const void *bytes, size_t len, uint64_t off);

/* Fills all pieces from `off` on. OK with *read_out below their sum only where the file ends. IO
 * and as eng_err_of_errno. */
GYRE_MUST_USE gyre_err eng_preadv(int fd, const struct iovec *pieces, size_t n_pieces, uint64_t off,
                                  size_t *read_out);

/* Fills `buffer`, or DAMAGED if the file ends before. IO and as eng_err_of_errno. */
GYRE_MUST_USE gyre_err eng_pread(int fd, void *buffer, size_t len, uint64_t off);

/* Opens a regular file below `dirfd` (or AT_FDCWD) with O_CLOEXEC; `flags` as for open, `mode` used
 * with O_CREAT. INVALID for a symbolic link or anything else that is not a regular file; NO_STORE
 * if absent; EXISTS with O_EXCL; ACCESS, NO_FILES, DISK_FULL, IO. *fd_out is -1 unless OK. Never
 * hangs on a FIFO. */
GYRE_MUST_USE gyre_err eng_open_regular(int dirfd, const char *name, int flags, mode_t mode,
                                        int *fd_out);

/* Opens a directory for the *at calls and eng_sync_dir. INVALID if it is none; NO_STORE if absent.
 * *fd_out is -1 unless OK. */
GYRE_MUST_USE gyre_err eng_open_dir(int dirfd, const char *name, int *fd_out);

/* Closes *fd and sets it to -1; -1 is allowed. What must be durable was synced before, so there is
 * no result to look at. */
void eng_close(int *fd);

/* Bytes in the file. */
GYRE_MUST_USE gyre_err eng_file_size(int fd, uint64_t *size_out);

/* Makes the file's bytes and length durable. After IO the kernel may have dropped dirty pages: a
 * later OK does not cover them. */
GYRE_MUST_USE gyre_err eng_sync_data(int fd);

/* Makes names created, renamed or removed in a directory durable. */
GYRE_MUST_USE gyre_err eng_sync_dir(int dirfd);

/* Gives [off, off+len) real blocks that read as zero where nothing was written, and grows the file
 * to hold it; bytes already there stay. On a file system without that call the file is grown sparse
 * after a look at the free space. DISK_FULL: the file has its old size. TOO_LARGE past 2^63; IO and
 * as eng_err_of_errno. */
GYRE_MUST_USE gyre_err eng_allocate(int fd, uint64_t off, uint64_t len);

/* The second way of eng_allocate by itself: needs room for the bytes past the present end, reserves
 * nothing. */
GYRE_MUST_USE gyre_err eng_allocate_sparse(int fd, uint64_t off, uint64_t len);

/* Bytes an unprivileged process may still write to the file system that holds `fd`, and its size.
 */
GYRE_MUST_USE gyre_err eng_fs_space(int fd, uint64_t *free_out, uint64_t *size_out);
