/* Documents in and out of a small store by one thread. */
#include "engine/base/crc32c.h"
#include <sys/mman.h>

#include "engine/check.h"
#include "engine/slab.h"
#include "engine/sync.h"
#include "tests/engine/objects.h"

static struct eng_store *open_small(struct opening *o)
{
    opening_init(o, test_tmpdir());
    o->open.stripes = 1;
    return open_ok(o);
}

static void close_checked(struct eng_store *store, struct opening *o)
{
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        check_space(&store->stripes[i]);
        eng_slabs_retire(&store->stripes[i]);
        CHECK_EQ_U64(atomic_load(&store->stripes[i].rt->reserved_units), 0);
        check_space(&store->stripes[i]);
    }
    CHECK_EQ_INT(eng_pin_count(store), 0);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(o);
}

static void expect(struct eng_store *store, uint64_t n, uint64_t version)
{
    uint64_t got = 0;
    gyre_err err = read_object(store, n, 0, &got);
    CHECK_MSG(err == GYRE_OK && got == version, "object %ju: %s, version %ju, wanted %ju",
              (uintmax_t)n, gyre_err_name(err), (uintmax_t)got, (uintmax_t)version);
}

static void expect_none(struct eng_store *store, uint64_t n)
{
    struct eng_ref ref;
    CHECK_ERR(find(store, n, 0, 0, &ref), GYRE_NOT_FOUND);
    CHECK(ref.stripe == NULL);
}

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

/* ---- Damage ---- */

static void flip(struct eng_store *store, const struct eng_ref *ref, const void *at)
{
    off_t off = (off_t)(ENG_DATA_START + (uint64_t)((const uint8_t *)at - ref->stripe->data));
    uint8_t byte = *(const uint8_t *)at ^ 0x10;
    int fd = open(ref->stripe->path, O_RDWR);
    CHECK(fd >= 0 && pwrite(fd, &byte, 1, off) == 1);
    close(fd);
    (void)store;
}

/* As if the store had just been opened: nothing counts as verified. */
static void distrust(struct eng_store *store)
{
    for (uint32_t i = 0; i < store->n_stripes; i++)
        eng_directory_distrust(&store->stripes[i]);
}

TEST(inv_E10_no_bit_of_header_meta_or_body_can_flip_unnoticed)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    for (size_t where = 0; where < sizeof(struct eng_doc) + 16 + 100; where++) {
        struct put put = {.n = where, .version = 1, .length = 100};
        struct eng_ref ref;
        CHECK_OK(put_small(store, &put, NULL));
        struct key key = key_of(where);
        struct eng_want want = {.key = key.bytes};
        CHECK_OK(eng_find(store, &want, 0, ENG_HEADER, &ref)); /* does not verify */
        size_t gap = where >= sizeof(struct eng_doc) + 16
                         ? eng_doc_body_off(ref.doc) - sizeof(struct eng_doc) - 16
                         : 0;
        flip(store, &ref, (const uint8_t *)ref.doc + where + gap);
        eng_ref_release(&ref);
        distrust(store);
        uint64_t before = atomic_load(&eng_counters(store)->checksum_failures);
        CHECK_ERR(find(store, where, 0, 0, &ref), GYRE_NOT_FOUND);
        CHECK_EQ_U64(atomic_load(&eng_counters(store)->checksum_failures), before + 1);
        CHECK(!eng_probable(store, &want));
    }
    close_checked(store, &o);
}

TEST(a_damaged_part_is_found_out_and_dropped)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    struct put put = {.n = 1, .version = 1, .length = 200000};
    CHECK_OK(put_parts(store, &put, 200000, 200000, NULL));
    distrust(store);
    struct eng_ref head, part;
    CHECK_OK(find(store, 1, 0, 0, &head));
    uint8_t part_key[32];
    eng_part_key(head.doc->key, head.doc->object_serial, 1, 0, 0, part_key);
    struct eng_want want = {
        .key = part_key, .part = true, .object_serial = head.doc->object_serial};
    CHECK_OK(eng_find(store, &want, 0, 0, &part));
    CHECK(!part.verified);
    CHECK(eng_resident(&part, 0, 200000));
    CHECK(!eng_resident(&part, 0, 200001));
    CHECK_OK(eng_populate(&part, 0, 200000));
    flip(store, &part, part.body + 150000);
    CHECK_ERR(eng_verify(&part, 0, 1), GYRE_DAMAGED); /* one chunk holds it all */
    eng_ref_release(&part);
    CHECK_ERR(eng_find(store, &want, 0, 0, &part), GYRE_NOT_FOUND);
    eng_ref_release(&head);
    close_checked(store, &o);
}

/* The part of an object that was put with one. */
static gyre_err find_part(struct eng_store *store, uint64_t n, struct eng_ref *part_out)
{
    struct eng_ref head;
    uint8_t part_key[32];
    CHECK_OK(find(store, n, 0, 0, &head));
    eng_part_key(head.doc->key, head.doc->object_serial, 1, 0, 0, part_key);
    struct eng_want want = {
        .key = part_key, .part = true, .object_serial = head.doc->object_serial};
    gyre_err err = eng_find(store, &want, 0, 0, part_out);
    eng_ref_release(&head);
    return err;
}

static uint64_t failures_of(struct eng_store *store)
{
    return atomic_load(&eng_counters(store)->checksum_failures);
}

/* What spares the checksum after a put, and what it costs: rot of the same run stays unseen until a
 * check finds it. */
TEST(a_fresh_document_is_trusted_until_a_check_finds_it_damaged)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    struct eng_check_report report;
    struct eng_ref ref;
    for (uint64_t version = 1; version <= 2; version++) { /* inserted, then in place of another */
        CHECK_OK(put_small(store, &(struct put){.n = 1, .version = version, .length = 100}, NULL));
        CHECK_OK(put_parts(store, &(struct put){.n = 2, .version = version, .length = 200000},
                           200000, 200000, NULL));
        CHECK_OK(find(store, 1, 0, 0, &ref));
        flip(store, &ref, ref.body + 50);
        eng_ref_release(&ref);
        CHECK_OK(find_part(store, 2, &ref));
        CHECK(ref.verified);
        flip(store, &ref, ref.body + 150000);
        CHECK_OK(eng_verify(&ref, 0, 200000));
        eng_ref_release(&ref);
        CHECK_OK(find(store, 1, 0, 0, &ref));
        eng_ref_release(&ref);
    }
    CHECK_EQ_U64(failures_of(store), 0);
    CHECK_ERR(eng_check(store, true, NULL, NULL, &report), GYRE_DAMAGED);
    CHECK_EQ_U64(report.documents_bad, 2);
    CHECK_EQ_U64(report.objects_incomplete, 1);
    expect_none(store, 1);
    CHECK_ERR(find_part(store, 2, &ref), GYRE_NOT_FOUND); /* the check has dropped it */
    CHECK_EQ_U64(failures_of(store), 2);
    close_checked(store, &o);
}

TEST(nothing_counts_as_verified_after_reopening_or_a_failed_sync)
{
    for (int reopened = 0; reopened < 2; reopened++) {
        struct opening o;
        struct eng_store *store = open_small(&o);
        struct eng_ref ref;
        int ends[2];
        CHECK_OK(put_small(store, &(struct put){.n = 1, .version = 1, .length = 100}, NULL));
        CHECK_OK(find(store, 1, 0, 0, &ref));
        flip(store, &ref, ref.body + 50);
        eng_ref_release(&ref);
        if (reopened) {
            CHECK_OK(eng_store_close(store, false));
            store = open_ok(&o);
        } else {
            int fd = store->stripes[0].fd;
            int kept = dup(fd);
            CHECK(kept >= 0 && pipe(ends) == 0 && dup2(ends[0], fd) == fd);
            CHECK(eng_sync_store(store, false) != GYRE_OK); /* a pipe cannot be synced */
            CHECK(dup2(kept, fd) == fd);
            close(kept), close(ends[0]), close(ends[1]);
        }
        expect_none(store, 1);
        CHECK_EQ_U64(failures_of(store), 1);
        close_checked(store, &o);
    }
}

TEST(the_verified_mark_follows_a_whole_pass)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    uint64_t length = eng_part_max_bytes(store);
    struct put put = {.n = 1, .version = 1, .length = length};
    CHECK_OK(put_parts(store, &put, length, 1 << 20, NULL));
    distrust(store);
    struct eng_ref head, part;
    CHECK_OK(find(store, 1, 0, 0, &head));
    uint8_t part_key[32];
    eng_part_key(head.doc->key, head.doc->object_serial, 1, 0, 0, part_key);
    struct eng_want want = {
        .key = part_key, .part = true, .object_serial = head.doc->object_serial};
    CHECK_OK(eng_find(store, &want, 0, 0, &part));
    CHECK_ERR(eng_verify(&part, length, 1), GYRE_RANGE);
    CHECK_OK(eng_verify(&part, 0, 1));
    CHECK(part.verified == (length <= ENG_CHUNK));
    CHECK_OK(eng_verify(&part, 0, length));
    CHECK(part.verified);
    eng_ref_release(&part);
    CHECK_OK(eng_find(store, &want, 0, ENG_NOWAIT, &part));
    CHECK(part.verified);
    eng_ref_release(&part);
    eng_ref_release(&head);
    close_checked(store, &o);
}

TEST(a_reader_that_must_not_wait_does_not)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    struct put put = {.n = 1, .version = 1, .length = 5000, .sync = true};
    CHECK_OK(put_small(store, &put, NULL));
    struct eng_ref ref;
    CHECK_OK(find(store, 1, 0, ENG_NOWAIT, &ref));
    struct eng_stripe *stripe = ref.stripe;
    eng_ref_release(&ref);
    CHECK_EQ_INT(madvise((void *)(uintptr_t)stripe->data, stripe->area_bytes, MADV_DONTNEED), 0);
    CHECK_EQ_INT(posix_fadvise(stripe->fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    gyre_err err = find(store, 1, 0, ENG_NOWAIT, &ref);
    if (err == GYRE_OK)
        test_skip("the file system does not let go of its pages");
    CHECK_ERR(err, GYRE_WOULD_BLOCK);
    CHECK(ref.stripe == NULL);
    CHECK_OK(find(store, 1, 0, 0, &ref));
    eng_ref_release(&ref);
    CHECK_OK(find(store, 1, 0, ENG_NOWAIT, &ref));
    eng_ref_release(&ref);
    close_checked(store, &o);
}
