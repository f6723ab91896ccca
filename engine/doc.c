#include "engine/doc.h"

#include <string.h>

#include "engine/base/bits.h"
#include "engine/base/check.h"
#include "engine/base/crc32c.h"

#define BODY_ALIGN 64

/* Longest metadata of any document; the interface allows its users no more. */
#define META_MAX (UINT32_C(1) << 20)

uint64_t eng_doc_body_off(const struct eng_doc *doc)
{
    if (doc->type == ENG_PART)
        return ENG_PAGE;
    return eng_align_up(sizeof *doc + (uint64_t)doc->meta_len, BODY_ALIGN);
}

uint64_t eng_doc_units(uint16_t type, uint64_t meta_len, uint64_t body_len)
{
    struct eng_doc doc = {.type = type, .meta_len = (uint32_t)meta_len, .body_len = body_len};
    GYRE_CHECK(meta_len <= META_MAX);
    return eng_doc_extent_units(&doc);
}

uint64_t eng_doc_extent_units(const struct eng_doc *doc)
{
    uint64_t bytes = eng_doc_body_off(doc) + doc->body_len;
    if (doc->body_len == 0 && doc->type != ENG_PART)
        bytes = sizeof *doc + (uint64_t)doc->meta_len;
    bool packed = doc->type != ENG_PART && bytes <= ENG_PACKED_MAX;
    return eng_align_up(bytes, packed ? ENG_UNIT : ENG_PAGE) / ENG_UNIT;
}

/* Seeded by store, stripe and place: bytes of an earlier store in the same file, and bytes that a
 * fault put in another place, do not pass. */
static uint32_t header_crc(const struct eng_doc *doc, uint32_t seed, uint64_t offset_units)
{
    uint8_t place[8];
    const uint32_t none = 0;
    eng_store_u64(place, offset_units);
    uint32_t crc = eng_crc32c(seed, place, sizeof place);
    crc = eng_crc32c(crc, doc, offsetof(struct eng_doc, header_crc));
    crc = eng_crc32c(crc, &none, sizeof none);
    const uint8_t *rest = (const uint8_t *)&doc->serial;
    return eng_crc32c(crc, rest, sizeof *doc - offsetof(struct eng_doc, serial));
}

void eng_doc_seal(struct eng_doc *doc, uint32_t seed, uint64_t offset_units)
{
    doc->magic = ENG_DOC_MAGIC;
    doc->header_crc = header_crc(doc, seed, offset_units);
}

/* The rules of one type, for lengths that fit the extent. */
static bool type_allows(const struct eng_doc *doc)
{
    switch (doc->type) {
    case ENG_DOC:
    case ENG_VECTOR: return true;
    case ENG_HEAD: return doc->body_len == doc->parts * (uint64_t)sizeof(struct eng_part_row);
    case ENG_PART:
        return doc->meta_len <= ENG_PAGE - sizeof *doc &&
               doc->meta_len == eng_div_up(doc->body_len, ENG_CHUNK) * sizeof(uint32_t);
    case ENG_TOMBSTONE: return doc->body_len == 0 && doc->meta_len == 0;
    default: return false;
    }
}

bool eng_doc_bounded(const struct eng_doc *doc, uint64_t max_units)
{
    uint64_t max_bytes = max_units << ENG_UNIT_SHIFT;
    return doc->meta_len <= META_MAX && eng_doc_labels(doc) * sizeof(uint64_t) <= doc->meta_len &&
           doc->body_len <= max_bytes && doc->pool < ENG_MAX_POOLS && type_allows(doc) &&
           eng_doc_extent_units(doc) <= max_units;
}

gyre_err eng_doc_check(const struct eng_doc *doc, uint32_t seed, uint64_t offset_units,
                       uint64_t max_units)
{
    if (max_units == 0 || doc->magic != ENG_DOC_MAGIC ||
        doc->header_crc != header_crc(doc, seed, offset_units) || !eng_doc_bounded(doc, max_units))
        return GYRE_DAMAGED;
    return GYRE_OK;
}
