/* Document headers: where the parts of a document lie, sealing one, and refusing what is none.
 *
 *   header 128 bytes | meta | zeros to 64 (PART: to a page) | body | zeros to the extent's end
 *
 * Threads: any; pure functions. Blocks: on the pages handed in. Allocates: nothing. Keeps: E10.
 */
#pragma once

#include <stdbool.h>

#include "engine/base/gyre_err.h"
#include "engine/format.h"

/* Documents up to this many bytes are packed at ENG_UNIT; longer ones and PARTs fill whole pages.
 */
#define ENG_PACKED_MAX (16u << 10)

/* Bytes from the document's start to its body; the header's lengths must have passed eng_doc_check
 * or come from a caller who keeps meta_len below 2^31. */
uint64_t eng_doc_body_off(const struct eng_doc *doc);
/* Length of the extent in ENG_UNIT. The same precondition. */
uint64_t eng_doc_extent_units(const struct eng_doc *doc);
/* The same before there is a header. */
uint64_t eng_doc_units(uint16_t type, uint64_t meta_len, uint64_t body_len);

/* How many labels (u64, see ban.h) lie at the end of the metadata; the rest of it is the user's. */
static inline uint32_t eng_doc_labels(const struct eng_doc *doc)
{
    return (uint32_t)doc->flags >> ENG_DOC_LABELS_SHIFT & 63;
}
static inline uint32_t eng_doc_user_meta_len(const struct eng_doc *doc)
{
    return doc->meta_len - eng_doc_labels(doc) * (uint32_t)sizeof(uint64_t);
}
/* When it was stored, in sixteenths of a second since 1970. Not of a PART. */
static inline uint64_t eng_doc_stored_ticks(const struct eng_doc *doc)
{
    return (uint64_t)doc->stored_s << 4 | doc->flags >> ENG_DOC_TICKS_SHIFT;
}

/* Sets magic and header_crc of an otherwise complete header for the place it is written to. `seed`
 * is the stripe's crc_seed, `offset_units` counts in its segment area. */
void eng_doc_seal(struct eng_doc *doc, uint32_t seed, uint64_t offset_units);

/* Whether the 128 bytes at `doc` are the header of a document that begins at this offset and ends
 * within `max_units`. The lengths of a header that passes are safe to use. DAMAGED. */
GYRE_MUST_USE gyre_err eng_doc_check(const struct eng_doc *doc, uint32_t seed,
                                     uint64_t offset_units, uint64_t max_units);

/* Whether meta_len and body_len fit `max_units` and the type's rules; part of eng_doc_check, for
 * headers whose checksum was found right before. */
bool eng_doc_bounded(const struct eng_doc *doc, uint64_t max_units);
