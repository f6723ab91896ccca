/* A small test harness: a test file is TEST(name) { ... } blocks and nothing else; its main() comes
 * from here.
 *
 *   exe             runs all tests in order of the file
 *   exe NAME...     runs these (a NAME ending in '*' is a prefix)
 *   exe --list      names them
 *
 * Every test runs in a process of its own, so a crash, an abort or a failed check on any thread
 * fails that test alone. The last line is `FILE: N passed, M failed` (and `, K skipped`). Exit
 * status: 0, 1 when any failed, 77 when all were skipped.
 *
 * Environment: GYRE_SEED (decimal or 0x...) repeats a run, GYRE_FULL=1 asks for the long forms,
 * GYRE_TEST_NO_FORK=1 runs in one process for a debugger, GYRE_TEST_SECONDS bounds one test
 * (default 120, or 1200 with GYRE_FULL).
 *
 * Threads: checks may be made on any thread of the test.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* Defines and registers a test. */
#define TEST(name)                                                      \
    static void name(void);                                             \
    __attribute__((constructor)) static void test_register_##name(void) \
    {                                                                   \
        static struct test_entry entry = {#name, name, NULL};           \
        test_register(&entry, __FILE__);                                \
    }                                                                   \
    static void name(void)

/* Ends the test as failed unless the condition holds. */
#define CHECK(cond) ((cond) ? (void)0 : test_fail(__FILE__, __LINE__, "CHECK(%s)", #cond))

/* As CHECK, with a printf message for the values that matter (which row of a table, say). */
#define CHECK_MSG(cond, ...) ((cond) ? (void)0 : test_fail(__FILE__, __LINE__, __VA_ARGS__))

/* Waits until the condition holds, which another thread or process is to bring about; fails after
 * some 60000 looks a millisecond apart. A machine that stands still for a while takes none. */
#define CHECK_SOON(cond)                                        \
    do {                                                        \
        for (unsigned looks_ = 0; !(cond); looks_++)            \
            test_look_again(__FILE__, __LINE__, looks_, #cond); \
    } while (0)

/* Compare what was got with what was wanted and print both. Arguments are evaluated once. */
#define CHECK_EQ_INT(got, want) \
    test_eq_int(__FILE__, __LINE__, #got, (intmax_t)(got), (intmax_t)(want))
#define CHECK_EQ_U64(got, want) \
    test_eq_u64(__FILE__, __LINE__, #got, (uint64_t)(got), (uint64_t)(want))
#define CHECK_EQ_STR(got, want) test_eq_str(__FILE__, __LINE__, #got, (got), (want))
#define CHECK_EQ_MEM(got, want, len) test_eq_mem(__FILE__, __LINE__, #got, (got), (want), (len))

/* Compares two gyre_err and prints their names; the test includes a header that declares
 * gyre_err_name. */
#define CHECK_ERR(got, want) test_eq_err(__FILE__, __LINE__, #got, (got), (want), gyre_err_name)
#define CHECK_OK(got) CHECK_ERR(got, 0)

/* Runs a statement in a process of its own and fails unless that dies by abort(). Its output is
 * dropped. */
#define CHECK_ABORTS(statement)                                               \
    do {                                                                      \
        if (test_death_begin()) {                                             \
            statement;                                                        \
            test_death_survived();                                            \
        }                                                                     \
        CHECK_MSG(test_death_aborted(), "expected an abort: %s", #statement); \
    } while (0)

/* Leaves the test, counted as skipped; `why` names what is missing. */
_Noreturn void test_skip(const char *why);

/* Whether the long forms are wanted. */
bool test_full(void);

/* Which sanitizer this is built with, 1 or 0; gcc and clang say so in ways of their own. */
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define TEST_ASAN 1
#else
#define TEST_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define TEST_TSAN 1
#else
#define TEST_TSAN 0
#endif
#define TEST_SANITIZED (TEST_ASAN || TEST_TSAN)

/* fork() beside threads: ASan's allocator cannot be forked while another thread, such as a store's
 * own, is inside it, so with ASan this waits until all others sleep. Never negative. */
pid_t test_fork(void);
/* Waits for such a child, which has to exit with 0. */
void test_join(pid_t pid);

/* An empty directory of this test's own, below $TMPDIR or /tmp; removed with all in it when the
 * test ends. */
const char *test_tmpdir(void);

/* "DIR/name" for a file of test_tmpdir(). Lent until the test ends. */
const char *test_path(const char *name);

/* The run's seed, printed with every failure: GYRE_SEED, or a new one each run. */
uint64_t test_seed(void);

/* Numbers that follow from a seed (splitmix64). */
struct test_rng {
    uint64_t state;
};
uint64_t test_rng_next(struct test_rng *rng);
/* In [0, bound); 0 for a bound of 0. */
uint64_t test_rng_below(struct test_rng *rng, uint64_t bound);
void test_rng_fill(struct test_rng *rng, void *bytes, size_t len);

/* ---- What the macros call ---- */

struct test_entry {
    const char *name;
    void (*run)(void);
    struct test_entry *next;
};

void test_register(struct test_entry *entry, const char *file);
__attribute__((format(printf, 3, 4))) _Noreturn void test_fail(const char *file, int line,
                                                               const char *format, ...);
void test_look_again(const char *file, int line, unsigned looks, const char *what);
void test_eq_int(const char *file, int line, const char *what, intmax_t got, intmax_t want);
void test_eq_u64(const char *file, int line, const char *what, uint64_t got, uint64_t want);
void test_eq_str(const char *file, int line, const char *what, const char *got, const char *want);
void test_eq_mem(const char *file, int line, const char *what, const void *got, const void *want,
                 size_t len);
void test_eq_err(const char *file, int line, const char *what, int got, int want,
                 const char *(*name)(int err));
bool test_death_begin(void);
_Noreturn void test_death_survived(void);
bool test_death_aborted(void);
