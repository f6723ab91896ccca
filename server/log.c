#include "server/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "server/http_date.h"

enum { LINE_MAX_BYTES = 1100 };

static const char *const level_names[] = {"error", "warn ", "info ", "debug"};

/* [a] Relaxed: a line too many or too few while it changes does no harm. */
static _Atomic int wanted = SRV_LOG_INFO;

void srv_log_set_level(enum srv_log_level level)
{
    atomic_store_explicit(&wanted, (int)level, memory_order_relaxed);
}

bool srv_log_wants(enum srv_log_level level)
{
    return (int)level <= atomic_load_explicit(&wanted, memory_order_relaxed);
}

/* One write for the whole line: the kernel keeps it in one piece on pipes and files opened for
 * appending. */
static void write_line(const char *line, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, line, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* nowhere left to complain */
        line += n;
        len -= (size_t)n;
    }
}

void srv_log(enum srv_log_level level, const char *format, ...)
{
    if (!srv_log_wants(level))
        return;
    int saved_errno = errno;
    char line[LINE_MAX_BYTES + 1];
    char when[SRV_ISO_DATE_LEN + 1];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    srv_iso_date_write((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, when);
    int head = snprintf(line, LINE_MAX_BYTES, "%s %s ", when, level_names[level]);
    va_list args;
    va_start(args, format);
    int text = vsnprintf(line + head, (size_t)(LINE_MAX_BYTES - head), format, args);
    va_end(args);
    int len = text < 0 ? head : head + text;
    if (len > LINE_MAX_BYTES - 1)
        len = LINE_MAX_BYTES - 1;
    for (int i = head; i < len; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = '?';
    line[len++] = '\n';
    write_line(line, (size_t)len);
    errno = saved_errno;
}
