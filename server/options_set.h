/* The table of options and how one of them takes a value; shared by what reads the command line,
 * the file and what prints the help.
 *
 * Threads: one thread. Blocks: looks for the files that are named. Allocates: copies of strings.
 */
#pragma once

#include "server/options.h"

enum srv_option_kind {
    SRV_OPTION_FLAG,
    SRV_OPTION_TEXT,
    SRV_OPTION_FILE,   /* must be readable */
    SRV_OPTION_OUTPUT, /* a file to write to, - or off */
    SRV_OPTION_LISTEN,
    SRV_OPTION_DOMAIN,
    SRV_OPTION_ALIAS,
    SRV_OPTION_ORIGIN, /* of another server */
    SRV_OPTION_ADMIN,
    SRV_OPTION_DATA,
    SRV_OPTION_SIZE,
    SRV_OPTION_DURATION,
    SRV_OPTION_COUNT,
    SRV_OPTION_THREADS,
    SRV_OPTION_ETAG,
    SRV_OPTION_LEVEL,
    SRV_OPTION_FORMAT,
};

/* Where an option may stand. */
enum {
    SRV_IN_SERVE = 1 << SRV_COMMAND_SERVE,
    SRV_IN_STAT = 1 << SRV_COMMAND_STAT,
    SRV_IN_CHECK = 1 << SRV_COMMAND_CHECK,
    SRV_IN_VERIFY = 1 << SRV_COMMAND_VERIFY,
    SRV_IN_FILE = 1 << 6,
    SRV_IN_RELOAD = 1 << 7, /* takes effect while the server runs */
};

/* One line of options.def. */
struct srv_option {
    const char *name;
    enum srv_option_kind kind;
    const char *argument;
    const char *shown_default;
    unsigned places;
    const char *help;
    size_t field; /* offset in struct srv_options */
};

enum {
#define X(field, name, kind, argument, shown_default, places, help) SRV_OPTION_INDEX_##field,
#include "server/options.def"
#undef X
    SRV_OPTION_COUNT_ALL
};

extern const struct srv_option srv_option_table[SRV_OPTION_COUNT_ALL];

/* Whether the option may be given more than once: in the file, as a list. */
bool srv_option_is_list(const struct srv_option *option);

/* The option called `name`, without dashes, that may stand in one of `places`; NULL if there is
 * none. */
const struct srv_option *srv_option_find(const char *name, unsigned places);

/* The name closest to `name` among those that may stand in `places`; NULL without a sensible guess.
 */
const char *srv_option_nearest(const char *name, unsigned places);

/* Gives `option` the value `text`; lists grow by one. False with a line that begins with `where` in
 * `error_out`. */
bool srv_option_set(struct srv_options *options, const struct srv_option *option, const char *text,
                    const char *where, char error_out[SRV_OPTIONS_ERROR_MAX]);

/* Whether both have the same value for the option. */
bool srv_option_is_same(const struct srv_option *option, const struct srv_options *a,
                        const struct srv_options *b);

/* The ETag kind called `text`; false with a line in `error_out`. */
bool srv_option_etag(const char *text, const char *where, uint64_t *etag_out,
                     char error_out[SRV_OPTIONS_ERROR_MAX]);

/* Writes "where: text" in printf style and returns false. */
__attribute__((format(printf, 3, 4))) bool srv_option_error(char error_out[SRV_OPTIONS_ERROR_MAX],
                                                            const char *where, const char *format,
                                                            ...);
