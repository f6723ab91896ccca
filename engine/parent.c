#include "engine/parent.h"

/* stripe 6 | identity 45 | low bits of the part's tag 13. A stripe's number is stored plus one, and
 * the last of 64 is not: its parts have no known HEAD. */
enum { CHECK_BITS = 13, IDENTITY_BITS = 45, TAG_BITS = 16 };

#define MASK(bits) ((UINT64_C(1) << (bits)) - 1)

uint64_t eng_identity(const struct eng_stripe *stripe, uint32_t bucket, uint16_t tag)
{
    uint32_t other = eng_bucket_other(stripe, bucket, tag);
    return (uint64_t)(bucket < other ? bucket : other) << TAG_BITS | tag;
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

uint32_t eng_parent_find(const struct eng_parent *head, uint64_t *entry_out)
{
    const struct eng_stripe *stripe = head->stripe;
    uint16_t tag = (uint16_t)head->identity;
    uint64_t first = head->identity >> TAG_BITS;
    uint32_t found = ENG_NO_SLOT;
    *entry_out = 0;
    if (first >= stripe->n_buckets)
        return ENG_NO_SLOT;
    uint32_t buckets[2] = {(uint32_t)first, eng_bucket_other(stripe, (uint32_t)first, tag)};
    for (int b = 0; b < (buckets[0] == buckets[1] ? 1 : 2); b++)
        for (uint32_t i = 0; i < ENG_BUCKET_ENTRIES; i++) {
            uint32_t slot = buckets[b] * ENG_BUCKET_ENTRIES + i;
            uint64_t entry = eng_directory_entry(stripe, slot);
            if (eng_entry_tag(entry) != tag || eng_entry_kind(entry) != ENG_KIND_DOC)
                continue;
            if (found != ENG_NO_SLOT && entry != *entry_out)
                return ENG_NO_SLOT;
            found = slot;
            *entry_out = entry;
        }
    return found;
}
