/* One thread plays two: at a named step of the one, the other runs to its end. Only builds with
 * GYRE_SIM have steps. */
#include "engine/base/step.h"
#include "engine/change.h"
#include "engine/cleaner.h"
#include "engine/keep.h"
#include "engine/keeper.h"
#include "engine/slab.h"
#include "tests/engine/bare_stripe.h"
#include "tests/engine/objects.h"

#ifdef GYRE_SIM
static const bool has_steps = true;
#else
static const bool has_steps = false;
#endif

/* What happens at the `turn`-th step of that name; once. */
struct other {
    const char *at;
    unsigned turn, met;
    void (*run)(void *data);
    void *data;
    bool busy;
};

static gyre_err on_step(void *data, const char *name, bool can_fail)
{
    struct other *other = data;
    (void)can_fail;
    if (other->busy || strcmp(name, other->at) != 0 || other->met++ != other->turn)
        return GYRE_OK;
    other->busy = true;
    other->run(other->data);
    other->busy = false;
    return GYRE_OK;
}

static void install(struct other *other)
{
    static struct eng_step_hook hook;
    if (!has_steps)
        test_skip("no steps in this build");
    hook = (struct eng_step_hook){on_step, other};
    eng_step_install(&hook);
}

/* ---- E1 ---- */

/* A stripe of two buckets, so full that the next insertion into `full` has to move `mover`. */
struct crowd {
    struct bare bare;
    struct eng_place mover, newcomer;
    uint64_t mover_entry;
    bool missed;
};

static uint64_t entry_at(const struct eng_place *place, uint64_t offset)
{
    return eng_entry_make(place->tag, offset * 4, 4, ENG_KIND_DOC, 1, true, offset);
}

static void insert_one(struct crowd *crowd, const struct eng_place *place, uint64_t offset)
{
    struct eng_slot record = {.units = 4};
    struct eng_displaced displaced;
    CHECK_OK(eng_directory_insert_locked(crowd->bare.stripe, place, entry_at(place, offset),
                                         &record, &displaced));
    CHECK_EQ_U64(displaced.slot, ENG_NO_SLOT);
}

static bool has(struct crowd *crowd, const struct eng_place *place, uint64_t entry)
{
    struct eng_candidates found;
    eng_directory_lookup(crowd->bare.stripe, place, &found);
    for (size_t i = 0; i < found.n; i++)
        if (found.at[i].entry == entry)
            return true;
    return false;
}

/* Buckets 0 and 1: bucket 1 gets the mover alone (both its buckets differ), then both its buckets'
 * like fill bucket 1, and the newcomer can live in bucket 1 only. */
static struct crowd make_crowd(void)
{
    struct crowd crowd = {.bare = bare_create(2, 1 << 20, 1)};
    uint64_t n = 0;
    struct eng_place narrow;
    do
        crowd.mover = eng_place_of_hash(crowd.bare.stripe, eng_mix64(++n));
    while (crowd.mover.bucket[0] == crowd.mover.bucket[1]);
    do
        narrow = eng_place_of_hash(crowd.bare.stripe, eng_mix64(++n));
    while (narrow.bucket[0] != 1 || narrow.bucket[1] != 1 || narrow.tag == crowd.mover.tag);
    do
        crowd.newcomer = eng_place_of_hash(crowd.bare.stripe, eng_mix64(++n));
    while (crowd.newcomer.bucket[0] != 1 || crowd.newcomer.bucket[1] != 1 ||
           crowd.newcomer.tag == narrow.tag);
    struct eng_place into_1 = crowd.mover;
    into_1.bucket[0] = into_1.bucket[1] = 1;
    insert_one(&crowd, &into_1, 1);
    crowd.mover_entry = entry_at(&crowd.mover, 1);
    for (uint64_t i = 0; i < ENG_BUCKET_ENTRIES - 1; i++)
        insert_one(&crowd, &narrow, 10 + i);
    return crowd;
}

static void look_for_mover(void *data)
{
    struct crowd *crowd = data;
    crowd->missed = crowd->missed || !has(crowd, &crowd->mover, crowd->mover_entry);
}

static void move_mover(void *data)
{
    struct crowd *crowd = data;
    insert_one(crowd, &crowd->newcomer, 50);
}

TEST(inv_E1_a_moving_entry_is_never_missed_by_a_later_look)
{
    for (unsigned turn = 0;; turn++) {
        struct crowd crowd = make_crowd();
        struct other other = {
            .at = "directory.bucket.even", .turn = turn, .run = look_for_mover, .data = &crowd};
        install(&other);
        move_mover(&crowd);
        eng_step_install(NULL);
        CHECK(!crowd.missed);
        CHECK(has(&crowd, &crowd.mover, crowd.mover_entry));
        if (other.met <= turn) {
            CHECK(turn >= 3); /* copy, removal, newcomer */
            return;
        }
    }
}

TEST(inv_E1_a_look_across_a_move_is_repeated)
{
    struct crowd crowd = make_crowd();
    struct other other = {.at = "directory.lookup.between", .run = move_mover, .data = &crowd};
    if (crowd.mover.bucket[0] == 1) { /* the look goes first where the entry will be */
        crowd.mover.bucket[0] = 0;
        crowd.mover.bucket[1] = 1;
    }
    install(&other);
    CHECK(has(&crowd, &crowd.mover, crowd.mover_entry));
    CHECK(other.met >= 2);
}

/* ---- E5 ---- */

struct play {
    struct eng_store *store;
    struct eng_ref ref;
    gyre_err err;
    uint64_t serial;
};

static struct eng_store *open_one(struct opening *o)
{
    opening_init(o, test_tmpdir());
    o->open.stripes = 1;
    o->open.retention = ENG_RETENTION_FIFO; /* what is pinned was asked for, and has to go */
    struct eng_store *store = open_ok(o);
    eng_keeper_stop(store); /* steps are for one thread */
    return store;
}

static void close_one(struct eng_store *store, struct opening *o)
{
    eng_step_install(NULL);
    check_space(&store->stripes[0]);
    eng_slabs_retire(&store->stripes[0]);
    CHECK_EQ_U64(atomic_load(&store->stripes[0].rt->reserved_units), 0);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(o);
}

/* The whole log is written over. */
static void lap(void *data)
{
    struct play *play = data;
    for (uint64_t n = 0; n < 2 * STORE_BYTES / 60000; n++)
        CHECK_OK(put_small(play->store, &(struct put){.n = 1000 + n, .version = 7, .length = 60000},
                           NULL));
}

/* The hand takes the document out and its bytes are free, but nobody has written there yet. */
static void evict(void *data)
{
    struct play *play = data;
    struct eng_stripe *stripe = &play->store->stripes[0];
    struct key key = key_of(1);
    struct eng_want want = {.key = key.bytes};
    eng_clean_lock(stripe);
    while (eng_probable(play->store, &want)) {
        struct eng_clean_step step;
        CHECK_OK(eng_clean_step_locked(stripe, ENG_POOL_MAIN, UINT64_MAX, false, &step));
    }
    eng_clean_unlock(stripe);
}

TEST(inv_E5_bytes_that_left_before_the_pin_are_not_returned)
{
    struct opening o;
    struct play play = {.store = open_one(&o)};
    struct other other = {.at = "reader.pin.before", .run = evict, .data = &play};
    CHECK_OK(put_small(play.store, &(struct put){.n = 1, .version = 1, .length = 60000}, NULL));
    install(&other);
    struct eng_ref ref;
    CHECK_ERR(find(play.store, 1, 0, 0, &ref), GYRE_NOT_FOUND);
    CHECK_EQ_INT(other.met, 1);
    CHECK_EQ_U64(atomic_load(&eng_counters(play.store)->checksum_failures), 0);
    close_one(play.store, &o);
}

static void pin_first(void *data)
{
    struct play *play = data;
    play->err = find(play->store, 1, 0, ENG_NO_COUNT, &play->ref);
}

TEST(inv_E5_a_pin_set_while_the_hand_decides_is_seen)
{
    struct opening o;
    struct play play = {.store = open_one(&o)};
    CHECK_OK(put_small(play.store, &(struct put){.n = 1, .version = 1, .length = 60000}, NULL));
    for (uint64_t n = 0; n < 2000;
         n++) { /* until the hand comes to it, find it pinned a moment before it decides */
        struct other other = {.at = "cleaner.step.marked", .run = pin_first, .data = &play};
        install(&other);
        CHECK_OK(put_small(play.store, &(struct put){.n = 1000 + n, .version = 7, .length = 60000},
                           NULL));
        if (other.met == 0)
            continue;
        if (play.err != GYRE_OK)
            break;
        CHECK(body_is(play.ref.body, 0, 60000, 1, 1));
        struct key key = key_of(1);
        struct eng_want want = {.key = key.bytes};
        if (!eng_probable(play.store, &want)) { /* evicted, but held */
            eng_step_install(NULL);
            lap(&play);
            CHECK(body_is(play.ref.body, 0, 60000, 1, 1));
            eng_ref_release(&play.ref);
            close_one(play.store, &o);
            return;
        }
        eng_ref_release(&play.ref);
    }
    CHECK_MSG(false, "the hand never evicted it");
}

/* ---- E11 ---- */

static void put_between(void *data)
{
    struct play *play = data;
    CHECK_OK(
        put_small(play->store, &(struct put){.n = 1, .version = 2, .length = 100}, &play->serial));
}

static void delete_between(void *data)
{
    struct play *play = data;
    struct key key = key_of(1);
    CHECK_OK(eng_delete(play->store, 0, key.bytes, ENG_ALWAYS, 0, false));
}

static void expect_version(struct eng_store *store, uint64_t version)
{
    uint64_t got = 0;
    CHECK_OK(read_object(store, 1, 0, &got));
    CHECK_EQ_U64(got, version);
    CHECK_EQ_U64(atomic_load(&store->stripes[0].rt->documents), 1);
}

TEST(inv_E11_a_condition_is_checked_where_it_counts)
{
    struct opening o;
    struct play play = {.store = open_one(&o)};
    struct other other = {.at = "commit.publish.before", .run = put_between, .data = &play};
    install(&other);
    struct put put = {.n = 1, .version = 1, .length = 100, .condition = ENG_IF_ABSENT};
    CHECK_ERR(put_small(play.store, &put, NULL), GYRE_EXISTS);
    expect_version(play.store, 2);
    other.met = 0;
    put.condition = ENG_IF_SERIAL;
    put.if_serial = play.serial;
    CHECK_ERR(put_parts(play.store, &put, 50, 50, NULL), GYRE_CHANGED);
    expect_version(play.store, 2);
    other.met = 0;
    put.condition = ENG_ALWAYS;
    put.version = 3;
    CHECK_OK(put_small(play.store, &put, &play.serial));
    expect_version(play.store, 3);
    other = (struct other){.at = "commit.publish.before", .run = delete_between, .data = &play};
    put.version = 4;
    CHECK_OK(put_small(play.store, &put, NULL));
    expect_version(play.store, 4);
    other.met = 0;
    put.condition = ENG_IF_SERIAL;
    put.if_serial = play.serial;
    struct eng_ref ref;
    CHECK_ERR(put_small(play.store, &put, NULL), GYRE_CHANGED);
    CHECK_OK(find(play.store, 1, 0, 0, &ref));
    put.if_serial = ref.doc->serial;
    eng_ref_release(&ref);
    CHECK_ERR(put_small(play.store, &put, NULL), GYRE_NOT_FOUND);
    CHECK_ERR(find(play.store, 1, 0, 0, &ref), GYRE_NOT_FOUND);
    close_one(play.store, &o);
}

/* ---- E84 ---- */

static gyre_err pin_first_object(struct play *play)
{
    struct key key = key_of(1);
    const struct eng_change change = {
        .key = key.bytes, .what = ENG_CHANGE_PIN, .pin_until = UINT32_MAX, .now_ms = 1000000};
    return eng_change(play->store, &change, &play->serial);
}

static void pin_between(void *data)
{
    CHECK_OK(pin_first_object(data));
}

static void sweep_between(void *data)
{
    struct play *play = data;
    CHECK_ERR(eng_keep_sweep(play->store, 1001), GYRE_BUSY);
}

static void keep_parts_of_first(struct eng_store *store)
{
    struct eng_ref head;
    CHECK_OK(find(store, 1, 0, 0, &head));
    for (size_t i = 0; i < head.doc->body_len / sizeof(struct eng_part_row); i++) {
        struct eng_part_row row;
        uint8_t part_key[32];
        memcpy(&row, head.body + i * sizeof row, sizeof row);
        eng_part_key(head.doc->key, head.doc->object_serial, row.part_no, row.attempt, row.sub,
                     part_key);
        const struct eng_want want = {part_key, 0, true, head.doc->object_serial};
        CHECK_OK(eng_keep_part(store, &want, true));
    }
    eng_ref_release(&head);
}

/* Object 1, of three parts, and an opening for it. */
static void open_with_parts(struct play *play, struct opening *o)
{
    *play = (struct play){.store = open_one(o)};
    CHECK_OK(put_parts(play->store, &(struct put){.n = 1, .version = 1, .length = 300000}, 100000,
                       100000, NULL));
}

static void expect_kept(struct play *play, struct opening *o)
{
    uint64_t got = 0;
    eng_step_install(NULL);
    lap(play);
    lap(play);
    CHECK_OK(read_object(play->store, 1, 0, &got));
    CHECK_EQ_U64(got, 1);
    close_one(play->store, o);
}

TEST(inv_E84_a_sweep_lets_go_of_nothing_that_is_being_pinned)
{
    struct opening o;
    struct play play;
    struct other other = {.at = "change.parts.kept", .run = sweep_between, .data = &play};
    open_with_parts(&play, &o);
    install(&other);
    CHECK_OK(pin_first_object(&play));
    CHECK_EQ_U64(other.met, 1);
    expect_kept(&play, &o);
}

/* Parts that somebody kept and did not live to say why: a sweep is about to let go of them, when
 * their object is pinned. */
TEST(inv_E84_what_is_pinned_during_a_sweep_stays)
{
    struct opening o;
    struct play play;
    struct other other = {.at = "keep.sweep.marked", .run = pin_between, .data = &play};
    open_with_parts(&play, &o);
    keep_parts_of_first(play.store);
    install(&other);
    CHECK_ERR(eng_keep_sweep(play.store, 1001), GYRE_BUSY);
    CHECK_EQ_U64(other.met, 1);
    expect_kept(&play, &o);
}

/* ---- Writes that fail ---- */

static gyre_err fail_write(void *data, const char *name, bool can_fail)
{
    int *failures = data;
    if (!can_fail || strcmp(name, "place_doc.write.before") != 0 || *failures == 0)
        return GYRE_OK;
    --*failures;
    return GYRE_IO;
}

TEST(inv_E8_a_write_that_fails_leaves_the_old_object_and_no_reservation)
{
    struct opening o;
    if (!has_steps)
        test_skip("no steps in this build");
    struct eng_store *store = open_one(&o);
    CHECK_OK(put_small(store, &(struct put){.n = 1, .version = 1, .length = 100}, NULL));
    int failures = 0;
    struct eng_step_hook hook = {fail_write, &failures};
    eng_step_install(&hook);
    static const uint64_t lengths[] = {100, 9000, 60000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        failures = 1;
        CHECK_ERR(put_small(store, &(struct put){.n = 1, .version = 2, .length = lengths[i]}, NULL),
                  GYRE_IO);
        failures = 1;
        CHECK_ERR(put_parts(store, &(struct put){.n = 1, .version = 2, .length = 100000}, 70000,
                            5000, NULL),
                  GYRE_IO);
        failures = 1;
        struct key key = key_of(1);
        CHECK_ERR(eng_delete(store, 0, key.bytes, ENG_ALWAYS, 0, false), GYRE_IO);
        expect_version(store, 1);
    }
    close_one(store, &o);
}
