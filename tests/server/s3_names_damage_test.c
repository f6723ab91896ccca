/* The index of names is made again from the store when its file is missing, damaged, old or
 * somebody else's, and until then lists are refused rather than wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/server/names_fixture.h"

enum { OBJECTS = 1500 };

#define FILE_PATH test_path("store/names.sqlite")

/* ---- Files ---- */

struct bytes {
    uint8_t *at;
    size_t len;
};

static struct bytes read_file(void)
{
    struct stat status;
    int fd = open(FILE_PATH, O_RDONLY);
    CHECK(fd >= 0 && fstat(fd, &status) == 0);
    struct bytes bytes = {malloc((size_t)status.st_size), (size_t)status.st_size};
    CHECK(read(fd, bytes.at, bytes.len) == (ssize_t)bytes.len);
    close(fd);
    return bytes;
}

/* In place of whatever is there, or over it. */
static void write_file(struct bytes bytes, bool in_place)
{
    if (!in_place)
        unlink(FILE_PATH);
    int fd = open(FILE_PATH, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && write(fd, bytes.at, bytes.len) == (ssize_t)bytes.len);
    close(fd);
}

static void flip(size_t at, uint8_t bits)
{
    uint8_t byte;
    int fd = open(FILE_PATH, O_RDWR);
    CHECK(fd >= 0 && pread(fd, &byte, 1, (off_t)at) == 1);
    byte ^= bits;
    CHECK(pwrite(fd, &byte, 1, (off_t)at) == 1);
    close(fd);
}

/* ---- Objects ---- */

static void key_of(unsigned i, char key[48])
{
    snprintf(key, 48, "dir-%03u/a-key-of-some-length-%05u", i * 7919 % 211, i);
}

static void fill(struct gyre_store *store, struct srv_names *names, unsigned first, unsigned end)
{
    char key[48];
    for (unsigned i = first; i < end; i++) {
        key_of(i, key);
        unsigned turn = srv_names_enter(names);
        store_object(store, "bucket", key, i, 50, 0);
        srv_names_changed(names, turn, str_of("bucket"), str_of(key));
    }
    srv_names_settle(names);
}

static bool append_key(void *data, const struct gyre_handle *handle)
{
    struct srv_s3_meta meta;
    size_t len, *n = data;
    const void *bytes = gyre_handle_meta(handle, &len);
    *n += srv_s3_meta_decode(bytes, len, &meta) && meta.bucket.len == 6;
    return true;
}

/* Every object of the bucket is listed once, in order, and nothing else is. */
static void check_complete(struct gyre_store *store, struct srv_names *names)
{
    size_t n_objects = 0, n_listed = 0;
    char *text = list(names, "bucket"), *rest = text, last[64] = "";
    CHECK_OK(gyre_each(store, GYRE_POOL_MAIN, append_key, &n_objects));
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL; n_listed++) {
        char key[48];
        char *sign = strchr(word, '=');
        CHECK(sign != NULL);
        key_of((unsigned)atoi(sign + 1), key);
        *sign = 0;
        CHECK_EQ_STR(word, key);
        CHECK(strcmp(last, word) < 0);
        snprintf(last, sizeof last, "%s", word);
    }
    CHECK_EQ_U64(n_listed, n_objects);
    free(text);
}

/* A store with an index that was closed in order. */
static struct gyre_store *make_store(void)
{
    struct gyre_store *store = names_open_store();
    struct srv_names *names = names_open(store);
    fill(store, names, 0, OBJECTS);
    check_complete(store, names);
    srv_names_destroy(names);
    return store;
}

/* ---- While nobody has it open ---- */

static void reopen_and_check(struct gyre_store *store)
{
    struct srv_names *names = names_open(store);
    check_complete(store, names);
    srv_names_destroy(names);
    names = names_open(store);
    check_complete(store, names);
    srv_names_destroy(names);
}

TEST(a_file_that_is_gone_or_cut_short_is_made_anew)
{
    struct gyre_store *store = make_store();
    struct bytes whole = read_file();
    CHECK(unlink(FILE_PATH) == 0);
    reopen_and_check(store);
    const size_t lengths[] = {
        0, 1, 100, 4096, 5000, 3 * 4096, whole.len / 2, whole.len - 4096, whole.len - 1};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        write_file((struct bytes){whole.at, lengths[i]}, false);
        reopen_and_check(store);
    }
    memset(whole.at, 'x', whole.len);
    write_file(whole, false);
    reopen_and_check(store);
    free(whole.at);
    names_close_store(store);
}

/* Nobody said that what a link leads to is ours to write. */
TEST(links_are_replaced_and_not_followed)
{
    static const char *const names[] = {"names.sqlite", "names.sqlite-wal", "names.sqlite-shm",
                                        "names.sqlite-writers"};
    struct gyre_store *store = make_store();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[512], elsewhere[512], text[8] = "";
        struct stat status;
        snprintf(path, sizeof path, "%s/%s", test_path("store"), names[i]);
        snprintf(elsewhere, sizeof elsewhere, "%s", test_path("elsewhere"));
        FILE *file = fopen(elsewhere, "w");
        CHECK(file != NULL && fputs("mine", file) >= 0 && fclose(file) == 0);
        CHECK((unlink(path) == 0 || errno == ENOENT) && symlink(elsewhere, path) == 0);
        reopen_and_check(store);
        CHECK_MSG(lstat(path, &status) != 0 || S_ISREG(status.st_mode), "%s is a link", path);
        file = fopen(elsewhere, "r");
        CHECK(file != NULL && fgets(text, sizeof text, file) != NULL && fclose(file) == 0);
        CHECK_EQ_STR(text, "mine");
        CHECK(stat(elsewhere, &status) == 0 && status.st_size == 4);
    }
    names_close_store(store);
}

TEST(inv_S5_no_flipped_byte_makes_or_hides_a_name)
{
    struct gyre_store *store = make_store();
    struct bytes whole = read_file();
    struct test_rng rng = {test_seed()};
    unsigned n = test_full() ? 3000 : 40;
    for (unsigned i = 0; i < n; i++) {
        size_t at = test_rng_below(&rng, whole.len);
        if (i % 4 == 0)
            at = test_rng_below(&rng, 200) + at / 4096 * 4096;
        write_file(whole, false);
        flip(at, (uint8_t)(1u << test_rng_below(&rng, 8)));
        reopen_and_check(store);
    }
    free(whole.at);
    names_close_store(store);
}

TEST(an_old_file_catches_up)
{
    struct gyre_store *store = make_store();
    struct bytes old = read_file();
    struct srv_names *names = names_open(store);
    char key[48];
    fill(store, names, OBJECTS, OBJECTS + 3000);
    for (unsigned i = 0; i < OBJECTS; i += 2) {
        key_of(i, key);
        delete_object(store, names, "bucket", key);
    }
    srv_names_destroy(names);
    write_file(old, false);
    reopen_and_check(store);
    for (unsigned i = 0; i < 120; i++) { /* the log goes round: most of it is evicted */
        snprintf(key, sizeof key, "filler-%u", i);
        store_object(store, "elsewhere", key, i, 1 << 20, 0);
    }
    write_file(old, false);
    reopen_and_check(store);
    free(old.at);
    names_close_store(store);
}

TEST(the_file_of_another_store_is_not_believed)
{
    struct gyre_store *store = make_store();
    struct bytes file = read_file();
    names_close_store(store);
    CHECK(rename(test_path("store"), test_path("other")) == 0);
    store = names_open_store();
    write_file(file, false);
    struct srv_names *names = names_open(store);
    check_list(names, "bucket", "");
    fill(store, names, 0, 10);
    check_complete(store, names);
    srv_names_destroy(names);
    reopen_and_check(store);
    free(file.at);
    names_close_store(store);
}

/* ---- After a death ---- */

static void work_and_die(unsigned first)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        struct gyre_store *store = names_open_store();
        struct srv_names *names = names_open(store);
        char key[48];
        await_ready(names);
        fill(store, names, first, first + 300);
        usleep(1200 * 1000 * (first % 2)); /* the mark moves on */
        fill(store, names, first + 300, first + 400);
        for (unsigned i = first + 400; i < first + 450; i++) { /* stored, never noted */
            key_of(i, key);
            (void)srv_names_enter(names);
            store_object(store, "bucket", key, i, 50, 0);
        }
        key_of(first, key);
        remove_object(store, "bucket", key);
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_EQ_INT(status, 0);
}

TEST(what_a_killed_process_stored_is_listed)
{
    names_close_store(make_store());
    for (unsigned i = 0; i < 3; i++) {
        work_and_die(OBJECTS + i * 501);
        struct gyre_store *store = names_open_store();
        reopen_and_check(store);
        names_close_store(store);
    }
    work_and_die(OBJECTS + 5000);
    work_and_die(OBJECTS + 6001);
    struct gyre_store *store = names_open_store();
    reopen_and_check(store);
    names_close_store(store);
}

/* ---- While it is open ---- */

TEST(a_file_damaged_while_it_is_open_is_made_anew)
{
    struct gyre_store *store = make_store();
    struct srv_names *names = names_open(store);
    struct bytes whole = read_file();
    unsigned next = OBJECTS;
    CHECK(unlink(FILE_PATH) == 0);
    fill(store, names, next, next + 100);
    for (int i = 0; i < 30000 && access(FILE_PATH, F_OK) != 0; i++)
        usleep(1000);
    fill(store, names, next + 100, next + 200);
    check_complete(store, names);
    next += 200;
    CHECK(truncate(FILE_PATH, 4096) == 0);
    fill(store, names, next, next + 100);
    srv_names_destroy(names);
    reopen_and_check(store);
    next += 100;
    names = names_open(store);
    write_file(whole, false); /* the old one comes back */
    fill(store, names, next, next + 100);
    srv_names_destroy(names);
    reopen_and_check(store);
    free(whole.at);
    names_close_store(store);
}
