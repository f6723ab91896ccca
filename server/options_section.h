/* Structured sections of the configuration file: what flat options cannot say, such as a table of
 * buckets. One line of sections.def, a reader and a release make one.
 *
 * Owns:    readers put copies into struct srv_options; their release frees them.
 * Lends:   the JSON value lives until the reader returns.
 * Threads: one at a time. Blocks: never.
 */
#pragma once

#include <jansson.h>

#include "server/options.h"

struct srv_section_place; /* the file's: which file, and where in it */

enum { SRV_SECTION_DEPTH = 4 };

/* One section while it is read. */
struct srv_section {
    struct srv_options *options; /* flat options of the file are set */
    const json_t *value;
    const char *key;
    const char *path[SRV_SECTION_DEPTH]; /* the members that lead to what is read just now */
    size_t depth;
    const struct srv_section_place *place;
    char *error_out;
};

/* Goes on into the member `key`, which messages name from now on, and back again. After a message
 * nobody needs to find the way back. */
void srv_section_enter(struct srv_section *section, const char *key);
void srv_section_leave(struct srv_section *section);

/* Writes "FILE:LINE: SECTION.member.member: text" in printf style and returns false. */
__attribute__((format(printf, 2, 3))) bool srv_section_error(const struct srv_section *section,
                                                             const char *format, ...);

/* The same for a member that `what` does not have: names the nearest of those that it has. */
bool srv_section_unknown(const struct srv_section *section, const char *what,
                         const char *const *keys, size_t n_keys);

/* Writes into `where_out` what srv_section_error begins with. */
void srv_section_where(const struct srv_section *section, char *where_out, size_t size);

/* The readers: false with a line in section->error_out. The releases leave their fields empty. */
#define X(key, read, fini)                  \
    bool read(struct srv_section *section); \
    void fini(struct srv_options *options);
#include "server/sections.def"
#undef X
