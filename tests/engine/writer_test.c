/* Documents in and out of a small store by one thread. */

#include "tests/engine/small_store.h"

static uint64_t documents_of(const struct eng_store *store)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < store->n_stripes; i++)
        n += atomic_load(&store->stripes[i].rt->documents);
    return n;
}

TEST(inv_E13_objects_of_every_length_come_back)
{
    static const uint64_t lengths[] = {0,     1,     63,    64,    100,   127,   128,
                                       2000,  3936,  3937,  4000,  4096,  5000,  8191,
                                       16000, 16200, 16240, 16241, 16384, 20000, 65535};
    struct opening o;
    struct eng_store *store = open_small(&o);
    for (uint64_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            struct put put = {.n = i, .version = round, .length = lengths[i]};
            CHECK_OK(put_small(store, &put, NULL));
            expect(store, i, round);
        }
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            expect(store, i, round);
        check_space(&store->stripes[0]);
    }
    CHECK_EQ_U64(documents_of(store), sizeof lengths / sizeof *lengths);
    expect_none(store, 1000);
    close_checked(store, &o);
    store = open_ok((opening_init(&o, test_tmpdir()), &o));
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        expect(store, i, 2);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}

TEST(inv_E12_objects_of_parts_come_back_and_leave_whole)
{
    static const uint64_t lengths[] = {1,      4095,   4096,   4097,    65536,  262143,
                                       262144, 262145, 300000, 1000000, 1000001};
    static const size_t pieces[] = {1 << 20, 65536, 4096, 4097, 1000, 33};
    struct opening o;
    struct eng_store *store = open_small(&o);
    uint64_t part_bytes = eng_part_max_bytes(store);
    uint64_t version = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
            struct put put = {.n = i, .version = ++version, .length = lengths[i]};
            CHECK_OK(put_parts(store, &put, k % 2 == 0 ? part_bytes : 100000, pieces[k], NULL));
            expect(store, i, version);
        }
    }
    struct put small = {.n = 10, .version = ++version, .length = 100};
    uint64_t before = documents_of(store);
    CHECK_OK(put_small(store, &small, NULL)); /* a document takes the place of head and parts */
    CHECK_EQ_U64(documents_of(store), before - 11);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct key key = key_of(i);
        CHECK_OK(eng_delete(store, 0, key.bytes, ENG_ALWAYS, 0, i == 0));
        expect_none(store, i);
        CHECK_ERR(eng_delete(store, 0, key.bytes, ENG_ALWAYS, 0, false), GYRE_NOT_FOUND);
    }
    CHECK_EQ_U64(documents_of(store), 0);
    close_checked(store, &o);
}

TEST(conditions_are_decided_by_what_is_there)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    struct key key = key_of(1);
    struct put put = {
        .n = 1, .version = 1, .length = 500, .condition = ENG_IF_SERIAL, .if_serial = 77};
    uint64_t serial, second;
    CHECK_ERR(put_small(store, &put, NULL), GYRE_NOT_FOUND);
    put.condition = ENG_IF_ABSENT;
    CHECK_OK(put_small(store, &put, &serial));
    CHECK_ERR(put_small(store, &put, NULL), GYRE_EXISTS);
    put.condition = ENG_IF_SERIAL;
    put.version = 2;
    CHECK_ERR(put_small(store, &put, NULL), GYRE_CHANGED);
    expect(store, 1, 1);
    put.if_serial = serial;
    CHECK_OK(put_small(store, &put, &second));
    CHECK(second > serial);
    CHECK_ERR(put_parts(store, &put, 100, 100, NULL), GYRE_CHANGED);
    expect(store, 1, 2);
    CHECK_EQ_U64(documents_of(store), 1);
    CHECK_ERR(eng_delete(store, 0, key.bytes, ENG_IF_SERIAL, serial, false), GYRE_CHANGED);
    CHECK_OK(eng_delete(store, 0, key.bytes, ENG_IF_SERIAL, second, false));
    expect_none(store, 1);

    struct put short_lived = {.n = 2, .version = 1, .length = 10, .expires = 999};
    struct eng_ref ref;
    CHECK_OK(put_small(store, &short_lived, NULL));
    CHECK_ERR(find(store, 2, 0, 0, &ref), GYRE_EXPIRED);
    short_lived.condition = ENG_IF_ABSENT;
    short_lived.expires = 0;
    CHECK_OK(put_small(store, &short_lived, NULL));
    CHECK_EQ_U64(documents_of(store), 1);
    close_checked(store, &o);
}

/* Three times what fits: the newest are there, the space adds up, and the oldest made room. */
static void fill_three_times(uint64_t length, bool parts)
{
    struct opening o;
    opening_init(&o, test_tmpdir());
    o.open.stripes = 1;
    o.open.average_object_bytes = length < 16384 ? (uint32_t)length : 16384;
    o.open.retention = ENG_RETENTION_FIFO;
    struct eng_store *store = open_ok(&o);
    struct eng_stripe *stripe = &store->stripes[0];
    uint64_t count = 3 * STORE_BYTES / (length + 200);
    for (uint64_t n = 0; n < count; n++) {
        struct put put = {.n = n, .version = n, .length = length};
        CHECK_OK(parts ? put_parts(store, &put, eng_part_max_bytes(store), 1 << 20, NULL)
                       : put_small(store, &put, NULL));
        if (n % (count / 16) == 0)
            check_space(stripe);
    }
    uint64_t main_bytes =
        eng_ring_of(stripe, ENG_POOL_MAIN)->max_segments * stripe->segment_units * ENG_UNIT;
    uint64_t newest = 0, present = 0;
    for (uint64_t n = count; n-- > 0;) {
        uint64_t version;
        if (read_object(store, n, 0, &version) == GYRE_OK) {
            present++;
            newest += newest == count - 1 - n;
        }
    }
    printf("length %ju: %ju objects present, %.1f %% of the ring, the newest %ju without a gap\n",
           (uintmax_t)length, (uintmax_t)present,
           100.0 * (double)(present * length) / (double)main_bytes, (uintmax_t)newest);
    CHECK(newest * 100 >= present * 98);
    CHECK(present * length * 100 >= main_bytes * 70);
    close_checked(store, &o);
}

TEST(inv_E14_a_full_store_forgets_the_oldest_small)
{
    fill_three_times(3000, false);
}

TEST(inv_E14_a_full_store_forgets_the_oldest_medium)
{
    fill_three_times(40000, false);
}

TEST(inv_E14_a_full_store_forgets_the_oldest_big)
{
    fill_three_times(700000, true);
}

TEST(a_full_pool_that_never_evicts_says_so_and_deleting_helps)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    uint64_t stored = 0;
    gyre_err err;
    for (;;) {
        struct put put = {.n = stored, .version = 1, .length = 3500, .pool = ENG_POOL_META};
        err = put_small(store, &put, NULL);
        if (err != GYRE_OK)
            break;
        stored++;
    }
    CHECK_ERR(err, GYRE_NO_SPACE);
    uint64_t meta_bytes =
        eng_ring_of(&store->stripes[0], ENG_POOL_META)->max_segments * store->super.segment_bytes;
    CHECK(stored * 4096 >= meta_bytes * 85 / 100);
    uint64_t version;
    for (uint64_t n = 0; n < stored; n++)
        CHECK_OK(read_object(store, n, ENG_POOL_META, &version));
    check_space(&store->stripes[0]);
    for (uint64_t n = 0; n < 40; n++) {
        struct key key = key_of(n);
        CHECK_OK(eng_delete(store, ENG_POOL_META, key.bytes, ENG_ALWAYS, 0, false));
    }
    uint64_t again = 0;
    for (uint64_t n = 0; n < 40; n++) {
        struct put put = {.n = 1000000 + n, .version = 1, .length = 3500, .pool = ENG_POOL_META};
        again += put_small(store, &put, NULL) == GYRE_OK;
    }
    printf("%ju of 40 freed places used again\n", (uintmax_t)again);
    CHECK(again >= 30);
    for (uint64_t n = 40; n < stored; n++)
        CHECK_OK(read_object(store, n, ENG_POOL_META, &version));
    close_checked(store, &o);
}

TEST(inv_E8_what_is_aborted_or_refused_holds_no_space)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    struct eng_stripe *stripe = &store->stripes[0];
    struct key key = key_of(1);
    struct eng_spec spec = {.key = key.bytes, .type = ENG_HEAD};
    uint64_t max = eng_part_max_bytes(store);
    uint8_t *bytes = calloc(1, max);
    struct eng_part parts[256];
    size_t n = 0;
    gyre_err err = GYRE_OK;
    for (; n < 256; n++) { /* until the limit of what puts in progress may hold */
        err = eng_part_begin(store, &spec, (uint32_t)n + 1, 0, 0, max, &parts[n]);
        if (err != GYRE_OK)
            break;
        CHECK_OK(eng_part_write(&parts[n], bytes, n % 3 == 0 ? max : 5000));
        if (n % 3 != 0)
            CHECK_ERR(eng_part_write(&parts[n], bytes, max - 4999), GYRE_LENGTH);
        if (n % 2 == 0)
            CHECK_OK(eng_part_finish(&parts[n], &spec));
    }
    CHECK_ERR(err, GYRE_BUSY);
    CHECK(parts[n].extent.stripe == NULL);
    check_space(stripe);
    for (size_t i = 0; i < n; i++)
        eng_part_abort(&parts[i]);
    CHECK_EQ_U64(atomic_load(&stripe->rt->reserved_units), 0);
    CHECK_ERR(eng_part_begin(store, &spec, 1, 0, 0, max + 1, &parts[0]), GYRE_TOO_LARGE);
    CHECK_ERR(eng_log_reserve(stripe, 0, stripe->segment_units + ENG_PAGE_UNITS, false,
                              &(uint64_t){0}, &(uint32_t){0}),
              GYRE_TOO_LARGE);
    struct put put = {.n = 5, .version = 1, .length = max * 3};
    CHECK_OK(put_parts(store, &put, max, 1 << 20, NULL));
    expect(store, 5, 1);
    free(bytes);
    close_checked(store, &o);
}

TEST(inv_E9_small_documents_do_not_touch_their_neighbours)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    struct test_rng rng = {test_seed()};
    uint64_t version[500] = {0};
    for (int i = 0; i < 20000; i++) {
        uint64_t n = test_rng_below(&rng, 500);
        struct put put = {.n = n, .version = version[n] + 1, .length = test_rng_below(&rng, 3000)};
        CHECK_OK(put_small(store, &put, NULL));
        version[n]++;
        n = test_rng_below(&rng, 500);
        if (version[n] > 0)
            expect(store, n, version[n]);
    }
    for (uint64_t n = 0; n < 500; n++)
        expect(store, n, version[n]);
    close_checked(store, &o);
}

TEST(inv_E9_the_last_page_of_a_slab_is_padded_inside)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    struct eng_slab *first;
    CHECK_OK(eng_slab_acquire(&store->stripes[0], ENG_POOL_MAIN, 1, &first));
    uint64_t end = first->end;
    for (uint64_t n = 0; n < 20;
         n++) /* they have to go to the next slab, which begins where this one ends */
        CHECK_OK(put_small(store, &(struct put){.n = n, .version = 1, .length = 3000}, NULL));
    struct eng_ref ref;
    CHECK_OK(find(store, 0, 0, 0, &ref));
    CHECK_EQ_U64(eng_entry_offset(ref.entry), end);
    eng_ref_release(&ref);
    first->used = end - 2;
    eng_slab_release(&store->stripes[0], first);
    CHECK_OK(put_small(store, &(struct put){.n = 100, .version = 1, .length = 10}, NULL));
    CHECK_OK(find(store, 100, 0, 0, &ref));
    CHECK_EQ_U64(eng_entry_offset(ref.entry), end - 2);
    eng_ref_release(&ref);
    for (uint64_t n = 0; n < 20; n++)
        expect(store, n, 1);
    close_checked(store, &o);
}
