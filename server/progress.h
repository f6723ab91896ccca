/* Progress of long start-up work, on stderr and only when that is a terminal.
 *
 * Threads: one at a time. Blocks: for as long as the terminal does. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct srv_progress {
    bool is_terminal_;
    bool is_shown_;
    int percent_;
    uint64_t begun_ms_;
};

/* Shows nothing yet. */
void srv_progress_init(struct srv_progress *progress);

/* Says that `done` of `total` is done of `what`; redraws at most once a percent, and nothing in the
 * first half second, which most work never outlasts. Fits gyre_options.progress, with a struct
 * srv_progress as `data`. */
void srv_progress_show(void *data, const char *what, uint64_t done, uint64_t total);

/* Clears the line. */
void srv_progress_fini(struct srv_progress *progress);
