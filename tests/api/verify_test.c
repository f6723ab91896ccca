/* Looking at the medium: what is damaged is found, what is being changed is not taken for damaged,
 * and a store that may only be read is only read. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/api/fixture.h"

struct seen {
    unsigned lines;
    uint64_t done, total;
    bool fell_back;
};

static void on_line(void *data, const char *line)
{
    CHECK(strstr(line, "stripe-") != NULL);
    ((struct seen *)data)->lines++;
}

static void on_progress(void *data, const char *what, uint64_t done, uint64_t total)
{
    struct seen *seen = data;
    CHECK(what[0] != '\0' && done <= total);
    seen->fell_back = seen->fell_back || done < seen->done;
    seen->done = done;
    seen->total = total;
}

static gyre_err verify(struct gyre_store *store, uint64_t rate, struct seen *seen,
                       struct gyre_verify_report *report)
{
    struct gyre_verify_options options;
    gyre_verify_init(&options);
    options.bytes_per_second = rate;
    options.report = on_line;
    options.progress = on_progress;
    options.data = seen;
    *report = (struct gyre_verify_report){.struct_size = sizeof *report};
    *seen = (struct seen){0};
    return gyre_verify(store, &options, report);
}

static void fill(struct gyre_store *store)
{
    for (uint64_t n = 0; n < 40; n++)
        put_pattern(store, n, n, n % 4 == 0 ? 300000 + (size_t)n : 1 + (size_t)n * 100);
}

/* Flips a byte of the body, on the disk. */
static void damage(struct gyre_store *store, uint64_t n, uint64_t offset)
{
    struct gyre_key key = key_of(n);
    struct gyre_handle *handle;
    struct gyre_piece piece;
    struct gyre_file file;
    uint8_t byte;
    CHECK_OK(gyre_get(store, &key, 0, 0, &handle));
    CHECK_OK(gyre_handle_piece(handle, offset, &piece));
    CHECK_OK(gyre_file_at(store, 1, &file));
    int fd = open(file.path, O_RDWR);
    CHECK(fd >= 0 && pread(fd, &byte, 1, (off_t)piece.file_offset) == 1);
    byte ^= 0x10;
    CHECK(pwrite(fd, &byte, 1, (off_t)piece.file_offset) == 1);
    close(fd);
    gyre_release(handle);
}

static struct gyre_store *open_one_stripe(void)
{
    struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
    options.stripes = 1;
    return open_with(&options);
}

TEST(every_byte_is_read_and_what_is_damaged_is_found)
{
    struct gyre_store *store = open_one_stripe();
    struct gyre_verify_report report;
    struct seen seen;
    CHECK_OK(verify(store, 0, &seen, &report)); /* nothing */
    CHECK_EQ_U64(report.documents, 0);
    fill(store);
    CHECK_OK(verify(store, 0, &seen, &report));
    CHECK_EQ_U64(report.documents, 30 + 10 * 3); /* HEAD and two parts */
    CHECK(report.bytes >= 3000000 && seen.done == seen.total && !seen.fell_back);
    CHECK_EQ_INT(seen.lines, 0);
    damage(store, 3, 20);
    damage(store, 4, 299999);
    CHECK_ERR(verify(store, 0, &seen, &report), GYRE_DAMAGED);
    CHECK_EQ_U64(report.documents_bad, 2);
    CHECK_EQ_U64(report.unreadable, 0);
    CHECK_EQ_INT(seen.lines, 2);
    check_absent(store, 3); /* trusted until then: it had been put by this very process */
    check_absent(store, 4);
    check_object(store, 5, 5, 501);
    CHECK_OK(verify(store, 0, &seen, &report));
    close_store(store);
}

TEST(a_rate_is_kept)
{
    struct gyre_store *store = open_one_stripe();
    struct gyre_verify_report report;
    struct seen seen;
    struct timespec begin, end;
    fill(store);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    CHECK_OK(verify(store, 20 << 20, &seen, &report));
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds =
        (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    CHECK(report.bytes > 3 * MIB); /* the last window is not waited for */
    CHECK_MSG(seconds >= (double)(report.bytes - 2 * MIB) / (20.0 * MIB), "%f s", seconds);
    close_store(store);
}

/* ---- Beside others ---- */

static _Atomic bool stop;

static void *change(void *data)
{
    struct gyre_store *store = data;
    for (uint64_t n = 0; !atomic_load(&stop); n++) {
        struct gyre_key key = key_of(n % 300);
        put_pattern(store, n % 300, n, n % 7 == 0 ? 200000 : 3000);
        if (n % 5 == 0)
            (void)!gyre_delete(store, &key, GYRE_ALWAYS, 0, 0);
    }
    return NULL;
}

TEST(what_changes_meanwhile_is_not_taken_for_damaged)
{
    struct gyre_store *store = open_one_stripe();
    struct gyre_verify_report report;
    struct seen seen;
    pthread_t threads[2];
    uint64_t judged = 0;
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, change, store) == 0);
    for (int i = 0; i < (test_full() ? 300 : 6) || judged == 0; i++) {
        CHECK_OK(verify(store, 0, &seen, &report));
        judged += report.documents;
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    close_store(store);
}

/* ---- Only reading ---- */

static struct gyre_store *open_readonly(void)
{
    struct gyre_options options = options_for("store", 0);
    options.mode = GYRE_OPEN_READONLY;
    return open_with(&options);
}

static void expect_only_looking(struct gyre_store *store, uint64_t documents)
{
    struct gyre_stats stats = {.struct_size = sizeof stats};
    struct gyre_verify_report report;
    struct gyre_check_report check = {.struct_size = sizeof check};
    struct seen seen;
    struct gyre_key key = key_of(1);
    struct gyre_handle *handle;
    struct gyre_file file;
    CHECK_OK(gyre_stat(store, &stats));
    CHECK_EQ_U64(stats.documents, documents);
    CHECK(stats.capacity_bytes > 0 && stats.live_bytes > 0);
    CHECK_OK(verify(store, 0, &seen, &report));
    CHECK_EQ_U64(report.documents, documents);
    CHECK_OK(gyre_file_at(store, 1, &file));
    CHECK_ERR(gyre_get(store, &key, 0, 0, &handle), GYRE_ACCESS);
    CHECK_ERR(gyre_exists(store, &key, 0, GYRE_PROBABLE), GYRE_ACCESS);
    CHECK_ERR(gyre_put(store, &key, NULL, "x", 1, NULL), GYRE_ACCESS);
    CHECK_ERR(gyre_delete(store, &key, GYRE_ALWAYS, 0, 0), GYRE_ACCESS);
    CHECK_ERR(gyre_sync(store), GYRE_ACCESS);
    CHECK_ERR(gyre_check(store, false, NULL, NULL, &check), GYRE_ACCESS);
    CHECK_ERR(gyre_sync_async(store, NULL, NULL), GYRE_INVALID);
    close_store(store);
}

/* Names, sizes, times of change. */
static uint64_t fingerprint(const char *dir_path)
{
    DIR *dir = opendir(dir_path);
    uint64_t sum = 0;
    struct dirent *at;
    CHECK(dir != NULL);
    while ((at = readdir(dir)) != NULL) {
        struct stat status;
        if (at->d_name[0] == '.')
            continue;
        CHECK(fstatat(dirfd(dir), at->d_name, &status, 0) == 0);
        sum += (uint64_t)status.st_size * 31 + (uint64_t)status.st_mtim.tv_nsec * 7 +
               (uint64_t)status.st_ctim.tv_nsec + (uint64_t)status.st_ino;
    }
    closedir(dir);
    return sum;
}

TEST(inv_E59_a_store_that_is_only_looked_at_is_not_changed)
{
    struct gyre_options options = options_for("store", 0);
    struct gyre_store *none = NULL;
    char message[512];
    options.mode = GYRE_OPEN_READONLY;
    CHECK_ERR(gyre_open(&options, &none, message, sizeof message), GYRE_NO_STORE);
    CHECK(access(test_path("store"), F_OK) != 0);
    struct gyre_store *store = open_one_stripe();
    fill(store);
    close_store(store);
    uint64_t before = fingerprint(test_path("store"));
    expect_only_looking(open_readonly(), 60);
    CHECK_EQ_U64(fingerprint(test_path("store")), before);
    store = open_one_stripe(); /* beside a process that uses it, this one */
    expect_only_looking(open_readonly(), 60);
    check_object(store, 1, 1, 101);
    close_store(store);
}

TEST(a_user_who_may_only_read_can_look)
{
    if (geteuid() != 0)
        test_skip("needs to be root, to become somebody else");
    struct gyre_store *store = open_one_stripe();
    fill(store);
    close_store(store);
    const char *dir = test_path("store");
    char path[600];
    CHECK(chmod(dir, 0755) == 0);
    static const char *const names[] = {"volume.gyre", "stripe-0000.gyre"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        CHECK(chmod(path, 0444) == 0);
    }
    for (char *slash = strrchr(strcpy(path, dir), '/'); slash != path; slash = strrchr(path, '/')) {
        *slash = '\0';
        (void)!chmod(path, 0755); /* the test's own directory, and what is above it if need be */
        if (strcmp(path, test_tmpdir()) == 0)
            break;
    }
    pid_t pid = test_fork();
    if (pid == 0) {
        CHECK(setgid(65534) == 0 && setuid(65534) == 0);
        struct gyre_options options = options_for("store", 0);
        options.mode = GYRE_OPEN_EXISTING;
        char message[512];
        CHECK_ERR(gyre_open(&options, &store, message, sizeof message), GYRE_ACCESS);
        expect_only_looking(open_readonly(), 60);
        _exit(0);
    }
    test_join(pid);
}
