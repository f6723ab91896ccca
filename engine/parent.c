#include "engine/parent.h"

#include "engine/base/io.h"
#include "engine/doc.h"
#include "engine/writer.h"

/* stripe 6 | identity 45 | low bits of the part's tag 13. A stripe's number is stored plus one, and
 * the last of 64 is not: its parts have no known HEAD. */
enum { CHECK_BITS = 13, IDENTITY_BITS = 45, TAG_BITS = 16 };

/* Rows of a HEAD read in one go; few objects have more. */
enum { ROWS_AT_ONCE = 64 };

#define MASK(bits) ((UINT64_C(1) << (bits)) - 1)

uint64_t eng_identity(const struct eng_stripe *stripe, uint32_t bucket, uint16_t tag)
{
    return eng_identity_of_buckets(bucket, eng_bucket_other(stripe, bucket, tag), tag);
}

static _Atomic uint64_t *word_of(const struct eng_stripe *stripe, uint64_t entry)
{
    uint64_t at = eng_entry_offset(entry) / (ENG_PARENT_BYTES / ENG_UNIT);
    return &stripe->parents[at];
}

/* Why a stale answer is safe: it names another part's HEAD, or none. The check bits tell the first,
 * and who finds none leaves the HEAD to its readers. */
void eng_parent_note(struct eng_stripe *stripe, uint64_t entry, const struct eng_parent *head)
{
    _Atomic uint64_t *word = word_of(stripe, entry);
    uint64_t number = head->stripe->index + UINT64_C(1);
    if (number > 63)
        return;
    uint64_t now = number << (CHECK_BITS + IDENTITY_BITS) | head->identity << CHECK_BITS |
                   (eng_entry_tag(entry) & MASK(CHECK_BITS));
    if (atomic_load_explicit(word, memory_order_relaxed) != now)
        atomic_store_explicit(word, now, memory_order_relaxed);
}

struct eng_parent eng_parent_of(const struct eng_stripe *stripe, uint64_t entry)
{
    uint64_t word = atomic_load_explicit(word_of(stripe, entry), memory_order_relaxed);
    uint64_t number = word >> (CHECK_BITS + IDENTITY_BITS);
    if (number == 0 || number > stripe->store->n_stripes ||
        (word & MASK(CHECK_BITS)) != (eng_entry_tag(entry) & MASK(CHECK_BITS)))
        return (struct eng_parent){0};
    return (struct eng_parent){
        .stripe = &stripe->store->stripes[number - 1],
        .identity = word >> CHECK_BITS & MASK(IDENTITY_BITS),
    };
}

void eng_parent_find(const struct eng_parent *head, struct eng_parent_heads *heads_out)
{
    const struct eng_stripe *stripe = head->stripe;
    uint16_t tag = (uint16_t)head->identity;
    uint64_t first = head->identity >> TAG_BITS;
    heads_out->n = 0;
    if (first >= stripe->n_buckets)
        return;
    uint32_t buckets[2] = {(uint32_t)first, eng_bucket_other(stripe, (uint32_t)first, tag)};
    for (int b = 0; b < (buckets[0] == buckets[1] ? 1 : 2); b++)
        for (uint32_t i = 0; i < ENG_BUCKET_ENTRIES; i++) {
            uint32_t slot = buckets[b] * ENG_BUCKET_ENTRIES + i;
            uint64_t entry = eng_directory_entry(stripe, slot);
            if (eng_entry_tag(entry) != tag || eng_entry_kind(entry) != ENG_KIND_DOC)
                continue;
            heads_out->at[heads_out->n].slot = slot;
            heads_out->at[heads_out->n++].entry = entry;
        }
}

/* The part's own key is not looked at, that would be one more read: what its entry and slot say of
 * it is all that the rows have to agree with. */
static bool row_names(struct eng_store *store, const struct eng_doc *head,
                      const struct eng_part_row *row, const struct eng_stripe *part_stripe,
                      uint32_t part_slot, uint64_t part_entry)
{
    struct eng_stripe *stripe;
    uint8_t key[32];
    uint32_t bucket = part_slot / ENG_BUCKET_ENTRIES;
    eng_part_key(head->key, head->object_serial, row->part_no, row->attempt, row->sub, key);
    struct eng_place place = eng_place_of(store, head->pool, key, &stripe);
    return stripe == part_stripe && place.tag == eng_entry_tag(part_entry) &&
           (place.bucket[0] == bucket || place.bucket[1] == bucket);
}

/* Why no pin: bytes that are another document's meanwhile fail the checksum, or are a HEAD that
 * names other parts; and whoever takes the HEAD out looks at its entry again. */
bool eng_parent_names(const struct eng_stripe *head_stripe, uint64_t head_entry,
                      uint64_t head_units, const struct eng_stripe *part_stripe, uint32_t part_slot,
                      uint64_t part_entry)
{
    struct eng_part_row rows[ROWS_AT_ONCE];
    struct eng_doc doc;
    uint64_t offset = eng_entry_offset(head_entry);
    uint64_t at = ENG_DATA_START + (offset << ENG_UNIT_SHIFT);
    if (eng_pread(head_stripe->fd, &doc, sizeof doc, at) != GYRE_OK ||
        eng_doc_check(&doc, head_stripe->crc_seed, offset, head_units) != GYRE_OK ||
        doc.type != ENG_HEAD)
        return false;
    uint64_t n_rows = doc.body_len / sizeof rows[0];
    at += eng_doc_body_off(&doc);
    for (uint64_t first = 0; first < n_rows; first += ROWS_AT_ONCE) {
        uint64_t n = n_rows - first < ROWS_AT_ONCE ? n_rows - first : ROWS_AT_ONCE;
        if (eng_pread(head_stripe->fd, rows, n * sizeof rows[0], at + first * sizeof rows[0]) !=
            GYRE_OK)
            return false;
        for (uint64_t i = 0; i < n; i++)
            if (row_names(head_stripe->store, &doc, &rows[i], part_stripe, part_slot, part_entry))
                return true;
    }
    return false;
}
