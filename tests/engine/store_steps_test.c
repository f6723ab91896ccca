/* Deaths at every step of making, resetting and syncing a store. Needs the simulation build. */
#include "tests/engine/numbered.h"
#include "tests/engine/open_store.h"

#include <sys/wait.h>

#include "engine/base/step.h"
#include "engine/sync.h"

/* Dies at the k-th step whose name begins like `prefix`. */
struct death {
    const char *prefix;
    unsigned left;
};

static gyre_err count_down(void *data, const char *name, bool can_fail)
{
    struct death *death = data;

    (void)can_fail;
    if (strncmp(name, death->prefix, strlen(death->prefix)) == 0 && --death->left == 0)
        _exit(99);
    return GYRE_OK;
}

/* Runs in a child that dies at step k; false when it came to its end. */
static bool dies(const char *prefix, unsigned k, void (*run)(struct opening *o), struct opening *o)
{
    int status;
    pid_t pid = test_fork();

    if (pid == 0) {
        struct death death = {prefix, k};
        const struct eng_step_hook hook = {count_down, &death};
        eng_step_install(&hook);
        run(o);
        eng_step_install(NULL);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 99 || WEXITSTATUS(status) == 0);
    return WEXITSTATUS(status) == 99;
}

static void need_steps(void)
{
#ifndef GYRE_SIM
    test_skip("needs GYRE_SIM");
#endif
}

static void make(struct opening *o)
{
    CHECK_OK(eng_store_close(open_ok(o), true));
}

TEST(inv_E44_a_death_at_any_step_of_making_leaves_what_the_next_opening_finishes)
{
    struct opening o;
    unsigned k = 1;

    need_steps();
    for (;; k++) {
        char name[32];
        snprintf(name, sizeof name, "data-%u", k);
        opening_init(&o, test_path(name));
        o.open.stripes = 2;
        bool died = dies("make.", k, make, &o);
        make(&o);
        opening_fini(&o);
        if (!died)
            break;
    }
    CHECK(k > 6);
}

static void reset(struct opening *o)
{
    o->open.reset = true;
    make(o);
}

TEST(inv_E44_a_death_at_any_step_of_a_reset_leaves_no_half_store)
{
    struct opening o;
    unsigned k = 1;

    need_steps();
    for (;; k++) {
        struct eng_store *store = NULL;
        char name[32];
        snprintf(name, sizeof name, "data-%u", k);
        opening_init(&o, test_path(name));
        make(&o);
        bool died = dies("make.", k, reset, &o);
        gyre_err err = eng_store_open(&o.open, &store);
        if (err == GYRE_OK) {
            check_store(store, false);
            CHECK_OK(eng_store_close(store, true));
        } else { /* old data files are gone, the old volume file is not: the reset has to be asked
                    for again */
            CHECK_ERR(err, GYRE_DAMAGED);
            CHECK(strstr(o.message, "--reset") != NULL);
            reset(&o);
        }
        opening_fini(&o);
        if (!died)
            break;
    }
    CHECK(k > 6);
}

static size_t len_of(uint32_t number, uint32_t version)
{
    (void)version;
    return number * 1000;
}

static void put_and_sync(struct opening *o)
{
    struct eng_store *store = open_ok(o);

    for (uint32_t i = 0; i < 100; i++) {
        object_put(store, i, 1, len_of(i, 1));
        if (i % 25 == 0)
            CHECK_OK(eng_sync_store(store, false));
    }
    CHECK_OK(eng_store_close(store, true));
}

TEST(inv_E42_a_death_at_any_step_of_a_sync_leaves_a_whole_header)
{
    struct opening o;

    need_steps();
    opening_init(&o, test_path("data"));
    for (unsigned k = 1;; k++) {
        bool died = dies("sync.", k, put_and_sync, &o);
        struct eng_store *store = open_ok(&o);
        for (uint32_t i = 0; i < 100; i++)
            (void)object_version(store, i, len_of);
        check_store(store, false);
        CHECK_OK(eng_store_close(store, true));
        if (!died)
            break;
    }
    opening_fini(&o);
}

/* ---- Order ---- */

struct log {
    char names[8][32];
    unsigned n;
};

static gyre_err note(void *data, const char *name, bool can_fail)
{
    struct log *log = data;

    (void)can_fail;
    if (strncmp(name, "sync.", 5) == 0 && log->n < 8)
        snprintf(log->names[log->n++], sizeof log->names[0], "%s", name + 5);
    return GYRE_OK;
}

TEST(inv_E46_data_then_directory_then_header)
{
    struct opening o;
    struct log log = {0};
    const struct eng_step_hook hook = {note, &log};

    need_steps();
    opening_init(&o, test_path("data"));
    o.open.sync_interval_ms = 0;
    struct eng_store *store = open_ok(&o);
    object_put(store, 1, 1, 1000);
    eng_step_install(&hook);
    CHECK_OK(eng_sync_store(store, false));
    eng_step_install(NULL);
    static const char *const order[] = {"noted", "data", "directory", "header.written",
                                        "header.durable"};
    CHECK_EQ_INT(log.n, 5);
    for (unsigned i = 0; i < 5; i++)
        CHECK_EQ_STR(log.names[i], order[i]);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}

static gyre_err remove_lock_file(void *data, const char *name, bool can_fail)
{
    (void)can_fail;
    if (strcmp(name, "lockfile.take.opened") == 0)
        CHECK(unlink(data) == 0);
    return GYRE_OK;
}

/* The one whose opening was refused removes the file that another has just opened. */
TEST(a_lock_on_a_file_that_lost_its_name_is_no_lock)
{
    struct opening o;
    char *lock_path = strdup(test_path("data/lock.gyre"));
    const struct eng_step_hook hook = {remove_lock_file, lock_path};

    need_steps();
    opening_init(&o, test_path("data"));
    make(&o);
    eng_step_install(&hook);
    open_refused(&o, GYRE_BUSY, "try again");
    eng_step_install(NULL);
    make(&o);
    free(lock_path);
    opening_fini(&o);
}
