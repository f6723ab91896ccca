/* The server's log: one line on stderr for each entry, with time, level and text.
 *
 * Threads: any; lines of different threads never mix.
 * Blocks:  for as long as stderr does. Loop threads log rare events only, never once a request.
 * Allocates: nothing; a text beyond about 1000 bytes is cut.
 *
 * Controls in a text are shown as '?', so that what a client sent cannot forge lines. Bodies,
 * credentials and keys of TLS are never logged.
 */
#pragma once

#include <stdbool.h>

enum srv_log_level {
    SRV_LOG_ERROR, /* the server, or a part of it, does not do its work */
    SRV_LOG_WARN,  /* it does, but somebody should know */
    SRV_LOG_INFO,  /* start, stop and the like */
    SRV_LOG_DEBUG, /* for those who look for something */
};

/* Entries above `level` are dropped from now on; SRV_LOG_INFO at start. */
void srv_log_set_level(enum srv_log_level level);

/* Whether entries of that level are written. */
bool srv_log_wants(enum srv_log_level level);

/* Writes one entry, printf style. errno is left as it was. */
__attribute__((format(printf, 2, 3))) void srv_log(enum srv_log_level level, const char *format,
                                                   ...);
