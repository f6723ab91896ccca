/* Which of several names somebody most likely meant.
 *
 * Threads: any. Blocks: srv_nearest_file reads a directory. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* How many letters have to be inserted, dropped, changed or swapped with their neighbour to turn
 * `a` into `b`, without regard to case. Texts beyond 63 bytes are compared by their first 63. */
size_t srv_edit_distance(const char *a, const char *b);

/* The name closest to `text`, or NULL when none is so close that it would be a sensible guess. The
 * first of equals wins. */
const char *srv_nearest(const char *text, const char *const *names, size_t n_names);

/* Writes the path of the file whose name is closest to that of the missing `path` in the same
 * directory; returns false, and an empty text, when there is no sensible guess. */
bool srv_nearest_file(const char *path, char *path_out, size_t size);
