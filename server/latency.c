#include "server/latency.h"

#include <stdlib.h>
#include <string.h>

void srv_latency_init(struct srv_latency *latency)
{
    memset(latency, 0, sizeof *latency);
}

void srv_latency_fini(struct srv_latency *latency)
{
    for (unsigned i = 0; i < SRV_LATENCY_KINDS; i++)
        free(atomic_load_explicit(&latency->kinds_[i], memory_order_relaxed));
}

static struct srv_histogram *create(struct srv_latency *latency, unsigned kind)
{
    struct srv_histogram *histogram = calloc(1, sizeof *histogram);
    atomic_store_explicit(&latency->kinds_[kind], histogram, memory_order_release /* A */);
    return histogram;
}

static unsigned bucket_of(uint64_t ns)
{
    const uint64_t least = UINT64_C(1) << SRV_LATENCY_SHIFT;
    if (ns <= least)
        return 0;
    unsigned bucket = 64 - (unsigned)__builtin_clzll(ns - 1) - SRV_LATENCY_SHIFT;
    return bucket < SRV_LATENCY_BUCKETS ? bucket : SRV_LATENCY_BUCKETS - 1;
}

static inline void add(_Atomic uint64_t *to, uint64_t n)
{
    atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

void srv_latency_add(struct srv_latency *latency, unsigned kind, uint64_t ns)
{
    struct srv_histogram *histogram =
        atomic_load_explicit(&latency->kinds_[kind], memory_order_relaxed);
    if (histogram == NULL && (histogram = create(latency, kind)) == NULL)
        return;
    add(&histogram->counts[bucket_of(ns)], 1);
    add(&histogram->sum_ns, ns);
}

/* Why a stale answer is safe: counts only grow, and a reader shows a moment that is a little old;
 * the sum may hold a request that no bucket shows yet, or the other way round. */
void srv_latency_sum(const struct srv_latency *latency, unsigned kind,
                     struct srv_latency_total *total)
{
    const struct srv_histogram *histogram =
        atomic_load_explicit(&latency->kinds_[kind], memory_order_acquire); /* pairs with A */
    if (histogram == NULL)
        return;
    for (unsigned i = 0; i < SRV_LATENCY_BUCKETS; i++)
        total->counts[i] += atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);
    total->sum_ns += atomic_load_explicit(&histogram->sum_ns, memory_order_relaxed);
}
