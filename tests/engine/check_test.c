/* A broken promise aborts with one line that names it; an error leaves through `out`. */
#include "engine/base/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/test.h"

TEST(a_true_condition_is_evaluated_once_and_passes)
{
    int count = 0;
    GYRE_CHECK(++count > 0);
    CHECK_EQ_INT(count, 1);
}

TEST(a_false_condition_aborts)
{
    volatile int zero = 0;
    CHECK_ABORTS(GYRE_CHECK(zero == 1));
}

TEST(the_message_names_file_line_and_condition)
{
    int ends[2];
    char text[200] = {0};
    char want[200];
    CHECK(pipe(ends) == 0);
    pid_t pid = test_fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        eng_check_failed("engine/x.c", 1234, "a == b");
    }
    close(ends[1]);
    ssize_t got = read(ends[0], text, sizeof text - 1);
    CHECK(got > 0);
    close(ends[0]);
    CHECK(waitpid(pid, NULL, 0) == pid);
    snprintf(want, sizeof want, "%s:%d: check failed: %s\n", "engine/x.c", 1234, "a == b");
    CHECK_EQ_STR(text, want);
}

TEST(assert_follows_the_build)
{
    volatile int zero = 0;
    int evaluated = 0;
    if (GYRE_DEBUG_CHECKS) {
        CHECK_ABORTS(GYRE_ASSERT(zero == 1));
    } else {
        GYRE_ASSERT(++evaluated == 0);
        CHECK_EQ_INT(evaluated, 0);
    }
}

static gyre_err leave_with(gyre_err first, int *steps)
{
    gyre_err err;
    *steps = 0;
    TRY(first);
    *steps = 1;
out:
    *steps += 10;
    return err;
}

TEST(try_leaves_through_out_with_the_error)
{
    int steps;
    CHECK_OK(leave_with(GYRE_OK, &steps));
    CHECK_EQ_INT(steps, 11);
    CHECK_ERR(leave_with(GYRE_IO, &steps), GYRE_IO);
    CHECK_EQ_INT(steps, 10);
}
