#include "engine/ban.h"

#include "tests/engine/images.h"
#include "tests/engine/small_store.h"

#define T0 UINT64_C(1700000000000) /* milliseconds */

struct labelled {
    uint64_t n;
    const char *tag;
    uint64_t now_ms;
    size_t len;
};

static void put_labelled(struct eng_store *store, const struct labelled *put)
{
    struct key key = key_of(put->n);
    uint64_t labels[] = {eng_label_hash(ENG_BAN_PREFIX, "/a/", 3),
                         eng_label_hash(ENG_BAN_TAG, put->tag, strlen(put->tag))};
    uint8_t *body = calloc(1, put->len + 1);
    struct eng_commit commit = {
        .spec = {.key = key.bytes,
                 .type = ENG_DOC,
                 .total_len = put->len,
                 .labels = labels,
                 .n_labels = 2},
        .meta = "metadata",
        .meta_len = 8,
        .body = body,
        .body_len = put->len,
        .now = (uint32_t)(put->now_ms / 1000),
        .now_ms = put->now_ms,
    };
    uint64_t serial;
    CHECK_OK(eng_commit(store, &commit, &serial));
    free(body);
}

static bool is_there(struct eng_store *store, uint64_t n)
{
    struct eng_ref ref;
    gyre_err err = find(store, n, 0, 0, &ref);
    CHECK(err == GYRE_OK || err == GYRE_NOT_FOUND);
    if (err == GYRE_OK) {
        CHECK_EQ_INT(eng_doc_user_meta_len(ref.doc), 8);
        CHECK(memcmp(ref.meta, "metadata", 8) == 0);
    }
    eng_ref_release(&ref);
    return err == GYRE_OK;
}

static void ban_tag(struct eng_store *store, const char *tag, uint64_t now_ms)
{
    CHECK_OK(eng_ban_add(store, 0, ENG_BAN_TAG, eng_label_hash(ENG_BAN_TAG, tag, strlen(tag)),
                         now_ms, false));
}

TEST(inv_E82_what_is_older_than_a_matching_ban_is_a_miss_in_any_run)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    put_labelled(store, &(struct labelled){1, "red", T0, 100});
    put_labelled(store, &(struct labelled){2, "blue", T0, 100});
    put_labelled(store, &(struct labelled){3, "red", T0, 40000});
    ban_tag(store, "red", T0 + 5);
    CHECK(!is_there(store, 1));
    CHECK(is_there(store, 2));
    put_labelled(store, &(struct labelled){4, "red", T0 + 5, 100});     /* the same millisecond */
    put_labelled(store, &(struct labelled){5, "red", T0 - 90000, 100}); /* a clock set back */
    for (int run = 0; run < 3; run++) {
        CHECK(is_there(store, 4));
        CHECK(is_there(store, 5));
        CHECK(is_there(store, 2));
        CHECK(!is_there(store, 1));
        CHECK_OK(eng_store_close(store, run == 0));
        store = open_ok(&o);
        CHECK_EQ_INT(eng_bans_count(store), 1);
    }
    CHECK(!is_there(store, 3)); /* never looked at since the ban */
    struct key key = key_of(5);
    CHECK_OK(eng_ban_add(store, 0, ENG_BAN_KEY, eng_ban_key_hash(key.bytes), T0 - 90000, true));
    CHECK(!is_there(store,
                    5)); /* a ban is newer than what was stored before it, whatever the clock */
    CHECK_OK(
        eng_ban_add(store, 0, ENG_BAN_PREFIX, eng_label_hash(ENG_BAN_PREFIX, "/a/", 3), T0, false));
    CHECK(!is_there(store, 2));
    CHECK(!is_there(store, 4));
    close_checked(store, &o);
}

/* The copy has lost what was not synced; the ban was. */
TEST(inv_E82_a_ban_that_was_synced_survives_a_power_loss)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    put_labelled(store, &(struct labelled){1, "red", T0, 100});
    CHECK_OK(eng_ban_add(store, 0, ENG_BAN_TAG, eng_label_hash(ENG_BAN_TAG, "red", 3), T0, true));
    put_labelled(store, &(struct labelled){2, "red", T0, 100});
    char copy[600];
    snprintf(copy, sizeof copy, "%s-copy", o.dirs[0].path);
    copy_files(o.dirs[0].path, copy);
    struct opening p;
    opening_init(&p, copy);
    struct eng_store *again = open_ok(&p); /* roll-forward enters both documents again */
    CHECK(!is_there(again, 1));
    CHECK(is_there(again, 2));
    close_checked(again, &p);
    close_checked(store, &o);
}

TEST(a_banned_document_counts_as_absent_for_conditions)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    put_labelled(store, &(struct labelled){1, "red", T0, 100});
    struct put again = {.n = 1, .version = 2, .length = 10, .condition = ENG_IF_ABSENT};
    CHECK_ERR(put_small(store, &again, NULL), GYRE_EXISTS);
    ban_tag(store, "red", T0);
    CHECK_OK(put_small(store, &again, NULL));
    expect(store, 1, 2);
    close_checked(store, &o);
}

TEST(the_table_has_a_bound_and_rows_can_be_forgotten)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    uint64_t hash = 1;
    while (eng_bans_free(store) > 0)
        CHECK_OK(eng_ban_add(store, 0, ENG_BAN_TAG, hash += 2, T0, false));
    CHECK_ERR(eng_ban_add(store, 0, ENG_BAN_TAG, hash + 2, T0, false), GYRE_NO_SPACE);
    CHECK_OK(eng_ban_add(store, 0, ENG_BAN_TAG, hash, T0 + 5000, false)); /* a row it has */
    CHECK_EQ_INT(eng_bans_count(store), ENG_BANS);
    CHECK_OK(eng_bans_forget(store, T0 + 1000));
    CHECK_EQ_INT(eng_bans_count(store), 1);
    CHECK_OK(eng_ban_add(store, 0, ENG_BAN_TAG, hash + 2, T0 + 6000, false));
    CHECK_OK(eng_store_close(store, true));
    store = open_ok(&o);
    CHECK_EQ_INT(eng_bans_count(store), 2);
    CHECK_OK(eng_bans_forget(store, UINT64_MAX));
    CHECK_EQ_INT(eng_bans_count(store), 0);
    close_checked(store, &o);
}

/* A row that is damaged on disk bans nothing, and hurts no other. */
TEST(a_damaged_row_is_no_ban)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    put_labelled(store, &(struct labelled){1, "red", T0, 100});
    put_labelled(store, &(struct labelled){2, "blue", T0, 100});
    ban_tag(store, "red", T0);
    ban_tag(store, "blue", T0);
    uint64_t off = store->super.ban_off;
    CHECK_OK(eng_store_close(store, true));
    change_byte(in_dir(o.dirs[0].path, "volume.gyre"), off + 8, 0x40);
    store = open_ok(&o);
    CHECK_EQ_INT(eng_bans_count(store), 1);
    CHECK(is_there(store, 1));
    CHECK(!is_there(store, 2));
    ban_tag(store, "red", T0 + 1000);
    CHECK(!is_there(store, 1));
    close_checked(store, &o);
}
