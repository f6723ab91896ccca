/* The flight table: one owner a row, how it ended, and what a death leaves. */
#include "engine/flight.h"

#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/step.h"
#include "engine/base/sys.h"
#include "tests/engine/processes.h"

static void key_of(uint32_t n, uint8_t key[32])
{
    memset(key, 0, 32);
    memcpy(key, &n, sizeof n);
}

static gyre_err take(struct eng_store *store, uint32_t n, struct eng_flight_ref *ref)
{
    uint8_t key[32];
    key_of(n, key);
    return eng_flight_begin(store, ENG_POOL_MAIN, key, ref);
}

static struct eng_store *open_one(struct opening *o)
{
    opening_init(o, test_path("data"));
    o->open.stripes = 1;
    return open_ok(o);
}

TEST(inv_E56_a_flight_has_one_owner_and_an_end)
{
    struct opening o;
    struct eng_store *store = open_one(&o);
    struct eng_flight_ref mine, other;
    enum eng_flight_end how;
    static const enum eng_flight_end ends[] = {ENG_FLIGHT_STORED, ENG_FLIGHT_PASSED,
                                               ENG_FLIGHT_GIVEN_UP};
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_OK(take(store, 1, &mine));
        CHECK_ERR(take(store, 1, &other), GYRE_EXISTS);
        CHECK(other.row == mine.row && other.generation == mine.generation);
        CHECK_EQ_INT(other.process, store->process_index);
        CHECK(!eng_flight_ended(store, &other, &how));
        CHECK(!eng_flight_wait(store, &other, eng_clock_mono_ns() + 1000000, &how));
        uint32_t ended = eng_flights_ended(store);
        eng_flight_end(store, &mine, ends[i]);
        CHECK(eng_flight_wait(store, &other, 0, &how));
        CHECK_EQ_INT(how, ends[i]);
        CHECK_EQ_INT(eng_flights_ended(store), ended + 1);
        eng_flight_end(store, &mine, ENG_FLIGHT_STORED); /* no second time */
        CHECK_EQ_INT(eng_flights_ended(store), ended + 1);
    }
    CHECK_OK(take(store, 1, &mine));
    eng_flight_end(store, &mine, ENG_FLIGHT_STORED);
    CHECK(eng_flight_ended(store, &other, &how)); /* two uses ago: nobody knows how */
    CHECK_EQ_INT(how, ENG_FLIGHT_GIVEN_UP);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}

TEST(a_full_table_says_so_and_is_empty_after_a_reclaim)
{
    struct opening o;
    struct eng_store *store = open_one(&o);
    struct eng_flight_ref ref;
    uint32_t taken = 0, refused = 0;
    for (uint32_t n = 0; n < 4 * ENG_FLIGHTS; n++) {
        gyre_err err = take(store, n, &ref);
        CHECK(err == GYRE_OK || err == GYRE_NO_SPACE);
        CHECK((err == GYRE_OK) == (ref.row != ENG_FLIGHT_NONE));
        taken += err == GYRE_OK;
        refused += err == GYRE_NO_SPACE;
    }
    CHECK(taken > ENG_FLIGHTS * 9 / 10 && refused > 0);
    eng_flight_end(store, &ref, ENG_FLIGHT_STORED); /* without a row: nothing to do */
    CHECK_EQ_INT(eng_flights_reclaim(store, store->process_index), taken);
    CHECK_EQ_INT(eng_flights_reclaim(store, store->process_index), 0);
    CHECK_OK(take(store, 1, &ref));
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}

static gyre_err die_there(void *data, const char *name, bool can_fail)
{
    (void)can_fail;
    if (strcmp(name, data) == 0)
        kill(getpid(), SIGKILL);
    return GYRE_OK;
}

static void die_taking(struct opening *o, struct board *board)
{
    static char step[] = "flight.begin.hash";
    static const struct eng_step_hook hook = {die_there, step};
    struct eng_store *store = open_ok(o);
    struct eng_flight_ref ref;
    CHECK_OK(take(store, 1, &ref));
    eng_step_install(&hook);
    (void)!take(store, 2, &ref);
    atomic_store(&board->done, 1);
}

TEST(inv_E56_a_death_inside_the_table_leaves_it_whole)
{
#ifndef GYRE_SIM
    test_skip("needs GYRE_SIM");
#endif
    struct opening o;
    struct board *board = board_make();
    struct eng_flight_ref ref;
    enum eng_flight_end how;
    int status;
    struct eng_store *store = open_one(&o);
    pid_t pid = start(die_taking, &o, board);
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK_ERR(take(store, 1, &ref), GYRE_EXISTS);
    uint64_t repairs = 0;
    for (size_t i = 0; i < ENG_COUNTER_SHARDS; i++)
        repairs += atomic_load(&store->process->counters[i].lock_repairs);
    CHECK(repairs > 0);
    CHECK(eng_flight_wait(store, &ref, eng_clock_mono_ns() + UINT64_C(60000000000), &how));
    CHECK_EQ_INT(how, ENG_FLIGHT_GIVEN_UP);
    CHECK_OK(take(store, 1, &ref));
    CHECK_OK(take(store, 2, &ref));
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}
