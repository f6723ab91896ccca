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

/* The ring for a document of an object of `object_bytes`: `at` is the stripe the document goes to,
 * which for a part may be another than its object's. */
uint8_t eng_admit(struct eng_store *store, uint8_t pool, const uint8_t key[32],
                  uint64_t object_bytes, struct eng_stripe *at);

/* An object is being published at `place`: the ghost forgets it, and the means and the shadow learn
 * of it. Needs the alloc lock. */
void eng_admitted_locked(struct eng_stripe *stripe, const struct eng_place *place,
                         uint64_t object_bytes);
/* What a slot word says of a new object of that length from the start: its grade among those of its
 * time, and the epoch. Needs the alloc lock. */
uint32_t eng_first_flags_locked(struct eng_stripe *stripe, uint64_t object_bytes);

/* Counts a hit of the object that `ref` has pinned, and, where its counter rises, of its parts:
 * they stay and go with it. */
void eng_hit(struct eng_store *store, const struct eng_place *place, const struct eng_ref *ref);
/* Notes a miss. */
void eng_missed(struct eng_stripe *stripe, const struct eng_place *place);

/* Sets how the store is to evict; KEPT leaves it. In a segment that is being made, before its rings
 * are. */
void eng_retention_set(struct eng_store *store, enum eng_retention retention);

/* Feeds the shadow with what was sampled since, and sets mode and shares of the rings by what it
 * says. Needs the clean lock, not the alloc lock. */
void eng_policy_learn(struct eng_stripe *stripe);
