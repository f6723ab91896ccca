/* Clocks, random bytes, boot identity. */
#include "engine/base/sys.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/bits.h"
#include "tests/harness/test.h"

static int failing_errno; /* the next call for random bytes fails so, once if it is EINTR */

/* Stands in for the C library's in this program: never gives more than 300 bytes at a time. */
ssize_t getrandom(void *buffer, size_t len, unsigned flags)
{
    if (failing_errno != 0) {
        errno = failing_errno;
        failing_errno = errno == EINTR ? 0 : failing_errno;
        return -1;
    }
    return syscall(SYS_getrandom, buffer, len < 300 ? len : 300, flags);
}

TEST(clocks)
{
    uint64_t before = eng_clock_mono_ns();
    CHECK(before > 0);
    for (int i = 0; i < 1000; i++) {
        uint64_t now = eng_clock_mono_ns();
        CHECK(now >= before);
        before = now;
    }
    uint64_t seconds = eng_clock_real_ns() / 1000000000;
    CHECK(seconds + 2 >= (uint64_t)time(NULL) && seconds <= (uint64_t)time(NULL) + 2);
    CHECK(eng_clock_real_s() - (uint32_t)seconds <= 2);
}

TEST(random_bytes_fill_the_whole_buffer)
{
    enum { BYTES = 100000 };
    uint8_t *bytes = calloc(1, BYTES);
    CHECK(bytes != NULL);
    CHECK_OK(eng_random_bytes(bytes, BYTES - 1));
    CHECK_EQ_INT(bytes[BYTES - 1], 0);
    unsigned ones = 0;
    for (size_t at = 0; at + 8 <= BYTES; at += 8)
        ones += (unsigned)__builtin_popcountll(eng_load_u64(bytes + at));
    CHECK(ones > BYTES * 4 - 20000 && ones < BYTES * 4 + 20000);
    CHECK_OK(eng_random_bytes(bytes, 0));
    free(bytes);
}

TEST(random_bytes_that_cannot_be_had_are_an_error)
{
    uint8_t bytes[8] = {0};
    failing_errno = EINTR;
    CHECK_OK(eng_random_bytes(bytes, sizeof bytes));
    failing_errno = ENOSYS;
    CHECK_ERR(eng_random_bytes(bytes, sizeof bytes), GYRE_UNSUPPORTED);
    failing_errno = EPERM;
    CHECK_ERR(eng_random_bytes(bytes, sizeof bytes), GYRE_UNSUPPORTED);
}

TEST(boot_id_is_the_same_each_time)
{
    uint8_t a[16];
    uint8_t b[16];
    static const uint8_t zero[16];
    CHECK_OK(eng_boot_id(a));
    CHECK_OK(eng_boot_id(b));
    CHECK_EQ_MEM(a, b, 16);
    CHECK(memcmp(a, zero, 16) != 0);
}

TEST(uuid_text)
{
    static const uint8_t want[16] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                                     0xFE, 0xDC, 0xBA, 0x98, 0x76, 0x54, 0x32, 0x10};
    uint8_t id[16];
    CHECK_OK(eng_uuid_parse("01234567-89ab-cdef-FEDC-BA9876543210", id));
    CHECK_EQ_MEM(id, want, 16);
    static const char *const bad[] = {
        "",
        "01234567-89ab-cdef-FEDC-BA987654321",
        "01234567-89ab-cdef-FEDC-BA98765432100",
        "01234567-89ab-cdef-FEDC-BA987654321g",
        "0123456789-ab-cdef-FEDC-BA9876543210",
        "01234567-89ab-cdefF-EDC-BA9876543210",
    };
    for (size_t i = 0; i < GYRE_ARRAY_LEN(bad); i++)
        CHECK_ERR(eng_uuid_parse(bad[i], id), GYRE_INVALID);
}
