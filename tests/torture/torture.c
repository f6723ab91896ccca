/* The supervisor of a torture: starts, stops and kills workers, sees that none hangs, and checks
 * the store at the end. */
#include "tests/torture/torture.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/sys.h"
#include "tests/api/fixture.h"
#include "tests/torture/board.h"

/* A call that takes longer than this hangs, on however busy a machine. */
#define HANG_NS UINT64_C(100000000000)

struct supervisor {
    struct board *board;
    struct test_rng rng;
    pid_t workers[WORKERS_MAX]; /* 0: none */
    unsigned kills, stops;
};

static void fail(struct supervisor *s, const char *what)
{
    if (atomic_fetch_add(&s->board->failed, 1) == 0) {
        snprintf(s->board->failure, sizeof s->board->failure, "%s", what);
        atomic_store(&s->board->failed, 1000);
    }
}

static unsigned alive(const struct supervisor *s)
{
    unsigned n = 0;
    for (unsigned i = 0; i < WORKERS_MAX; i++)
        n += s->workers[i] != 0;
    return n;
}

static void start_worker(struct supervisor *s, unsigned index)
{
    uint64_t seed = test_rng_next(&s->rng);
    memset(s->board->beats[index], 0, sizeof s->board->beats[index]);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        worker_run(s->board, index, seed);
        _exit(0);
    }
    if (pid < 0)
        fail(s, "no process");
    else
        s->workers[index] = pid;
}

static void start_missing(struct supervisor *s)
{
    unsigned most = s->board->torture.processes;
    unsigned wanted = 2 + (unsigned)test_rng_below(&s->rng, most > 2 ? most - 1 : 1);
    for (unsigned i = 0; i < WORKERS_MAX && alive(s) < wanted; i++)
        if (s->workers[i] == 0)
            start_worker(s, i);
}

static void judge_end(struct supervisor *s, int status, bool killed_by_us)
{
    char what[100];
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3))
        return; /* in order, or it has said why not */
    if (killed_by_us && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return;
    snprintf(what, sizeof what, "a worker ended with status 0x%x", (unsigned)status);
    fail(s, what);
}

/* Workers that ended by themselves. */
static void reap_ended(struct supervisor *s)
{
    for (unsigned i = 0; i < WORKERS_MAX; i++) {
        int status;
        if (s->workers[i] == 0 || waitpid(s->workers[i], &status, WNOHANG) != s->workers[i])
            continue;
        s->workers[i] = 0;
        judge_end(s, status, false);
    }
}

static void look_for_hangs(struct supervisor *s)
{
    uint64_t now_ns = eng_clock_mono_ns();
    for (unsigned i = 0; i < WORKERS_MAX; i++)
        for (unsigned t = 0; t < THREADS && s->workers[i] != 0; t++) {
            uint64_t since_ns = atomic_load(&s->board->beats[i][t].since_ns);
            if (since_ns != 0 && now_ns > since_ns && now_ns - since_ns > HANG_NS) {
                char what[100];
                snprintf(what, sizeof what, "thread %u of worker %u hangs", t, i);
                fail(s, what);
            }
        }
}

static unsigned choose(struct supervisor *s)
{
    unsigned index;
    do
        index = (unsigned)test_rng_below(&s->rng, WORKERS_MAX);
    while (s->workers[index] == 0);
    return index;
}

/* Every third time one is stopped for a while before another, or the same, is killed. */
static void harm(struct supervisor *s)
{
    if (alive(s) == 0)
        return;
    if (test_rng_below(&s->rng, 3) == 0) {
        unsigned index = choose(s);
        kill(s->workers[index], SIGSTOP);
        usleep(100000 + (useconds_t)test_rng_below(&s->rng, 200000));
        kill(s->workers[index], SIGCONT);
        s->stops++;
    }
    unsigned index = choose(s);
    int status;
    kill(s->workers[index], SIGKILL);
    if (waitpid(s->workers[index], &status, 0) == s->workers[index])
        judge_end(s, status, true);
    s->workers[index] = 0;
    s->kills++;
}

static double laps(const struct board *board)
{
    return board->capacity_bytes == 0
               ? 0
               : (double)atomic_load(&board->put_bytes) / (double)board->capacity_bytes;
}

static void run(struct supervisor *s)
{
    const struct torture *torture = &s->board->torture;
    uint64_t begun_ns = eng_clock_mono_ns();
    uint64_t least_ns = torture->seconds * UINT64_C(1000000000);
    uint64_t harmed_ns = begun_ns;
    start_missing(s);
    while (atomic_load(&s->board->failed) == 0) {
        usleep(20000);
        uint64_t now_ns = eng_clock_mono_ns();
        reap_ended(s);
        look_for_hangs(s);
        if (now_ns - harmed_ns >= torture->kill_ms * UINT64_C(1000000)) {
            if (atomic_load(&s->board->opened) > 0)
                harm(s);
            harmed_ns = now_ns;
        }
        start_missing(s);
        if (now_ns - begun_ns >= least_ns && laps(s->board) >= torture->laps)
            break;
    }
}

/* ---- The end ---- */

static void kill_all(struct supervisor *s)
{
    for (unsigned i = 0; i < WORKERS_MAX; i++) {
        if (s->workers[i] == 0)
            continue;
        kill(s->workers[i], SIGKILL);
        waitpid(s->workers[i], NULL, 0);
        s->workers[i] = 0;
    }
}

static void wait_for_all(struct supervisor *s)
{
    uint64_t deadline_ns = eng_clock_mono_ns() + HANG_NS;
    while (alive(s) > 0 && eng_clock_mono_ns() < deadline_ns) {
        usleep(5000);
        reap_ended(s);
    }
    if (alive(s) > 0)
        fail(s, "a worker does not come to its end");
    kill_all(s);
}

/* A failed check says so on stderr too. */
static void say(void *data, const char *line)
{
    (void)data;
    fprintf(stderr, "  check: %s\n", line);
}

static void check_end(struct supervisor *s, struct gyre_store *store)
{
    struct gyre_stats stats = {.struct_size = sizeof stats};
    char what[200];
    if (gyre_stat(store, &stats) != GYRE_OK)
        fail(s, "stat");
    snprintf(what, sizeof what, "%ju pins and %ju reserved bytes are left", (uintmax_t)stats.pins,
             (uintmax_t)stats.reserved_bytes);
    if (stats.pins != 0 || stats.reserved_bytes != 0)
        fail(s, what);
    if (stats.checksum_failures != 0)
        fail(s, "documents were found damaged");
    struct gyre_check_report report = {.struct_size = sizeof report};
    gyre_err err = gyre_check(store, true, say, NULL, &report);
    if (err != GYRE_OK)
        fail(s, "the check at the end found something");
}

/* Opens the store while the workers still have it, so that nothing of its state is made anew. */
static void end(struct supervisor *s)
{
    struct gyre_data_dir dir = {s->board->torture.dir, 0};
    struct gyre_options options;
    struct gyre_store *store = NULL;
    char message[400] = "";
    gyre_options_init(&options);
    options.dirs = &dir;
    options.n_dirs = 1;
    options.mode = GYRE_OPEN_EXISTING;
    gyre_err err = gyre_open(&options, &store, message, sizeof message);
    if (err != GYRE_OK)
        fail(s, message);
    atomic_store(&s->board->stop, 1);
    wait_for_all(s);
    if (err != GYRE_OK)
        return;
    if (atomic_load(&s->board->failed) == 0)
        check_end(s, store);
    if (gyre_close(&store, 10000) != GYRE_OK)
        fail(s, "close");
}

void torture_run(const struct torture *torture, struct torture_report *report_out)
{
    struct supervisor s = {.rng = {torture->seed}};
    memset(report_out, 0, sizeof *report_out);
    s.board =
        mmap(NULL, sizeof *s.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s.board == MAP_FAILED) {
        snprintf(report_out->failure, sizeof report_out->failure, "no memory");
        return;
    }
    s.board->torture = *torture;
    run(&s);
    if (atomic_load(&s.board->failed) == 0)
        end(&s);
    kill_all(&s);
    const struct board *board = s.board;
    if (atomic_load(&board->failed) != 0)
        snprintf(report_out->failure, sizeof report_out->failure, "%s",
                 board->failure[0] != '\0' ? board->failure : "something is wrong");
#define COPY(field) report_out->field = atomic_load(&board->field)
    COPY(puts), COPY(put_bytes), COPY(gets), COPY(found), COPY(held), COPY(deletes), COPY(refused),
        COPY(counted);
#undef COPY
    report_out->laps = laps(board);
    report_out->kills = s.kills;
    report_out->stops = s.stops;
    munmap(s.board, sizeof *s.board);
}
