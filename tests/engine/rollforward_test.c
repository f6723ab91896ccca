/* What is there after the power went. */
#include "tests/engine/images.h"

#include "engine/place_doc.h"
#include "engine/sync.h"

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
    for (unsigned i = 0; i < (test_full() ? 40 : 6); i++)
        lose_power(test_seed() + i);
}

static size_t seventy_thousand(uint32_t number, uint32_t version)
{
    (void)number;
    (void)version;
    return 70000;
}

/* A document that is written before its condition fails, in a slab and in an extent of its own. */
TEST(inv_E11_a_refused_document_does_not_come_back_after_a_power_loss)
{
    static const size_t lens[] = {0, 100, 5000, 16000, 30000, 60000};
    struct opening o;
    struct opening copy;

    opening_init(&o, test_path("data"));
    opening_init(&copy, test_path("copy"));
    struct eng_store *store = open_ok(&o);
    struct eng_stripe *stripe = &store->stripes[0];
    object_put(store, 0, 1, len_of(0, 1));
    CHECK_OK(eng_sync_store(store, false));
    for (uint32_t i = 0; i < 6; i++) {
        uint8_t key[32];
        uint32_t version = 2;
        uint8_t *bytes = object_bytes(i, version, lens[i]);
        const struct eng_spec spec = {.key = key, .type = ENG_DOC, .total_len = lens[i]};
        const struct iovec meta = {&version, sizeof version};
        const struct iovec body = {bytes, lens[i]};
        struct eng_placed placed;
        object_key(i, key);
        CHECK_OK(eng_placed_write(stripe, NULL, &spec, &meta, &body, &placed));
        eng_placed_abort(&placed);
        free(bytes);
    }
    copy_files(o.dirs[0].path, copy.dirs[0].path);
    struct eng_store *again = open_ok(&copy);
    CHECK_EQ_INT(object_version(again, 0, len_of), 1);
    CHECK_EQ_U64(recovered(again), 0);
    CHECK_EQ_U64(check_store(again, false).documents, 1);
    CHECK_OK(eng_store_close(again, true));
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
    opening_fini(&copy);
}

static size_t seven_hundred_thousand(uint32_t number, uint32_t version)
{
    (void)number;
    (void)version;
    return 700000;
}

/* Where the body of an object's last part begins; *file_out gets the name of the data file. */
static uint64_t last_part_off(struct eng_store *store, uint32_t number, const char **file_out)
{
    uint8_t key[32];
    struct eng_ref head;
    struct eng_ref part;
    struct eng_part_row row;

    object_key(number, key);
    CHECK_OK(eng_find(store, &(struct eng_want){.key = key}, 0, 0, &head));
    memcpy(&row, head.body + head.doc->body_len - sizeof row, sizeof row);
    eng_part_key(head.doc->key, head.doc->object_serial, row.part_no, row.attempt, row.sub, key);
    const struct eng_want want = {
        .key = key, .part = true, .object_serial = head.doc->object_serial};
    CHECK_OK(eng_find(store, &want, 0, 0, &part));
    uint64_t off = part.body_file_off;
    *file_out = strrchr(part.stripe->path, '/') + 1;
    eng_ref_release(&part);
    eng_ref_release(&head);
    return off;
}

/* Of a big object that was being replaced, the new HEAD reached the disk and a part of it did not.
 */
TEST(inv_E47_a_head_without_its_parts_does_not_replace_the_older_object)
{
    for (int torn = 0; torn < 2; torn++) {
        struct opening o;
        struct opening copy;

        opening_init(&o, test_path("data"));
        opening_init(&copy, test_path("copy"));
        o.open.reset = true;
        o.open.size_bytes = UINT64_C(128) << 20;
        o.open.stripes = 3; /* parts lie before and behind their HEAD's stripe */
        struct eng_store *store = open_ok(&o);
        for (uint32_t i = 0; i < 40; i++)
            object_put(store, i, 1, 700000);
        CHECK_OK(eng_sync_store(store, false));
        struct pages directories[3];
        for (uint32_t s = 0; s < 3; s++)
            directories[s] = read_pages(store->volume_path, store->super.stripes[s].directory_off,
                                        (size_t)store->super.stripes[s].n_buckets * 64);
        uint64_t at[40];
        const char *files[40];
        for (uint32_t i = 0; i < 40; i++) {
            object_put(store, i, 2, 700000);
            at[i] = last_part_off(store, i, &files[i]);
        }
        copy_files(o.dirs[0].path, copy.dirs[0].path);
        for (uint32_t s = 0; s < 3; s++) {
            write_pages(test_path("copy/volume.gyre"), &directories[s]);
            free(directories[s].bytes);
        }
        for (uint32_t i = 0; i < 40 && torn; i += 2)
            change_byte(in_dir(copy.dirs[0].path, files[i]), at[i], 1);
        struct eng_store *again = open_ok(&copy);
        for (uint32_t i = 0; i < 40; i++)
            CHECK_EQ_INT(object_version(again, i, seven_hundred_thousand),
                         torn && i % 2 == 0 ? 1 : 2);
        check_store(again, false);
        CHECK_OK(eng_store_close(again, true));
        CHECK_OK(eng_store_close(store, true));
        opening_fini(&o);
        opening_fini(&copy);
    }
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
    struct pages newest =
        read_pages(store->volume_path,
                   eng_header_off(0, store->stripes[0].rt->header_generation & 1), ENG_PAGE);
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
