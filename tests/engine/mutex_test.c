/* The shared mutex excludes, survives its holder, and is lost when nobody repairs. */
#include "engine/base/mutex.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/rank.h"
#include "tests/harness/test.h"

struct shared {
    struct eng_mutex mutex;
    struct eng_mutex other;
    uint64_t counter;
};

static struct shared *new_shared(void)
{
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    CHECK_OK(eng_mutex_init(&shared->mutex, 10));
    CHECK_OK(eng_mutex_init(&shared->other, 20));
    return shared;
}

/* Runs `act` in another process, which then ends without any cleaning up. */
static int elsewhere(void (*act)(struct shared *shared), struct shared *shared)
{
    int status;
    pid_t pid = test_fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
        act(shared);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    return status;
}

static void die_holding(struct shared *shared)
{
    if (eng_mutex_lock(&shared->mutex) == ENG_MUTEX_OK)
        kill(getpid(), SIGKILL);
}

static void expect_busy(struct shared *shared)
{
    if (eng_mutex_trylock(&shared->mutex) != ENG_MUTEX_BUSY)
        _exit(1);
}

static void give_up_repair(struct shared *shared)
{
    if (eng_mutex_lock(&shared->mutex) != ENG_MUTEX_OWNER_DEAD)
        _exit(1);
    eng_mutex_unlock(&shared->mutex);
}

TEST(other_processes_are_kept_out)
{
    struct shared *shared = new_shared();
    CHECK_EQ_INT(eng_mutex_lock(&shared->mutex), ENG_MUTEX_OK);
    CHECK_EQ_INT(elsewhere(expect_busy, shared), 0);
    eng_mutex_unlock(&shared->mutex);
    CHECK_EQ_INT(eng_mutex_trylock(&shared->mutex), ENG_MUTEX_OK);
    eng_mutex_unlock(&shared->mutex);
    CHECK(!eng_rank_any());
    eng_mutex_fini(&shared->mutex);
}

static void count(struct shared *shared)
{
    for (int i = 0; i < 20000; i++) {
        if (eng_mutex_lock(&shared->mutex) != ENG_MUTEX_OK)
            _exit(1);
        shared->counter++;
        eng_mutex_unlock(&shared->mutex);
    }
}

TEST(processes_count_together)
{
    struct shared *shared = new_shared();
    pid_t pids[4];
    for (int i = 0; i < 4; i++) {
        pids[i] = test_fork();
        CHECK(pids[i] >= 0);
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            count(shared);
            _exit(0);
        }
    }
    for (int i = 0; i < 4; i++) {
        int status;
        CHECK(waitpid(pids[i], &status, 0) == pids[i]);
        CHECK_EQ_INT(status, 0);
    }
    CHECK_EQ_U64(shared->counter, 80000);
}

TEST(a_dead_holder_is_reported_once_after_repair)
{
    struct shared *shared = new_shared();
    CHECK(WIFSIGNALED(elsewhere(die_holding, shared)));
    CHECK_EQ_INT(eng_mutex_lock(&shared->mutex), ENG_MUTEX_OWNER_DEAD);
    CHECK_EQ_INT(elsewhere(expect_busy, shared), 0);
    eng_mutex_consistent(&shared->mutex);
    eng_mutex_unlock(&shared->mutex);
    CHECK_EQ_INT(eng_mutex_lock(&shared->mutex), ENG_MUTEX_OK);
    eng_mutex_unlock(&shared->mutex);

    CHECK(WIFSIGNALED(elsewhere(die_holding, shared)));
    CHECK_EQ_INT(eng_mutex_trylock(&shared->mutex), ENG_MUTEX_OWNER_DEAD);
    eng_mutex_consistent(&shared->mutex);
    eng_mutex_unlock(&shared->mutex);
    CHECK(!eng_rank_any());
}

TEST(dying_during_the_repair_is_reported_again)
{
    struct shared *shared = new_shared();
    CHECK(WIFSIGNALED(elsewhere(die_holding, shared)));
    pid_t pid = test_fork();
    if (pid == 0) {
        if (eng_mutex_lock(&shared->mutex) == ENG_MUTEX_OWNER_DEAD)
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ_INT(eng_mutex_lock(&shared->mutex), ENG_MUTEX_OWNER_DEAD);
    eng_mutex_consistent(&shared->mutex);
    eng_mutex_unlock(&shared->mutex);
}

TEST(without_repair_it_is_lost_for_good)
{
    struct shared *shared = new_shared();
    CHECK(WIFSIGNALED(elsewhere(die_holding, shared)));
    CHECK_EQ_INT(elsewhere(give_up_repair, shared), 0);
    CHECK_EQ_INT(eng_mutex_lock(&shared->mutex), ENG_MUTEX_LOST);
    CHECK_EQ_INT(eng_mutex_trylock(&shared->mutex), ENG_MUTEX_LOST);
    CHECK(!eng_rank_any());
}

TEST(lock_order_is_checked)
{
    struct shared *shared = new_shared();
    CHECK_EQ_INT(eng_mutex_lock(&shared->other), ENG_MUTEX_OK);
    if (!eng_rank_any())
        test_skip("lock order is checked in debug and sanitizer builds only");
    CHECK_ABORTS((void)!eng_mutex_lock(&shared->mutex));
    CHECK_ABORTS((void)!eng_mutex_lock(&shared->other));
    CHECK_EQ_INT(eng_mutex_trylock(&shared->mutex), ENG_MUTEX_OK);
    eng_mutex_unlock(&shared->mutex);
    eng_mutex_unlock(&shared->other);
}

TEST(unlocking_what_is_not_held_aborts)
{
    struct shared *shared = new_shared();
    CHECK_ABORTS(eng_mutex_unlock(&shared->mutex));
    CHECK_ABORTS(eng_mutex_consistent(&shared->mutex));
}
