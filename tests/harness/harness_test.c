/* The harness itself: what passes, what fails, and that a failure stays where it is. */
#include "tests/harness/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Exit status of `run` in a process of its own. */
static int status_of(void (*run)(void))
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        CHECK(freopen("/dev/null", "w", stderr) != NULL);
        CHECK(freopen("/dev/null", "w", stdout) != NULL);
        run();
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_false(void)
{
    CHECK(1 == 2);
}
static void check_int(void)
{
    CHECK_EQ_INT(-1, 1);
}
static void check_u64(void)
{
    CHECK_EQ_U64(UINT64_MAX, 1);
}
static void check_str(void)
{
    CHECK_EQ_STR("a", NULL);
}
static void check_mem(void)
{
    CHECK_EQ_MEM("abc", "abd", 3);
}
static void check_survivor(void)
{
    CHECK_ABORTS((void)0);
}
static void skip(void)
{
    test_skip("for the test's sake");
}

TEST(failing_checks_end_the_process)
{
    CHECK_EQ_INT(status_of(check_false), 1);
    CHECK_EQ_INT(status_of(check_int), 1);
    CHECK_EQ_INT(status_of(check_u64), 1);
    CHECK_EQ_INT(status_of(check_str), 1);
    CHECK_EQ_INT(status_of(check_mem), 1);
    CHECK_EQ_INT(status_of(check_survivor), 1);
    CHECK_EQ_INT(status_of(skip), 77);
}

TEST(passing_checks_return)
{
    CHECK(true);
    CHECK_EQ_INT(-3, -3);
    CHECK_EQ_U64(UINT64_MAX, UINT64_MAX);
    CHECK_EQ_STR("gyre", "gyre");
    CHECK_EQ_STR(NULL, NULL);
    CHECK_EQ_MEM("abcd", "abce", 3);
    CHECK_ABORTS(abort());
}

TEST(what_comes_later_is_waited_for)
{
    int ends[2];
    char byte;

    CHECK(pipe(ends) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        usleep(20000);
        _exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
    }
    CHECK(pid > 0);
    CHECK_SOON(read(ends[0], &byte, 1) == 1);
    CHECK(waitpid(pid, NULL, 0) == pid);
}

static void look_too_often(void)
{
    test_look_again(__FILE__, __LINE__, 60000, "never");
}

TEST(what_never_comes_is_given_up)
{
    CHECK_EQ_INT(status_of(look_too_often), 1);
}

TEST(tmpdir_is_empty_and_writable)
{
    struct stat status;

    CHECK(stat(test_tmpdir(), &status) == 0 && S_ISDIR(status.st_mode));
    FILE *file = fopen(test_path("a"), "w");
    CHECK(file != NULL);
    CHECK(fclose(file) == 0);
    CHECK(rmdir(test_tmpdir()) != 0);
}

TEST(numbers_repeat_with_the_seed)
{
    struct test_rng a = {42};
    struct test_rng b = {42};
    unsigned char bytes[11];

    for (int i = 0; i < 100; i++) {
        CHECK_EQ_U64(test_rng_next(&a), test_rng_next(&b));
        CHECK(test_rng_below(&a, 7) < 7 && test_rng_below(&b, 7) < 7);
    }
    CHECK_EQ_U64(test_rng_below(&a, 0), 0);
    test_rng_fill(&a, bytes, sizeof bytes);
    uint64_t word = test_rng_next(&b);
    CHECK_EQ_MEM(bytes, &word, sizeof word);
}
