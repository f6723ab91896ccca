/* The index of names says what the store holds, whoever changed it and in whatever order. */
#include <sys/wait.h>

#include "tests/server/names_fixture.h"

TEST(names_are_listed_in_order_with_what_is_known_of_them)
{
    struct gyre_store *store = names_open_store();
    struct srv_names *names = names_open(store);
    await_ready(names);
    check_list(names, "bucket", "");
    put_object(store, names, "bucket", "b", 1);
    put_object(store, names, "bucket", "a/z", 2);
    put_object(store, names, "bucket", "a", 3);
    put_object(store, names, "bucket", "\xc3\xa9", 4);
    put_object(store, names, "bucket2", "other", 5);
    put_object(store, names, "bucke", "other", 6);
    check_list(names, "bucket", "a=3 a/z=2 b=1 \xc3\xa9=4");
    put_object(store, names, "bucket", "a", 7);
    delete_object(store, names, "bucket", "b");
    check_list(names, "bucket", "a=7 a/z=2 \xc3\xa9=4");
    check_list(names, "nothing", "");
    srv_names_destroy(names);
    names_close_store(store);
}

TEST(inv_S4_a_list_shows_what_the_store_holds_whatever_was_noted)
{
    struct gyre_store *store = names_open_store();
    struct srv_names *names = names_open(store);
    char big[2000];
    put_object(store, names, "bucket", "gone", 1);
    put_object(store, names, "bucket", "kept", 2);
    put_object(store, names, "bucket", "replaced", 3);
    put_object(store, names, "bucket", "short-lived", 4);
    remove_object(store, "bucket", "gone");
    store_object(store, "bucket", "replaced", 30, 100, 0);
    store_object(store, "bucket", "short-lived", 40, 100, (uint32_t)time(NULL) - 1);
    check_list(names, "bucket", "kept=2 replaced=30");
    /* Evicted, in one piece or in parts. */
    unsigned turn = srv_names_enter(names);
    store_object(store, "bucket", "parts", 5, 200000, 0);
    note_and_wait(names, turn, "bucket", "parts");
    check_list(names, "bucket", "kept=2 parts=5 replaced=30");
    memset(big, 'x', sizeof big);
    for (unsigned i = 0; i < 200; i++) {
        char key[32];
        snprintf(key, sizeof key, "filler-%u", i);
        store_object(store, "elsewhere", key, i, 1 << 20, 0);
    }
    check_list(names, "bucket", "");
    srv_names_destroy(names);
    names_close_store(store);
}

/* The order of the notes says nothing, and a note for nothing does no harm. */
TEST(notes_that_come_late_or_twice_change_nothing)
{
    struct gyre_store *store = names_open_store();
    struct srv_names *names = names_open(store);
    unsigned put = srv_names_enter(names), removal = srv_names_enter(names);
    store_object(store, "bucket", "key", 1, 100, 0);
    remove_object(store, "bucket", "key");
    store_object(store, "bucket", "key", 2, 100, 0);
    note_and_wait(names, removal, "bucket", "key");
    check_list(names, "bucket", "key=2");
    note_and_wait(names, put, "bucket", "key");
    check_list(names, "bucket", "key=2");
    unsigned nothing = srv_names_enter(names);
    note_and_wait(names, nothing, "bucket", "never-there");
    srv_names_leave(names, srv_names_enter(names));
    check_list(names, "bucket", "key=2");
    srv_names_destroy(names);
    names_close_store(store);
}

TEST(buckets_without_an_index_are_left_out_until_they_get_one)
{
    struct gyre_store *store = names_open_store();
    struct srv_names *names = names_open_without(store, "dark\ndarker\n");
    CHECK(!srv_names_lists(names, str_of("dark")));
    CHECK(srv_names_lists(names, str_of("dar")) && srv_names_lists(names, str_of("darke")));
    put_object(store, names, "dark", "a", 1);
    put_object(store, names, "light", "b", 2);
    check_list(names, "dark", "");
    check_list(names, "light", "b=2");
    srv_names_destroy(names);
    names = names_open_without(store, "darker\n");
    check_list(names, "dark", "a=1");
    check_list(names, "light", "b=2");
    srv_names_destroy(names);
    names_close_store(store);
}

/* ---- Several at once ---- */

enum { THREADS = 4, KEYS = 20, CHANGES = 300 };

struct changer {
    struct gyre_store *store;
    struct srv_names *names;
    uint64_t seed;
    pthread_t thread;
};

static void *change(void *arg)
{
    struct changer *changer = arg;
    struct test_rng rng = {changer->seed};
    char key[16];
    for (unsigned i = 0; i < CHANGES; i++) {
        snprintf(key, sizeof key, "key-%02u", (unsigned)test_rng_below(&rng, KEYS));
        unsigned turn = srv_names_enter(changer->names);
        if (test_rng_below(&rng, 3) > 0) {
            store_object(changer->store, "bucket", key, (unsigned)test_rng_below(&rng, 1000000),
                         100, 0);
        } else {
            struct gyre_key digest = srv_name_key(str_of("bucket"), str_of(key));
            gyre_err err = gyre_delete(changer->store, &digest, GYRE_ALWAYS, 0, 0);
            CHECK(err == GYRE_OK || err == GYRE_NOT_FOUND);
        }
        note_and_wait(changer->names, turn, "bucket", key);
    }
    return NULL;
}

/* What the store itself says, in the form of a list. */
static char *expected_list(struct gyre_store *store)
{
    char *text = calloc(1, 4096);
    size_t len = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        struct srv_name_row row;
        char key[16], name[SRV_NAME_MAX];
        snprintf(key, sizeof key, "key-%02u", i);
        size_t name_len = srv_name_write(str_of("bucket"), str_of(key), name);
        gyre_err err = srv_name_look(store, (struct srv_str){name, name_len}, 1, &row);
        if (err == GYRE_OK)
            len += (size_t)snprintf(text + len, 4096 - len, "%s%s=%llu", len > 0 ? " " : "", key,
                                    (unsigned long long)row.modified_ms / 1000);
    }
    return text;
}

/* Two indexes stand for two processes: they share nothing but the files. */
TEST(changes_by_many_at_once_end_in_what_the_store_holds)
{
    struct gyre_store *store = names_open_store();
    struct srv_names *names[2] = {names_open(store), names_open(store)};
    struct changer changers[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        changers[i] = (struct changer){store, names[i % 2], test_seed() + i, 0};
        CHECK(pthread_create(&changers[i].thread, NULL, change, &changers[i]) == 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(changers[i].thread, NULL) == 0);
    char *expected = expected_list(store);
    check_list(names[0], "bucket", expected);
    check_list(names[1], "bucket", expected);
    srv_names_destroy(names[0]);
    put_object(store, names[1], "bucket", "key-99", 5);
    srv_names_destroy(names[1]);
    names[0] = names_open(store);
    char *text = list(names[0], "bucket");
    CHECK(strncmp(text, expected, strlen(expected)) == 0);
    CHECK_EQ_STR(text + strlen(expected), expected[0] != 0 ? " key-99=5" : "key-99=5");
    free(text);
    free(expected);
    srv_names_destroy(names[0]);
    names_close_store(store);
}

/* ---- ETags and names as they are kept ---- */

TEST(etags_come_back_as_they_were)
{
    static const char *const etags[] = {"0123456789abcdef0123456789abcdef",
                                        "0123456789abcdef0123456789abcdef-1",
                                        "0123456789abcdef0123456789abcdef-7",
                                        "0123456789abcdef0123456789abcdef-10000",
                                        "0123456789abcdef0123456789abcdef-65535",
                                        "0123456789abcdef0123456789abcdef-65536",
                                        "0123456789abcdef0123456789abcdef-",
                                        "0123456789abcdef0123456789abcdef-07",
                                        "0123456789ABCDEF0123456789ABCDEF",
                                        "0123456789abcdef0123456789abcdeg",
                                        "x",
                                        "fifteen-letters",
                                        "seventeen-letters",
                                        "a long one, of more than thirty-two characters"};
    for (size_t i = 0; i < sizeof etags / sizeof etags[0]; i++) {
        uint8_t packed[SRV_NAME_PACKED_MAX];
        char etag[SRV_S3_ETAG_LEN_MAX];
        size_t etag_len, len = srv_name_etag_pack(etags[i], strlen(etags[i]), packed);
        CHECK(len <= sizeof packed);
        CHECK_MSG(srv_name_etag_unpack(packed, len, etag, &etag_len) &&
                      etag_len == strlen(etags[i]) && memcmp(etag, etags[i], etag_len) == 0,
                  "%s", etags[i]);
    }
    uint8_t odd[4] = {7, 1, 2, 3};
    char etag[SRV_S3_ETAG_LEN_MAX];
    size_t len;
    CHECK(!srv_name_etag_unpack(odd, sizeof odd, etag, &len));
    odd[0] = 1;
    CHECK(!srv_name_etag_unpack(odd, sizeof odd, etag, &len));
    CHECK(!srv_name_etag_unpack(odd, 0, etag, &len));
}
