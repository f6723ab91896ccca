/* What the policy is told, and asked, on the way of a put or a get: which ring a newcomer goes to,
 * which hits count, and a sample of both for the shadow.
 *
 * Threads: any. Blocks: for the alloc lock, where it is not held. Allocates: nothing.
 * Keeps:   E70, E76.
 */
#pragma once

#include "engine/directory.h"
#include "engine/log.h"
#include "engine/reader.h"

/* The ring for an object of `object_bytes`; *remembered_out: whether the ghost knows it. Needs the
 * alloc lock. */
uint8_t eng_admit_locked(uint8_t pool, struct eng_stripe *stripe, const struct eng_place *place,
                         uint64_t object_bytes, bool *remembered_out);
/* The ring for a part of an object whose place is in stripe `home`: `at` is the stripe the part
 * goes to. M where a lock is not to be had: who then reserves is told so. */
uint8_t eng_admit_part(uint8_t pool, struct eng_stripe *home, const struct eng_place *place,
                       uint64_t object_bytes, struct eng_stripe *at);

/* An object is being published at `place`: the ghost forgets it, if it was `remembered`, and the
 * means and the shadow learn of it. Needs the alloc lock. */
void eng_admitted_locked(struct eng_stripe *stripe, const struct eng_place *place,
                         uint64_t object_bytes, bool remembered);
/* What a slot word says of a new object of that length from the start: its grade among those of its
 * time, and the epoch. Needs the alloc lock. */
uint32_t eng_first_flags_locked(struct eng_stripe *stripe, uint64_t object_bytes);

/* ---- On the way of a get: most cost a few instructions ---- */

/* What follows when a hit is, or may be, counted: see eng_hit. */
void eng_hit_count(struct eng_store *store, const struct eng_place *place,
                   const struct eng_ref *ref, uint32_t epoch);
/* Notes a sampled request. */
void eng_sample(struct eng_stripe *stripe, uint64_t hash, enum eng_event kind, unsigned size_class);
/* The class of an object's whole length. */
unsigned eng_length_class(uint64_t object_bytes);

static inline bool eng_is_sampled(const struct eng_stripe *stripe, uint64_t hash)
{
    /* Why a stale answer is safe: a key more or less is sampled. */
    return eng_shadow_samples(
        hash, atomic_load_explicit(&stripe->rt->samples.shift, memory_order_relaxed));
}

/* Counts a hit of the object that `ref` has pinned, once in an epoch, and those of its parts with
 * it: they stay and go together. */
static inline void eng_hit(struct eng_store *store, const struct eng_place *place,
                           const struct eng_ref *ref)
{
    /* Why a stale answer is safe: a hit more or less is counted. */
    uint32_t epoch = atomic_load_explicit(&ref->stripe->rt->epoch, memory_order_relaxed);
    if (eng_is_sampled(ref->stripe, place->hash))
        eng_sample(ref->stripe, place->hash, ENG_EVENT_HIT,
                   ref->doc->type == ENG_HEAD ? eng_length_class(ref->doc->total_len)
                                              : eng_entry_class(ref->entry));
    if (((ref->slot_word ^ epoch) & ENG_SLOT_EPOCH) != 0)
        eng_hit_count(store, place, ref, epoch);
}

/* Notes a miss. */
static inline void eng_missed(struct eng_stripe *stripe, const struct eng_place *place)
{
    if (eng_is_sampled(stripe, place->hash))
        eng_sample(stripe, place->hash, ENG_EVENT_MISS, 0);
}

/* Sets how the store is to evict; KEPT leaves it. In a segment that is being made, before its rings
 * are. */
void eng_retention_set(struct eng_store *store, enum eng_retention retention);

/* Feeds the shadow with what was sampled since, and sets mode and shares of the rings by what it
 * says. Needs the clean lock, not the alloc lock. */
void eng_policy_learn(struct eng_stripe *stripe);
