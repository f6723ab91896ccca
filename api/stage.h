/* Staging: bytes of a streamed object that wait until there are enough of them to write.
 *
 * Up to 64 KiB come from the heap and grow; beyond that a stage is a 1 MiB buffer of a bounded list
 * of the process, because many slow uploads at once must not take memory without limit.
 *
 * Owns:    its bytes. Threads: one at a time. Blocks: never. Allocates: yes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/gyre_err.h"

#define API_STAGE_SMALL (64u << 10)
#define API_STAGE_BIG (1u << 20)
#define API_STAGE_BIG_MAX 64u  /* big buffers in use by all puts of the process */
#define API_STAGE_BIG_KEPT 16u /* unused ones kept */

struct api_stage {
    uint8_t *bytes;
    size_t capacity, filled;
    bool big;
};

/* Makes room for `want` more bytes, or for at least one: filled < capacity afterwards, unless all
 * big buffers are in use, which is no error. NO_MEMORY. */
GYRE_MUST_USE gyre_err api_stage_grow(struct api_stage *stage, size_t want);
/* Drops the first `len` bytes. */
void api_stage_consume(struct api_stage *stage, size_t len);
void api_stage_fini(struct api_stage *stage);

/* The list of big buffers, kept whole over a fork. */
void api_stage_lock(void);
void api_stage_unlock(void);
