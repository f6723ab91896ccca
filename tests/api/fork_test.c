/* What a forked child may do with its parent's store, and what it cannot do to it. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/api/fixture.h"

/* Threads that allocate while another forks leave the sanitizer's allocator locked in the child. */
static void skip_under_asan(void)
{
    if (TEST_ASAN)
        test_skip("ASan's allocator does not survive fork beside threads");
}

static gyre_err try_open(const struct gyre_options *options, char message[512])
{
    struct gyre_store *store = NULL;
    gyre_err err = gyre_open(options, &store, message, 512);
    if (err == GYRE_OK)
        CHECK_OK(gyre_close(&store, 1000));
    return err;
}

static pid_t in_child(void (*run)(struct gyre_store *store), struct gyre_store *store)
{
    fflush(stdout);
    pid_t pid = test_fork();
    if (pid == 0) {
        run(store);
        fflush(stderr);
        _exit(0);
    }
    return pid;
}

static uint64_t pins(struct gyre_store *store)
{
    struct gyre_stats stats = {.struct_size = sizeof stats};
    CHECK_OK(gyre_stat(store, &stats));
    return stats.pins;
}

static void expect_sound(struct gyre_store *store)
{
    struct gyre_check_report report = {.struct_size = sizeof report};
    CHECK_OK(gyre_check(store, true, NULL, NULL, &report));
    CHECK_EQ_INT(pins(store), 0);
}

static void use_store(struct gyre_store *store)
{
    check_object(store, 1, 1, 100000);
    put_pattern(store, 2, 2, 5000);
    put_pattern(store, 1, 3, 70000);
    CHECK_OK(gyre_sync(store));
    CHECK_OK(gyre_close(&store, 5000));
}

TEST(inv_E54_a_child_is_a_process_of_its_own)
{
    skip_under_asan();
    struct gyre_store *store = open_store();
    put_pattern(store, 1, 1, 100000);
    test_join(in_child(use_store, store));
    check_object(store, 2, 2, 5000);
    check_object(store, 1, 3, 70000);
    expect_sound(store);
    close_store(store);
}

static struct gyre_handle *held[2];
static struct gyre_put *begun;

static void let_go(struct gyre_store *store)
{
    struct gyre_piece piece;
    char byte;
    size_t n;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ_U64(gyre_handle_info(held[i])->length, i == 0 ? 3000 : 300000);
        CHECK_ERR(gyre_handle_piece(held[i], 0, &piece), GYRE_STATE);
        CHECK_ERR(gyre_populate(held[i], 0, 1), GYRE_STATE);
        CHECK_ERR(gyre_copy(held[i], 0, &byte, 1, 0, &n), GYRE_STATE);
        gyre_release(held[i]);
    }
    CHECK_ERR(gyre_put_write(begun, "x", 1), GYRE_STATE);
    gyre_put_abort(&begun);
    put_pattern(store, 9, 9, 1000);
    check_object(store, 9, 9, 1000);
    CHECK_OK(gyre_close(&store, 5000));
}

TEST(inv_E54_inherited_handles_and_puts_are_dead_and_their_parents_live)
{
    skip_under_asan();
    struct gyre_store *store = open_store();
    struct gyre_key one = key_of(1), two = key_of(2), three = key_of(3);
    struct gyre_put_options options;
    uint8_t *body = pattern_new(7, 300000);
    put_pattern(store, 1, 1, 3000);
    put_pattern(store, 2, 2, 300000);
    CHECK_OK(gyre_get(store, &one, 0, 0, &held[0]));
    CHECK_OK(gyre_get(store, &two, 0, 0, &held[1]));
    gyre_put_options_init(&options);
    options.length = 300000;
    CHECK_OK(gyre_put_begin(store, &three, &options, &begun));
    CHECK_OK(gyre_put_write(begun, body, 200000));
    uint64_t before = pins(store);
    CHECK(before >= 3);
    test_join(in_child(let_go, store));
    CHECK_EQ_U64(pins(store), before);
    check_pieces(held[0], 1);
    check_pieces(held[1], 2);
    CHECK_OK(gyre_put_write(begun, body + 200000, 100000));
    CHECK_OK(gyre_put_commit(&begun, NULL));
    free(body);
    check_object(store, 3, 7, 300000);
    check_object(store, 9, 9, 1000);
    gyre_release(held[0]);
    gyre_release(held[1]);
    expect_sound(store);
    close_store(store);
}

static void close_unused(struct gyre_store *store)
{
    CHECK_OK(gyre_close(&store, 0));
    char message[512];
    struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
    options.mode = GYRE_OPEN_RESET;
    CHECK_ERR(try_open(&options, message), GYRE_LOCKED); /* the parent's locks are still there */
    options.mode = GYRE_OPEN_EXISTING;
    CHECK_OK(try_open(&options, message));
}

TEST(inv_E54_a_child_that_closes_its_copy_closes_nothing_of_its_parents)
{
    skip_under_asan();
    struct gyre_store *store = open_store();
    put_pattern(store, 1, 1, 3000);
    test_join(in_child(close_unused, store));
    check_object(store, 1, 1, 3000);
    expect_sound(store);
    close_store(store);
}

static int parent_closed[2];

static void come_too_late(struct gyre_store *store)
{
    char byte;
    struct gyre_key one = key_of(1);
    struct gyre_handle *handle;
    CHECK(read(parent_closed[0], &byte, 1) == 1);
    CHECK_ERR(gyre_get(store, &one, 0, 0, &handle), GYRE_CLOSED);
    CHECK_OK(gyre_close(&store, 1000));
}

TEST(a_child_that_comes_after_the_last_close_is_told_so)
{
    skip_under_asan();
    struct gyre_store *store = open_store();
    put_pattern(store, 1, 1, 3000);
    CHECK(pipe(parent_closed) == 0);
    pid_t pid = in_child(come_too_late, store);
    close_store(store);
    CHECK(write(parent_closed[1], "x", 1) == 1);
    test_join(pid);
}

/* ---- A storm ---- */

static _Atomic bool stop;

/* Unless the others have put it out by now. */
static void look_at_one(struct gyre_store *store, bool release)
{
    struct gyre_handle *handle;
    struct gyre_key one = key_of(1);
    gyre_err err = gyre_get(store, &one, 0, 0, &handle);
    CHECK(err == GYRE_OK || err == GYRE_NOT_FOUND);
    if (err == GYRE_NOT_FOUND)
        return;
    check_pieces(handle, 1);
    if (release)
        gyre_release(handle);
}

static void *use_on(void *data)
{
    struct gyre_store *store = data;
    for (uint64_t n = 0; !atomic_load(&stop); n++) {
        put_pattern(store, 100 + n % 50, 100 + n % 50, 2000 + n % 7 * 30000);
        look_at_one(store, true);
    }
    return NULL;
}

static void use_and_hold(struct gyre_store *store)
{
    for (uint64_t n = 0;; n++) {
        put_pattern(store, 200 + n % 50, 200 + n % 50, 2000 + n % 5 * 40000);
        look_at_one(store, n % 3 != 0);
        if (n == 60)
            break;
    }
}

/* Threads of the parent are anywhere in the library as it forks. */
TEST(inv_E54_forks_and_kills_amid_work_leave_nothing_behind)
{
    skip_under_asan();
    struct gyre_store *store = open_store();
    struct test_rng rng = {test_seed()};
    pthread_t threads[3];
    put_pattern(store, 1, 1, 3000);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, use_on, store) == 0);
    for (int i = 0; i < (test_full() ? 200 : 15); i++) {
        put_pattern(store, 1, 1, 3000); /* or it would be evicted in time */
        pid_t pid = in_child(use_and_hold, store);
        usleep((useconds_t)test_rng_below(&rng, 60000));
        int status;
        kill(pid, SIGKILL);
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < 60000 && pins(store) > 0; i++)
        usleep(1000); /* taken back within a second of a keeper */
    expect_sound(store);
    close_store(store);
}
