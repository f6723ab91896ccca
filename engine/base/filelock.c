#include "engine/base/filelock.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "engine/base/io.h"

static struct flock one_byte(uint64_t off, short type)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)off, .l_len = 1};
}

static short type_of(enum eng_filelock_kind kind)
{
    return kind == ENG_FILELOCK_EXCLUSIVE ? F_WRLCK : F_RDLCK;
}

gyre_err eng_filelock_try(int fd, uint64_t off, enum eng_filelock_kind kind)
{
    struct flock lock = one_byte(off, type_of(kind));
    int rc;
    do
        rc = fcntl(fd, F_SETLK, &lock);
    while (rc != 0 && errno == EINTR);
    if (rc == 0)
        return GYRE_OK;
    if (errno == EACCES || errno == EAGAIN) /* POSIX allows either for "somebody has it" */
        return GYRE_LOCKED;
    return errno == ENOLCK ? GYRE_UNSUPPORTED : eng_err_of_errno(errno);
}

/* Giving back one whole byte cannot fail on an open descriptor. */
void eng_filelock_drop(int fd, uint64_t off)
{
    struct flock lock = one_byte(off, F_UNLCK);
    int saved = errno;
    (void)fcntl(fd, F_SETLK, &lock);
    errno = saved;
}

gyre_err eng_filelock_probe(int fd, uint64_t off, bool *held_out, pid_t *pid_out)
{
    return eng_filelock_probe_range(fd, off, 1, held_out, pid_out);
}

gyre_err eng_filelock_probe_range(int fd, uint64_t off, uint64_t len, bool *held_out,
                                  pid_t *pid_out)
{
    struct flock lock = one_byte(off, F_WRLCK);
    lock.l_len = (off_t)len;
    *held_out = false;
    *pid_out = 0;
    if (fcntl(fd, F_GETLK, &lock) != 0)
        return errno == ENOLCK ? GYRE_UNSUPPORTED : eng_err_of_errno(errno);
    *held_out = lock.l_type != F_UNLCK;
    *pid_out = *held_out && lock.l_pid > 0 ? lock.l_pid : 0;
    return GYRE_OK;
}
