/* A process killed at every step of its work, with another beside it and without. Needs the
 * simulation build. */
#include "engine/base/step.h"
#include "engine/keeper.h"
#include "engine/sync.h"
#include "tests/engine/processes.h"

struct death {
    unsigned left;
};

static gyre_err count_down(void *data, const char *name, bool can_fail)
{
    struct death *death = data;
    (void)name;
    (void)can_fail;
    if (--death->left == 0)
        kill(getpid(), SIGKILL);
    return GYRE_OK;
}

static void need_steps(void)
{
#ifndef GYRE_SIM
    test_skip("needs GYRE_SIM");
#endif
}

/* Stops at the first of these steps. */
static gyre_err stop_there(void *data, const char *name, bool can_fail)
{
    (void)can_fail;
    if (strcmp(name, data) == 0)
        kill(getpid(), SIGSTOP);
    return GYRE_OK;
}

static void replace_one(struct opening *o, struct board *board)
{
    static char step[] = "directory.bucket.odd";
    static const struct eng_step_hook hook = {stop_there, step};
    struct eng_store *store = open_ok(o);
    eng_step_install(&hook);
    object_put(store, 5, 2, len_small(5, 2));
    eng_step_install(NULL);
    atomic_store(&board->done, 1);
    CHECK_OK(eng_store_close(store, true));
}

/* The version of an object, 0 for none, 9 for BUSY. */
static uint32_t version_or_busy(struct eng_store *store, uint32_t number)
{
    struct eng_ref ref;
    uint8_t key[32];
    object_key(number, key);
    const struct eng_want want = {key, ENG_POOL_MAIN, false, 0};
    gyre_err err = eng_find(store, &want, 0, 0, &ref);
    eng_ref_release(&ref);
    return err == GYRE_BUSY ? 9 : object_version(store, number, len_small);
}

TEST(inv_E55_a_process_stopped_inside_a_bucket_stops_no_reader)
{
    struct opening o;
    struct board *board = board_make();
    int status;

    need_steps();
    opening_init(&o, test_path("data"));
    o.open.stripes = 1;
    struct eng_store *store = open_ok(&o);
    for (uint32_t n = 0; n < 40; n++)
        object_put(store, n, 1, len_small(n, 1));
    store->lock_wait_ns = 50000000;
    pid_t pid = start(replace_one, &o, board);
    CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
    uint32_t found = 0;
    uint32_t busy = 0;
    for (uint32_t n = 0; n < 40; n++) {
        uint32_t version = version_or_busy(store, n);
        found += version == 1;
        busy += version == 9;
        CHECK(n != 5 || version == 9);
    }
    CHECK(found > 30 && found + busy == 40); /* a few lie in the same buckets */
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
    store->lock_wait_ns = UINT64_C(60000000000);
    for (uint32_t n = 0; n < 40; n++)
        CHECK_EQ_INT(version_or_busy(store, n), 1);
    (void)eng_processes_reap(store);
    check_index(store);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}

/* Versions grow, so what the parent finds must be what was there before or later. */
struct script {
    uint32_t round;
    unsigned step;
    bool keeper;
};

enum { SCRIPT_KEYS = 12 };

static void run_script(struct eng_store *store, uint32_t round)
{
    for (uint32_t n = 0; n < SCRIPT_KEYS; n++)
        object_put(store, n, round, len_small(n, round));
    CHECK_OK(object_delete(store, 3, false));
    CHECK_OK(object_delete(store, 7, true));
    object_put(store, 3, round, len_small(3, round));
    object_put(store, 7, round, len_small(7, round));
    for (uint32_t n = 100; n < 103; n++) /* beyond what is clean: the hand has to move */
        object_put(store, n, round, 600000);
    CHECK_OK(eng_sync_store(store, false));
}

/* Returns whether the script came to its end. */
static bool dies_in_script(struct opening *o, const struct script *script)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        struct death death = {script->step};
        const struct eng_step_hook hook = {count_down, &death};
        eng_step_install(&hook);
        struct eng_store *store = open_ok(o);
        if (!script->keeper)
            eng_keeper_stop(store);
        run_script(store, script->round);
        CHECK_OK(eng_store_close(store, true));
        eng_step_install(NULL);
        fflush(stderr);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
          (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    return WIFEXITED(status);
}

/* Only with `fifo` it is known who is evicted. */
static bool may_forget(const struct eng_store *store)
{
    return store->stripes[0].rt->policy.retention != ENG_RETENTION_FIFO;
}

/* No object is gone but the two that were being deleted; none is older than the last whole run. */
static void expect_script(struct eng_store *store, uint32_t round)
{
    for (uint32_t n = 0; n < SCRIPT_KEYS; n++) {
        uint32_t version = object_version(store, n, len_small);
        bool deleted = n == 3 || n == 7 || may_forget(store);
        CHECK_MSG((deleted && version == 0) || version == round || version == round - 1,
                  "round %u: object %u is version %u", round, n, version);
    }
}

static void fill(struct eng_store *store)
{
    for (uint32_t n = 1000; n < 1300; n++)
        object_put(store, n, 1, 240000);
    for (uint32_t n = 0; n < SCRIPT_KEYS; n++)
        object_put(store, n, 1, len_small(n, 1));
    CHECK_OK(eng_sync_store(store, false));
}

/* A part of the steps in a short run, another one by each seed. */
static unsigned stride_of(enum eng_retention retention)
{
    return test_full() ? 1 : retention == ENG_RETENTION_FIFO ? 5 : 17;
}

static unsigned first_step(unsigned stride)
{
    return 1 + (unsigned)(test_seed() % stride);
}

static void die_beside_others(enum eng_retention retention)
{
    struct opening o;
    unsigned stride = stride_of(retention);

    need_steps();
    opening_init(&o, test_path("data"));
    o.open.stripes = 1;
    o.open.retention = retention;
    o.open.sync_interval_ms = 0;
    struct eng_store *store = open_ok(&o);
    eng_keeper_stop(store);
    fill(store);
    bool ended = false;
    unsigned step = first_step(stride);
    for (uint32_t round = 2; !ended; round++, step += stride) {
        const struct script script = {round, step, false};
        ended = dies_in_script(&o, &script);
        uint32_t version = object_version(store, 0, len_small);
        CHECK(version == round || version == round - 1 || may_forget(store));
        (void)eng_processes_reap(store);
        expect_script(store, round);
        CHECK_EQ_INT(eng_pin_count(store), 0);
        check_index(store);
        run_script(store, round);
        expect_script(store, round);
        CHECK(object_version(store, 3, len_small) == round || may_forget(store));
    }
    printf("%u steps\n", step);
    CHECK(step > 100);
    check_store(store, false);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}

TEST(inv_E50_a_death_at_any_step_leaves_what_those_beside_it_go_on_with)
{
    die_beside_others(ENG_RETENTION_FIFO);
}

TEST(inv_E50_a_death_at_any_step_of_choosing_does_too)
{
    die_beside_others(ENG_RETENTION_FREQUENCY);
}

static void die_before_the_next(enum eng_retention retention)
{
    struct opening o;
    unsigned stride = stride_of(retention);

    need_steps();
    opening_init(&o, test_path("data"));
    o.open.stripes = 1;
    o.open.retention = retention;
    o.open.sync_interval_ms = 0;
    struct eng_store *store = open_ok(&o);
    fill(store);
    CHECK_OK(eng_store_close(store, true));
    bool ended = false;
    unsigned step = first_step(stride);
    for (uint32_t round = 2; !ended; round++, step += stride) {
        const struct script script = {round, step, false};
        ended = dies_in_script(&o, &script);
        store = open_ok(&o);
        expect_script(store, round);
        CHECK_EQ_INT(eng_pin_count(store), 0);
        check_index(store);
        run_script(store, round);
        CHECK_OK(eng_store_close(store, step % 3 != 0));
    }
    printf("%u steps\n", step);
    CHECK(step > 100);
    opening_fini(&o);
}

TEST(inv_E50_a_death_at_any_step_leaves_what_the_next_opening_takes_up)
{
    die_before_the_next(ENG_RETENTION_FIFO);
}

TEST(inv_E50_a_death_at_any_step_of_choosing_leaves_it_too)
{
    die_before_the_next(ENG_RETENTION_FREQUENCY);
}
