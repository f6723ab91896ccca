/* Runs the registered tests one process each; see test.h. */
#include "tests/harness/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STATUS_FAILED = 1,
    STATUS_SKIPPED = 77,
    LOOKS_MAX = 60000,
};

static struct test_entry *first;
static struct test_entry **last = &first;
static const char *source_file = "test";
static const char *current_name = "";
static uint64_t seed;
static char
    tmp_root[256]; /* made by the runner, so that it can be removed whatever becomes of the test */
static int death_status;

/* ---- Results ---- */

void test_register(struct test_entry *entry, const char *file)
{
    source_file = file;
    *last = entry;
    last = &entry->next;
}

static _Noreturn void leave(int status)
{
    fflush(stdout);
    fflush(stderr);
    _exit(status);
}

void test_fail(const char *file, int line, const char *format, ...)
{
    char message[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fflush(stdout);
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, current_name, message);
    leave(STATUS_FAILED);
}

void test_skip(const char *why)
{
    printf("  skipped %s: %s\n", current_name, why);
    leave(STATUS_SKIPPED);
}

void test_look_again(const char *file, int line, unsigned looks, const char *what)
{
    if (looks >= LOOKS_MAX) {
        test_fail(file, line, "CHECK_SOON(%s): still not so", what);
    }
    usleep(1000);
}

void test_eq_int(const char *file, int line, const char *what, intmax_t got, intmax_t want)
{
    if (got != want) {
        test_fail(file, line, "%s is %" PRIdMAX ", expected %" PRIdMAX, what, got, want);
    }
}

void test_eq_u64(const char *file, int line, const char *what, uint64_t got, uint64_t want)
{
    if (got != want) {
        test_fail(file, line,
                  "%s is %" PRIu64 " (0x%" PRIx64 "), expected %" PRIu64 " (0x%" PRIx64 ")", what,
                  got, got, want, want);
    }
}

void test_eq_str(const char *file, int line, const char *what, const char *got, const char *want)
{
    if (got == NULL || want == NULL ? got != want : strcmp(got, want) != 0) {
        test_fail(file, line, "%s is \"%.300s\", expected \"%.300s\"", what,
                  got != NULL ? got : "(null)", want != NULL ? want : "(null)");
    }
}

/* Writes up to 16 bytes as hex digits. */
static const char *hex_around(const unsigned char *bytes, size_t len, char text[3 * 16 + 1])
{
    size_t n = len < 16 ? len : 16;

    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        snprintf(text + 3 * i, 4, "%02x ", bytes[i]);
    }
    return text;
}

void test_eq_mem(const char *file, int line, const char *what, const void *got, const void *want,
                 size_t len)
{
    const unsigned char *g = got;
    const unsigned char *w = want;
    char got_text[49];
    char want_text[49];

    for (size_t i = 0; i < len; i++) {
        if (g[i] != w[i]) {
            test_fail(file, line, "%s differs at byte %zu of %zu: got %s, expected %s", what, i,
                      len, hex_around(g + i, len - i, got_text),
                      hex_around(w + i, len - i, want_text));
        }
    }
}

void test_eq_err(const char *file, int line, const char *what, int got, int want,
                 const char *(*name)(int err))
{
    if (got != want) {
        test_fail(file, line, "%s is %s (%d), expected %s (%d)", what, name(got), got, name(want),
                  want);
    }
}

/* ---- Death ---- */

bool test_death_begin(void)
{
    fflush(stdout);
    fflush(stderr);
    pid_t pid = fork();
    if (pid == 0) {
        int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (null_fd >= 0) {
            dup2(null_fd, STDOUT_FILENO);
            dup2(null_fd, STDERR_FILENO);
        }
        return true;
    }
    if (pid < 0 || waitpid(pid, &death_status, 0) != pid) {
        test_fail(__FILE__, __LINE__, "fork: %s", strerror(errno));
    }
    return false;
}

void test_death_survived(void)
{
    _exit(0);
}

bool test_death_aborted(void)
{
    return WIFSIGNALED(death_status) && WTERMSIG(death_status) == SIGABRT;
}

/* ---- Surroundings ---- */

bool test_full(void)
{
    const char *full = getenv("GYRE_FULL");

    return full != NULL && full[0] != '\0' && strcmp(full, "0") != 0;
}

uint64_t test_seed(void)
{
    return seed;
}

uint64_t test_rng_next(struct test_rng *rng)
{
    uint64_t z = rng->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t test_rng_below(struct test_rng *rng, uint64_t bound)
{
    return bound == 0 ? 0 : test_rng_next(rng) % bound;
}

void test_rng_fill(struct test_rng *rng, void *bytes, size_t len)
{
    unsigned char *at = bytes;

    while (len > 0) {
        uint64_t word = test_rng_next(rng);
        size_t n = len < sizeof word ? len : sizeof word;
        memcpy(at, &word, n);
        at += n;
        len -= n;
    }
}

const char *test_tmpdir(void)
{
    if (tmp_root[0] == '\0') {
        test_fail(__FILE__, __LINE__, "no temporary directory: is $TMPDIR writable?");
    }
    return tmp_root;
}

const char *test_path(const char *name)
{
    static _Thread_local char paths[8][512];
    static _Thread_local unsigned turn;
    char *path = paths[turn++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s", test_tmpdir(), name);
    return path;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status;
    (void)where;
    if (kind == FTW_DP) {
        return rmdir(path);
    }
    return unlink(path);
}

static void make_tmp_root(void)
{
    const char *base = getenv("TMPDIR");

    snprintf(tmp_root, sizeof tmp_root, "%s/gyre-test-XXXXXX",
             base != NULL && base[0] != '\0' ? base : "/tmp");
    if (mkdtemp(tmp_root) == NULL) {
        tmp_root[0] = '\0';
    }
}

static void remove_tmp_root(void)
{
    if (tmp_root[0] != '\0') {
        nftw(tmp_root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        tmp_root[0] = '\0';
    }
}

/* ---- The runner ---- */

/* Waits for a test's process. The alarm set in the child ends it by SIGALRM. */
static int wait_for(pid_t pid, const char *name)
{
    int status = 0;

    if (waitpid(pid, &status, 0) != pid) {
        fprintf(stderr, "%s: waitpid: %s\n", name, strerror(errno));
        return STATUS_FAILED;
    }
    if (WIFEXITED(status)) {
        return WEXITSTATUS(status);
    }
    if (WTERMSIG(status) == SIGALRM) {
        fprintf(stderr, "%s: took too long\n", name);
    } else {
        fprintf(stderr, "%s: died by signal %d (%s)\n", name, WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    }
    return STATUS_FAILED;
}

static int run_one(const struct test_entry *entry, bool forking, unsigned limit_s)
{
    int status = 0;

    current_name = entry->name;
    make_tmp_root();
    fflush(stdout);
    fflush(stderr);
    if (!forking) {
        entry->run();
    } else {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(limit_s);
            entry->run();
            exit(0); /* not _exit: LeakSanitizer looks at exit */
        }
        if (pid < 0) {
            fprintf(stderr, "%s: fork: %s\n", entry->name, strerror(errno));
            status = STATUS_FAILED;
        } else {
            status = wait_for(pid, entry->name);
        }
    }
    remove_tmp_root();
    return status;
}

static bool is_wanted(const char *name, char **wanted, int n_wanted)
{
    for (int i = 0; i < n_wanted; i++) {
        size_t len = strlen(wanted[i]);
        if (strcmp(name, wanted[i]) == 0 ||
            (len > 0 && wanted[i][len - 1] == '*' && strncmp(name, wanted[i], len - 1) == 0)) {
            return true;
        }
    }
    return n_wanted == 0;
}

/* "tests/engine/pin_test.c" -> "engine/pin_test" */
static void print_program_name(void)
{
    const char *start = strstr(source_file, "tests/");

    for (const char *next = start; next != NULL; next = strstr(start, "tests/")) {
        start = next + strlen("tests/");
    }
    start = start != NULL ? start : source_file;
    printf("%.*s", (int)strcspn(start, "."), start);
}

static void pick_seed(void)
{
    const char *given = getenv("GYRE_SEED");

    if (given != NULL && given[0] != '\0') {
        seed = strtoull(given, NULL, 0);
    } else if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        seed = (uint64_t)getpid();
    }
}

int main(int argc, char **argv)
{
    const char *limit = getenv("GYRE_TEST_SECONDS");
    unsigned limit_s = limit != NULL ? (unsigned)strtoul(limit, NULL, 10)
                       : test_full() ? 1200
                                     : 120;
    bool forking = getenv("GYRE_TEST_NO_FORK") == NULL;
    int passed = 0;
    int failed = 0;
    int skipped = 0;

    pick_seed();
    for (const struct test_entry *entry = first; entry != NULL; entry = entry->next) {
        if (argc > 1 && strcmp(argv[1], "--list") == 0) {
            puts(entry->name);
            continue;
        }
        if (!is_wanted(entry->name, argv + 1, argc - 1)) {
            continue;
        }
        int status = run_one(entry, forking, limit_s);
        if (status == 0) {
            passed++;
        } else if (status == STATUS_SKIPPED) {
            skipped++;
        } else {
            failed++;
            printf("FAILED %s (again: GYRE_SEED=%" PRIu64 " %s %s)\n", entry->name, seed, argv[0],
                   entry->name);
        }
    }
    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        return 0;
    }
    if (argc > 1 && passed + failed + skipped == 0) {
        fprintf(stderr, "no test of that name; --list names them\n");
        return STATUS_FAILED;
    }
    print_program_name();
    printf(": %d passed, %d failed", passed, failed);
    if (skipped > 0) {
        printf(", %d skipped", skipped);
    }
    putchar('\n');
    return failed > 0 ? STATUS_FAILED : passed == 0 && skipped > 0 ? STATUS_SKIPPED : 0;
}
