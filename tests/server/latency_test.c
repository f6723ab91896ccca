/* Histograms of what requests took: the right bucket, the right kind, sums over loops. */
#include "server/latency.h"

#include "tests/harness/test.h"

static unsigned only_bucket(uint64_t ns)
{
    struct srv_latency latency;
    struct srv_latency_total total = {0};
    unsigned found = SRV_LATENCY_BUCKETS;
    srv_latency_init(&latency);
    srv_latency_add(&latency, 7, ns);
    srv_latency_sum(&latency, 7, &total);
    for (unsigned i = 0; i < SRV_LATENCY_BUCKETS; i++) {
        if (total.counts[i] == 0)
            continue;
        CHECK_EQ_U64(total.counts[i], 1);
        CHECK_EQ_U64(found, SRV_LATENCY_BUCKETS);
        found = i;
    }
    CHECK_EQ_U64(total.sum_ns, ns);
    srv_latency_fini(&latency);
    return found;
}

TEST(a_bucket_ends_with_its_bound)
{
    CHECK_EQ_U64(only_bucket(0), 0);
    CHECK_EQ_U64(only_bucket(UINT64_MAX), SRV_LATENCY_BUCKETS - 1);
    for (unsigned i = 0; i < SRV_LATENCY_BUCKETS - 1; i++) {
        uint64_t bound = UINT64_C(1) << (SRV_LATENCY_SHIFT + i);
        CHECK_EQ_U64(only_bucket(bound), i);
        CHECK_EQ_U64(only_bucket(bound + 1), i + 1);
    }
}

TEST(kinds_do_not_mix)
{
    static struct srv_latency one, two;
    struct srv_latency_total total = {0};
    srv_latency_init(&one);
    srv_latency_init(&two);
    unsigned last = srv_latency_kind(SRV_N_ROLES - 1, SRV_OPERATIONS_MAX, SRV_N_RESULTS - 1);
    CHECK_EQ_U64(last, SRV_LATENCY_KINDS - 1);
    srv_latency_add(&one, last, 5);
    srv_latency_add(&two, last, 6);
    srv_latency_add(&two, 0, 100);
    srv_latency_sum(&one, last, &total);
    srv_latency_sum(&two, last, &total);
    CHECK_EQ_U64(total.counts[0], 2);
    CHECK_EQ_U64(total.sum_ns, 11);
    srv_latency_fini(&one);
    srv_latency_fini(&two);
}
