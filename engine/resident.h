/* Which pages of a mapping are in memory, found out without touching them.
 *
 * mincore looks into the page cache, whether a page is mapped here or not: touching what it finds
 * costs a minor fault at most. One call for 4 KiB costs about as much as preadv2(RWF_NOWAIT) of one
 * byte, needs no buffer, and answers for many pages at once. What was seen to be there is believed
 * for up to two seconds.
 *
 * Threads: any. Blocks: never. Allocates: nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Enough for the documents that are read without waiting. */
#define ENG_PROBE_PAGES 64

/* What one look showed. */
struct eng_probe {
    uintptr_t start; /* first page */
    size_t n_pages;
    unsigned char present[ENG_PROBE_PAGES];
};

/* Looks at the first pages of [at, at + len): as many as a probe holds. */
void eng_probe(struct eng_probe *probe, const uint8_t *at, size_t len);
/* Whether [at, at + len) is in memory: what the probe does not cover is looked at now. `at` is not
 * before the probe's. */
bool eng_probe_shows(const struct eng_probe *probe, const uint8_t *at, size_t len);
/* Whether the pages of [at, at + len) are in memory. */
bool eng_memory_resident(const void *at, size_t len);
