/* The lock of one process, its condition, and the waits. */
#include "engine/base/lock.h"

#include "engine/base/rank.h"
#include "engine/base/sys.h"
#include "engine/base/thread.h"
#include "tests/harness/test.h"

struct state {
    struct eng_lock lock;
    struct eng_cond cond;
    int counter;
    bool ready;
    bool tried;
};

static void init(struct state *state)
{
    *state = (struct state){0};
    eng_lock_init(&state->lock, 3);
    eng_cond_init(&state->cond);
}

static void fini(struct state *state)
{
    eng_cond_fini(&state->cond);
    eng_lock_fini(&state->lock);
}

static void count(void *data)
{
    struct state *state = data;
    for (int i = 0; i < 10000; i++) {
        eng_lock_acquire(&state->lock);
        state->counter++;
        eng_lock_release(&state->lock);
    }
}

TEST(threads_count_together)
{
    struct state state;
    struct eng_thread threads[4];
    init(&state);
    for (int i = 0; i < 4; i++)
        CHECK_OK(eng_thread_start(&threads[i], "count", count, &state));
    for (int i = 0; i < 4; i++)
        eng_thread_join(&threads[i]);
    CHECK_EQ_INT(state.counter, 40000);
    fini(&state);
}

static void try_once(void *data)
{
    struct state *state = data;
    state->tried = eng_lock_try(&state->lock);
    if (state->tried)
        eng_lock_release(&state->lock);
}

TEST(trying_does_not_wait)
{
    struct state state;
    struct eng_thread thread;
    init(&state);
    eng_lock_acquire(&state.lock);
    CHECK_OK(eng_thread_start(&thread, "try", try_once, &state));
    eng_thread_join(&thread);
    CHECK(!state.tried);
    eng_lock_release(&state.lock);
    CHECK_OK(eng_thread_start(&thread, "try", try_once, &state));
    eng_thread_join(&thread);
    CHECK(state.tried);
    fini(&state);
}

static void make_ready(void *data)
{
    struct state *state = data;
    eng_lock_acquire(&state->lock);
    state->ready = true;
    eng_cond_broadcast(&state->cond);
    eng_lock_release(&state->lock);
}

TEST(a_wait_ends_with_the_signal)
{
    struct state state;
    struct eng_thread thread;
    init(&state);
    eng_lock_acquire(&state.lock);
    CHECK_OK(eng_thread_start(&thread, "ready", make_ready, &state));
    while (!state.ready)
        eng_cond_wait(&state.cond, &state.lock);
    CHECK(eng_rank_held(3));
    eng_lock_release(&state.lock);
    eng_thread_join(&thread);
    fini(&state);
}

TEST(a_wait_ends_at_its_deadline)
{
    struct state state;
    init(&state);
    eng_lock_acquire(&state.lock);
    CHECK(!eng_cond_wait_until(&state.cond, &state.lock, 1));
    uint64_t deadline = eng_clock_mono_ns() + 2000000;
    while (eng_cond_wait_until(&state.cond, &state.lock, deadline)) {
    }
    CHECK(eng_clock_mono_ns() >= deadline);
    eng_lock_release(&state.lock);
    CHECK(!eng_rank_any());
    fini(&state);
}
