#include "engine/reader.h"

#include <fcntl.h>
#include <string.h>

#include "engine/base/broken.h"
#include "engine/base/check.h"
#include "engine/base/crc32c.h"
#include "engine/base/step.h"
#include "engine/admit.h"
#include "engine/expiry.h"
#include "engine/locks.h"
#include "engine/pin.h"
#include "engine/pool.h"
#include "engine/resident.h"

/* Documents up to here are verified even by a reader that must not wait: some microseconds. */
#define VERIFY_NOWAIT_MAX (128u << 10)

/* Read at once of a document seen for the first time. */
#define READ_AHEAD_MAX (128u << 10)

/* One search in progress. */
struct search {
    struct eng_store *store;
    const struct eng_want *want;
    unsigned flags;
    struct eng_seen *seen;
    struct eng_ref *ref; /* pin held once `pinned` */
    bool pinned;
    struct eng_probe probe; /* of the document at hand, for a reader that must not wait */
};

enum verdict {
    IS_IT,
    IS_OTHER,   /* another key's document */
    IS_DAMAGED, /* no document, or not what was written */
    IS_COLD,    /* not to be decided without waiting */
    IS_GONE,    /* the entry changed before the pin was safe */
};

static bool right_kind(const struct eng_want *want, uint64_t entry)
{
    return want->part == (eng_entry_kind(entry) == ENG_KIND_PART);
}

static bool must_not_wait(const struct search *search)
{
    return (search->flags & ENG_NOWAIT) != 0;
}

/* Whether a document that passed its checks is the one that is looked for. */
static bool answers(const struct search *search, const struct eng_doc *doc)
{
    const struct eng_want *want = search->want;
    if ((GYRE_BROKEN != GYRE_WRONG_KEY && memcmp(doc->key, want->key, sizeof doc->key) != 0) ||
        doc->pool != want->pool ||
        doc->pool_epoch != (uint32_t)eng_pool_epoch(search->store, want->pool))
        return false;
    if (want->part)
        return doc->type == ENG_PART && doc->object_serial == want->object_serial;
    return doc->type == ENG_DOC || doc->type == ENG_HEAD || doc->type == ENG_VECTOR;
}

/* Metadata, and the body unless it is a PART's, which is checked chunk by chunk later. */
static bool sums_hold(const struct eng_ref *ref)
{
    const struct eng_doc *doc = ref->doc;
    if (eng_crc32c(0, ref->meta, doc->meta_len) != doc->meta_crc)
        return false;
    return doc->type == ENG_PART || eng_crc32c(0, ref->body, doc->body_len) == doc->body_crc;
}

/* Fills the ref's pointers from its header, whose lengths were checked. */
static void point_into(struct eng_ref *ref)
{
    uint64_t body_off = eng_doc_body_off(ref->doc);
    ref->meta = (const uint8_t *)(ref->doc + 1);
    ref->body = (const uint8_t *)ref->doc + body_off;
    ref->body_file_off =
        ENG_DATA_START + (eng_entry_offset(ref->entry) << ENG_UNIT_SHIFT) + body_off;
}

/* Whether the first `length` bytes of the document can be touched without waiting. */
static bool at_hand(const struct search *search, const struct eng_ref *ref, uint64_t length)
{
    return !must_not_wait(search) ||
           eng_probe_shows(&search->probe, (const uint8_t *)ref->doc, length);
}

/* Checksums once per stay in the store: the slot remembers. */
static enum verdict verify_once(const struct search *search, struct eng_ref *ref)
{
    const struct eng_doc *doc = ref->doc;
    uint64_t length = doc->type == ENG_PART ? sizeof *doc + (uint64_t)doc->meta_len
                                            : eng_doc_body_off(doc) + doc->body_len;
    ref->verified = (ref->slot_word & ENG_SLOT_VERIFIED) != 0;
    if ((search->flags & ENG_HEADER) != 0 && doc->type != ENG_HEAD && doc->type != ENG_VECTOR)
        return IS_IT;
    if (!at_hand(search, ref, length) ||
        (must_not_wait(search) && !ref->verified && length > VERIFY_NOWAIT_MAX))
        return IS_COLD;
    if (ref->verified)
        return IS_IT;
    if (!sums_hold(ref))
        return IS_DAMAGED;
    if (doc->type == ENG_PART)
        return IS_IT;
    ref->verified = true;
    eng_slot_mark_verified(&ref->stripe->slots[ref->slot], ref->slot_word);
    return IS_IT;
}

/* A document that nobody has read since the store was opened is most likely on the disk only. One
 * exact request brings it in, or a PART's beginning; a fault would read a page, or megabytes around
 * it. */
static void read_ahead(const struct eng_stripe *stripe, uint64_t offset, uint64_t units)
{
    uint64_t len = units << ENG_UNIT_SHIFT;
    (void)!posix_fadvise(stripe->fd, (off_t)(ENG_DATA_START + (offset << ENG_UNIT_SHIFT)),
                         (off_t)(len < READ_AHEAD_MAX ? len : READ_AHEAD_MAX), POSIX_FADV_WILLNEED);
}

/* The document of a pinned entry. Nothing of its header is used before it is checked: in a slot
 * that is marked verified the checksum was, so lengths alone are looked at again. */
static enum verdict examine(struct search *search, struct eng_ref *ref)
{
    struct eng_stripe *stripe = ref->stripe;
    uint64_t offset = eng_entry_offset(ref->entry);
    uint64_t room = stripe->segment_units - offset % stripe->segment_units;
    uint64_t bound = eng_entry_units_bound(ref->entry);
    if (offset >= stripe->area_bytes / ENG_UNIT)
        return IS_OTHER;
    room = bound < room ? bound : room;
    ref->doc = (const struct eng_doc *)(const void *)(stripe->data + (offset << ENG_UNIT_SHIFT));
    if (must_not_wait(search))
        eng_probe(&search->probe, (const uint8_t *)ref->doc, room << ENG_UNIT_SHIFT);
    else if ((ref->slot_word & ENG_SLOT_VERIFIED) == 0)
        read_ahead(stripe, offset, room);
    if (!at_hand(search, ref, sizeof *ref->doc))
        return IS_COLD;
    if ((ref->slot_word & ENG_SLOT_VERIFIED) == 0) {
        if (eng_doc_check(ref->doc, stripe->crc_seed, offset, room) != GYRE_OK)
            return IS_DAMAGED;
    } else if (!eng_doc_bounded(ref->doc, room)) {
        return IS_DAMAGED;
    }
    if (!answers(search, ref->doc))
        return IS_OTHER;
    point_into(ref);
    return verify_once(search, ref);
}

/* Pins a candidate's extent and looks at the slot again. With the entry unchanged after fence A,
 * the bytes stay until the pin is cleared; with the generation unchanged too, it is the very
 * document that was looked up, not a newer one with an equal entry. */
static enum verdict pin_and_examine(struct search *search, const struct eng_candidate *candidate)
{
    struct eng_ref *ref = search->ref;
    struct eng_stripe *stripe = search->seen->stripe;
    bool reordered = GYRE_BROKEN == GYRE_NO_READER_FENCE;
    uint64_t early = reordered ? eng_directory_entry(stripe, candidate->slot) : 0;
    GYRE_STEP("reader.pin.before");
    eng_pin_set(search->store, ref->pin, stripe, candidate->entry);
    GYRE_STEP("reader.pin.set");
    /* Acquire in eng_directory_entry pairs with C of directory.c: slot word and document go with
     * it. */
    uint64_t entry = reordered ? early : eng_directory_entry(stripe, candidate->slot);
    uint32_t word =
        atomic_load_explicit(&stripe->slots[candidate->slot].word, memory_order_relaxed);
    if (entry != candidate->entry ||
        (!reordered && ((word ^ candidate->slot_word) & ENG_SLOT_GENERATION) != 0))
        return IS_GONE;
    ref->stripe = stripe;
    ref->entry = entry;
    ref->slot = candidate->slot;
    ref->slot_word = word;
    return examine(search, ref);
}

static void drop_damaged(struct search *search)
{
    ENG_COUNT(search->store, checksum_failures, 1);
    eng_drop(search->ref);
}

/* One round over the candidates of one moment. OK, NOT_FOUND, WOULD_BLOCK; BUSY: look up again. */
static gyre_err try_candidates(struct search *search)
{
    const struct eng_candidates *candidates = &search->seen->candidates;
    gyre_err err = GYRE_NOT_FOUND;
    for (size_t i = 0; i < candidates->n; i++) {
        const struct eng_candidate *candidate = &candidates->at[i];
        if (!right_kind(search->want, candidate->entry))
            continue;
        switch (pin_and_examine(search, candidate)) {
        case IS_IT: return GYRE_OK;
        case IS_GONE: return GYRE_BUSY;
        case IS_COLD: err = GYRE_WOULD_BLOCK; break;
        case IS_DAMAGED: drop_damaged(search); break;
        case IS_OTHER: ENG_COUNT(search->store, tag_collisions, 1); break;
        }
    }
    return err;
}

static gyre_err look_up(struct search *search)
{
    struct eng_seen *seen = search->seen;
    for (;;) {
        eng_directory_lookup(seen->stripe, &seen->place, &seen->candidates);
        if (seen->candidates.n == 0)
            return eng_candidates_stalled(&seen->candidates) ? GYRE_BUSY : GYRE_NOT_FOUND;
        if (!search->pinned) {
            gyre_err err = eng_pin_acquire(search->store, &search->ref->pin);
            if (err != GYRE_OK)
                return err;
            search->pinned = true;
        }
        gyre_err err = try_candidates(search);
        if (err != GYRE_BUSY)
            return err;
        ENG_COUNT(search->store, lookup_retries, 1);
    }
}

/* Whether what was found may be had. A banned document goes with whoever meets it. */
static gyre_err admit(const struct search *search, uint32_t now)
{
    const struct eng_doc *doc = search->ref->doc;
    if ((search->flags & ENG_ANY_AGE) != 0 || search->want->part)
        return GYRE_OK;
    if (unlikely(eng_expired(doc, now)))
        return GYRE_EXPIRED;
    if (likely(!eng_banned(search->store, doc)))
        return GYRE_OK;
    ENG_COUNT(search->store, bans_met, 1);
    eng_drop(search->ref);
    return GYRE_NOT_FOUND;
}

static void count_result(const struct search *search, gyre_err err)
{
    if ((search->flags & ENG_NO_COUNT) != 0 || search->want->part)
        return;
    if (err == GYRE_OK) {
        ENG_COUNT(search->store, hits, 1);
        eng_hit(search->store, &search->seen->place, search->ref);
    } else if (err == GYRE_NOT_FOUND || err == GYRE_EXPIRED) {
        ENG_COUNT(search->store, misses, 1);
        eng_missed(search->seen->stripe, &search->seen->place);
    }
}

/* Whether a look at the place's buckets can be had without waiting for the disk. */
static bool buckets_at_hand(const struct eng_store *store, const struct eng_seen *seen)
{
    if (store->directory_locked)
        return true;
    for (int i = 0; i < 2; i++)
        if (!eng_memory_resident(&seen->stripe->buckets[seen->place.bucket[i]],
                                 sizeof(struct eng_bucket)))
            return false;
    return true;
}

gyre_err eng_find_seen(struct eng_store *store, const struct eng_want *want, uint32_t now,
                       unsigned flags, struct eng_seen *seen_out, struct eng_ref *ref_out)
{
    struct search
        search; /* the probe stays as it is: clearing it would cost more than the search */
    search.store = store;
    search.want = want;
    search.flags = flags;
    search.seen = seen_out;
    search.ref = ref_out;
    search.pinned = false;
    *ref_out = (struct eng_ref){0};
    seen_out->place = eng_place_of(store, want->pool, want->key, &seen_out->stripe);
    seen_out->candidates.n = 0;
    if (must_not_wait(&search) && !buckets_at_hand(store, seen_out))
        return GYRE_WOULD_BLOCK;
    gyre_err err = look_up(&search);
    if (err == GYRE_OK)
        err = admit(&search, now);
    count_result(&search, err);
    if (err != GYRE_OK) {
        if (search.pinned)
            eng_pin_release(store, ref_out->pin);
        *ref_out = (struct eng_ref){0};
    }
    return err;
}

gyre_err eng_find(struct eng_store *store, const struct eng_want *want, uint32_t now,
                  unsigned flags, struct eng_ref *ref_out)
{
    struct eng_seen seen;
    return eng_find_seen(store, want, now, flags, &seen, ref_out);
}

void eng_ref_release(struct eng_ref *ref)
{
    if (ref->stripe == NULL)
        return;
    eng_pin_release(ref->stripe->store, ref->pin);
    *ref = (struct eng_ref){0};
}

bool eng_probable(struct eng_store *store, const struct eng_want *want)
{
    struct eng_stripe *stripe;
    struct eng_place place = eng_place_of(store, want->pool, want->key, &stripe);
    struct eng_candidates candidates;
    eng_directory_lookup(stripe, &place, &candidates);
    for (size_t i = 0; i < candidates.n; i++)
        if (right_kind(want, candidates.at[i].entry))
            return true;
    return false;
}

/* Neither a hit nor a change of the zone makes it another document. */
static uint64_t identity(uint64_t entry)
{
    return entry & ~(UINT64_C(1) << ENG_ENTRY_ZONE_SHIFT | UINT64_C(1) << ENG_ENTRY_KEEP_SHIFT);
}

bool eng_holds(struct eng_store *store, const struct eng_want *want, uint64_t entry)
{
    struct eng_stripe *stripe;
    struct eng_place place = eng_place_of(store, want->pool, want->key, &stripe);
    struct eng_candidates candidates;
    eng_directory_lookup(stripe, &place, &candidates);
    for (size_t i = 0; i < candidates.n; i++)
        if (identity(candidates.at[i].entry) == identity(entry))
            return true;
    return false;
}

void eng_drop(struct eng_ref *ref)
{
    struct eng_stripe *stripe = ref->stripe;
    if (eng_alloc_lock_bounded(stripe) != GYRE_OK)
        return; /* the next reader finds the same */
    uint32_t slot = eng_directory_locate_locked(stripe, ref->slot, ref->entry);
    if (slot != ENG_NO_SLOT)
        (void)eng_directory_remove_locked(stripe, slot, ref->entry);
    eng_alloc_unlock(stripe);
}
