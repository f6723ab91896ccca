#include "server/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 500 };

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void srv_progress_init(struct srv_progress *progress)
{
    *progress = (struct srv_progress){
        .is_terminal_ = isatty(STDERR_FILENO) == 1, .percent_ = -1, .begun_ms_ = now_ms()};
}

void srv_progress_show(void *data, const char *what, uint64_t done, uint64_t total)
{
    struct srv_progress *progress = data;
    if (!progress->is_terminal_ || total == 0 || now_ms() - progress->begun_ms_ < PATIENCE_MS)
        return;
    int percent = done >= total ? 100 : (int)((double)done * 100 / (double)total);
    if (percent == progress->percent_)
        return;
    progress->percent_ = percent;
    progress->is_shown_ = true;
    fprintf(stderr, "\r\033[K%s: %d %%", what, percent);
    fflush(stderr);
}

void srv_progress_fini(struct srv_progress *progress)
{
    if (!progress->is_shown_)
        return;
    progress->is_shown_ = false;
    fprintf(stderr, "\r\033[K");
    fflush(stderr);
}
