/* What if: two small caches of keys alone, fed with a sample of the requests, that show whether
 * newcomers had better pass through S (mode F) or go to M at once (mode R).
 *
 * A key is sampled by its hash, so all requests for it are seen or none. A cache k times smaller,
 * fed with one key in k, has about the hit ratio of the whole (Waldspurger et al., 2015). Both
 * caches count hits with less and less weight for older ones; the mode changes when the other
 * cache is ahead by a margin.
 *
 * Owns:    nothing: flat memory of the caller, indices only, shared by processes.
 * Threads: one at a time (the stripe's clean lock). Blocks: never. Allocates: nothing.
 * Keeps:   E74, E75.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/ghost.h"
#include "engine/policy.h"

enum {
    ENG_SHADOW_NODES = 2048, /* objects a shadow cache holds at most */
    ENG_SHADOW_HEADS = 2048,
    ENG_SHADOW_GHOST = 4096,
    ENG_SHADOW_WANTED = 1024, /* objects a shadow cache should hold */
};

struct eng_shadow_node {
    uint32_t hash; /* 0: free */
    uint32_t units;
    uint16_t next; /* of the same head, or free; ENG_SHADOW_NODES ends */
    uint8_t hits, in_main;
};

/* Nodes in the order of their coming. */
struct eng_shadow_queue {
    uint32_t first, n;
    uint64_t units;
    uint16_t at[ENG_SHADOW_NODES];
};

/* One cache: mode F with both queues, mode R with the main one alone. */
struct eng_shadow_cache {
    struct eng_shadow_queue small, main;
    uint32_t n_free_, free;
    uint64_t score; /* hits, 16 binary places, older ones weigh less */
    uint64_t requests, hits;
    uint16_t heads[ENG_SHADOW_HEADS];
    struct eng_shadow_node nodes[ENG_SHADOW_NODES];
};

struct eng_shadow {
    uint32_t shift;           /* one key in 2^shift is sampled */
    uint32_t ready;           /* 1: the caches are initialised */
    uint64_t capacity_units;  /* of each cache; 0: nothing is simulated */
    uint64_t samples, in_age; /* requests, since the scores were aged last */
    uint64_t weight;          /* requests, 16 binary places, aged as the scores are */
    uint64_t switches;
    uint32_t mode, lead; /* the better one lately; ages the other has been ahead since */
    struct eng_shadow_cache f, r;
    struct eng_ghost ghost;
    uint16_t ghost_table[ENG_SHADOW_GHOST];
};

/* What happened to a sampled key: its hash with the low bits replaced. 8..7 kind, 6..0 size class
 * of the object (entry.h), where it is known. */
enum eng_event { ENG_EVENT_HIT = 0, ENG_EVENT_MISS = 1, ENG_EVENT_PUT = 2 };

static inline uint64_t eng_shadow_event(uint64_t hash, enum eng_event kind, unsigned size_class)
{
    return (hash & ~UINT64_C(0x1ff)) | (uint64_t)kind << 7 | (size_class & 0x7f);
}

/* Whether a key is in the sample of one in 2^shift. */
static inline bool eng_shadow_samples(uint64_t hash, uint32_t shift)
{
    return (hash * UINT64_C(0x9E3779B97F4A7C15) >> 32 & ((UINT64_C(1) << shift) - 1)) == 0;
}

/* A weight or score as a number of requests. */
static inline uint64_t eng_shadow_count(uint64_t weight)
{
    return weight >> 16;
}

/* Empties both caches and sets what they stand for: `objects` of the stripe's `stripe_units`. */
void eng_shadow_reset(struct eng_shadow *shadow, uint64_t objects, uint64_t stripe_units);
/* The same if the number of objects has left what the sample was made for, or anything in it cannot
 * be; whether it did. */
bool eng_shadow_fit(struct eng_shadow *shadow, uint64_t objects, uint64_t stripe_units);
/* Takes one sampled event. A miss is a request that the caches may have held; what they then take
 * in is told by the put that follows it, if one does. */
void eng_shadow_feed(struct eng_shadow *shadow, uint64_t event);
/* The mode the samples ask for. */
enum eng_mode eng_shadow_mode(const struct eng_shadow *shadow);
