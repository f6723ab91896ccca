/* Misses of several processes: one fetches, the others wait, and a death passes the fetch on. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/api/fixture.h"

enum { LONG_MS = 60000, LENGTH = 200000 };

/* What the processes of a test tell each other. */
struct board {
    _Atomic uint32_t ready, go, filled, hit, passed, done;
};

static struct board *board_make(void)
{
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

static pid_t start(void (*run)(struct board *board), struct board *board)
{
    fflush(stdout);
    pid_t pid = test_fork();
    if (pid == 0) {
        run(board);
        fflush(stderr);
        _exit(0);
    }
    return pid;
}

static struct gyre_miss look(struct gyre_store *store, uint64_t n)
{
    struct gyre_key key = key_of(n);
    struct gyre_miss miss;
    CHECK_OK(gyre_miss_get(store, &key, 0, 0, LONG_MS, &miss));
    return miss;
}

static void store_it(struct gyre_fill *fill, uint64_t seed)
{
    struct gyre_put_options options;
    uint8_t *bytes = pattern_new(seed, LENGTH);
    gyre_put_options_init(&options);
    CHECK_OK(gyre_fill_begin(fill, &options));
    CHECK_OK(gyre_fill_write(fill, bytes, LENGTH));
    CHECK_OK(gyre_fill_commit(&fill, NULL));
    free(bytes);
}

static void want_all(struct board *board)
{
    struct gyre_store *store = open_store();
    atomic_fetch_add(&board->ready, 1);
    CHECK_SOON(atomic_load(&board->go) == 1);
    for (uint64_t n = 0; n < 30; n++) {
        struct gyre_miss miss = look(store, n);
        if (miss.kind == GYRE_MISS_FILL) {
            atomic_fetch_add(&board->filled, 1);
            store_it(miss.fill, n);
        } else {
            CHECK_EQ_INT(miss.kind, GYRE_MISS_HIT);
            atomic_fetch_add(&board->hit, 1);
            check_pieces(miss.handle, n);
            gyre_release(miss.handle);
        }
    }
    close_store(store);
}

TEST(processes_that_miss_together_fetch_once)
{
    struct board *board = board_make();
    pid_t pids[3];
    for (int i = 0; i < 3; i++)
        pids[i] = start(want_all, board);
    CHECK_SOON(atomic_load(&board->ready) == 3);
    atomic_store(&board->go, 1);
    for (int i = 0; i < 3; i++)
        test_join(pids[i]);
    CHECK_EQ_INT(board->filled, 30);
    CHECK_EQ_INT(board->hit, 60);
}

/* Holds the fetch of one object until it is told, or killed. */
static void hold_one(struct board *board)
{
    struct gyre_store *store = open_store();
    struct gyre_miss miss = look(store, 1);
    CHECK_EQ_INT(miss.kind, GYRE_MISS_FILL);
    atomic_fetch_add(&board->ready, 1);
    CHECK_SOON(atomic_load(&board->go) == 1);
    gyre_fill_pass(&miss.fill);
    CHECK_SOON(atomic_load(&board->done) == 1);
    close_store(store);
}

static void answered(void *data, gyre_err err, const struct gyre_miss *miss)
{
    struct board *board = data;
    CHECK_OK(err);
    if (miss->kind == GYRE_MISS_FILL) {
        atomic_fetch_add(&board->filled, 1);
        store_it(miss->fill, 1);
    }
    atomic_fetch_add(&board->hit, miss->kind == GYRE_MISS_HIT || miss->kind == GYRE_MISS_FOLLOW);
    atomic_fetch_add(&board->passed, miss->kind == GYRE_MISS_PASS);
    gyre_follow_end(miss->follow);
    gyre_release(miss->handle);
}

TEST(inv_E56_the_death_of_who_fetches_hands_the_fetch_over)
{
    struct board *board = board_make();
    struct gyre_key key = key_of(1);
    struct gyre_miss miss;
    int status;
    pid_t pid = start(hold_one, board);
    CHECK_SOON(atomic_load(&board->ready) == 1);
    struct gyre_store *store = open_store();
    CHECK_ERR(gyre_miss_get(store, &key, 0, 0, 0, &miss), GYRE_WOULD_BLOCK);
    CHECK_ERR(gyre_miss_get(store, &key, 0, 0, 200, &miss), GYRE_TIMEOUT);
    for (int i = 0; i < 20; i++)
        CHECK_OK(gyre_miss_get_async(store, &key, 0, 0, LONG_MS, answered, board));
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
    miss = look(store, 1);
    if (miss.kind == GYRE_MISS_FILL) {
        atomic_fetch_add(&board->filled, 1);
        store_it(miss.fill, 1);
    }
    gyre_follow_end(miss.follow);
    gyre_release(miss.handle);
    CHECK_OK(gyre_drain(store, LONG_MS));
    CHECK_EQ_INT(board->filled, 1);
    CHECK_EQ_INT(board->passed, 0);
    check_object(store, 1, 1, LENGTH);
    close_store(store);
}

static void begun_in_turn(void *data, gyre_err err)
{
    CHECK_ERR(err, GYRE_NOT_FOUND);
    atomic_fetch_add(&((struct board *)data)->ready, 1);
}

TEST(what_another_process_passes_on_is_fetched_by_each)
{
    struct board *board = board_make();
    pid_t pid = start(hold_one, board);
    CHECK_SOON(atomic_load(&board->ready) == 1);
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    for (int i = 0; i < 20; i++)
        CHECK_OK(gyre_miss_get_async(store, &key, 0, 0, LONG_MS, answered, board));
    /* Jobs are begun in turn: once this one is done, nearly all of those wait. */
    CHECK_OK(gyre_exists_async(store, &key, 0, begun_in_turn, board));
    CHECK_SOON(atomic_load(&board->ready) == 2);
    atomic_store(&board->go, 1);
    CHECK_OK(gyre_drain(store, LONG_MS));
    CHECK_EQ_INT(board->passed + board->hit + board->filled, 20);
    CHECK(board->passed > 0); /* one whose look came late may have fetched */
    atomic_store(&board->done, 1);
    test_join(pid);
    close_store(store);
}

static void leave_amid(struct board *board)
{
    struct gyre_store *store = open_store();
    struct gyre_miss miss = look(store, 1);
    CHECK_EQ_INT(miss.kind, GYRE_MISS_FILL);
    atomic_fetch_add(&board->ready, 1);
    CHECK_SOON(atomic_load(&board->go) == 1);
    CHECK_OK(gyre_close(&store, 1000));
    gyre_fill_abort(&miss.fill, GYRE_IO);
}

TEST(a_process_that_closes_hands_its_fetches_over)
{
    struct board *board = board_make();
    pid_t pid = start(leave_amid, board);
    CHECK_SOON(atomic_load(&board->ready) == 1);
    struct gyre_store *store = open_store();
    atomic_store(&board->go, 1);
    struct gyre_miss miss = look(store, 1);
    CHECK_EQ_INT(miss.kind, GYRE_MISS_FILL);
    store_it(miss.fill, 1);
    test_join(pid);
    check_object(store, 1, 1, LENGTH);
    close_store(store);
}

/* What is begun before a fork is the parent's; the child fetches by itself. */
static struct gyre_store *shared;
static struct gyre_fill *begun;
static struct gyre_follow *followed;

static void use_child(struct board *board)
{
    uint8_t byte;
    size_t n;
    CHECK_ERR(gyre_fill_write(begun, "x", 1), GYRE_STATE);
    CHECK_ERR(gyre_follow_read(followed, 0, &byte, 1, 0, &n), GYRE_STATE);
    gyre_follow_end(followed);
    gyre_fill_abort(&begun, GYRE_IO);
    struct gyre_miss miss = look(shared, 2);
    CHECK_EQ_INT(miss.kind, GYRE_MISS_FILL);
    store_it(miss.fill, 2);
    struct gyre_key key = key_of(1);
    CHECK_ERR(gyre_miss_get(shared, &key, 0, 0, 0, &miss), GYRE_WOULD_BLOCK);
    atomic_store(&board->done, 1);
    CHECK_OK(gyre_close(&shared, 5000));
}

TEST(inv_E54_fetches_stay_with_the_parent)
{
    if (TEST_ASAN)
        test_skip("ASan's allocator does not survive fork beside threads");
    struct board *board = board_make();
    struct gyre_put_options options;
    shared = open_store();
    begun = look(shared, 1).fill;
    gyre_put_options_init(&options);
    CHECK_OK(gyre_fill_begin(begun, &options));
    followed = look(shared, 1).follow;
    CHECK(followed != NULL);
    test_join(start(use_child, board));
    CHECK_EQ_INT(board->done, 1);
    gyre_follow_end(followed);
    CHECK_OK(gyre_fill_write(begun, "abc", 3));
    CHECK_OK(gyre_fill_commit(&begun, NULL));
    check_object(shared, 2, 2, LENGTH);
    close_store(shared);
}
