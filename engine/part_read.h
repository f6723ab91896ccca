/* Reading a PART that is still being written, or just was: for whoever wants an object's bytes
 * before it is published.
 *
 * Lends:   what eng_part_look shows, until the part is written to again, or ended.
 * Threads: as the part: one at a time. Blocks: never. Allocates: nothing.
 */
#pragma once

#include "engine/writer.h"

/* Bytes of a part: in its data file, or still in memory. */
struct eng_part_bytes {
    const uint8_t *memory; /* NULL: in the file */
    int fd;
    uint64_t file_off, len;
};

/* The bytes from body offset `off` on, below body_len, as far as they lie together. */
void eng_part_look(const struct eng_part *part, uint64_t off, struct eng_part_bytes *bytes_out);
/* Pins the extent of a part that is not published yet: its bytes stay whatever becomes of it, until
 * eng_pin_release. BUSY. */
GYRE_MUST_USE gyre_err eng_part_pin(const struct eng_part *part, uint32_t *pin_out);
