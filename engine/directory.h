/* The index of a stripe: 64-byte buckets of seven one-word entries and a version, two candidate
 * buckets per key.
 *
 * Threads: functions named _locked need the stripe's alloc lock; the others need nothing.
 * Blocks:  never, but for a writer that is inside a bucket. Allocates: nothing.
 * Keeps:   E1, E2, E3, E4.
 */
#pragma once

#include "engine/entry.h"
#include "engine/store.h"

/* A key's place: computed once per operation. */
struct eng_place {
    uint64_t hash;
    uint32_t bucket[2];
    uint16_t tag;
};

/* An entry and what its slot said at the same moment. */
struct eng_candidate {
    uint64_t entry;
    uint32_t slot;
    uint32_t slot_word; /* eng_slot.word */
};

#define ENG_CANDIDATES (2 * ENG_BUCKET_ENTRIES)

/* What a key's two buckets held at one moment. */
struct eng_candidates {
    size_t n; /* 0: the key is not in the directory */
    uint32_t version[2];
    struct eng_candidate at[ENG_CANDIDATES];
};

/* Whether nothing could be seen, because a process was stopped inside one of the buckets. */
static inline bool eng_candidates_stalled(const struct eng_candidates *candidates)
{
    return (candidates->version[0] & 1) != 0;
}

/* eng_slot.word: generation 22 | verified 1 | hits 2 | estimate 1 | grade 2 | epoch 4. */
#define ENG_SLOT_GENERATION UINT32_C(0xFFFFFC00)
#define ENG_SLOT_GENERATION_ONE UINT32_C(0x400)
#define ENG_SLOT_VERIFIED UINT32_C(0x200)
#define ENG_SLOT_HITS UINT32_C(0x180)
#define ENG_SLOT_HIT UINT32_C(0x80)
#define ENG_SLOT_ESTIMATE UINT32_C(0x40) /* `units` is no more than an upper bound */
#define ENG_SLOT_GRADE UINT32_C(0x30)    /* enum eng_grade */
#define ENG_SLOT_GRADE_SHIFT 4
#define ENG_SLOT_EPOCH UINT32_C(0x0F) /* of writing or of the last hit that counted */
/* What a document takes along when its entry moves or its record is given. */
#define ENG_SLOT_FLAGS (~ENG_SLOT_GENERATION)

/* Where `key` belongs in a pool with its present epoch; *stripe_out gets the stripe. */
struct eng_place eng_place_of(struct eng_store *store, uint8_t pool, const uint8_t key[32],
                              struct eng_stripe **stripe_out);
/* The same for another epoch of the pool (pool.h). */
struct eng_place eng_place_in_epoch(struct eng_store *store, uint8_t pool, uint64_t epoch,
                                    const uint8_t key[32], struct eng_stripe **stripe_out);
/* Where a hash belongs in this stripe. */
struct eng_place eng_place_of_hash(const struct eng_stripe *stripe, uint64_t hash);
/* The other bucket of an entry that lies in `bucket`; may be the same one. */
uint32_t eng_bucket_other(const struct eng_stripe *stripe, uint32_t bucket, uint16_t tag);

/* The entries with the place's tag, all as they stood at one moment; none, and stalled, where a
 * writer that was stopped is inside a bucket for too long. */
void eng_directory_lookup(struct eng_stripe *stripe, const struct eng_place *place,
                          struct eng_candidates *out);
/* Whether nothing in the place's buckets has changed since `seen` was looked up. */
bool eng_directory_unchanged_locked(const struct eng_stripe *stripe, const struct eng_place *place,
                                    const struct eng_candidates *seen);

/* What an insertion pushed out. slot ENG_NO_SLOT: nothing. */
struct eng_displaced {
    uint32_t slot;
    uint64_t entry;
    uint64_t units;
};

/* Adds an entry: to the emptier bucket, else one resident moves to its other bucket, else one that
 * may go is displaced. Of `record`, units, tenant, retention, pool and the flags of its word
 * count. NO_SPACE when all 14 are to be kept. */
GYRE_MUST_USE gyre_err eng_directory_insert_locked(struct eng_stripe *stripe,
                                                   const struct eng_place *place, uint64_t entry,
                                                   const struct eng_slot *record,
                                                   struct eng_displaced *displaced_out);
/* Puts a new entry into the slot of an old one in a single store; false when the slot no longer
 * holds `old`. */
bool eng_directory_replace_locked(struct eng_stripe *stripe, uint32_t slot, uint64_t old,
                                  uint64_t entry, const struct eng_slot *record);
/* Empties a slot; false when it no longer holds `old`. */
bool eng_directory_remove_locked(struct eng_stripe *stripe, uint32_t slot, uint64_t old);
/* Where an entry is that was in `slot` before: there, or moved to its other bucket; ENG_NO_SLOT if
 * gone. The caller pins its extent, so no other document can have the same entry. */
uint32_t eng_directory_locate_locked(const struct eng_stripe *stripe, uint32_t slot,
                                     uint64_t entry);
/* Gives a slot record to an entry that is in the directory without one, when a store is opened. */
void eng_directory_adopt_locked(struct eng_stripe *stripe, uint32_t slot,
                                const struct eng_slot *record);
/* Makes directory, slot records, lists and totals agree after a holder of the alloc lock died. */
void eng_directory_repair_locked(struct eng_stripe *stripe);

/* The entry in a slot; exact under the alloc lock, else a moment's view. */
uint64_t eng_directory_entry(const struct eng_stripe *stripe, uint32_t slot);
/* First slot whose document starts in a granule, then the next of the same granule; ENG_NO_SLOT
 * ends. */
uint32_t eng_granule_first_locked(const struct eng_stripe *stripe, uint64_t granule);
uint32_t eng_granule_next_locked(const struct eng_stripe *stripe, uint32_t slot);

/* Marks verified, or counts a hit, unless the slot has got another document since `slot_word` was
 * read. */
void eng_slot_mark_verified(struct eng_slot *slot, uint32_t slot_word);
/* Whether it was counted: the counter ends at three, and of the hits in one epoch one counts. */
bool eng_slot_count_hit(struct eng_slot *slot, uint32_t slot_word, uint32_t epoch);
/* Notes the epoch of a hit on a counter that has ended; whether it is a new one. */
bool eng_slot_note_epoch(struct eng_slot *slot, uint32_t slot_word, uint32_t epoch);
/* Takes a hit away, if there is one. */
void eng_slot_cool(struct eng_slot *slot);
/* Takes the verified mark away: the next reader checks the document again. */
void eng_slot_distrust(struct eng_slot *slot);
/* The same for all slots of a stripe. */
void eng_directory_distrust(struct eng_stripe *stripe);
