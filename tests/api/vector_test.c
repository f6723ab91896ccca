#include "tests/api/fixture.h"

#include <pthread.h>

struct add {
    uint32_t id, origin;
    uint64_t source_serial, seed;
    size_t len;
    const char *vary;
    uint64_t label;
    uint32_t expires;
    enum gyre_condition condition;
    uint64_t if_serial;
};

static gyre_err add(struct gyre_store *store, uint64_t n, const struct add *what,
                    uint64_t *serial_out)
{
    struct gyre_key key = key_of(n);
    const char *vary = what->vary != NULL ? what->vary : "";
    struct gyre_alternate alternate = {
        .id = what->id,
        .origin = what->origin,
        .source_serial = what->source_serial,
        .vary = vary,
        .vary_len = (uint32_t)strlen(vary),
        .vary_hash = what->id * 77,
        .expires = what->expires,
        .encoding = 3,
    };
    struct gyre_put_options options;
    struct gyre_put *put;
    gyre_put_options_init(&options);
    options.meta = "header";
    options.meta_len = 6;
    options.tenant = 5;
    options.etag_hash = what->seed;
    options.labels = &what->label;
    options.n_labels = what->label != 0;
    options.condition = what->condition;
    options.if_serial = what->if_serial;
    CHECK_OK(gyre_alternate_put(store, &key, &alternate, &options, &put));
    uint8_t *bytes = pattern_new(what->seed, what->len);
    CHECK_OK(gyre_put_write(put, bytes, what->len));
    free(bytes);
    return gyre_put_commit(&put, serial_out);
}

static size_t by_vary(void *data, const struct gyre_alternate *alternates, size_t n)
{
    const char *want = data;
    for (size_t i = 0; i < n; i++) {
        CHECK_EQ_INT(alternates[i].vary_hash, alternates[i].id * 77);
        CHECK_EQ_INT(alternates[i].encoding, 3);
        if (strlen(want) == alternates[i].vary_len &&
            memcmp(alternates[i].vary, want, alternates[i].vary_len) == 0)
            return i;
    }
    return SIZE_MAX;
}

static gyre_err choose(struct gyre_store *store, uint64_t n, const char *vary, uint64_t seed,
                       size_t len, const char *meta)
{
    struct gyre_key key = key_of(n);
    struct gyre_handle *handle;
    uint32_t id;
    gyre_err err =
        gyre_select(store, &key, 1000, 0, by_vary, (void *)(uintptr_t)vary, &handle, &id);
    if (err != GYRE_OK)
        return err;
    size_t meta_len;
    const void *got = gyre_handle_meta(handle, &meta_len);
    CHECK(meta_len == strlen(meta) && memcmp(got, meta, meta_len) == 0);
    CHECK_EQ_U64(gyre_handle_info(handle)->length, len);
    check_pieces(handle, seed);
    uint8_t *copy = malloc(len + 1);
    size_t copied = 0;
    for (size_t at = 0; at < len; at += copied)
        CHECK_OK(gyre_copy(handle, at, copy + at, len - at, 0, &copied));
    CHECK(pattern_is(seed, 0, copy, len));
    CHECK_OK(gyre_populate(handle, 0, len));
    free(copy);
    gyre_release(handle);
    return GYRE_OK;
}

static void count(void *data, const struct gyre_alternate *alternates, size_t n, uint64_t serial)
{
    uint64_t *out = data;
    out[0] = n;
    out[1] = serial;
    out[2] = n > 0 ? alternates[0].source_serial : 0;
}

static uint64_t count_of(struct gyre_store *store, uint64_t n, uint64_t *serial_out)
{
    struct gyre_key key = key_of(n);
    uint64_t out[3] = {0};
    gyre_err err = gyre_alternates(store, &key, count, out);
    CHECK(err == GYRE_OK || err == GYRE_NOT_FOUND);
    if (serial_out != NULL)
        *serial_out = out[1];
    return out[0];
}

static uint64_t tenant_bytes(struct gyre_store *store)
{
    uint64_t bytes;
    uint64_t quota;
    CHECK_OK(gyre_tenant_bytes(store, 5, &bytes, &quota));
    return bytes;
}

TEST(alternates_are_added_chosen_replaced_and_taken_away)
{
    struct gyre_options options = options_for("store", GYRE_SIZE_MIN);
    struct gyre_store *store = open_with(&options);
    uint64_t source;
    CHECK_OK(
        add(store, 1, &(struct add){.id = 1, .seed = 1, .len = 200000, .vary = "plain"}, &source));
    CHECK_OK(
        add(store, 1,
            &(struct add){
                .id = 2, .seed = 2, .len = 500, .vary = "br", .origin = 1, .source_serial = source},
            NULL));
    CHECK_OK(add(store, 1, &(struct add){.id = 3, .seed = 3, .len = 50000, .vary = "de"}, NULL));
    CHECK_ERR(
        add(store, 1,
            &(struct add){.id = 4, .seed = 4, .len = 10, .origin = 1, .source_serial = source + 1},
            NULL),
        GYRE_CHANGED); /* made from what is not there */
    for (int run = 0; run < 2; run++) {
        CHECK_OK(choose(store, 1, "plain", 1, 200000, "header"));
        CHECK_OK(choose(store, 1, "br", 2, 500, "header"));
        CHECK_OK(choose(store, 1, "de", 3, 50000, "header"));
        CHECK_ERR(choose(store, 1, "gzip", 0, 0, ""), GYRE_NOT_FOUND);
        check_object(store, 1, 1, 200000); /* a plain get has the first */
        CHECK_EQ_U64(count_of(store, 1, NULL), 3);
        struct gyre_check_report report = {.struct_size = sizeof report};
        CHECK_OK(gyre_check(store, true, NULL, NULL, &report));
        close_store(store);
        store = open_with(&options);
    }
    /* New source: what was made from the old one goes, the rest stays. */
    CHECK_OK(
        add(store, 1, &(struct add){.id = 1, .seed = 9, .len = 300000, .vary = "plain"}, NULL));
    CHECK_OK(choose(store, 1, "plain", 9, 300000, "header"));
    CHECK_OK(choose(store, 1, "de", 3, 50000, "header"));
    CHECK_ERR(choose(store, 1, "br", 0, 0, ""), GYRE_NOT_FOUND);
    struct gyre_key key = key_of(1);
    CHECK_OK(gyre_alternate_remove(store, &key, 1, 0, 0));
    CHECK_ERR(gyre_alternate_remove(store, &key, 1, 0, 0), GYRE_NOT_FOUND);
    CHECK_EQ_U64(count_of(store, 1, NULL), 1);
    CHECK_OK(gyre_alternate_remove(store, &key, 3, 0, GYRE_PUT_SYNC));
    check_absent(store, 1);
    CHECK_EQ_U64(tenant_bytes(store), 0);
    close_store(store);
}

TEST(inv_E88_a_vector_that_is_replaced_or_deleted_takes_its_alternates_away)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    for (uint32_t id = 1; id < 6; id++)
        CHECK_OK(add(store, 1, &(struct add){.id = id, .seed = id, .len = id * 40000}, NULL));
    CHECK(tenant_bytes(store) > 500000);
    CHECK_OK(gyre_delete(store, &key, GYRE_ALWAYS, 0, 0));
    CHECK_EQ_U64(tenant_bytes(store), 0);
    check_absent(store, 1);
    for (uint32_t id = 1; id < 6; id++)
        CHECK_OK(add(store, 1, &(struct add){.id = id, .seed = id, .len = id * 40000}, NULL));
    put_pattern(store, 1, 7, 1000); /* an object in its place, of another tenant */
    CHECK_EQ_U64(tenant_bytes(store), 0);
    check_object(store, 1, 7, 1000);
    CHECK_OK(add(store, 1, &(struct add){.id = 1, .seed = 8, .len = 90000}, NULL)); /* and back */
    check_object(store, 1, 8, 90000);
    close_store(store);
}

TEST(inv_E88_one_alternate_that_is_gone_leaves_the_others)
{
    struct gyre_store *store = open_store();
    uint64_t label = gyre_label(GYRE_LABEL_TAG, "x", 1);
    CHECK_OK(add(store, 1,
                 &(struct add){.id = 1, .seed = 1, .len = 90000, .vary = "v", .label = label},
                 NULL));
    CHECK_OK(add(store, 1, &(struct add){.id = 2, .seed = 2, .len = 100, .vary = "v"}, NULL));
    CHECK_OK(add(store, 1,
                 &(struct add){.id = 3, .seed = 3, .len = 90000, .vary = "w", .expires = 900},
                 NULL));
    CHECK_OK(choose(store, 1, "v", 1, 90000, "header"));
    CHECK_ERR(choose(store, 1, "w", 0, 0, ""), GYRE_NOT_FOUND); /* expired */
    CHECK_OK(gyre_ban_label(store, GYRE_POOL_MAIN, label, 0));
    CHECK_OK(choose(store, 1, "v", 2, 100, "header")); /* asked again without it */
    check_object(store, 1, 2, 100);
    close_store(store);
}

TEST(a_thousand_and_twenty_four_alternates_fit)
{
    struct gyre_store *store = open_store();
    char vary[64];
    for (uint32_t id = 1; id <= GYRE_ALTERNATES_MAX; id++) {
        snprintf(vary, sizeof vary, "accept-language: x-%u", id);
        CHECK_OK(
            add(store, 1, &(struct add){.id = id, .seed = id, .len = 200, .vary = vary}, NULL));
    }
    CHECK_ERR(add(store, 1, &(struct add){.id = 5000, .seed = 1, .len = 20}, NULL), GYRE_NO_SPACE);
    CHECK_EQ_U64(count_of(store, 1, NULL), GYRE_ALTERNATES_MAX);
    CHECK_OK(choose(store, 1, "accept-language: x-1", 1, 200, "header"));
    CHECK_OK(choose(store, 1, "accept-language: x-1024", 1024, 200, "header"));
    struct gyre_key key = key_of(1);
    CHECK_OK(gyre_delete(store, &key, GYRE_ALWAYS, 0, 0));
    CHECK_EQ_U64(tenant_bytes(store), 0);
    close_store(store);
}

TEST(conditions_are_about_the_vector)
{
    struct gyre_store *store = open_store();
    uint64_t serial;
    CHECK_OK(add(store, 1,
                 &(struct add){.id = 1, .seed = 1, .len = 10, .condition = GYRE_IF_ABSENT}, NULL));
    CHECK_ERR(add(store, 1,
                  &(struct add){.id = 2, .seed = 1, .len = 10, .condition = GYRE_IF_ABSENT}, NULL),
              GYRE_EXISTS);
    count_of(store, 1, &serial);
    CHECK_ERR(add(store, 1,
                  &(struct add){.id = 2,
                                .seed = 2,
                                .len = 80000,
                                .condition = GYRE_IF_SERIAL,
                                .if_serial = serial + 1},
                  NULL),
              GYRE_CHANGED);
    uint64_t bytes = tenant_bytes(store);
    CHECK_OK(
        add(store, 1,
            &(struct add){
                .id = 2, .seed = 2, .len = 80000, .condition = GYRE_IF_SERIAL, .if_serial = serial},
            NULL));
    CHECK(tenant_bytes(store) > bytes + 80000);
    CHECK_EQ_U64(count_of(store, 1, NULL), 2);
    close_store(store);
}

struct adder {
    struct gyre_store *store;
    uint32_t first;
    pthread_t thread;
};

static void *add_many(void *data)
{
    struct adder *adder = data;
    for (uint32_t i = 0; i < 40; i++) {
        uint32_t id = adder->first + i;
        CHECK_OK(add(adder->store, 1,
                     &(struct add){.id = id, .seed = id, .len = i % 2 == 0 ? 100 : 70000}, NULL));
    }
    return NULL;
}

TEST(edits_at_the_same_time_lose_none)
{
    struct gyre_store *store = open_store();
    struct adder adders[4];
    for (uint32_t i = 0; i < 4; i++) {
        adders[i] = (struct adder){store, 1 + i * 100, 0};
        CHECK(pthread_create(&adders[i].thread, NULL, add_many, &adders[i]) == 0);
    }
    for (uint32_t i = 0; i < 4; i++)
        pthread_join(adders[i].thread, NULL);
    CHECK_EQ_U64(count_of(store, 1, NULL), 160);
    close_store(store);
}

TEST(inv_E87_a_change_leaves_the_bytes_where_they_are)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    struct gyre_handle *handle;
    struct gyre_handle *before;
    struct gyre_piece piece;
    struct gyre_piece old;
    uint64_t serial = put_pattern(store, 1, 4, 700000);
    CHECK_OK(gyre_get(store, &key, 0, 0, &before));
    CHECK_OK(gyre_handle_piece(before, 0, &old));
    struct gyre_change change;
    gyre_change_init(&change);
    change.what = GYRE_CHANGE_META | GYRE_CHANGE_EXPIRES;
    change.meta = "new";
    change.meta_len = 3;
    change.expires = 5000;
    change.if_serial = serial + 1;
    CHECK_ERR(gyre_change(store, &key, &change, NULL), GYRE_CHANGED);
    change.if_serial = serial;
    uint64_t changed;
    CHECK_OK(gyre_change(store, &key, &change, &changed));
    CHECK(changed != serial);
    check_pieces(before, 4); /* as it was */
    CHECK_EQ_INT(gyre_handle_info(before)->expires, 0);
    gyre_release(before);
    CHECK_OK(gyre_get(store, &key, 4999, 0, &handle));
    size_t len;
    CHECK(memcmp(gyre_handle_meta(handle, &len), "new", 3) == 0 && len == 3);
    CHECK_EQ_U64(gyre_handle_info(handle)->serial, changed);
    CHECK_OK(gyre_handle_piece(handle, 0, &piece));
    CHECK(piece.fd == old.fd && piece.file_offset == old.file_offset);
    check_pieces(handle, 4);
    gyre_release(handle);
    CHECK_ERR(gyre_get(store, &key, 5000, 0, &handle), GYRE_EXPIRED);
    change.if_serial = 0;
    key = key_of(2);
    CHECK_ERR(gyre_change(store, &key, &change, NULL), GYRE_NOT_FOUND);
    change.what = 64;
    CHECK_ERR(gyre_change(store, &key, &change, NULL), GYRE_INVALID);
    close_store(store);
}

TEST(inv_E84_pinning_and_unpinning_what_is_stored)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    struct gyre_change change;
    put_pattern(store, 1, 4, 700000);
    gyre_change_init(&change);
    change.what = GYRE_CHANGE_PIN;
    change.pin_until = UINT32_MAX;
    CHECK_OK(gyre_change(store, &key, &change, NULL));
    for (uint64_t n = 100; n < 300; n++)
        put_pattern(store, n, n, 500000);
    check_object(store, 1, 4, 700000);
    change.pin_until = 0;
    CHECK_OK(gyre_change(store, &key, &change, NULL));
    struct gyre_pool_info info = {.struct_size = sizeof info};
    CHECK_OK(gyre_pool_at(store, GYRE_POOL_MAIN, &info));
    CHECK_EQ_U64(info.kept_bytes, 0);
    for (uint64_t n = 100; n < 300; n++)
        put_pattern(store, n, n, 500000);
    check_absent(store, 1);
    close_store(store);
}

TEST(inv_E87_headers_of_alternates_change_without_their_bytes)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    struct gyre_change change;
    CHECK_OK(add(store, 1, &(struct add){.id = 1, .seed = 1, .len = 300000, .vary = "a"}, NULL));
    CHECK_OK(add(store, 1, &(struct add){.id = 2, .seed = 2, .len = 300, .vary = "b"}, NULL));
    gyre_change_init(&change);
    change.what = GYRE_CHANGE_META | GYRE_CHANGE_EXPIRES;
    change.meta = "fresh anew";
    change.meta_len = 10;
    change.expires = 2000;
    CHECK_OK(gyre_alternate_change(store, &key, 1, &change));
    CHECK_OK(choose(store, 1, "a", 1, 300000, "fresh anew"));
    CHECK_OK(choose(store, 1, "b", 2, 300, "header"));
    CHECK_OK(gyre_alternate_change(store, &key, 2, &change));
    CHECK_OK(choose(store, 1, "b", 2, 300, "fresh anew"));
    CHECK_ERR(gyre_alternate_change(store, &key, 3, &change), GYRE_NOT_FOUND);
    change.expires = 999;
    CHECK_OK(gyre_alternate_change(store, &key, 2, &change));
    CHECK_ERR(choose(store, 1, "b", 2, 300, ""), GYRE_NOT_FOUND);
    CHECK_ERR(gyre_change(store, &key, &change, NULL), GYRE_STATE);
    close_store(store);
}
