/* Which bytes readers prove, which they trust, and what they do with damage. */
#include <sys/mman.h>

#include "engine/check.h"
#include "engine/sync.h"
#include "tests/engine/small_store.h"

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
    CHECK_OK(find(store, 1, 0, 0, &ref)); /* one with NOWAIT would be believed for a moment */
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
