/* A map of the pages of a stretch of log, one bit each, for telling which of them nobody needs.
 *
 * Threads: one. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "engine/format.h"

#define ENG_PAGES_MAX (ENG_MAX_SEGMENT / ENG_PAGE)

struct eng_pages {
    uint64_t first; /* unit where page 0 begins; on a page boundary */
    uint64_t n;     /* pages */
    uint64_t busy[ENG_PAGES_MAX / 64];
};

/* Covers [start, end) units, whole pages of one segment, with all pages free. */
static inline void eng_pages_init(struct eng_pages *pages, uint64_t start, uint64_t end)
{
    pages->first = start;
    pages->n = (end - start) / (ENG_PAGE / ENG_UNIT);
    memset(pages->busy, 0, (pages->n + 63) / 64 * sizeof pages->busy[0]);
}

static inline bool eng_pages_busy(const struct eng_pages *pages, uint64_t page)
{
    return (pages->busy[page / 64] >> page % 64 & 1) != 0;
}

/* Marks every page that [start, end) units touch; what lies outside is left out. Returns how many
 * were not marked before. */
static inline uint64_t eng_pages_mark(struct eng_pages *pages, uint64_t start, uint64_t end)
{
    const uint64_t page_units = ENG_PAGE / ENG_UNIT;
    uint64_t limit = pages->first + pages->n * page_units;
    uint64_t fresh = 0;
    start = start < pages->first ? pages->first : start;
    end = end > limit ? limit : end;
    for (; start < end; start = (start / page_units + 1) * page_units) {
        uint64_t page = (start - pages->first) / page_units;
        fresh += !eng_pages_busy(pages, page);
        pages->busy[page / 64] |= UINT64_C(1) << page % 64;
    }
    return fresh;
}
