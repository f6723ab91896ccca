/* Processes of a test that share a store. */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "engine/pin.h"
#include "engine/process.h"
#include "tests/engine/numbered.h"
#include "tests/engine/open_store.h"

/* What processes of a test tell each other. */
struct board {
    _Atomic uint32_t done, go, count[4];
};

static inline struct board *board_make(void)
{
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

static inline void wait_for(_Atomic uint32_t *at, uint32_t value)
{
    for (int i = 0; i < 60000 && atomic_load(at) < value; i++)
        usleep(1000);
    CHECK(atomic_load(at) >= value);
}

static inline pid_t start(void (*run)(struct opening *o, struct board *board), struct opening *o,
                          struct board *board)
{
    pid_t pid = test_fork();
    if (pid == 0) {
        run(o, board);
        fflush(stderr);
        _exit(0);
    }
    return pid;
}

static inline void killed(pid_t pid)
{
    int status;
    CHECK(kill(pid, SIGKILL) == 0);
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
}

static inline size_t len_small(uint32_t number, uint32_t version)
{
    (void)version;
    return number % 7 == 0 ? 200000 : 900 + number % 5 * 3000;
}

/* All but the bodies, which the objects of the script and a check at the end are read for. */
static inline void check_index(struct eng_store *store)
{
    struct eng_check_report report;
    CHECK_OK(eng_check(store, false, print_line, NULL, &report));
    CHECK_EQ_U64(report.violations, 0);
}
