#include "engine/directory.h"

#include "engine/base/hash.h"
#include "engine/pool.h"

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
    return eng_place_in_epoch(store, pool, eng_pool_epoch(store, pool), key, stripe_out);
}

struct eng_place eng_place_in_epoch(struct eng_store *store, uint8_t pool, uint64_t epoch,
                                    const uint8_t key[32], struct eng_stripe **stripe_out)
{
    const struct eng_superblock *super = &store->super;
    uint64_t domain = eng_mix64(epoch << 8 | (pool + 1u));
    uint64_t hash = eng_key_hash(key, super->hash_seed[0] ^ domain, super->hash_seed[1]);
    *stripe_out = eng_stripe_of(store, hash);
    return eng_place_of_hash(*stripe_out, hash);
}
