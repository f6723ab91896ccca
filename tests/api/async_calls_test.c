/* The blocking calls, off the thread: each answered once, with what the blocking form says. */
#include <stdatomic.h>

#include "tests/api/fixture.h"

struct inbox {
    _Atomic uint32_t answers;
    _Atomic uint32_t by_err[64];
    _Atomic uint64_t serial;
};

static void noted(void *data, gyre_err err)
{
    struct inbox *inbox = data;
    atomic_fetch_add(&inbox->by_err[err], 1);
    atomic_fetch_add(&inbox->answers, 1);
}

static void stored(void *data, gyre_err err, uint64_t serial)
{
    struct inbox *inbox = data;
    CHECK((err == GYRE_OK) == (serial != 0));
    inbox->serial = serial;
    noted(data, err);
}

static void expect(struct inbox *inbox, gyre_err err)
{
    CHECK_SOON(inbox->answers == 1);
    CHECK_EQ_INT(inbox->by_err[err], 1);
    memset(inbox, 0, offsetof(struct inbox, serial));
}

TEST(objects_are_put_and_deleted_off_the_thread)
{
    struct gyre_store *store = open_store();
    struct inbox inbox = {0};
    struct gyre_put_options options;
    struct gyre_key key = key_of(1);
    uint8_t *body = pattern_new(1, 300000);
    gyre_put_options_init(&options);
    options.meta = "kept";
    options.meta_len = 4;
    options.condition = GYRE_IF_ABSENT;
    CHECK_OK(gyre_exists_async(store, &key, 0, noted, &inbox));
    expect(&inbox, GYRE_NOT_FOUND);
    CHECK_OK(gyre_put_async(store, &key, &options, body, 300000, stored, &inbox));
    expect(&inbox, GYRE_OK);
    uint64_t serial = inbox.serial;
    CHECK_OK(gyre_put_async(store, &key, &options, body, 100, stored, &inbox));
    expect(&inbox, GYRE_EXISTS);
    CHECK_OK(gyre_put_async(store, &key, NULL, NULL, 0, stored, &inbox));
    expect(&inbox, GYRE_OK);
    CHECK_OK(gyre_exists_async(store, &key, 0, noted, &inbox));
    expect(&inbox, GYRE_OK);
    CHECK_OK(gyre_delete_async(store, &key, GYRE_IF_SERIAL, serial, 0, noted, &inbox));
    expect(&inbox, GYRE_CHANGED);
    CHECK_OK(gyre_delete_async(store, &key, GYRE_ALWAYS, 0, GYRE_PUT_SYNC, noted, &inbox));
    expect(&inbox, GYRE_OK);
    CHECK_OK(gyre_delete_async(store, &key, GYRE_ALWAYS, 0, 0, noted, &inbox));
    expect(&inbox, GYRE_NOT_FOUND);
    CHECK_OK(gyre_sync_async(store, noted, &inbox));
    expect(&inbox, GYRE_OK);
    check_absent(store, 1);
    free(body);
    close_store(store);
}

TEST(a_stream_is_committed_off_the_thread)
{
    struct gyre_store *store = open_store();
    struct inbox inbox = {0};
    struct gyre_put_options options;
    struct gyre_key key = key_of(1);
    struct gyre_put *put;
    uint8_t *body = pattern_new(1, 200000);
    gyre_put_options_init(&options);
    CHECK_OK(gyre_put_begin(store, &key, &options, &put));
    CHECK_OK(gyre_put_write(put, body, 200000));
    CHECK_OK(gyre_put_commit_async(&put, stored, &inbox));
    CHECK(put == NULL);
    expect(&inbox, GYRE_OK);
    check_object(store, 1, 1, 200000);
    options.length = 10;
    CHECK_OK(gyre_put_begin(store, &key, &options, &put));
    CHECK_ERR(gyre_put_write(put, body, 11), GYRE_LENGTH);
    CHECK_OK(gyre_put_commit_async(&put, stored, &inbox));
    expect(&inbox, GYRE_LENGTH);
    check_object(store, 1, 1, 200000);
    free(body);
    close_store(store);
}

TEST(wrong_arguments_are_refused)
{
    struct gyre_store *store = open_store();
    struct gyre_key key = key_of(1);
    struct gyre_put_options options = {0};
    struct gyre_put *none = NULL;
    CHECK_ERR(gyre_put_async(store, NULL, NULL, "", 0, stored, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_put_async(store, &key, &options, "", 0, stored, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_put_async(store, &key, NULL, NULL, 1, stored, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_put_async(store, &key, NULL, "", 0, NULL, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_put_commit_async(&none, stored, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_delete_async(store, &key, GYRE_IF_ABSENT, 0, 0, noted, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_delete_async(store, &key, GYRE_ALWAYS, 0, 2, noted, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_exists_async(store, NULL, 0, noted, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_sync_async(store, NULL, NULL), GYRE_INVALID);
    CHECK_ERR(gyre_sync_async(NULL, noted, NULL), GYRE_INVALID);
    close_store(store);
}

TEST(closing_and_draining_wait_for_them)
{
    struct gyre_store *store = open_store();
    struct inbox inbox = {0};
    for (int round = 0; round < 2; round++) {
        for (uint64_t n = 0; n < 300; n++) {
            struct gyre_key key = key_of(n);
            CHECK_OK(gyre_put_async(store, &key, NULL, "body", 4, stored, &inbox));
        }
        if (round == 0)
            CHECK_OK(gyre_drain(store, 60000));
        else
            close_store(store);
        CHECK_EQ_U64(inbox.by_err[GYRE_OK], 300 * (round + 1));
    }
}
