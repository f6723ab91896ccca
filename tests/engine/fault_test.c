/* Files that are cut short under their mapping: reads give zeros and are known for it. */
#include "engine/fault.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/test.h"

enum { PAGE = 4096, PAGES = 64, SKIP = 2 /* pages of the file before the mapping */ };

static _Atomic int n_hooks;

static void hook(void)
{
    n_hooks++;
}

static int make_file(void)
{
    static char bytes[(PAGES + SKIP) * PAGE];
    int fd = open(test_path("mapped"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    memset(bytes, 7, sizeof bytes);
    CHECK(fd != -1 && write(fd, bytes, sizeof bytes) == sizeof bytes);
    return fd;
}

static const uint8_t *map(int fd)
{
    void *base = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, fd, SKIP * PAGE);
    CHECK(base != MAP_FAILED);
    return base;
}

static unsigned sum(const volatile uint8_t *at, size_t len)
{
    unsigned n = 0;
    for (size_t i = 0; i < len; i++)
        n += at[i];
    return n;
}

TEST(behind_the_end_of_a_file_are_zeros_and_a_hole)
{
    int fd = make_file();
    const uint8_t *base = map(fd);
    CHECK(eng_fault_guard(hook));
    eng_fault_watch(base, PAGES * PAGE, fd, SKIP * PAGE);
    CHECK(!eng_fault_hit(base, PAGES * PAGE));
    CHECK(ftruncate(fd, (SKIP + 10) * PAGE + 100) == 0);
    CHECK_EQ_INT(sum(base, PAGE), 7 * PAGE);
    CHECK(!eng_fault_hit(base, PAGES * PAGE));
    CHECK_EQ_INT(sum(base + 20 * PAGE, 1), 0);
    CHECK_EQ_INT(n_hooks, 1);
    CHECK_EQ_U64(eng_fault_count(), 1);
    CHECK(eng_fault_hit(base, PAGES * PAGE));
    CHECK(eng_fault_hit(base + 20 * PAGE, 1) && eng_fault_hit(base + 63 * PAGE, 1));
    CHECK(eng_fault_hit(base + 20 * PAGE - 1, 2));
    CHECK(!eng_fault_hit(base + 20 * PAGE - 1, 1));
    /* One hole to the end; what lies before it is found when it is read. */
    CHECK_EQ_INT(sum(base + 20 * PAGE, 44 * PAGE), 0);
    CHECK_EQ_INT(n_hooks, 1);
    CHECK_EQ_INT(sum(base + 15 * PAGE, 1), 0);
    CHECK_EQ_INT(n_hooks, 2);
    CHECK_EQ_INT(sum(base + 9 * PAGE, PAGE), 7 * PAGE);
    CHECK_EQ_INT(sum(base + 10 * PAGE, PAGE), 700);
    CHECK(!eng_fault_hit(base, 11 * PAGE));
    eng_fault_unwatch(base);
    munmap((void *)(uintptr_t)base, PAGES * PAGE);
    /* Another mapping at the same addresses begins without holes. */
    CHECK(ftruncate(fd, (SKIP + PAGES) * PAGE) == 0);
    void *again = mmap((void *)(uintptr_t)base, PAGES * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd,
                       SKIP * PAGE);
    CHECK(again == base);
    eng_fault_watch(base, PAGES * PAGE, fd, SKIP * PAGE);
    CHECK(!eng_fault_hit(base, PAGES * PAGE));
    eng_fault_unwatch(base);
    close(fd);
}

TEST(more_holes_than_are_kept_make_all_of_the_mapping_one)
{
    enum { MANY = 1100 };
    int fd = open(test_path("big"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd != -1 && ftruncate(fd, MANY * PAGE) == 0);
    uint8_t *base = mmap(NULL, MANY * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(base != MAP_FAILED && eng_fault_guard(NULL));
    eng_fault_watch(base, MANY * PAGE, fd, 0);
    CHECK(ftruncate(fd, PAGE) == 0);
    for (int i = MANY - 1; i > 0; i--)
        CHECK_EQ_INT(sum(base + i * PAGE, 1), 0);
    CHECK_EQ_U64(eng_fault_count(), MANY - 1);
    CHECK(eng_fault_hit(base, 1));
    eng_fault_unwatch(base);
    close(fd);
}

TEST(faults_of_others_end_the_process_as_before)
{
    int fd = make_file();
    const uint8_t *base = map(fd), *other = map(fd);
    CHECK(eng_fault_guard(NULL));
    eng_fault_watch(base, PAGES * PAGE, fd, SKIP * PAGE);
    CHECK(ftruncate(fd, 0) == 0);
    CHECK_EQ_INT(sum(base, 1), 0);
    pid_t child = test_fork();
    if (child == 0) {
        close(STDERR_FILENO);
        _exit((int)sum(other, 1));
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
    close(fd);
}

/* ---- Many readers ---- */

static const uint8_t *shared;

static void *read_all(void *arg)
{
    (void)arg;
    for (int i = 0; i < PAGES; i++) {
        unsigned got = sum(shared + i * PAGE, 1);
        CHECK(got == 7 || eng_fault_hit(shared + i * PAGE, 1));
    }
    return NULL;
}

TEST(whoever_reads_zeros_finds_the_hole)
{
    pthread_t threads[4];
    int fd = make_file();
    shared = map(fd);
    CHECK(eng_fault_guard(hook));
    eng_fault_watch(shared, PAGES * PAGE, fd, SKIP * PAGE);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, read_all, NULL) == 0);
    CHECK(ftruncate(fd, (SKIP + 5) * PAGE) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    eng_fault_unwatch(shared);
    close(fd);
}
