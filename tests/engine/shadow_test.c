/* Which mode the shadow asks for. */
#include <string.h>

#include "engine/entry.h"
#include "engine/base/hash.h"
#include "engine/shadow.h"
#include "tests/harness/test.h"

enum { UNITS = 32, CAPACITY = 1000 };

static struct eng_shadow shadow;

static void request(uint64_t key)
{
    eng_shadow_feed(&shadow,
                    eng_shadow_event(eng_mix64(key + 1), ENG_EVENT_HIT, eng_size_class(UNITS)));
}

TEST(inv_E74_scans_ask_for_f_and_fading_asks_for_r)
{
    struct test_rng rng = {test_seed()};
    memset(&shadow, 0, sizeof shadow);
    eng_shadow_reset(&shadow, CAPACITY, (uint64_t)CAPACITY * UNITS);
    uint64_t newest = 1u << 20;
    for (int i = 0; i < 200000; i++) { /* born steadily, asked for a few times soon after */
        newest += i % 3 == 0;
        request(newest - test_rng_below(&rng, 1 + (uint32_t)test_rng_below(&rng, 900)));
    }
    CHECK_EQ_INT(eng_shadow_mode(&shadow), ENG_MODE_R);
    for (int i = 0; i < 400000; i++) /* the same 800, and twice as much that comes once */
        request(i % 3 == 0 ? test_rng_below(&rng, 800) : (UINT64_C(1) << 30) + (uint64_t)i);
    CHECK_EQ_INT(eng_shadow_mode(&shadow), ENG_MODE_F);
    CHECK(shadow.switches >= 2);
}

TEST(inv_E75_events_of_any_kind_keep_it_whole)
{
    struct test_rng rng = {test_seed()};
    memset(&shadow, 0, sizeof shadow);
    eng_shadow_reset(&shadow, CAPACITY, (uint64_t)CAPACITY * UNITS);
    for (int i = 0; i < 300000; i++) {
        uint64_t hash = eng_mix64(test_rng_below(&rng, 20000) + 1);
        eng_shadow_feed(&shadow, eng_shadow_event(hash, (enum eng_event)test_rng_below(&rng, 3),
                                                  (unsigned)test_rng_below(&rng, 60)));
        for (int c = 0; c < 2; c++) {
            const struct eng_shadow_cache *cache = c == 0 ? &shadow.f : &shadow.r;
            CHECK(cache->small.units + cache->main.units <= shadow.capacity_units);
            CHECK(cache->small.n + cache->main.n <= ENG_SHADOW_NODES);
        }
    }
}

TEST(the_sample_follows_the_number_of_objects)
{
    memset(&shadow, 0, sizeof shadow);
    CHECK(eng_shadow_fit(&shadow, 500, 100000));
    CHECK_EQ_INT(shadow.shift, 0);
    CHECK(!eng_shadow_fit(&shadow, 1500, 100000));
    CHECK(eng_shadow_fit(&shadow, 1 << 20, 100000));
    CHECK_EQ_INT(shadow.shift, 10);
    CHECK(!eng_shadow_fit(&shadow, 1 << 20, 100000));
    CHECK(eng_shadow_fit(&shadow, 1000, 100000));
}
