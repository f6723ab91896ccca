/* Looking in: counters add up, files are those of the directory, sizes stay within what was asked
 * for. */
#include "tests/api/fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct gyre_stats stat_of(struct gyre_store *store)
{
    struct gyre_stats stats = {.struct_size = sizeof stats};
    CHECK_OK(gyre_stat(store, &stats));
    return stats;
}

TEST(counters_count)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1), absent = key_of(2);
    struct gyre_handle *handle;
    struct gyre_stats zero = stat_of(store);
    CHECK_EQ_U64(zero.hits + zero.misses + zero.puts + zero.deletes + zero.documents + zero.pins,
                 0);
    CHECK(zero.capacity_bytes > GYRE_SIZE_MIN / 2 && zero.capacity_bytes <= GYRE_SIZE_MIN);
    CHECK_EQ_U64(zero.capacity_bytes, gyre_capacity_bytes(store));
    CHECK(zero.segments >= zero.segments_free && zero.segments_free > 0);
    CHECK(zero.directory_slots > 1000);

    put_pattern(store, 1, 1, 1000);
    put_pattern(store, 3, 3, 100000);
    struct gyre_stats after = stat_of(store);
    CHECK_EQ_U64(after.puts, 2);
    CHECK_EQ_U64(after.put_bytes, 101000);
    CHECK(after.documents >= 3);
    CHECK(after.live_bytes >= 101000);

    CHECK_OK(gyre_get(store, &key, 0, 0, &handle));
    CHECK_EQ_U64(stat_of(store).pins, 1);
    CHECK_EQ_U64(stat_of(store).hits, 1);
    gyre_release(handle);
    CHECK_EQ_U64(stat_of(store).pins, 0);
    check_object(store, 3, 3, 100000);
    CHECK_EQ_U64(stat_of(store).hits, 2); /* one an object, however many its parts */
    CHECK_ERR(gyre_get(store, &absent, 0, 0, &handle), GYRE_NOT_FOUND);
    CHECK_EQ_U64(stat_of(store).misses, 1);
    CHECK_OK(gyre_delete(store, &key, GYRE_ALWAYS, 0, 0));
    CHECK_EQ_U64(stat_of(store).deletes, 1);
    close_store(store);
}

TEST(structure_sizes_are_checked)
{
    struct gyre_store *store = open_store();
    struct gyre_stats stats = {.struct_size = sizeof stats - 8};
    CHECK_ERR(gyre_stat(store, &stats), GYRE_INVALID);
    stats.struct_size = 0;
    CHECK_ERR(gyre_stat(store, &stats), GYRE_INVALID);
    CHECK_ERR(gyre_stat(store, NULL), GYRE_INVALID);
    struct gyre_check_report report = {.struct_size = 3};
    CHECK_ERR(gyre_check(store, false, NULL, NULL, &report), GYRE_INVALID);
    struct gyre_file file;
    CHECK_ERR(gyre_file_at(store, 1000, &file), GYRE_RANGE);
    CHECK(file.path == NULL && file.fd == -1);
    CHECK_ERR(gyre_file_at(store, 0, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_file_at(NULL, 0, &file), GYRE_INVALID);
    CHECK_ERR(gyre_stat(NULL, &(struct gyre_stats){.struct_size = sizeof stats}), GYRE_INVALID);
    close_store(store);
}

TEST(files_are_listed_as_they_are)
{
    struct gyre_store *store = open_store();
    struct gyre_file file;
    size_t n = 0;
    uint64_t sum = 0;
    for (; gyre_file_at(store, n, &file) == GYRE_OK; n++) {
        struct stat by_fd, by_path;
        CHECK(fstat(file.fd, &by_fd) == 0 && stat(file.path, &by_path) == 0);
        CHECK(by_fd.st_ino == by_path.st_ino);
        CHECK_EQ_U64(by_fd.st_size, file.size_bytes);
        CHECK(file.base != NULL && file.base_offset < file.size_bytes);
        uint8_t page[4096];
        CHECK(pread(file.fd, page, sizeof page, (off_t)file.base_offset) == sizeof page);
        CHECK_EQ_MEM(file.base, page, sizeof page);
        sum += file.size_bytes;
    }
    CHECK(n >= 2);
    CHECK(sum <= GYRE_SIZE_MIN);
    close_store(store);
}

TEST(the_store_stays_within_its_size)
{
    struct gyre_store *store = open_store();
    for (uint64_t n = 0; n < 300; n++)
        put_pattern(store, n, n, 700000);
    close_store(store);
    char path[512];
    uint64_t sum = 0;
    snprintf(path, sizeof path, "%s", test_path("store"));
    DIR *dir = opendir(path);
    CHECK(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        struct stat info;
        CHECK(fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0);
        sum += S_ISREG(info.st_mode) ? (uint64_t)info.st_blocks * 512 : 0;
    }
    closedir(dir);
    CHECK_MSG(sum <= GYRE_SIZE_MIN, "%llu bytes on disk", (unsigned long long)sum);
}

TEST(a_store_takes_little_less_than_it_was_given)
{
    static const struct {
        unsigned mib, second_mib, object_bytes;
    } rows[] = {{64, 0, 0}, {65, 0, 0}, {71, 0, 512}, {100, 0, 0}, {48, 40, 0}, {80, 64, 1 << 20}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char first[512], second[512];
        snprintf(first, sizeof first, "%s", test_path("first"));
        snprintf(second, sizeof second, "%s", test_path("second"));
        const struct gyre_data_dir dirs[] = {{first, rows[i].mib * MIB},
                                             {second, rows[i].second_mib * MIB}};
        struct gyre_options options = options_for("first", GYRE_SIZE_MIN);
        options.dirs = dirs;
        options.n_dirs = rows[i].second_mib != 0 ? 2 : 1;
        options.average_object_bytes = rows[i].object_bytes;
        options.mode = GYRE_OPEN_RESET;
        struct gyre_store *store = open_with(&options);
        uint64_t given = (rows[i].mib + rows[i].second_mib) * MIB;
        uint64_t taken = gyre_size_bytes(store);
        CHECK_MSG(taken <= given && taken + options.n_dirs * MIB + given / 100 >= given,
                  "%llu of %llu MiB", (unsigned long long)(taken / MIB),
                  (unsigned long long)(given / MIB));
        close_store(store);
        options.mode = GYRE_OPEN_EXISTING;
        options.average_object_bytes = 0;
        store = open_with(&options);
        CHECK_EQ_U64(gyre_size_bytes(store), taken);
        close_store(store);
    }
}

static void count_line(void *data, const char *line)
{
    CHECK(line != NULL && line[0] != '\0');
    ++*(unsigned *)data;
}

TEST(check_finds_a_sound_store_sound)
{
    struct gyre_store *store = open_store();
    struct gyre_check_report report = {.struct_size = sizeof report};
    unsigned lines = 0;
    for (uint64_t n = 0; n < 50; n++)
        put_pattern(store, n, n, n % 5 == 0 ? 300000 : 1000);
    for (unsigned bodies = 0; bodies < 2; bodies++) {
        CHECK_OK(gyre_check(store, bodies, count_line, &lines, &report));
        CHECK_EQ_U64(report.violations + report.documents_bad + report.objects_incomplete, 0);
        CHECK_EQ_U64(report.objects, 50);
        CHECK(report.documents > 50);
        CHECK(report.live_bytes > 10 * 300000);
    }
    CHECK_EQ_U64(lines, 0);
    CHECK_OK(gyre_check(store, true, NULL, NULL, &report));
    CHECK_ERR(gyre_check(store, true, NULL, NULL, NULL), GYRE_INVALID);
    close_store(store);
}
