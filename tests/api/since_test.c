/* Marks and what was stored since; whether an object is still the one that was looked at. */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/api/fixture.h"

enum { OBJECTS = 40000, OLD = 300 };

struct mark {
    size_t len;
    uint8_t bytes[GYRE_MARK_MAX];
};

static struct mark take_mark(struct gyre_store *store)
{
    struct mark mark;
    CHECK_OK(gyre_mark(store, mark.bytes, sizeof mark.bytes, &mark.len));
    CHECK(mark.len > 0);
    return mark;
}

/* The body of object n holds n in its first bytes and in its metadata. */
static void put_range(struct gyre_store *store, uint64_t first, uint64_t end, size_t len)
{
    static uint8_t body[65536];
    struct gyre_put_options options;
    for (uint64_t n = first; n < end; n++) {
        struct gyre_key key = key_of(n);
        gyre_put_options_init(&options);
        options.meta = &n;
        options.meta_len = sizeof n;
        CHECK_OK(gyre_put(store, &key, &options, body, len, NULL));
    }
}

struct seen {
    uint8_t times[OBJECTS];
    unsigned total;
};

static bool note(void *data, const struct gyre_handle *handle)
{
    struct seen *seen = data;
    uint64_t n;
    size_t len;
    memcpy(&n, gyre_handle_meta(handle, &len), sizeof n);
    CHECK(len == sizeof n && n < OBJECTS);
    if (seen->times[n]++ == 0)
        seen->total++;
    return true;
}

static struct seen *seen_since(struct gyre_store *store, const struct mark *mark)
{
    static struct seen seen;
    memset(&seen, 0, sizeof seen);
    CHECK_OK(gyre_each_since(store, GYRE_POOL_MAIN, mark->bytes, mark->len, note, &seen));
    return &seen;
}

/* Everything there that is not older than `first` was visited. Returns how many there are. */
static unsigned check_covers(struct gyre_store *store, const struct mark *mark, uint64_t first)
{
    static struct seen all;
    unsigned n_new = 0;
    struct seen *since = seen_since(store, mark);
    memset(&all, 0, sizeof all);
    CHECK_OK(gyre_each(store, GYRE_POOL_MAIN, note, &all));
    for (uint64_t n = first; n < OBJECTS; n++) {
        CHECK_MSG(all.times[n] == 0 || since->times[n] > 0, "object %llu was passed over",
                  (unsigned long long)n);
        n_new += all.times[n] > 0;
    }
    return n_new;
}

TEST(objects_stored_since_a_mark_are_visited_and_no_others)
{
    struct gyre_store *store = open_store();
    put_range(store, 0, 300, 3000);
    struct mark mark = take_mark(store);
    CHECK_EQ_U64(seen_since(store, &mark)->total, 0);
    put_range(store, 300, 500, 3000);
    put_range(store, 7, 9, 100); /* replaced */
    put_range(store, 500, 501, 65536);
    struct seen *seen = seen_since(store, &mark);
    CHECK_EQ_U64(seen->total, 203);
    CHECK(seen->times[7] > 0 && seen->times[8] > 0 && seen->times[300] > 0 && seen->times[500] > 0);
    mark = take_mark(store);
    CHECK_EQ_U64(seen_since(store, &mark)->total, 0);
    close_store(store);
    store = open_store();
    CHECK_EQ_U64(seen_since(store, &mark)->total, 0);
    put_range(store, 501, 502, 10);
    CHECK_EQ_U64(seen_since(store, &mark)->total, 1);
    close_store(store);
}

/* One run of a process that is killed: `work` is done in it. */
static void run_and_die(void (*work)(struct gyre_store *store))
{
    pid_t pid = test_fork();
    if (pid == 0) {
        work(open_store());
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_EQ_INT(status, 0);
}

static void mark_and_go_round(struct gyre_store *store)
{
    put_range(store, 0, OLD, 4000);
    CHECK_OK(gyre_sync(store));
    struct mark mark = take_mark(store);
    FILE *file = fopen(test_path("mark"), "w");
    CHECK(file != NULL && fwrite(&mark, sizeof mark, 1, file) == 1 && fclose(file) == 0);
    put_range(store, OLD, 30000, 4000); /* more than the store holds */
}

static void put_a_few(struct gyre_store *store)
{
    put_range(store, 30000, 31000, 4000);
}

TEST(a_mark_of_an_earlier_run_covers_what_killed_runs_stored)
{
    struct mark mark;
    run_and_die(mark_and_go_round);
    FILE *file = fopen(test_path("mark"), "r");
    CHECK(file != NULL && fread(&mark, sizeof mark, 1, file) == 1 && fclose(file) == 0);
    struct gyre_store *store = open_store();
    CHECK(check_covers(store, &mark, OLD) > 10000);
    close_store(store);
    run_and_die(put_a_few);
    store = open_store();
    CHECK(check_covers(store, &mark, OLD) > 10000);
    mark = take_mark(store);
    close_store(store);
    store = open_store();
    CHECK_EQ_U64(check_covers(store, &mark, OBJECTS - 1), 0);
    CHECK_EQ_U64(seen_since(store, &mark)->total, 0);
    put_range(store, 31000, 33000, 4000);
    CHECK_EQ_U64(check_covers(store, &mark, 31000), 2000);
    close_store(store);
}

/* After a lap: a mark, then segments of which those in the middle are emptied again. */
static void leave_a_gap(struct gyre_store *store)
{
    put_range(store, OLD, 30000, 4000);
    CHECK_OK(gyre_sync(store));
    struct mark mark = take_mark(store);
    FILE *file = fopen(test_path("mark"), "w");
    CHECK(file != NULL && fwrite(&mark, sizeof mark, 1, file) == 1 && fclose(file) == 0);
    put_range(store, 30000, 33000, 4000);
    for (uint64_t n = 30500; n < 32500; n++) {
        struct gyre_key key = key_of(n);
        CHECK_OK(gyre_delete(store, &key, GYRE_ALWAYS, 0, 0));
    }
}

TEST(segments_that_recovery_could_not_date_are_visited)
{
    struct mark mark;
    run_and_die(leave_a_gap);
    FILE *file = fopen(test_path("mark"), "r");
    CHECK(file != NULL && fread(&mark, sizeof mark, 1, file) == 1 && fclose(file) == 0);
    struct gyre_store *store = open_store();
    close_store(store);
    store = open_store();
    CHECK_EQ_U64(check_covers(store, &mark, 30000), 1000);
    close_store(store);
}

/* Slabs that were open when the mark was taken get documents after it. */
TEST(a_mark_amid_writing_covers_the_segments_in_use)
{
    struct gyre_store *store = open_store();
    for (uint64_t n = 0; n < 2000; n += 100) {
        put_range(store, n, n + 50, 700);
        struct mark mark = take_mark(store);
        put_range(store, n + 50, n + 100, 700);
        CHECK(check_covers(store, &mark, n + 50) == 50);
        CHECK_EQ_U64(seen_since(store, &mark)->total, 50);
    }
    close_store(store);
}

TEST(a_damaged_mark_or_one_of_another_store_is_refused)
{
    struct gyre_store *store = open_store();
    struct mark mark = take_mark(store);
    static struct seen seen;
    for (size_t i = 0; i < mark.len; i++) {
        mark.bytes[i] ^= 0x10;
        CHECK_ERR(gyre_each_since(store, GYRE_POOL_MAIN, mark.bytes, mark.len, note, &seen),
                  GYRE_FOREIGN);
        mark.bytes[i] ^= 0x10;
        CHECK_ERR(gyre_each_since(store, GYRE_POOL_MAIN, mark.bytes, i, note, &seen), GYRE_FOREIGN);
    }
    size_t len;
    CHECK_ERR(gyre_mark(store, mark.bytes, mark.len - 1, &len), GYRE_RANGE);
    close_store(store);
    struct gyre_options options = options_for("other", GYRE_SIZE_MIN);
    store = open_with(&options);
    CHECK_ERR(gyre_each_since(store, GYRE_POOL_MAIN, mark.bytes, mark.len, note, &seen),
              GYRE_FOREIGN);
    CHECK_EQ_U64(seen.total, 0);
    close_store(store);
}

static uint64_t place_of(struct gyre_store *store, uint64_t n)
{
    struct gyre_key key = key_of(n);
    struct gyre_handle *handle;
    CHECK_OK(gyre_get(store, &key, 0, GYRE_GET_HEAD | GYRE_GET_NO_COUNT, &handle));
    uint64_t place = gyre_handle_info(handle)->place;
    gyre_release(handle);
    return place;
}

TEST(an_object_is_held_until_it_is_replaced_deleted_or_evicted)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1), other = key_of(2);
    put_range(store, 1, 4, 500);
    uint64_t place = place_of(store, 1);
    CHECK_OK(gyre_holds(store, &key, place));
    CHECK_ERR(gyre_holds(store, &other, place), GYRE_NOT_FOUND);
    put_range(store, 1, 2, 500);
    CHECK_ERR(gyre_holds(store, &key, place), GYRE_NOT_FOUND);
    place = place_of(store, 1);
    CHECK_OK(gyre_delete(store, &key, GYRE_ALWAYS, 0, 0));
    CHECK_ERR(gyre_holds(store, &key, place), GYRE_NOT_FOUND);
    place = place_of(store, 2);
    close_store(store);
    store = open_store();
    CHECK_OK(gyre_holds(store, &other, place));
    put_range(store, 10, 30000, 4000);
    CHECK_ERR(gyre_holds(store, &other, place), GYRE_NOT_FOUND);
    close_store(store);
}

TEST(a_banned_object_is_not_held)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1), other = key_of(2);
    put_range(store, 1, 3, 500);
    uint64_t place = place_of(store, 1), other_place = place_of(store, 2);
    CHECK_OK(gyre_ban_key(store, GYRE_POOL_MAIN, &key, 0));
    CHECK_ERR(gyre_holds(store, &key, place), GYRE_NOT_FOUND);
    CHECK_ERR(gyre_holds(store, &other, other_place), GYRE_NOT_FOUND);
    CHECK_OK(gyre_exists(store, &other, 0, GYRE_STRICT));
    close_store(store);
}

TEST(a_look_that_does_not_count_leaves_the_counters_alone)
{
    struct gyre_store *store = open_store();
    struct gyre_stats before = {.struct_size = sizeof before}, after = before;
    put_range(store, 1, 2, 500);
    CHECK_OK(gyre_stat(store, &before));
    struct gyre_key missing = key_of(99);
    struct gyre_handle *handle;
    (void)place_of(store, 1);
    CHECK_ERR(gyre_get(store, &missing, 0, GYRE_GET_NO_COUNT, &handle), GYRE_NOT_FOUND);
    CHECK_OK(gyre_stat(store, &after));
    CHECK_EQ_U64(after.hits, before.hits);
    CHECK_EQ_U64(after.misses, before.misses);
    close_store(store);
}
