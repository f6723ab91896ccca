/* How long requests take: one histogram for each role, operation and result, kept by each event
 * loop on its own and summed when somebody asks.
 *
 * Owns:    struct srv_latency owns its histograms, made when the first request of their kind ends.
 * Threads: srv_latency_add on the owner's thread; srv_latency_sum on any, at the same time; init
 *          and fini while nobody else looks.
 * Blocks:  never. Allocates: 200 bytes for each kind of request that has occurred.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "server/outcome.h"

/* Bucket i holds what took at most 2^(SRV_LATENCY_SHIFT + i) ns and more than half of that: from
 * 65 us to 69 s; the last one holds what took longer. */
enum { SRV_LATENCY_SHIFT = 16, SRV_LATENCY_BUCKETS = 22 };

/* [a] written by the owner only */
struct srv_histogram {
    _Atomic uint64_t counts[SRV_LATENCY_BUCKETS];
    _Atomic uint64_t sum_ns;
};

enum { SRV_LATENCY_KINDS = SRV_N_ROLES * (SRV_OPERATIONS_MAX + 1) * SRV_N_RESULTS };

struct srv_latency {
    _Atomic(struct srv_histogram *) kinds_[SRV_LATENCY_KINDS]; /* [a] */
};

/* The sum over all loops of one kind. */
struct srv_latency_total {
    uint64_t counts[SRV_LATENCY_BUCKETS];
    uint64_t sum_ns;
};

/* Which histogram a kind has; operation 0 is one that the handler did not name, 1 the role's first.
 */
static inline unsigned srv_latency_kind(enum srv_role_id role, unsigned operation,
                                        enum srv_result result)
{
    return ((unsigned)role * (SRV_OPERATIONS_MAX + 1) + operation) * SRV_N_RESULTS +
           (unsigned)result;
}

void srv_latency_init(struct srv_latency *latency_out);
void srv_latency_fini(struct srv_latency *latency);

/* Adds a request of `ns`. Without memory for a new kind it is not counted. */
void srv_latency_add(struct srv_latency *latency, unsigned kind, uint64_t ns);

/* Adds what has been counted for the kind; nothing if that has never occurred. */
void srv_latency_sum(const struct srv_latency *latency, unsigned kind,
                     struct srv_latency_total *total_inout);
