/* Random numbers that are the same everywhere for the same seed, and memory that is there or ends
 * the program.
 *
 * Threads: one each. Blocks: never.
 */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct sim_random {
    uint64_t state;
};

/* SplitMix64. */
static inline uint64_t sim_next(struct sim_random *random)
{
    uint64_t z = random->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static inline uint64_t sim_below(struct sim_random *random, uint64_t n)
{
    return (sim_next(random) >> 32) * n >> 32; /* n below 2^32 */
}

/* In [0, 1). */
static inline double sim_unit(struct sim_random *random)
{
    return (double)(sim_next(random) >> 11) * 0x1p-53;
}

static inline double sim_normal(struct sim_random *random)
{
    double u = 1 - sim_unit(random); /* not 0 */
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * sim_unit(random));
}

static inline void *sim_alloc(size_t n, size_t size)
{
    void *at = calloc(n > 0 ? n : 1, size);
    if (at == NULL) {
        fprintf(stderr, "policy_sim: out of memory: take a shorter trace\n");
        exit(1);
    }
    return at;
}
