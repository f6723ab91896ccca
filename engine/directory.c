#include "engine/directory.h"

#include <sched.h>

#include "engine/base/check.h"
#include "engine/base/step.h"
#include "engine/locks.h"
#include "engine/slot.h"

/* The bucket protocol, a sequence lock over each bucket:
 *
 *   writer                                   reader
 *   ctl := odd, relaxed                      v := ctl, acquire            (B)
 *   fence release                 (A)        entries and slot words, relaxed
 *   slot word relaxed, entry release (C)     fence acquire                (A)
 *   ctl := even, release          (B)        ctl again, relaxed: equal v, or look again
 *
 * B: a reader that saw an even version sees all stores made before it. A: a reader that saw a store
 * of a change in progress sees the odd version on its second look. C pairs with the reader's second
 * look at one entry, after it has pinned (pin.h).
 *
 * Why a stale answer is safe: an entry only leads to a document. The reader pins its extent, looks
 * at the entry again and compares the whole key, so an old entry costs another look-up. A miss is
 * exact, because both buckets were unchanged between the two looks, and an entry on the move is in
 * its new bucket before it leaves its old one. */

#define SPINS_BEFORE_YIELD 1000
#define YIELDS_BEFORE_LOCK 16

#if defined(__x86_64__)
static void spin_hint(void)
{
    __builtin_ia32_pause();
}
#else
static void spin_hint(void)
{
}
#endif

static uint32_t version_of(uint64_t ctl)
{
    return (uint32_t)ctl;
}

static uint64_t load_entry(const struct eng_stripe *stripe, uint32_t slot)
{
    const struct eng_bucket *bucket = &stripe->buckets[slot / ENG_BUCKET_ENTRIES];
    return atomic_load_explicit(&bucket->entry[slot % ENG_BUCKET_ENTRIES], memory_order_relaxed);
}

/* Pairs with C: with the entry come the slot word and, through the writer's order of work, the
 * document. */
uint64_t eng_directory_entry(const struct eng_stripe *stripe, uint32_t slot)
{
    const struct eng_bucket *bucket = &stripe->buckets[slot / ENG_BUCKET_ENTRIES];
    return atomic_load_explicit(&bucket->entry[slot % ENG_BUCKET_ENTRIES], memory_order_acquire);
}

/* A writer is inside: it is gone in nanoseconds unless it lost its processor, or its life. The last
 * is found out by taking its lock, which repairs what it left. False: it was stopped. */
static bool wait_for_writer(struct eng_stripe *stripe, unsigned *spins)
{
    ++*spins;
    if (*spins < SPINS_BEFORE_YIELD) {
        spin_hint();
    } else if (*spins < SPINS_BEFORE_YIELD + YIELDS_BEFORE_LOCK) {
        sched_yield();
    } else {
        if (eng_alloc_lock_bounded(stripe) != GYRE_OK)
            return false;
        eng_alloc_unlock(stripe);
        *spins = 0;
    }
    return true;
}

/* Appends the bucket's entries with this tag. */
static void collect(const struct eng_stripe *stripe, uint32_t bucket, uint16_t tag,
                    struct eng_candidates *out)
{
    const struct eng_bucket *from = &stripe->buckets[bucket];
    for (uint32_t i = 0; i < ENG_BUCKET_ENTRIES; i++) {
        uint64_t entry = atomic_load_explicit(&from->entry[i], memory_order_relaxed);
        if (likely(eng_entry_tag(entry) != tag || eng_entry_kind(entry) == ENG_KIND_EMPTY))
            continue;
        uint32_t slot = bucket * ENG_BUCKET_ENTRIES + i;
        uint32_t word = atomic_load_explicit(&stripe->slots[slot].word, memory_order_relaxed);
        out->at[out->n++] = (struct eng_candidate){entry, slot, word};
    }
}

void eng_directory_lookup(struct eng_stripe *stripe, const struct eng_place *place,
                          struct eng_candidates *out)
{
    struct eng_bucket *a = &stripe->buckets[place->bucket[0]];
    struct eng_bucket *b = &stripe->buckets[place->bucket[1]];
    __builtin_prefetch(b);
    unsigned spins = 0;
    for (;;) {
        uint64_t ctl_a = atomic_load_explicit(&a->ctl, memory_order_acquire); /* B */
        uint64_t ctl_b = atomic_load_explicit(&b->ctl, memory_order_acquire); /* B */
        if (likely(((ctl_a | ctl_b) & 1) == 0)) {
            out->n = 0;
            collect(stripe, place->bucket[0], place->tag, out);
            GYRE_STEP("directory.lookup.between");
            if (a != b)
                collect(stripe, place->bucket[1], place->tag, out);
            atomic_thread_fence(memory_order_acquire); /* A */
            if (likely(atomic_load_explicit(&a->ctl, memory_order_relaxed) == ctl_a &&
                       atomic_load_explicit(&b->ctl, memory_order_relaxed) == ctl_b)) {
                out->version[0] = version_of(ctl_a);
                out->version[1] = version_of(ctl_b);
                return;
            }
        }
        ENG_COUNT(stripe->store, lookup_retries, 1);
        if (unlikely(!wait_for_writer(stripe, &spins))) {
            out->n = 0;
            out->version[0] = out->version[1] = 1; /* no look at a bucket at rest gives this */
            return;
        }
    }
}

bool eng_directory_unchanged_locked(const struct eng_stripe *stripe, const struct eng_place *place,
                                    const struct eng_candidates *seen)
{
    for (int i = 0; i < 2; i++) {
        const struct eng_bucket *bucket = &stripe->buckets[place->bucket[i]];
        if (version_of(atomic_load_explicit(&bucket->ctl, memory_order_relaxed)) !=
            seen->version[i])
            return false;
    }
    return true;
}

/* Which bucket is at work is noted first and forgotten last, for whoever inherits the lock. */
static void bucket_begin(struct eng_stripe *stripe, uint32_t bucket)
{
    struct eng_bucket *at = &stripe->buckets[bucket];
    stripe->rt->bucket_in_flight = (uint64_t)bucket + 1;
    atomic_signal_fence(memory_order_seq_cst); /* a death is seen in program order */
    uint64_t ctl = atomic_load_explicit(&at->ctl, memory_order_relaxed);
    GYRE_CHECK((ctl & 1) == 0);
    atomic_store_explicit(&at->ctl, (uint32_t)(version_of(ctl) + 1), memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* A */
    GYRE_STEP("directory.bucket.odd");
}

static void bucket_end(struct eng_stripe *stripe, uint32_t bucket)
{
    struct eng_bucket *at = &stripe->buckets[bucket];
    GYRE_STEP("directory.bucket.stored");
    uint64_t ctl = atomic_load_explicit(&at->ctl, memory_order_relaxed);
    atomic_store_explicit(&at->ctl, (uint32_t)(version_of(ctl) + 1), memory_order_release); /* B */
    atomic_signal_fence(memory_order_seq_cst);
    stripe->rt->bucket_in_flight = 0;
    GYRE_STEP("directory.bucket.even");
}

/* Changes one slot. The new generation comes before the entry, so that a reader that finds the
 * entry unchanged also finds the word that goes with it. */
static void store_entry(struct eng_stripe *stripe, uint32_t slot, uint64_t entry, uint32_t flags)
{
    uint32_t bucket = slot / ENG_BUCKET_ENTRIES;
    struct eng_slot *at = &stripe->slots[slot];
    bucket_begin(stripe, bucket);
    atomic_store_explicit(&at->word, eng_slot_next_word(at, flags), memory_order_relaxed);
    atomic_store_explicit(&stripe->buckets[bucket].entry[slot % ENG_BUCKET_ENTRIES], entry,
                          memory_order_release); /* C */
    bucket_end(stripe, bucket);
}

/* While the record in a slot may be that of the entry before or after. */
static void slot_begin(struct eng_stripe *stripe, uint32_t slot)
{
    stripe->rt->slot_counted = load_entry(stripe, slot) != 0;
    stripe->rt->slot_in_flight = (uint64_t)slot + 1;
    atomic_signal_fence(memory_order_seq_cst); /* a death is seen in program order */
}

static void slot_end(struct eng_stripe *stripe)
{
    atomic_signal_fence(memory_order_seq_cst);
    stripe->rt->slot_in_flight = 0;
}

/* What a new document's slot says from the start. */
static uint32_t first_flags(const struct eng_slot *record)
{
    /* Relaxed: the record is the caller's own. */
    return atomic_load_explicit(&record->word, memory_order_relaxed) & ENG_SLOT_FLAGS;
}

static uint32_t free_slot_in(const struct eng_stripe *stripe, uint32_t bucket, unsigned *n_free_out)
{
    uint32_t found = ENG_NO_SLOT;
    *n_free_out = 0;
    for (uint32_t i = 0; i < ENG_BUCKET_ENTRIES; i++) {
        uint32_t slot = bucket * ENG_BUCKET_ENTRIES + i;
        if (load_entry(stripe, slot) != 0)
            continue;
        found = slot;
        ++*n_free_out;
    }
    return found;
}

/* Moves the entry of `from` to the free slot `to`. It is in both for a moment: never in neither. */
static void move_entry(struct eng_stripe *stripe, uint32_t from, uint32_t to)
{
    uint64_t entry = load_entry(stripe, from);
    struct eng_slot record = eng_slot_record(&stripe->slots[from]);
    uint32_t flags = atomic_load_explicit(&stripe->slots[from].word, memory_order_relaxed) &
                     ~ENG_SLOT_GENERATION;
    eng_slot_unlist_locked(stripe, from, entry);
    eng_slot_list_locked(stripe, to, entry, &record);
    store_entry(stripe, to, entry, flags);
    GYRE_STEP("directory.move.twice");
    store_entry(stripe, from, 0, 0);
}

/* Makes room in a full bucket by sending one resident to its other bucket. */
static uint32_t make_room(struct eng_stripe *stripe, uint32_t bucket)
{
    for (uint32_t i = 0; i < ENG_BUCKET_ENTRIES; i++) {
        uint32_t slot = bucket * ENG_BUCKET_ENTRIES + i;
        uint16_t tag = eng_entry_tag(load_entry(stripe, slot));
        unsigned n_free;
        uint32_t to = free_slot_in(stripe, eng_bucket_other(stripe, bucket, tag), &n_free);
        if (to == ENG_NO_SLOT)
            continue;
        move_entry(stripe, slot, to);
        return slot;
    }
    return ENG_NO_SLOT;
}

/* The coldest of both buckets' entries that may go; among equals the oldest, which lies farthest
 * behind the newcomer in the log, as the hand would choose. */
static uint32_t choose_displaced(const struct eng_stripe *stripe, const struct eng_place *place,
                                 uint64_t newcomer)
{
    uint64_t area_units = stripe->area_bytes >> ENG_UNIT_SHIFT;
    uint64_t now = eng_entry_offset(newcomer) + area_units;
    uint32_t coldest = ENG_NO_SLOT;
    uint32_t fewest = UINT32_MAX;
    uint64_t longest = 0;
    for (uint32_t i = 0; i < ENG_CANDIDATES; i++) {
        uint32_t slot =
            place->bucket[i / ENG_BUCKET_ENTRIES] * ENG_BUCKET_ENTRIES + i % ENG_BUCKET_ENTRIES;
        uint64_t entry = load_entry(stripe, slot);
        if (eng_entry_keep(entry))
            continue;
        uint32_t hits =
            atomic_load_explicit(&stripe->slots[slot].word, memory_order_relaxed) & ENG_SLOT_HITS;
        uint64_t behind = (now - eng_entry_offset(entry)) % area_units;
        if (hits < fewest || (hits == fewest && behind > longest)) {
            fewest = hits;
            longest = behind;
            coldest = slot;
        }
    }
    return coldest;
}

/* A slot for a new entry of the place, empty or (then the last resort) to be displaced. */
static uint32_t find_room(struct eng_stripe *stripe, const struct eng_place *place,
                          uint64_t newcomer)
{
    unsigned n_free[2];
    uint32_t slots[2];
    for (int i = 0; i < 2; i++)
        slots[i] = free_slot_in(stripe, place->bucket[i], &n_free[i]);
    if (n_free[0] + n_free[1] > 0)
        return n_free[0] >= n_free[1] ? slots[0] : slots[1];
    uint32_t slot = make_room(stripe, place->bucket[0]);
    if (slot == ENG_NO_SLOT)
        slot = make_room(stripe, place->bucket[1]);
    if (slot == ENG_NO_SLOT)
        slot = choose_displaced(stripe, place, newcomer);
    return slot;
}

gyre_err eng_directory_insert_locked(struct eng_stripe *stripe, const struct eng_place *place,
                                     uint64_t entry, const struct eng_slot *record,
                                     struct eng_displaced *displaced_out)
{
    *displaced_out = (struct eng_displaced){.slot = ENG_NO_SLOT};
    uint32_t slot = find_room(stripe, place, entry);
    if (slot == ENG_NO_SLOT)
        return GYRE_NO_SPACE;
    uint64_t resident = load_entry(stripe, slot);
    slot_begin(stripe, slot);
    if (resident != 0) {
        *displaced_out = (struct eng_displaced){slot, resident, stripe->slots[slot].units};
        eng_slot_unlist_locked(stripe, slot, resident);
    }
    eng_slot_list_locked(stripe, slot, entry, record);
    store_entry(stripe, slot, entry, first_flags(record));
    slot_end(stripe);
    return GYRE_OK;
}

bool eng_directory_replace_locked(struct eng_stripe *stripe, uint32_t slot, uint64_t old,
                                  uint64_t entry, const struct eng_slot *record)
{
    if (load_entry(stripe, slot) != old)
        return false;
    slot_begin(stripe, slot);
    eng_slot_unlist_locked(stripe, slot, old);
    eng_slot_list_locked(stripe, slot, entry, record);
    store_entry(stripe, slot, entry, first_flags(record));
    slot_end(stripe);
    return true;
}

bool eng_directory_remove_locked(struct eng_stripe *stripe, uint32_t slot, uint64_t old)
{
    if (load_entry(stripe, slot) != old)
        return false;
    slot_begin(stripe, slot);
    eng_slot_unlist_locked(stripe, slot, old);
    store_entry(stripe, slot, 0, 0);
    slot_end(stripe);
    return true;
}

uint32_t eng_directory_locate_locked(const struct eng_stripe *stripe, uint32_t slot, uint64_t entry)
{
    if (load_entry(stripe, slot) == entry)
        return slot;
    uint32_t bucket = slot / ENG_BUCKET_ENTRIES;
    uint32_t other = eng_bucket_other(stripe, bucket, eng_entry_tag(entry));
    for (uint32_t i = 0; i < ENG_CANDIDATES; i++) {
        uint32_t at =
            (i < ENG_BUCKET_ENTRIES ? bucket : other) * ENG_BUCKET_ENTRIES + i % ENG_BUCKET_ENTRIES;
        if (load_entry(stripe, at) == entry)
            return at;
    }
    return ENG_NO_SLOT;
}

void eng_directory_adopt_locked(struct eng_stripe *stripe, uint32_t slot,
                                const struct eng_slot *record)
{
    eng_slot_list_locked(stripe, slot, load_entry(stripe, slot), record);
    atomic_fetch_or_explicit(&stripe->slots[slot].word, first_flags(record), memory_order_relaxed);
}
