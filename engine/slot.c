#include "engine/slot.h"

#include "engine/base/check.h"
#include "engine/doc.h"
#include "engine/tenant.h"

/* Totals have one writer at a time, so a plain sum stored back is exact. Why a stale answer is
 * safe: others read them for statistics only. */
static void add_locked(_Atomic uint64_t *total, uint64_t n)
{
    uint64_t now = atomic_load_explicit(total, memory_order_relaxed);
    atomic_store_explicit(total, now + n, memory_order_relaxed);
}

static _Atomic uint32_t *granule_of(const struct eng_stripe *stripe, uint64_t entry)
{
    uint64_t granule = eng_entry_offset(entry) / (ENG_GRANULE / ENG_UNIT);
    GYRE_CHECK(granule < stripe->area_bytes / ENG_GRANULE);
    return &stripe->granules[granule];
}

/* List heads change under the alloc lock alone, which orders them; hence relaxed. */
static uint32_t head_of(const _Atomic uint32_t *head)
{
    return atomic_load_explicit(head, memory_order_relaxed);
}

struct eng_slot eng_slot_of_doc(const struct eng_doc *doc, uint64_t units)
{
    bool look = doc->expires != 0 || eng_doc_labels(doc) > 0;
    return (struct eng_slot){
        .units = (uint32_t)units,
        .tenant = doc->tenant,
        .retention = doc->retention,
        .class_ = eng_class_of(doc->pool, doc->pool_epoch, look),
    };
}

struct eng_slot eng_slot_fresh(const struct eng_doc *doc, uint64_t units)
{
    struct eng_slot slot = eng_slot_of_doc(doc, units);
    atomic_init(&slot.word, ENG_SLOT_VERIFIED);
    return slot;
}

/* Adds to, or with `sign` -1 takes from, all totals that a listed document counts in. */
static void count_locked(struct eng_stripe *stripe, uint64_t entry, const struct eng_slot *at,
                         uint64_t sign)
{
    struct eng_stripe_rt *rt = stripe->rt;
    uint8_t pool = eng_slot_pool(at);
    uint64_t units = at->units * sign;
    add_locked(&rt->live_units, units);
    add_locked(&rt->documents, sign);
    add_locked(&rt->pool_units[pool], units);
    if (unlikely(eng_entry_keep(entry)))
        add_locked(&rt->kept_units[pool], units);
    eng_tenant_count(stripe->store, at->tenant, units);
    if (eng_entry_kind(entry) == ENG_KIND_PART)
        add_locked(&rt->parts, sign);
    if ((atomic_load_explicit(&at->word, memory_order_relaxed) & ENG_SLOT_ESTIMATE) != 0)
        add_locked(&rt->estimates, sign);
}

void eng_slot_list_locked(struct eng_stripe *stripe, uint32_t slot, uint64_t entry,
                          const struct eng_slot *record)
{
    struct eng_slot *at = &stripe->slots[slot];
    _Atomic uint32_t *head = granule_of(stripe, entry);
    at->units = record->units;
    at->tenant = record->tenant;
    at->retention = record->retention;
    at->class_ = record->class_;
    at->next = head_of(head);
    atomic_store_explicit(head, slot, memory_order_relaxed);
    count_locked(stripe, entry, record, 1);
    stripe->rt->slot_counted = 1;
}

void eng_slot_unlist_locked(struct eng_stripe *stripe, uint32_t slot, uint64_t entry)
{
    _Atomic uint32_t *head = granule_of(stripe, entry);
    uint32_t at = head_of(head);
    if (at == slot) {
        atomic_store_explicit(head, stripe->slots[slot].next, memory_order_relaxed);
    } else {
        while (at != ENG_NO_SLOT && stripe->slots[at].next != slot)
            at = stripe->slots[at].next;
        GYRE_CHECK(at != ENG_NO_SLOT);
        stripe->slots[at].next = stripe->slots[slot].next;
    }
    count_locked(stripe, entry, &stripe->slots[slot], -(uint64_t)1);
    stripe->rt->slot_counted = 0;
}

void eng_slot_estimate(struct eng_slot *slot, const struct eng_slot *record)
{
    uint32_t word = atomic_load_explicit(&record->word, memory_order_relaxed);
    if ((word & ENG_SLOT_ESTIMATE) != 0)
        atomic_fetch_or_explicit(&slot->word, ENG_SLOT_ESTIMATE, memory_order_relaxed);
    else
        atomic_fetch_and_explicit(&slot->word, ~ENG_SLOT_ESTIMATE, memory_order_relaxed);
}

void eng_slot_measure_locked(struct eng_stripe *stripe, uint32_t slot, uint64_t entry,
                             const struct eng_slot *record)
{
    struct eng_slot *at = &stripe->slots[slot];
    count_locked(stripe, entry, at, -(uint64_t)1);
    at->units = record->units;
    at->tenant = record->tenant;
    at->retention = record->retention;
    at->class_ = record->class_;
    atomic_fetch_and_explicit(&at->word, ~ENG_SLOT_ESTIMATE, memory_order_relaxed);
    count_locked(stripe, entry, at, 1);
}

uint32_t eng_slot_next_word(const struct eng_slot *slot, uint32_t flags)
{
    uint32_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
    return ((word & ENG_SLOT_GENERATION) + ENG_SLOT_GENERATION_ONE) | flags;
}

uint32_t eng_granule_first_locked(const struct eng_stripe *stripe, uint64_t granule)
{
    return head_of(&stripe->granules[granule]);
}

uint32_t eng_granule_next_locked(const struct eng_stripe *stripe, uint32_t slot)
{
    return stripe->slots[slot].next;
}

/* Both CAS loops give up once the generation is another one: the mark would hit a newer document.
 *
 * Why a stale answer is safe: relaxed order, because a lost mark costs one more check or a colder
 * look, and "verified" says that the disk's bytes are right, which the reader that sees it also
 * gets through the mapping, not through this word. A mark that a document has from the start comes
 * with its entry (C of directory.c), which is stored after all of its bytes were written. */
void eng_slot_mark_verified(struct eng_slot *slot, uint32_t slot_word)
{
    uint32_t now = atomic_load_explicit(&slot->word, memory_order_relaxed);
    while (((now ^ slot_word) & ENG_SLOT_GENERATION) == 0 && (now & ENG_SLOT_VERIFIED) == 0) {
        if (atomic_compare_exchange_weak_explicit(&slot->word, &now, now | ENG_SLOT_VERIFIED,
                                                  memory_order_relaxed, memory_order_relaxed))
            return;
    }
}

/* Saturates, so that a hot document's line is only read. */
bool eng_slot_count_hit(struct eng_slot *slot, uint32_t slot_word, uint32_t epoch)
{
    uint32_t now = atomic_load_explicit(&slot->word, memory_order_relaxed);
    while (((now ^ slot_word) & ENG_SLOT_GENERATION) == 0 &&
           (now & ENG_SLOT_HITS) != ENG_SLOT_HITS && ((now ^ epoch) & ENG_SLOT_EPOCH) != 0) {
        uint32_t next = (now & ~ENG_SLOT_EPOCH) + ENG_SLOT_HIT + (epoch & ENG_SLOT_EPOCH);
        if (atomic_compare_exchange_weak_explicit(&slot->word, &now, next, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

bool eng_slot_note_epoch(struct eng_slot *slot, uint32_t slot_word, uint32_t epoch)
{
    uint32_t now = atomic_load_explicit(&slot->word, memory_order_relaxed);
    while (((now ^ slot_word) & ENG_SLOT_GENERATION) == 0 &&
           ((now ^ epoch) & ENG_SLOT_EPOCH) != 0) {
        uint32_t next = (now & ~ENG_SLOT_EPOCH) | (epoch & ENG_SLOT_EPOCH);
        if (atomic_compare_exchange_weak_explicit(&slot->word, &now, next, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

void eng_slot_cool(struct eng_slot *slot)
{
    uint32_t now = atomic_load_explicit(&slot->word, memory_order_relaxed);
    while ((now & ENG_SLOT_HITS) != 0 &&
           !atomic_compare_exchange_weak_explicit(&slot->word, &now, now - ENG_SLOT_HIT,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* Why a stale answer is safe: who still sees the mark reads as if it had looked a moment earlier.
 */
void eng_slot_distrust(struct eng_slot *slot)
{
    atomic_fetch_and_explicit(&slot->word, ~ENG_SLOT_VERIFIED, memory_order_relaxed);
}

void eng_directory_distrust(struct eng_stripe *stripe)
{
    uint64_t n_slots = (uint64_t)stripe->n_buckets * ENG_BUCKET_ENTRIES;
    for (uint64_t slot = 0; slot < n_slots; slot++)
        eng_slot_distrust(&stripe->slots[slot]);
}
