/* Reads that io_uring does, and what happens where it may not be used. */
#include "api/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/api/fixture.h"

enum { LEN = 3 << 20 };

static _Atomic int n_done;

static void count(void *data)
{
    CHECK(data == &n_done);
    n_done++;
}

static int make_cold_file(void)
{
    char *bytes = malloc(LEN);
    int fd = open(test_path("cold"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    memset(bytes, 1, LEN);
    CHECK(fd != -1 && write(fd, bytes, LEN) == LEN && fdatasync(fd) == 0);
    free(bytes);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return fd;
}

static size_t pages_present(int fd)
{
    static unsigned char present[LEN / 4096];
    size_t n = 0;
    void *at = mmap(NULL, LEN, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(at != MAP_FAILED && mincore(at, LEN, present) == 0);
    for (size_t i = 0; i < sizeof present; i++)
        n += present[i] & 1;
    munmap(at, LEN);
    return n;
}

static void wait_for(int n)
{
    for (int i = 0; i < 30000 && n_done < n; i++)
        usleep(1000);
    CHECK_EQ_INT(n_done, n);
}

TEST(reads_bring_all_of_their_spans_into_memory)
{
    struct api_ring *ring = api_ring_create();
    if (ring == NULL)
        test_skip("no io_uring here");
    int fd = make_cold_file();
    const struct api_span spans[] = {{fd, 0, 1 << 20}, {fd, (2 << 20) - 5, (1 << 20) + 5}};
    CHECK(api_ring_read(ring, spans, 2, count, &n_done));
    wait_for(1);
    CHECK(pages_present(fd) >= (2 << 20) / 4096);
    /* What cannot be read is done, too. */
    const struct api_span behind = {fd, LEN, 100}, closed = {-1, 0, 100}, nothing = {fd, 0, 0};
    CHECK(api_ring_read(ring, &behind, 1, count, &n_done));
    CHECK(api_ring_read(ring, &closed, 1, count, &n_done));
    wait_for(3);
    CHECK(!api_ring_read(ring, &nothing, 1, count, &n_done));
    const struct api_span huge = {fd, 0, (uint64_t)1 << 40};
    CHECK(!api_ring_read(ring, &huge, 1, count, &n_done));
    api_ring_destroy(ring);
    close(fd);
}

TEST(more_than_there_is_room_for_is_refused_and_nothing_is_lost)
{
    struct api_ring *ring = api_ring_create();
    if (ring == NULL)
        test_skip("no io_uring here");
    int fd = make_cold_file(), n = 0;
    for (int i = 0; i < 2000; i++) {
        const struct api_span span = {fd, (uint64_t)(i % 3) << 20, 1 << 20};
        n += api_ring_read(ring, &span, 1, count, &n_done);
    }
    wait_for(n);
    CHECK(n > 0);
    api_ring_destroy(ring);
    close(fd);
}

/* Has io_uring_setup answered with EPERM, as containers do. */
static void forbid_io_uring(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static _Atomic int result = -1;

static void populated(void *data, gyre_err err)
{
    (void)data;
    result = (int)err;
}

TEST(without_io_uring_populating_goes_on)
{
    enum { BODY = 1 << 20 };
    struct gyre_store *store = open_store();
    struct gyre_handle *handle;
    struct gyre_key key = key_of(1);
    forbid_io_uring();
    CHECK(api_ring_create() == NULL);
    put_pattern(store, 1, 1, BODY);
    CHECK_OK(gyre_get(store, &key, 0, GYRE_GET_LAZY, &handle));
    CHECK_OK(gyre_populate_async(handle, 0, BODY, populated, NULL));
    for (int i = 0; i < 30000 && result == -1; i++)
        usleep(1000);
    CHECK_EQ_INT(result, GYRE_OK);
    CHECK(gyre_resident(handle, 0, BODY));
    gyre_release(handle);
    check_object(store, 1, 1, BODY);
    close_store(store);
}
