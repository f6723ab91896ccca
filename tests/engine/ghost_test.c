/* Who is remembered, and for how long. */
#include <stdio.h>
#include <string.h>

#include "engine/ghost.h"
#include "tests/harness/test.h"

enum { PLACES = 16384, WINDOW = 4096 };

static uint16_t table[PLACES];

TEST(inv_E71_an_eviction_is_remembered_for_its_window_and_forgotten_after)
{
    struct eng_ghost ghost = {0};
    memset(table, 0, sizeof table);
    uint64_t lost = 0, late = 0;
    for (uint64_t n = 0; n < 40 * WINDOW; n++) {
        eng_ghost_put(&ghost, table, PLACES, n, WINDOW);
        CHECK(eng_ghost_has(&ghost, table, PLACES, n));
        if (n >= WINDOW * 14 / 16)
            lost += !eng_ghost_has(&ghost, table, PLACES, n - WINDOW * 14 / 16);
        if (n >= WINDOW * 17 / 16)
            late += eng_ghost_has(&ghost, table, PLACES, n - WINDOW * 17 / 16);
    }
    printf("of %d: %ju lost, %ju known too long\n", 40 * WINDOW, (uintmax_t)lost, (uintmax_t)late);
    CHECK(lost * 200 < 40 * WINDOW); /* sets that are full */
    CHECK(late * 100 < 40 * WINDOW); /* equal fingerprints */
}

TEST(who_was_never_there_is_hardly_ever_found)
{
    struct eng_ghost ghost = {0};
    memset(table, 0, sizeof table);
    uint64_t found = 0;
    for (uint64_t n = 0; n < 4 * WINDOW; n++)
        eng_ghost_put(&ghost, table, PLACES, n, WINDOW);
    for (uint64_t n = 0; n < 100000; n++)
        found += eng_ghost_has(&ghost, table, PLACES, (UINT64_C(1) << 40) + n);
    CHECK(found < 400); /* one in 256 if all places were taken */
}

TEST(taking_forgets)
{
    struct eng_ghost ghost = {0};
    memset(table, 0, sizeof table);
    eng_ghost_put(&ghost, table, PLACES, 7, WINDOW);
    CHECK(eng_ghost_take(&ghost, table, PLACES, 7));
    CHECK(!eng_ghost_take(&ghost, table, PLACES, 7));
    CHECK_EQ_U64(ghost.finds, 1);
}

TEST(any_bytes_are_safe)
{
    struct test_rng rng = {test_seed()};
    struct eng_ghost ghost;
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < PLACES; i++)
            table[i] = (uint16_t)test_rng_below(&rng, 65536);
        for (size_t i = 0; i < sizeof ghost; i++)
            ((uint8_t *)&ghost)[i] = (uint8_t)test_rng_below(&rng, 256);
        for (uint64_t n = 0; n < 100; n++) {
            eng_ghost_put(&ghost, table, PLACES, n, test_rng_below(&rng, 100000));
            (void)eng_ghost_take(&ghost, table, PLACES, n / 2);
        }
    }
}
