#include "engine/directory.h"

#include "engine/base/bits.h"
#include "engine/base/hash.h"

enum {
    TAG_SHIFT = 48,
    OFFSET_SHIFT = 14,
    CLASS_SHIFT = 7,
    KIND_SHIFT = 5,
    ZONE_SHIFT = 4,
    KEEP_SHIFT = 3,
    SERIAL_MASK = 7,
};
#define OFFSET_MASK ((UINT64_C(1) << 34) - 1)

/* Four steps to each doubling, from 128 bytes on: class c holds up to (4 + c % 4) << (c / 4 + 5)
 * bytes. */
uint64_t eng_size_class_units(unsigned size_class)
{
    uint64_t bytes = (uint64_t)(4 + (size_class & 3)) << ((size_class >> 2) + 5);
    return eng_div_up(bytes, ENG_UNIT);
}

unsigned eng_size_class(uint64_t units)
{
    GYRE_CHECK(units > 0 && units <= UINT64_C(1) << 31);
    uint64_t bytes = units << ENG_UNIT_SHIFT;
    unsigned doubling = eng_log2_floor(bytes); /* 7 for one unit */
    uint64_t step = UINT64_C(1) << (doubling - 2);
    uint64_t quarters = eng_div_up(bytes, step) - 4; /* 0..4; 4 is the next doubling's first */
    return (doubling - ENG_UNIT_SHIFT) * 4 + (unsigned)quarters;
}

uint64_t eng_entry_make(uint16_t tag, uint64_t offset_units, uint64_t units, enum eng_kind kind,
                        uint8_t zone, bool keep, uint64_t serial)
{
    GYRE_CHECK(offset_units <= OFFSET_MASK && kind != ENG_KIND_EMPTY);
    return (uint64_t)tag << TAG_SHIFT | offset_units << OFFSET_SHIFT |
           (uint64_t)eng_size_class(units) << CLASS_SHIFT | (uint64_t)kind << KIND_SHIFT |
           (uint64_t)(zone & 1) << ZONE_SHIFT | (uint64_t)keep << KEEP_SHIFT |
           (serial & SERIAL_MASK);
}

uint64_t eng_entry_offset(uint64_t entry)
{
    return entry >> OFFSET_SHIFT & OFFSET_MASK;
}

uint64_t eng_entry_units_bound(uint64_t entry)
{
    return eng_size_class_units(entry >> CLASS_SHIFT & 0x7F);
}

uint16_t eng_entry_tag(uint64_t entry)
{
    return (uint16_t)(entry >> TAG_SHIFT);
}

enum eng_kind eng_entry_kind(uint64_t entry)
{
    return (enum eng_kind)(entry >> KIND_SHIFT & 3);
}

bool eng_entry_keep(uint64_t entry)
{
    return (entry >> KEEP_SHIFT & 1) != 0;
}

/* Maps the upper half of a hash onto [0, n) without a division. */
static uint32_t scale(uint64_t hash, uint32_t n)
{
    return (uint32_t)((hash >> 32) * n >> 32);
}

/* The two buckets of an entry add up to a number that follows from its tag, so either one gives the
 * other, whoever holds the entry and wherever it lies. */
uint32_t eng_bucket_other(const struct eng_stripe *stripe, uint32_t bucket, uint16_t tag)
{
    uint32_t sum = scale(eng_mix64((uint64_t)tag + 1), stripe->n_buckets);
    return sum >= bucket ? sum - bucket : sum + (stripe->n_buckets - bucket);
}

/* The stripe took its share of the hash's upper bits, so the buckets are drawn from other ones. */
struct eng_place eng_place_of_hash(const struct eng_stripe *stripe, uint64_t hash)
{
    uint64_t mixed = eng_mix64(hash ^ UINT64_C(0x2545F4914F6CDD1D));
    struct eng_place place = {.hash = hash, .tag = (uint16_t)mixed};
    place.bucket[0] = scale(mixed, stripe->n_buckets);
    place.bucket[1] = eng_bucket_other(stripe, place.bucket[0], place.tag);
    return place;
}

struct eng_place eng_place_of(struct eng_store *store, uint8_t pool, const uint8_t key[32],
                              struct eng_stripe **stripe_out)
{
    const struct eng_superblock *super = &store->super;
    uint64_t domain = eng_mix64(super->pools[pool].epoch << 8 | (pool + 1u));
    uint64_t hash = eng_key_hash(key, super->hash_seed[0] ^ domain, super->hash_seed[1]);
    *stripe_out = eng_stripe_of(store, hash);
    return eng_place_of_hash(*stripe_out, hash);
}
