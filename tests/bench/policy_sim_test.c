/* The store's eviction against LRU and FIFO on made-up streams, through the engine's own policy and
 * allocator on a medium without bodies. The short form is smaller by a divisor; what is lost to the
 * ends of segments then is more, and so the bounds are a little lower than those of the long form.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/sim/policy.h"
#include "engine/policy.h"
#include "tests/harness/test.h"

struct bar {
    const char *stream;
    uint32_t divisor;           /* of the short form */
    double above_lru, long_lru; /* points of hit ratio, at least; the same with --full */
    double amplification;       /* at most */
};

static double ratio_of(const struct sim_result *result)
{
    return 100.0 * (double)result->hits / (double)result->requests;
}

static const struct sim_stream *stream_of(const char *name)
{
    for (size_t i = 0; i < sim_n_streams; i++)
        if (strcmp(sim_streams[i].name, name) == 0)
            return &sim_streams[i];
    return NULL;
}

static void measure(const struct bar *bar)
{
    struct sim_requests requests;
    struct sim_result ours, lru = {0}, fifo = {0};
    char message[1000];
    uint64_t capacity, segment;
    const struct sim_stream *stream = stream_of(bar->stream);
    CHECK(stream != NULL);
    sim_stream_make(stream, test_full() ? 1 : bar->divisor, test_seed(), &requests, &capacity,
                    &segment);
    struct sim_run run = {&requests, capacity, requests.n / 4, NULL, NULL};
    const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : test_tmpdir();
    struct sim_store store = {
        .dir = memory, .segment_bytes = segment, .stripes = 1, .retention = ENG_RETENTION_AUTO};
    CHECK_MSG(sim_store_run(&run, &store, &ours, message, sizeof message), "%s", message);
    sim_reference_of("lru")->run(&run, &lru);
    sim_reference_of("fifo")->run(&run, &fifo);
    double wa = 1 + (double)ours.rewritten / (double)ours.inserted;
    printf("%s: %.2f, LRU %.2f, FIFO %.2f, write amplification %.3f\n", bar->stream,
           ratio_of(&ours), ratio_of(&lru), ratio_of(&fifo), wa);
    double wanted = test_full() ? bar->long_lru : bar->above_lru;
    CHECK_MSG(ratio_of(&ours) >= ratio_of(&lru) + wanted, "%s: %.2f, LRU %.2f", bar->stream,
              ratio_of(&ours), ratio_of(&lru));
    CHECK_MSG(ratio_of(&ours) >= ratio_of(&fifo), "%s: %.2f, FIFO %.2f", bar->stream,
              ratio_of(&ours), ratio_of(&fifo));
    CHECK_MSG(wa <= bar->amplification, "%s: write amplification %.3f", bar->stream, wa);
    sim_requests_fini(&requests);
}

TEST(inv_E78_blocks_are_kept_better_than_by_lru)
{
    measure(&(struct bar){"kv", 4, 1.4, 1.8, 1.10});
}

TEST(inv_E78_scans_do_not_displace_what_is_asked_for)
{
    measure(&(struct bar){"kv-scan", 4, 4.5, 5.0, 1.10});
}

TEST(inv_E78_bursts_and_loops_are_no_worse_than_under_lru)
{
    measure(&(struct bar){"burst", 4, -0.3, -0.3, 1.10});
    measure(&(struct bar){"loop", 4, 5, 5, 1.10});
}

TEST(inv_E78_what_fades_is_no_worse_than_under_lru)
{
    measure(&(struct bar){"decay", 4, -0.6, -0.3, 1.10});
}

TEST(inv_E78_objects_of_many_sizes)
{
    measure(&(struct bar){"web", 16, 1, 5, 1.15});
}
