#include "engine/base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/check.h"
#include "engine/base/io.h"

enum { UUID_CHARS = 36 };

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec ts;
    int rc = clock_gettime(clock, &ts);
    GYRE_CHECK(rc == 0);
    return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

uint64_t eng_clock_mono_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t eng_clock_real_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

uint32_t eng_clock_real_s(void)
{
    return (uint32_t)(clock_ns(CLOCK_REALTIME) / UINT64_C(1000000000));
}

gyre_err eng_random_bytes(void *buffer, size_t len)
{
    uint8_t *at = buffer;
    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno == EPERM ? GYRE_UNSUPPORTED : eng_err_of_errno(errno);
        at += got;
        len -= (size_t)got;
    }
    return GYRE_OK;
}

/* A value of /proc has no size and no positions worth the name, hence a plain read. */
gyre_err eng_boot_id(uint8_t id_out[16])
{
    char text[UUID_CHARS + 2] = {0};
    ssize_t got = -1;
    memset(id_out, 0, 16);
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        got = read(fd, text, sizeof text - 1);
    eng_close(&fd);
    if (got < UUID_CHARS)
        return GYRE_UNSUPPORTED;
    text[UUID_CHARS] = '\0'; /* in place of the end of line */
    return eng_uuid_parse(text, id_out) == GYRE_OK ? GYRE_OK : GYRE_UNSUPPORTED;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

gyre_err eng_uuid_parse(const char *text, uint8_t id_out[16])
{
    uint8_t id[16];
    size_t n = 0;
    memset(id_out, 0, 16);
    if (strlen(text) != UUID_CHARS)
        return GYRE_INVALID;
    for (size_t i = 0; i < UUID_CHARS;) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (text[i++] != '-')
                return GYRE_INVALID;
            continue;
        }
        int hi = hex_value(text[i++]);
        int lo = hex_value(text[i++]);
        if (hi < 0 || lo < 0)
            return GYRE_INVALID;
        id[n++] = (uint8_t)(hi << 4 | lo);
    }
    memcpy(id_out, id, 16);
    return GYRE_OK;
}
