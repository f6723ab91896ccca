/* The index of a stripe: 64-byte buckets of seven one-word entries and a version, two candidate buckets per key.
 *
 *   63..48 tag | 47..14 offset in ENG_UNIT | 13..7 size class | 6..5 kind | 4 zone | 3 keep | 2..0 low bits of the serial
 *
 * Readers take no lock: they read the candidates between two looks at the versions. Writers hold the stripe's alloc lock.
 * Why a stale answer is safe: an entry only leads to a document, which is pinned, re-checked against the entry, and carries its own key,
 * serial and checksum.
 */
#pragma once

#include "engine/store.h"

enum eng_kind { ENG_KIND_EMPTY = 0, ENG_KIND_DOC = 1, ENG_KIND_VECTOR = 2, ENG_KIND_PART = 3 };

/* A key's place: computed once per operation. */
struct eng_place {
    uint64_t hash;
    uint32_t bucket[2];
    uint16_t tag;
};

struct eng_candidate {
    uint64_t entry;
    uint32_t slot;
    uint32_t slot_word; /* eng_slot.word as read with the entry */
};

#define ENG_CANDIDATES (2 * ENG_BUCKET_ENTRIES)

uint64_t eng_entry_make(uint16_t tag, uint64_t offset_units, uint64_t units, enum eng_kind kind, uint8_t zone, bool keep,
                        uint64_t serial);
uint64_t eng_entry_offset(uint64_t entry);      /* units */
uint64_t eng_entry_units_bound(uint64_t entry); /* at least the extent's length, at most 25 % more */
uint16_t eng_entry_tag(uint64_t entry);
enum eng_kind eng_entry_kind(uint64_t entry);
bool eng_entry_keep(uint64_t entry);

/* Where `key` belongs in a pool with this epoch; *stripe_out gets the stripe. */
struct eng_place eng_place_of(struct eng_store *store, uint8_t pool, const uint8_t key[32], struct eng_stripe **stripe_out);

/* The entries with the place's tag; *n_out 0 is an exact miss. Never blocks, but for a writer that is inside a bucket. */
void eng_directory_lookup(const struct eng_stripe *stripe, const struct eng_place *place, struct eng_candidate out[ENG_CANDIDATES],
                          size_t *n_out);

/* What an insertion pushed out. slot ENG_NO_SLOT: nothing. */
struct eng_displaced {
    uint32_t slot;
    uint64_t entry;
    uint64_t units;
};

/* Adds an entry: the emptier bucket, else moves one resident to its other bucket, else displaces one that may go. NO_SPACE when all are
 * kept ones. Fills the slot record and lists it in its granule. */
GYRE_MUST_USE gyre_err eng_directory_insert_locked(struct eng_stripe *stripe, const struct eng_place *place, uint64_t entry,
                                                   const struct eng_slot *record, struct eng_displaced *displaced_out);
/* Puts a new entry into the slot of an old one in a single store; false when the slot no longer holds `old`. */
bool eng_directory_replace_locked(struct eng_stripe *stripe, uint32_t slot, uint64_t old, uint64_t entry,
                                  const struct eng_slot *record);
/* Empties a slot; false when it no longer holds `old`. */
bool eng_directory_remove_locked(struct eng_stripe *stripe, uint32_t slot, uint64_t old);

/* Marks verified, or counts a hit, unless the slot has got another document since `slot_word` was read. */
void eng_slot_mark_verified(struct eng_slot *slot, uint32_t slot_word);
void eng_slot_count_hit(struct eng_slot *slot, uint32_t slot_word);
