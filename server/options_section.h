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

/* One section while it is read. */
struct srv_section {
    struct srv_options *options; /* flat options of the file are set */
    const json_t *value;
    const char *key;
    const struct srv_section_place *place;
    char *error_out;
};

/* Writes "FILE:LINE: SECTION.inner: text" in printf style and returns false; `inner`, the name of a
 * member at any depth, may be NULL. */
__attribute__((format(printf, 3, 4))) bool srv_section_error(const struct srv_section *section,
                                                             const char *inner, const char *format,
                                                             ...);

/* Writes into `where_out` what srv_section_error begins with. */
void srv_section_where(const struct srv_section *section, const char *inner, char *where_out,
                       size_t size);

/* The readers: false with a line in section->error_out. The releases leave their fields empty. */
#define X(key, read, fini)                  \
    bool read(struct srv_section *section); \
    void fini(struct srv_options *options);
#include "server/sections.def"
#undef X
