/* The access log: loops put lines into rings of their own, a thread writes them out.
 *
 * Owns:    rings of 1 MiB for each loop, from the first time it is switched on; the file.
 * Threads: srv_access_log_add on the loop it names; srv_access_log_on on any; the others on the
 *          main thread.
 * Blocks:  srv_access_log_add never: without room in the ring a line is dropped, and counted.
 *          srv_access_log_destroy until what is left is written, at most two seconds.
 * Keeps:   lines are whole and in each loop's order; a file that is renamed and opened anew loses
 *          none.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/access_entry.h"

struct srv_access_log;

/* A log for `n_loops`, switched off. NULL without memory or descriptors. */
struct srv_access_log *srv_access_log_create(unsigned n_loops);
/* NULL is allowed. */
void srv_access_log_destroy(struct srv_access_log *log);

/* Opens `path` for appending ("-": standard output; NULL: none) to see whether that works. The
 * descriptor, -1 for none, goes to srv_access_log_set or is closed. False with one line in
 * `error_out`. */
bool srv_access_log_open(const char *path, int *fd_out, char *error_out, size_t error_size);

/* Writes to `fd`, which becomes the log's, from now on; -1 switches off. False, and `fd` is closed,
 * when rings or the thread cannot be had. */
bool srv_access_log_set(struct srv_access_log *log, const char *path, int fd,
                        enum srv_access_format format);

/* Opens the file by its name again, after it was renamed; on failure goes on with the old one. */
void srv_access_log_reopen(struct srv_access_log *log);

bool srv_access_log_on(const struct srv_access_log *log);

/* Adds a line for a request that has ended. */
void srv_access_log_add(struct srv_access_log *log, unsigned loop,
                        const struct srv_access_entry *entry);

/* Lines written and lines dropped since create. */
void srv_access_log_count(const struct srv_access_log *log, uint64_t *written_out,
                          uint64_t *dropped_out);
