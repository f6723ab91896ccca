/* Threads carry a name, hear no signals of the program, and are joined once. */
#include "engine/base/thread.h"

#include <signal.h>

#include "tests/harness/test.h"

struct seen {
    char name[16];
    sigset_t blocked;
};

static void look(void *data)
{
    struct seen *seen = data;
    pthread_getname_np(pthread_self(), seen->name, sizeof seen->name);
    pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked);
}

TEST(a_thread_is_named_and_deaf)
{
    struct seen seen = {0};
    struct eng_thread thread;
    sigset_t mine;
    CHECK_OK(eng_thread_start(&thread, "gyre-cleaner-with-a-tail", look, &seen));
    eng_thread_join(&thread);
    CHECK_EQ_STR(seen.name, "gyre-cleaner-wi");
    CHECK(sigismember(&seen.blocked, SIGTERM) == 1 && sigismember(&seen.blocked, SIGUSR1) == 1);
    CHECK(sigismember(&seen.blocked, SIGBUS) == 0 && sigismember(&seen.blocked, SIGSEGV) == 0);
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    CHECK(sigismember(&mine, SIGTERM) == 0);
}

TEST(joining_twice_or_never_started_is_allowed)
{
    struct seen seen = {0};
    struct eng_thread thread = {0};
    eng_thread_join(&thread);
    CHECK_OK(eng_thread_start(&thread, "t", look, &seen));
    eng_thread_join(&thread);
    eng_thread_join(&thread);
}
