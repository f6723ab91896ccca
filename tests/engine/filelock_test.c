/* Byte locks between processes, and that they end with their holder. */
#include "engine/base/filelock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/io.h"
#include "tests/harness/test.h"

static int lock_file(void)
{
    int fd;
    CHECK_OK(eng_open_regular(AT_FDCWD, test_path("lock"), O_RDWR | O_CREAT, 0600, &fd));
    return fd;
}

/* A process that holds byte `off` until it is killed. */
static pid_t holder(int fd, uint64_t off, enum eng_filelock_kind kind)
{
    int ready[2];
    char byte = 0;
    CHECK(pipe(ready) == 0);
    pid_t pid = test_fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
        byte = eng_filelock_try(fd, off, kind) == GYRE_OK ? 'y' : 'n';
        if (write(ready[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    CHECK_EQ_INT(byte, 'y');
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void end(pid_t pid)
{
    CHECK(kill(pid, SIGKILL) == 0);
    CHECK(waitpid(pid, NULL, 0) == pid);
}

TEST(an_exclusive_byte_is_refused_and_its_holder_named)
{
    int fd = lock_file();
    bool held;
    pid_t owner;
    pid_t pid = holder(fd, 7, ENG_FILELOCK_EXCLUSIVE);
    CHECK_ERR(eng_filelock_try(fd, 7, ENG_FILELOCK_EXCLUSIVE), GYRE_LOCKED);
    CHECK_ERR(eng_filelock_try(fd, 7, ENG_FILELOCK_SHARED), GYRE_LOCKED);
    CHECK_OK(eng_filelock_try(fd, 8, ENG_FILELOCK_EXCLUSIVE));
    CHECK_OK(eng_filelock_probe(fd, 7, &held, &owner));
    CHECK(held);
    CHECK_EQ_INT(owner, pid);
    CHECK_OK(eng_filelock_probe(fd, 6, &held, &owner));
    CHECK(!held && owner == 0);
    end(pid);
    CHECK_OK(eng_filelock_probe(fd, 7, &held, &owner));
    CHECK(!held && owner == 0);
    CHECK_OK(eng_filelock_try(fd, 7, ENG_FILELOCK_EXCLUSIVE));
    eng_close(&fd);
}

TEST(shared_bytes_are_shared)
{
    int fd = lock_file();
    bool held;
    pid_t owner;
    pid_t pid = holder(fd, 0, ENG_FILELOCK_SHARED);
    CHECK_OK(eng_filelock_try(fd, 0, ENG_FILELOCK_SHARED));
    CHECK_ERR(eng_filelock_try(fd, 0, ENG_FILELOCK_EXCLUSIVE), GYRE_LOCKED);
    CHECK_OK(eng_filelock_probe(fd, 0, &held, &owner));
    CHECK(held && owner == pid);
    end(pid);
    CHECK_OK(eng_filelock_try(fd, 0, ENG_FILELOCK_EXCLUSIVE));
    eng_close(&fd);
}

TEST(dropping_gives_the_byte_back)
{
    int fd = lock_file();
    CHECK_OK(eng_filelock_try(fd, 3, ENG_FILELOCK_EXCLUSIVE));
    eng_filelock_drop(fd, 3);
    eng_filelock_drop(fd, 3);
    end(holder(fd, 3, ENG_FILELOCK_EXCLUSIVE));
    eng_close(&fd);
}

TEST(own_locks_are_not_in_the_way_and_not_inherited)
{
    int fd = lock_file();
    bool held;
    pid_t owner;
    CHECK_OK(eng_filelock_try(fd, 1, ENG_FILELOCK_EXCLUSIVE));
    CHECK_OK(eng_filelock_try(fd, 1, ENG_FILELOCK_EXCLUSIVE));
    CHECK_OK(eng_filelock_probe(fd, 1, &held, &owner));
    CHECK(!held);
    pid_t pid = test_fork();
    if (pid == 0)
        _exit(eng_filelock_try(fd, 1, ENG_FILELOCK_SHARED) == GYRE_LOCKED ? 0 : 1);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_EQ_INT(status, 0);
    eng_close(&fd);
}

TEST(a_bad_descriptor_is_an_error)
{
    bool held = true;
    pid_t owner = 1;
    CHECK_ERR(eng_filelock_try(-1, 0, ENG_FILELOCK_SHARED), GYRE_IO);
    CHECK_ERR(eng_filelock_probe(-1, 0, &held, &owner), GYRE_IO);
    CHECK(!held && owner == 0);
}
