#include "tests/api/fixture.h"

#include <unistd.h>

static struct gyre_upload_id begin(struct gyre_store *store, uint64_t n, uint32_t abandon_at)
{
    struct gyre_key key = key_of(n);
    struct gyre_upload_options options;
    struct gyre_upload_id id;
    gyre_upload_options_init(&options);
    options.meta = "note";
    options.meta_len = 4;
    options.tenant = 3;
    options.abandon_at = abandon_at;
    CHECK_OK(gyre_upload_begin(store, &key, &options, &id));
    return id;
}

/* Bytes [from, from + len) of the seed's body as part `number`. */
static gyre_err put_part_of(struct gyre_store *store, uint64_t n, const struct gyre_upload_id *id,
                            uint32_t number, uint64_t seed, uint64_t from, size_t len,
                            uint64_t *serial_out)
{
    struct gyre_key key = key_of(n);
    struct gyre_put *put;
    uint8_t *bytes = malloc(len + 1);
    uint8_t md5[16];
    pattern_fill(seed, from, bytes, len);
    memset(md5, (int)number, sizeof md5);
    gyre_err err = gyre_upload_put(store, &key, id, number,
                                   number % 2 == 0 ? len : GYRE_LENGTH_UNKNOWN, 0, &put);
    if (err == GYRE_OK) {
        err = gyre_put_write(put, bytes, len);
        CHECK_OK(gyre_put_set_md5(put, md5));
        if (err == GYRE_OK)
            err = gyre_put_set_meta(put, "etag", 4, 0, 0);
        gyre_err committed = gyre_put_commit(&put, serial_out);
        err = err == GYRE_OK ? committed : err;
    }
    free(bytes);
    return err;
}

static void put_part(struct gyre_store *store, uint64_t n, const struct gyre_upload_id *id,
                     uint32_t number, uint64_t seed, uint64_t from, size_t len)
{
    CHECK_OK(put_part_of(store, n, id, number, seed, from, len, NULL));
}

static gyre_err complete(struct gyre_store *store, uint64_t n, const struct gyre_upload_id *id,
                         const uint32_t *numbers, size_t count, enum gyre_condition condition)
{
    struct gyre_key key = key_of(n);
    struct gyre_part_choice choices[64] = {{0}};
    struct gyre_put_options options;
    for (size_t i = 0; i < count; i++)
        choices[i].number = numbers[i];
    gyre_put_options_init(&options);
    options.meta = "object";
    options.meta_len = 6;
    options.condition = condition;
    return gyre_upload_complete(store, &key, id, choices, count, &options, NULL);
}

static bool add_up(void *data, const struct gyre_part *part)
{
    uint64_t *seen = data;
    CHECK_EQ_INT(part->meta_len, 4);
    CHECK(memcmp(part->meta, "etag", 4) == 0);
    CHECK_EQ_INT(part->md5[5], (uint8_t)part->number);
    CHECK(part->serial != 0 && part->number > seen[1]);
    seen[0]++;
    seen[1] = part->number;
    seen[2] += part->length;
    return true;
}

static uint64_t count_parts(struct gyre_store *store, uint64_t n, const struct gyre_upload_id *id)
{
    struct gyre_key key = key_of(n);
    uint64_t seen[3] = {0};
    CHECK_OK(gyre_upload_each_part(store, &key, id, 0, add_up, seen));
    return seen[0];
}

static bool count_one(void *data, const struct gyre_key *key, const struct gyre_upload_id *id,
                      const struct gyre_handle *handle)
{
    size_t len;
    CHECK(key != NULL && id != NULL);
    CHECK(memcmp(gyre_handle_meta(handle, &len), "note", 4) == 0 && len == 4);
    ++*(uint64_t *)data;
    return true;
}

static uint64_t count_uploads(struct gyre_store *store)
{
    uint64_t n = 0;
    CHECK_OK(gyre_each_upload(store, count_one, &n));
    return n;
}

static uint64_t kept(struct gyre_store *store)
{
    struct gyre_pool_info info = {.struct_size = sizeof info};
    CHECK_OK(gyre_pool_at(store, GYRE_POOL_MAIN, &info));
    return info.kept_bytes;
}

static uint64_t tenant(struct gyre_store *store)
{
    uint64_t bytes;
    uint64_t quota;
    CHECK_OK(gyre_tenant_bytes(store, 3, &bytes, &quota));
    return bytes;
}

static void check_clean(struct gyre_store *store)
{
    struct gyre_check_report report = {.struct_size = sizeof report};
    CHECK_OK(gyre_check(store, true, NULL, NULL, &report));
    CHECK_EQ_U64(report.objects_incomplete, 0);
}

TEST(parts_in_any_order_become_one_object)
{
    struct gyre_store *store = open_store();
    struct gyre_upload_id id = begin(store, 1, 0);
    const uint32_t numbers[] = {2, 7, 9, 10000};
    put_part(store, 1, &id, 10000, 5, 800000, 100);
    put_part(store, 1, &id, 2, 5, 0, 300000);
    put_part(store, 1, &id, 9, 5, 700000, 100000);
    put_part(store, 1, &id, 7, 5, 300000, 400000);
    put_part(store, 1, &id, 8, 6, 0, 70000); /* not chosen */
    check_absent(store, 1);
    CHECK_EQ_U64(count_parts(store, 1, &id), 5);
    CHECK_EQ_U64(count_uploads(store), 1);
    CHECK_OK(complete(store, 1, &id, numbers, 4, GYRE_IF_ABSENT));
    check_object(store, 1, 5, 800100);
    CHECK_EQ_U64(count_uploads(store), 0);
    CHECK_EQ_U64(kept(store), 0);
    CHECK_ERR(complete(store, 1, &id, numbers, 4, GYRE_ALWAYS), GYRE_NOT_FOUND);
    CHECK_ERR(put_part_of(store, 1, &id, 1, 1, 0, 10, NULL), GYRE_NOT_FOUND);

    struct gyre_key key = key_of(1);
    struct gyre_handle *handle;
    CHECK_OK(gyre_get(store, &key, 0, GYRE_GET_HEAD, &handle));
    CHECK_EQ_INT(gyre_handle_info(handle)->tenant, 3);
    uint64_t offset = 0;
    for (uint32_t i = 0; i < 4; i++) {
        static const uint64_t lengths[] = {300000, 400000, 100000, 100};
        struct gyre_part part;
        CHECK_OK(gyre_handle_part(handle, i, &part));
        CHECK_EQ_INT(part.number, numbers[i]);
        CHECK_EQ_U64(part.offset, offset);
        CHECK_EQ_U64(part.length, lengths[i]);
        CHECK_EQ_INT(part.md5[0], (uint8_t)numbers[i]);
        offset += part.length;
    }
    struct gyre_part part;
    CHECK_ERR(gyre_handle_part(handle, 4, &part), GYRE_RANGE);
    gyre_release(handle);
    check_clean(store);
    close_store(store);
}

TEST(the_last_attempt_of_a_number_counts_and_a_choice_can_insist)
{
    struct gyre_store *store = open_store();
    struct gyre_upload_id id = begin(store, 1, 0);
    uint64_t first;
    CHECK_OK(put_part_of(store, 1, &id, 1, 4, 0, 500000, &first));
    uint64_t before = tenant(store);
    put_part(store, 1, &id, 1, 5, 0, 500000);
    CHECK_EQ_U64(tenant(store), before); /* the first attempt is freed */
    struct gyre_key key = key_of(1);
    struct gyre_part_choice choice = {.number = 1, .serial = first};
    struct gyre_put_options options;
    gyre_put_options_init(&options);
    CHECK_ERR(gyre_upload_complete(store, &key, &id, &choice, 1, &options, NULL), GYRE_CHANGED);
    const uint32_t missing[] = {1, 2};
    CHECK_ERR(complete(store, 1, &id, missing, 2, GYRE_ALWAYS), GYRE_RANGE);
    const uint32_t falling[] = {2, 1};
    CHECK_ERR(complete(store, 1, &id, falling, 2, GYRE_ALWAYS), GYRE_INVALID);
    put_part(store, 1, &id, 2, 5, 500000, 20); /* still open after all that */
    CHECK_OK(complete(store, 1, &id, missing, 2, GYRE_ALWAYS));
    check_object(store, 1, 5, 500020);
    close_store(store);
}

TEST(inv_E86_a_condition_that_fails_leaves_object_and_upload_as_they_were)
{
    struct gyre_store *store = open_store();
    const uint32_t one[] = {1};
    put_pattern(store, 1, 9, 100000);
    struct gyre_upload_id id = begin(store, 1, 0);
    put_part(store, 1, &id, 1, 5, 0, 100);
    CHECK_ERR(complete(store, 1, &id, one, 1, GYRE_IF_ABSENT), GYRE_EXISTS);
    check_object(store, 1, 9, 100000);
    CHECK_EQ_U64(count_parts(store, 1, &id), 1);
    CHECK_OK(complete(store, 1, &id, one, 1, GYRE_ALWAYS));
    check_object(store, 1, 5, 100);
    close_store(store);
}

TEST(an_upload_survives_restarts)
{
    struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
    struct gyre_store *store = open_with(&options);
    const uint32_t numbers[] = {1, 2, 3};
    struct gyre_upload_id id = begin(store, 1, 0);
    put_part(store, 1, &id, 3, 5, 700000, 0); /* an empty part */
    put_part(store, 1, &id, 1, 5, 0, 400000);
    close_store(store);
    store = open_with(&options);
    CHECK_EQ_U64(count_uploads(store), 1);
    CHECK(kept(store) >= 400000);
    put_part(store, 1, &id, 2, 5, 400000, 300000);
    CHECK_OK(gyre_upload_sweep(store, 1000));
    CHECK(kept(store) >= 700000);
    CHECK_OK(complete(store, 1, &id, numbers, 3, GYRE_ALWAYS));
    check_object(store, 1, 5, 700000);
    close_store(store);
    store = open_with(&options);
    check_object(store, 1, 5, 700000);
    check_clean(store);
    close_store(store);
}

TEST(inv_E85_parts_of_an_open_upload_outlive_any_number_of_puts)
{
    struct gyre_store *store = open_store();
    const uint32_t numbers[] = {1, 2};
    struct gyre_upload_id id = begin(store, 1, 0);
    put_part(store, 1, &id, 1, 5, 0, 2000000);
    for (uint64_t n = 100; n < 400; n++)
        put_pattern(store, n, n, 500000); /* the log goes round more than twice */
    put_part(store, 1, &id, 2, 5, 2000000, 500000);
    CHECK_OK(complete(store, 1, &id, numbers, 2, GYRE_ALWAYS));
    check_object(store, 1, 5, 2500000);
    for (uint64_t n = 100; n < 400; n++)
        put_pattern(store, n, n, 500000);
    check_absent(store, 1); /* an object like any other now */
    close_store(store);
}

TEST(inv_E85_what_uploads_hold_is_bounded_and_abandoned_ones_let_go)
{
    struct gyre_store *store = open_store();
    struct gyre_upload_id id = begin(store, 1, 2000000000);
    gyre_err err = GYRE_OK;
    uint32_t number = 0;
    while (err == GYRE_OK && number < 200)
        err = put_part_of(store, 1, &id, ++number, 5, 0, 500000, NULL);
    CHECK_ERR(err, GYRE_QUOTA);
    CHECK(number > 20);
    uint64_t held = kept(store);
    CHECK_OK(gyre_upload_sweep(store, 1999999999));
    CHECK_EQ_U64(kept(store), held);
    CHECK_OK(gyre_upload_sweep(store, 2000000000));
    CHECK_EQ_U64(kept(store), 0);
    CHECK_EQ_U64(tenant(store), 0);
    CHECK_EQ_U64(count_uploads(store), 0);
    close_store(store);
}

TEST(aborting_frees_everything)
{
    struct gyre_store *store = open_store();
    struct gyre_upload_id id = begin(store, 1, 0);
    struct gyre_upload_id other = begin(store, 1, 0);
    struct gyre_key key = key_of(1);
    struct gyre_handle *handle;
    put_part(store, 1, &id, 1, 5, 0, 500000);
    put_part(store, 1, &other, 1, 5, 0, 10);
    CHECK_OK(gyre_upload_abort(store, &key, &id, GYRE_PUT_SYNC));
    CHECK_ERR(gyre_upload_abort(store, &key, &id, 0), GYRE_NOT_FOUND);
    CHECK_ERR(gyre_upload_get(store, &key, &id, &handle), GYRE_NOT_FOUND);
    CHECK_OK(gyre_upload_get(store, &key, &other, &handle));
    gyre_release(handle);
    CHECK_OK(gyre_upload_abort(store, &key, &other, 0));
    CHECK_EQ_U64(kept(store), 0);
    CHECK_EQ_U64(tenant(store), 0);
    check_clean(store);
    close_store(store);
}

static bool count_meta(void *data, const struct gyre_handle *handle)
{
    CHECK(handle != NULL);
    ++*(uint64_t *)data;
    return true;
}

TEST(records_of_uploads_are_nobody_elses_business)
{
    struct gyre_store *store = open_store();
    struct gyre_upload_id id = begin(store, 1, 0);
    put_part(store, 1, &id, 1, 5, 0, 10);
    uint64_t n = 0;
    CHECK_OK(gyre_each_meta(store, count_meta, &n));
    CHECK_EQ_U64(n, 0);
    close_store(store);
}
