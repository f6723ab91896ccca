/* Bytes that changed while a store was closed: what they hit is a miss, all else is there. */
#include "tests/engine/numbered.h"
#include "tests/engine/open_store.h"

#include "engine/geometry.h"

#define OBJECTS 200

static size_t len_of(uint32_t number, uint32_t version)
{
    (void)version;
    return number % 10 == 0 ? 150000 + number : number * 17;
}

static void flip(const char *path, uint64_t off)
{
    int fd = open(path, O_RDWR);
    uint8_t byte;

    CHECK(fd >= 0 && pread(fd, &byte, 1, (off_t)off) == 1);
    byte ^= (uint8_t)(1 << off % 8);
    CHECK(pwrite(fd, &byte, 1, (off_t)off) == 1);
    close(fd);
}

static uint64_t fill(struct opening *o)
{
    struct eng_store *store = open_ok(o);

    for (uint32_t i = 0; i < OBJECTS; i++)
        object_put(store, i, 1, len_of(i, 1));
    uint64_t used = (uint64_t)(store->stripes[0].rt->rings[ENG_POOL_MAIN].cursor) << ENG_UNIT_SHIFT;
    CHECK_OK(eng_store_close(store, true));
    return used;
}

static uint32_t count_right(struct eng_store *store)
{
    uint32_t right = 0;

    for (uint32_t i = 0; i < OBJECTS; i++)
        right += object_version(store, i, len_of) == 1;
    return right;
}

TEST(a_flipped_byte_of_data_costs_at_most_the_object_it_is_in)
{
    struct opening o;
    struct test_rng rng = {test_seed()};

    opening_init(&o, test_path("data"));
    uint64_t used = fill(&o);
    for (unsigned i = 0; i < (test_full() ? 500 : 40); i++) {
        uint64_t off = ENG_DATA_START + test_rng_below(&rng, used);
        flip(test_path("data/stripe-0000.gyre"), off);
        struct eng_store *store = open_ok(&o);
        uint32_t right = count_right(store);
        CHECK_MSG(right + 1 + i >= OBJECTS, "byte %llu: %u objects are left",
                  (unsigned long long)off, right);
        check_store(store, true);
        CHECK_OK(eng_store_close(store, true));
    }
    opening_fini(&o);
}

TEST(a_flipped_byte_of_the_directory_costs_at_most_some_objects)
{
    struct opening o;
    struct test_rng rng = {test_seed()};

    opening_init(&o, test_path("data"));
    fill(&o);
    struct eng_store *store = open_ok(&o);
    struct eng_stripe_row row = store->super.stripes[0];
    CHECK_OK(eng_store_close(store, true));
    for (unsigned i = 0; i < (test_full() ? 500 : 40); i++) {
        uint64_t off = row.directory_off + test_rng_below(&rng, (uint64_t)row.n_buckets * 64);
        flip(test_path("data/volume.gyre"), off);
        store = open_ok(&o);
        uint32_t right = count_right(store);
        CHECK_MSG(right + 2 * i + 2 >= OBJECTS, "byte %llu: %u objects are left",
                  (unsigned long long)off, right);
        check_store(store, true);
        CHECK_OK(eng_store_close(store, true));
    }
    opening_fini(&o);
}

/* Nothing but noise where the directory was: all is lost, nothing is wrong, and the store works. */
TEST(a_directory_of_noise_opens_empty)
{
    struct opening o;
    struct test_rng rng = {test_seed()};

    opening_init(&o, test_path("data"));
    fill(&o);
    struct eng_store *store = open_ok(&o);
    struct eng_stripe_row row = store->super.stripes[0];
    CHECK_OK(eng_store_close(store, true));
    size_t len = (size_t)row.n_buckets * 64;
    uint8_t *noise = malloc(len);
    test_rng_fill(&rng, noise, len);
    int fd = open(test_path("data/volume.gyre"), O_WRONLY);
    CHECK(fd >= 0 && noise != NULL &&
          pwrite(fd, noise, len, (off_t)row.directory_off) == (ssize_t)len);
    close(fd);
    free(noise);
    store = open_ok(&o);
    CHECK_EQ_INT(count_right(store), 0);
    check_store(store, true);
    for (uint32_t i = 0; i < OBJECTS; i++)
        object_put(store, i, 1, len_of(i, 1));
    CHECK_EQ_INT(count_right(store), OBJECTS);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}

TEST(the_meta_pool_keeps_its_bytes_though_entries_point_into_them)
{
    struct opening o;

    opening_init(&o, test_path("data"));
    struct eng_store *store = open_ok(&o);
    for (uint32_t i = 0; i < 50; i++)
        object_put_in(store, ENG_POOL_META, i, 1, 3000, false);
    struct eng_stripe_row row = store->super.stripes[0];
    CHECK_OK(eng_store_close(store, true));
    int fd = open(test_path("data/volume.gyre"), O_RDWR);
    CHECK(fd >= 0);
    for (uint32_t b = 0; b < row.n_buckets;
         b++) { /* a made-up neighbour for each entry, 256 bytes into its document */
        uint64_t words[8];
        uint64_t at = row.directory_off + b * 64;
        CHECK(pread(fd, words, sizeof words, (off_t)at) == sizeof words);
        for (int i = 1; i < 7; i++)
            if (words[i] == 0 && words[i + 1] != 0)
                words[i] = words[i + 1] + (UINT64_C(2) << 14);
        CHECK(pwrite(fd, words, sizeof words, (off_t)at) == sizeof words);
    }
    close(fd);
    store = open_ok(&o);
    struct eng_check_report report = check_store(store, false);
    CHECK_EQ_U64(report.documents, 50);
    CHECK_EQ_U64(report.objects, 50);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}
