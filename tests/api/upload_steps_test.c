/* Deaths at every step of completing and of aborting an upload. Needs the simulation build. */
#include "tests/api/fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/step.h"

#define PARTS 3
#define PART_BYTES 300000

static gyre_err count_down(void *data, const char *name, bool can_fail)
{
    static const char *const groups[] = {"upload.", "keep.", "publish.", "commit.", "delete."};
    unsigned *left = data;
    (void)can_fail;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        if (strncmp(name, groups[i], strlen(groups[i])) == 0 && --*left == 0)
            _exit(99);
    return GYRE_OK;
}

static struct gyre_upload_id prepare(const struct gyre_options *options)
{
    struct gyre_store *store = open_with(options);
    struct gyre_key key = key_of(1);
    struct gyre_upload_options upload;
    struct gyre_upload_id id;
    gyre_upload_options_init(&upload);
    upload.tenant = 3;
    CHECK_OK(gyre_upload_begin(store, &key, &upload, &id));
    uint8_t *bytes = pattern_new(5, PARTS * PART_BYTES);
    for (uint32_t i = 0; i < PARTS; i++) {
        struct gyre_put *put;
        CHECK_OK(gyre_upload_put(store, &key, &id, i + 1, PART_BYTES, 0, &put));
        CHECK_OK(gyre_put_write(put, bytes + i * PART_BYTES, PART_BYTES));
        CHECK_OK(gyre_put_commit(&put, NULL));
    }
    free(bytes);
    close_store(store);
    return id;
}

static gyre_err complete(struct gyre_store *store, const struct gyre_upload_id *id)
{
    struct gyre_key key = key_of(1);
    struct gyre_part_choice choices[PARTS] = {{.number = 1}, {.number = 2}, {.number = 3}};
    struct gyre_put_options options;
    gyre_put_options_init(&options);
    return gyre_upload_complete(store, &key, id, choices, PARTS, &options, NULL);
}

static gyre_err end(struct gyre_store *store, const struct gyre_upload_id *id)
{
    struct gyre_key key = key_of(1);
    return gyre_upload_abort(store, &key, id, 0);
}

/* Whether a child that runs this dies at its k-th step. */
static bool dies(const struct gyre_options *options, const struct gyre_upload_id *id, unsigned k,
                 gyre_err (*run)(struct gyre_store *store, const struct gyre_upload_id *id))
{
    int status;
    pid_t pid = test_fork();
    if (pid == 0) {
        struct gyre_store *store = open_with(options);
        const struct eng_step_hook hook = {count_down, &k};
        eng_step_install(&hook);
        gyre_err err = run(store, id);
        eng_step_install(NULL);
        _exit(err == GYRE_OK ? 0 : 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 99 || WEXITSTATUS(status) == 0);
    return WEXITSTATUS(status) == 99;
}

static bool is_there(struct gyre_store *store)
{
    struct gyre_key key = key_of(1);
    return gyre_exists(store, &key, 0, GYRE_STRICT) == GYRE_OK;
}

static uint64_t kept(struct gyre_store *store)
{
    struct gyre_pool_info info = {.struct_size = sizeof info};
    CHECK_OK(gyre_pool_at(store, GYRE_POOL_MAIN, &info));
    return info.kept_bytes;
}

static void check_sound(struct gyre_store *store)
{
    struct gyre_check_report report = {.struct_size = sizeof report};
    CHECK_OK(gyre_check(store, true, NULL, NULL, &report));
    CHECK_EQ_U64(report.objects_incomplete, 0);
}

/* What is found after a death, and that it can be brought to an end either way. */
static void settle(const struct gyre_options *options, const struct gyre_upload_id *id,
                   gyre_err (*run)(struct gyre_store *store, const struct gyre_upload_id *id))
{
    struct gyre_store *store = open_with(options);
    bool done = is_there(store);
    if (done)
        check_object(store, 1, 5, PARTS * PART_BYTES);
    check_sound(store);
    gyre_err err = run(store, id);
    CHECK_MSG(err == GYRE_OK || err == GYRE_NOT_FOUND || (err == GYRE_RANGE && done), "again: %s",
              gyre_err_name(err));
    if (run == complete)
        check_object(store, 1, 5, PARTS * PART_BYTES);
    else
        CHECK(is_there(store) == done);
    err = end(store, id); /* whatever is left of it, the object keeps its parts */
    CHECK(err == GYRE_OK || err == GYRE_NOT_FOUND);
    CHECK_OK(gyre_upload_sweep(store, 1000));
    CHECK_EQ_U64(kept(store), 0);
    if (run == complete)
        check_object(store, 1, 5, PARTS * PART_BYTES);
    check_sound(store);
    close_store(store);
}

static void die_everywhere(gyre_err (*run)(struct gyre_store *store,
                                           const struct gyre_upload_id *id))
{
#ifndef GYRE_SIM
    test_skip("needs GYRE_SIM");
#endif
    unsigned k = 1;
    for (bool died = true; died; k++) {
        struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
        options.mode = GYRE_OPEN_RESET;
        struct gyre_upload_id id = prepare(&options);
        options.mode = GYRE_OPEN_EXISTING;
        died = dies(&options, &id, k, run);
        settle(&options, &id, run);
    }
    CHECK(k > 5);
}

TEST(inv_E86_a_death_at_any_step_of_completing_leaves_the_object_or_the_upload)
{
    die_everywhere(complete);
}

TEST(inv_E85_a_death_at_any_step_of_aborting_leaks_nothing)
{
    die_everywhere(end);
}
