/* What is there after a store was closed, after its process died, and after the power went. */
#include "tests/engine/numbered.h"
#include "tests/engine/open_store.h"

#include <sys/wait.h>

#include "engine/geometry.h"
#include "engine/seal.h"
#include "engine/sync.h"

/* ---- Helpers ---- */

/* From 0 bytes to some parts, by number; versions differ in length. */
static size_t len_of(uint32_t number, uint32_t version)
{
    static const size_t lens[] = {0,     1,     100,   4000,   16100,      16300,  30000,
                                  65535, 65536, 66000, 250000, 262144 + 7, 600000, 2000};

    return lens[number % (sizeof lens / sizeof lens[0])] + version * 3;
}

static void run_in_child(void (*run)(struct opening *o, uint32_t n), struct opening *o, uint32_t n)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        run(o, n);
        fflush(stderr);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Copies a store's files as they are now; the copy has other inodes, so it is opened as after a
 * power loss. */
static void copy_files(const char *from, const char *to)
{
    char command[1300];

    snprintf(command, sizeof command, "rm -rf '%s' && cp -r --sparse=always '%s' '%s'", to, from,
             to);
    CHECK(system(command) == 0);
}

static void put_many(struct eng_store *store, uint32_t n, uint32_t version)
{
    for (uint32_t i = 0; i < n; i++)
        object_put(store, i, version, len_of(i, version));
}

static void expect_version(struct eng_store *store, uint32_t n, uint32_t version)
{
    for (uint32_t i = 0; i < n; i++)
        CHECK_MSG(object_version(store, i, len_of) == version, "object %u is not version %u", i,
                  version);
}

static uint64_t recovered(struct eng_store *store)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < ENG_COUNTER_SHARDS; i++)
        sum += atomic_load(&store->process->counters[i].recovered_documents);
    return sum;
}

/* ---- Closed in order ---- */

TEST(inv_E47_all_objects_are_there_after_a_clean_close)
{
    struct opening o;
    uint64_t serial;

    opening_init(&o, test_path("data"));
    struct eng_store *store = open_ok(&o);
    put_many(store, 100, 1);
    serial = object_put_in(store, ENG_POOL_META, 1000, 1, 500, false);
    expect_version(store, 100, 1);
    check_store(store, false);
    CHECK_OK(eng_store_close(store, true));
    for (int i = 0; i < 3; i++) {
        store = open_ok(&o);
        CHECK_EQ_U64(recovered(store), 0);
        expect_version(store, 100, 1);
        check_store(store, false);
        CHECK_OK(eng_store_close(store, true));
    }
    store = open_ok(&o);
    CHECK(object_put(store, 0, 2, len_of(0, 2)) > serial);
    CHECK_OK(object_delete(store, 1, false));
    CHECK_OK(eng_store_close(store, true));
    store = open_ok(&o);
    CHECK_EQ_INT(object_version(store, 0, len_of), 2);
    CHECK_EQ_INT(object_version(store, 1, len_of), 0);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}

/* ---- Killed ---- */

static void put_and_die(struct opening *o, uint32_t n)
{
    struct eng_store *store = open_ok(o);

    put_many(store, n, 1);
    for (uint32_t i = 0; i < n; i += 3)
        CHECK_OK(object_delete(store, i, false));
    for (uint32_t i = 1; i < n; i += 3)
        object_put(store, i, 2, len_of(i, 2));
}

TEST(inv_E47_a_killed_process_leaves_every_commit_and_deletion)
{
    struct opening o;

    opening_init(&o, test_path("data"));
    run_in_child(put_and_die, &o, 90);
    for (int i = 0; i < 2; i++) {
        struct eng_store *store = open_ok(&o);
        for (uint32_t n = 0; n < 90; n++)
            CHECK_EQ_INT(object_version(store, n, len_of), n % 3 == 0 ? 0 : n % 3 == 1 ? 2 : 1);
        check_store(store, false);
        CHECK_OK(eng_store_close(store, i == 0));
    }
    opening_fini(&o);
}

/* ---- Power loss ---- */

TEST(inv_E47_files_copied_without_closing_hold_every_object)
{
    struct opening o;
    struct opening copy;

    opening_init(&o, test_path("data"));
    opening_init(&copy, test_path("copy"));
    struct eng_store *store = open_ok(&o);
    put_many(store, 60, 1);
    copy_files(o.dirs[0].path, copy.dirs[0].path);
    struct eng_store *again = open_ok(&copy);
    expect_version(again, 60, 1);
    check_store(again, false);
    put_many(again, 60, 2);
    expect_version(again, 60, 2);
    CHECK_OK(eng_store_close(again, true));
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
    opening_fini(&copy);
}

/* A part of a file, kept to be put back: pages that had not reached the disk. */
struct pages {
    uint8_t *bytes;
    size_t len;
    uint64_t off;
};

static struct pages read_pages(const char *path, uint64_t off, size_t len)
{
    struct pages pages = {malloc(len), len, off};
    int fd = open(path, O_RDONLY);

    CHECK(fd >= 0 && pages.bytes != NULL);
    CHECK(pread(fd, pages.bytes, len, (off_t)off) == (ssize_t)len);
    close(fd);
    return pages;
}

static void write_pages(const char *path, const struct pages *pages)
{
    int fd = open(path, O_WRONLY);

    CHECK(fd >= 0);
    CHECK(pwrite(fd, pages->bytes, pages->len, (off_t)pages->off) == (ssize_t)pages->len);
    close(fd);
}

static struct pages read_directory(const struct eng_store *store)
{
    const struct eng_stripe_row *row = &store->super.stripes[0];

    return read_pages(store->volume_path, row->directory_off, (size_t)row->n_buckets * 64);
}

TEST(inv_E47_documents_whose_entries_were_lost_are_found_again)
{
    struct opening o;
    struct opening copy;

    opening_init(&o, test_path("data"));
    opening_init(&copy, test_path("copy"));
    struct eng_store *store = open_ok(&o);
    put_many(store, 30, 1);
    CHECK_OK(eng_sync_store(store, false));
    struct pages old = read_directory(store);
    put_many(store, 60, 2);
    for (uint32_t i = 0; i < 60; i += 5)
        CHECK_OK(object_delete(store, i, false));
    copy_files(o.dirs[0].path, copy.dirs[0].path);
    write_pages(test_path("copy/volume.gyre"), &old);
    struct eng_store *again = open_ok(&copy);
    for (uint32_t i = 0; i < 60; i++)
        CHECK_MSG(object_version(again, i, len_of) == (i % 5 == 0 ? 0u : 2u), "object %u", i);
    CHECK(recovered(again) >= 48);
    check_store(again, false);
    CHECK_OK(eng_store_close(again, false)); /* once more, from what the recovery made durable */
    again = open_ok(&copy);
    for (uint32_t i = 0; i < 60; i++)
        CHECK_MSG(object_version(again, i, len_of) == (i % 5 == 0 ? 0u : 2u), "object %u", i);
    CHECK_OK(eng_store_close(again, true));
    CHECK_OK(eng_store_close(store, true));
    free(old.bytes);
    opening_fini(&o);
    opening_fini(&copy);
}

/* Each page of directory and data is old or new by chance. */
static void mix(const char *new_path, const struct pages *old, struct test_rng *rng)
{
    for (size_t at = 0; at < old->len; at += ENG_PAGE) {
        size_t n = old->len - at < ENG_PAGE ? old->len - at : ENG_PAGE;
        const struct pages page = {old->bytes + at, n, old->off + at};
        if (test_rng_below(rng, 3) == 0)
            write_pages(new_path, &page);
    }
}

static void lose_power(uint64_t seed)
{
    struct opening o;
    struct opening copy;
    struct test_rng rng = {seed};
    uint32_t n = 40;
    uint32_t synced[40];
    uint32_t last[40];

    opening_init(&o, test_path("data"));
    opening_init(&copy, test_path("copy"));
    o.open.reset = true;
    struct eng_store *store = open_ok(&o);
    put_many(store, n, 1);
    uint32_t version = 1;
    for (uint32_t i = 0; i < n; i++)
        last[i] = 1;
    for (uint32_t i = 0; i < test_rng_below(&rng, 300); i++) {
        uint32_t number = (uint32_t)test_rng_below(&rng, n);
        last[number] = ++version;
        object_put(store, number, version, len_of(number, version));
    }
    CHECK_OK(eng_sync_store(store, false));
    memcpy(synced, last, sizeof synced);
    struct pages directory = read_directory(store);
    struct pages data =
        read_pages(store->stripes[0].path, ENG_DATA_START, store->stripes[0].area_bytes);
    uint32_t changed[40] = {0};
    for (uint32_t i = 0; i < 1 + test_rng_below(&rng, 200); i++) {
        uint32_t number = (uint32_t)test_rng_below(&rng, n);
        changed[number] = 1;
        if (test_rng_below(&rng, 4) == 0) {
            (void)!object_delete(store, number, false);
        } else {
            last[number] = ++version;
            object_put(store, number, version, len_of(number, version));
        }
    }
    copy_files(o.dirs[0].path, copy.dirs[0].path);
    mix(test_path("copy/volume.gyre"), &directory, &rng);
    mix(test_path("copy/stripe-0000.gyre"), &data, &rng);
    struct eng_store *again = open_ok(&copy);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t found = object_version(again, i, len_of);
        CHECK_MSG(found <= version, "object %u of no version", i);
        if (!changed[i])
            CHECK_MSG(found == synced[i], "seed %llu: object %u was synced in version %u and is %u",
                      (unsigned long long)seed, i, synced[i], found);
    }
    check_store(again, false); /* nothing damaged was kept */
    put_many(again, n, version + 1);
    expect_version(again, n, version + 1);
    check_store(again, false);
    CHECK_OK(eng_store_close(again, true));
    CHECK_OK(eng_store_close(store, true));
    free(directory.bytes);
    free(data.bytes);
    opening_fini(&o);
    opening_fini(&copy);
}

TEST(inv_E46_what_was_synced_survives_any_mixture_of_old_and_new_pages)
{
    for (unsigned i = 0; i < (test_full() ? 200 : 6); i++)
        lose_power(test_seed() + i);
}

/* ---- The log goes round ---- */

static size_t fixed_len(uint32_t number, uint32_t version)
{
    (void)version;
    return number % 2 == 0 ? 200000 : 9000;
}

static void expect_newest(struct eng_store *store, uint32_t next)
{
    for (uint32_t i = next > 400 ? next - 400 : 0; i < next; i++)
        CHECK_MSG(object_version(store, i, fixed_len) == 1, "object %u of %u", i, next);
}

/* About 550 of them fit. A hand that began anew in the wrong place would take newer ones first. */
TEST(newest_objects_survive_wrapping_and_every_kind_of_ending)
{
    struct opening o;
    uint32_t next = 0;

    opening_init(&o, test_path("data"));
    for (int round = 0; round < 6; round++) {
        struct eng_store *store = open_ok(&o);
        expect_newest(store, next);
        check_store(store, false);
        for (int i = 0; i < 770 + 37 * round; i++, next++) {
            object_put(store, next, 1, fixed_len(next, 1));
            if (i == 100 || i == 250)
                expect_newest(store, next + 1);
        }
        CHECK_OK(eng_store_close(store, round % 2 == 0));
    }
    opening_fini(&o);
}

/* ---- Ordering ---- */

TEST(inv_E45_a_header_announces_every_segment_that_is_in_use)
{
    struct opening o;

    opening_init(&o, test_path("data"));
    struct eng_store *store = open_ok(&o);
    struct eng_stripe *stripe = &store->stripes[0];
    for (uint32_t i = 0; i < 900; i++) {
        object_put(store, i, 1, fixed_len(i, 1));
        if (i % 100 == 0)
            CHECK_OK(eng_sync_store(store, false));
        const struct eng_stripe_rt *rt = stripe->rt;
        bool announced = false;
        for (uint32_t h = 0; h < rt->n_horizon; h++)
            announced = announced || rt->horizon[h] == rt->rings[ENG_POOL_MAIN].hand_segment;
        CHECK(announced);
        CHECK(rt->n_horizon <= ENG_HORIZON);
    }
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}

static size_t seventy_thousand(uint32_t number, uint32_t version)
{
    (void)number;
    (void)version;
    return 70000;
}

/* Uploads that take long hold extents in more segments than a header has places for. */
TEST(inv_E45_more_segments_in_use_than_a_header_can_list)
{
    enum { UPLOADS = 300 };
    struct opening o;
    struct opening copy;
    static struct eng_part parts[UPLOADS];
    static struct eng_spec specs[UPLOADS];
    static uint8_t keys[UPLOADS][32];
    struct eng_stripe_header header;
    uint32_t version = 1;

    opening_init(&o, test_path("data"));
    opening_init(&copy, test_path("copy"));
    o.open.size_bytes = copy.open.size_bytes = UINT64_C(256) << 20;
    o.open.segment_bytes = copy.open.segment_bytes = ENG_MIN_SEGMENT;
    struct eng_store *store = open_ok(&o);
    for (uint32_t i = 0; i < UPLOADS; i++) {
        object_key(i, keys[i]);
        specs[i] =
            (struct eng_spec){.key = keys[i], .type = ENG_HEAD, .total_len = 70000, .parts = 1};
        specs[i].object_serial = eng_object_serial(store, ENG_POOL_MAIN, keys[i]);
        CHECK_OK(eng_part_begin(store, &specs[i], 0, 0, 0, eng_part_max_bytes(store), &parts[i]));
    }
    CHECK_OK(eng_sync_store(store, false));
    struct pages directory = read_directory(store);
    struct pages newest = read_pages(
        store->volume_path, eng_header_off(0, store->stripes[0].header_generation & 1), ENG_PAGE);
    memcpy(&header, newest.bytes, sizeof header);
    CHECK_EQ_INT(header.n_horizon, ENG_HORIZON_ALL);
    for (uint32_t i = 0; i < UPLOADS; i++) {
        uint8_t *bytes = object_bytes(i, 1, 70000);
        uint64_t serial;
        CHECK_OK(eng_part_write(&parts[i], bytes, 70000));
        CHECK_OK(eng_part_finish(&parts[i], &specs[i]));
        struct eng_part_row row = {.length = 70000, .crc = parts[i].crc};
        struct eng_commit commit = {.spec = specs[i],
                                    .meta = &version,
                                    .meta_len = sizeof version,
                                    .body = &row,
                                    .body_len = sizeof row,
                                    .parts = &parts[i],
                                    .n_parts = 1};
        CHECK_OK(eng_commit(store, &commit, &serial));
        free(bytes);
    }
    copy_files(o.dirs[0].path, copy.dirs[0].path);
    write_pages(test_path("copy/volume.gyre"), &directory);
    struct eng_store *again = open_ok(&copy);
    for (uint32_t i = 0; i < UPLOADS; i++)
        CHECK_MSG(object_version(again, i, seventy_thousand) == 1, "object %u is lost", i);
    check_store(again, false);
    CHECK_OK(eng_store_close(again, true));
    CHECK_OK(eng_store_close(store, true));
    free(directory.bytes);
    free(newest.bytes);
    opening_fini(&o);
    opening_fini(&copy);
}

/* Makes successors nonsense behind a right checksum. */
static void scramble_table(const char *path, const struct eng_superblock *super, unsigned copy,
                           struct test_rng *rng)
{
    uint32_t n = super->stripes[0].n_segments;
    struct pages table =
        read_pages(path, eng_table_off(super, 0, copy), n * sizeof(struct eng_segment_row));
    struct pages page = read_pages(path, eng_header_off(0, copy), ENG_PAGE);
    struct eng_segment_row *rows = (struct eng_segment_row *)(void *)table.bytes;
    struct eng_stripe_header *header = (struct eng_stripe_header *)(void *)page.bytes;

    for (uint32_t i = 0; i < n; i++)
        if (test_rng_below(rng, 3) == 0)
            rows[i].successor = (uint32_t)test_rng_below(rng, n);
    header->table_crc = eng_segment_table_crc(rows, n);
    eng_stripe_header_seal(header);
    write_pages(path, &table);
    write_pages(path, &page);
    free(table.bytes);
    free(page.bytes);
}

TEST(inv_E48_rings_are_whole_whatever_the_table_says)
{
    struct opening o;
    struct test_rng rng = {test_seed()};

    opening_init(&o, test_path("data"));
    struct eng_store *store = open_ok(&o);
    for (uint32_t i = 0; i < 300; i++)
        object_put(store, i, 1, fixed_len(i, 1));
    struct eng_superblock super = store->super;
    CHECK_OK(eng_store_close(store, true));
    for (int round = 0; round < 10; round++) {
        for (unsigned copy = 0; copy < 2; copy++)
            scramble_table(test_path("data/volume.gyre"), &super, copy, &rng);
        store = open_ok(&o);
        check_store(store, false);
        for (uint32_t i = 0; i < 300; i++)
            CHECK_EQ_INT(object_version(store, i, fixed_len), 1);
        CHECK_OK(eng_store_close(store, round % 2 == 0));
    }
    store = open_ok(&o);
    for (uint32_t i = 0; i < 1500; i++)
        object_put(store, i, 2, fixed_len(i, 2));
    check_store(store, false);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}

/* A deleted key put again, with the page of its first entry older than that of its second. */
TEST(inv_E49_of_two_entries_of_a_key_the_newer_stays)
{
    struct opening o;
    struct opening copy;

    opening_init(&o, test_path("data"));
    opening_init(&copy, test_path("copy"));
    struct eng_store *store = open_ok(&o);
    object_put(store, 3, 1, len_of(3, 1));
    CHECK_OK(eng_sync_store(store, false));
    struct pages before = read_directory(store);
    CHECK_OK(object_delete(store, 3, false));
    object_put(store, 3, 2, len_of(3, 2));
    struct pages after = read_directory(store);
    const uint64_t *old = (const void *)before.bytes;
    uint64_t *new = (void *)after.bytes;
    for (size_t i = 0; i < after.len / 8; i++)
        if (i % 8 != 0 && old[i] != 0)
            new[i == 1 ? 2 : i - 1] = old[i];
    copy_files(o.dirs[0].path, copy.dirs[0].path);
    write_pages(test_path("copy/volume.gyre"), &after);
    struct eng_store *again = open_ok(&copy);
    CHECK_EQ_INT(object_version(again, 3, len_of), 2);
    CHECK_EQ_U64(check_store(again, false).documents, 1);
    CHECK_OK(eng_store_close(again, true));
    CHECK_OK(eng_store_close(store, true));
    free(before.bytes);
    free(after.bytes);
    opening_fini(&o);
    opening_fini(&copy);
}
