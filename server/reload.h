/* What takes part in a reload of the configuration: every part first looks at the new options, and
 * only when all agree do they take effect.
 *
 *   IDLE -> PREPARED [prepare] -> IDLE [commit | abandon]
 *
 * Threads: the main thread, while loops and workers run.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct srv_options;

struct srv_reload_part {
    void *data;
    /* Makes ready for `next`, which lives as long as the part serves by it: until the commit after
     * the next one. False with one line in `error_out`, and nothing made ready. */
    bool (*prepare)(void *data, const struct srv_options *next, char *error_out, size_t error_size);
    /* Exactly one of them follows a successful prepare. They cannot fail. */
    void (*commit)(void *data);
    void (*abandon)(void *data);
};

/* Prepares all parts, then commits all; false with one line in `error_out` when one refused, and
 * all is as before. */
bool srv_reload(const struct srv_reload_part *parts, size_t n_parts, const struct srv_options *next,
                char *error_out, size_t error_size);
