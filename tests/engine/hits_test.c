/* What counts as a hit, and an object with its parts: they stay and go together. */
#include "engine/base/step.h"
#include "engine/cleaner.h"
#include "engine/keeper.h"
#include "engine/locks.h"
#include "engine/log.h"
#include "engine/slot.h"
#include "tests/engine/objects.h"
#include "tests/engine/open_store.h"

enum { PARTS = 3, PART_BYTES = 128 << 10 };

static struct eng_store *open_quiet(struct opening *o)
{
    opening_init(o, test_tmpdir());
    o->open.stripes = 2; /* parts lie in others than their HEAD too */
    o->open.retention = ENG_RETENTION_FREQUENCY;
    struct eng_store *store = open_ok(o);
    eng_keeper_stop(store);
    return store;
}

static void put_object(struct eng_store *store, uint64_t n)
{
    const struct put put = {.n = n, .version = 1, .length = (uint64_t)PARTS * PART_BYTES};
    CHECK_OK(put_parts(store, &put, PART_BYTES, PART_BYTES, NULL));
}

static bool lookup(struct eng_store *store, const uint8_t key[32], struct eng_candidate *out)
{
    struct eng_stripe *stripe;
    struct eng_candidates found;
    struct eng_place place = eng_place_of(store, ENG_POOL_MAIN, key, &stripe);
    eng_directory_lookup(stripe, &place, &found);
    if (found.n > 0)
        *out = found.at[0];
    return found.n > 0;
}

static uint32_t hits_of(const struct eng_candidate *at)
{
    return (at->slot_word & ENG_SLOT_HITS) / ENG_SLOT_HIT;
}

struct object {
    uint8_t head[32], part[PARTS][32];
};

static struct object object_of(struct eng_store *store, uint64_t n)
{
    struct object object;
    struct eng_ref ref;
    struct key key = key_of(n);
    memcpy(object.head, key.bytes, sizeof object.head);
    CHECK_OK(find(store, n, ENG_POOL_MAIN, 0, &ref));
    for (uint32_t i = 0; i < PARTS; i++) {
        struct eng_part_row row;
        memcpy(&row, ref.body + i * sizeof row, sizeof row);
        eng_part_key(key.bytes, ref.doc->object_serial, row.part_no, row.attempt, row.sub,
                     object.part[i]);
    }
    eng_ref_release(&ref);
    return object;
}

static void ask(struct eng_store *store, uint64_t n)
{
    struct eng_ref ref;
    CHECK_OK(find(store, n, ENG_POOL_MAIN, 0, &ref));
    eng_ref_release(&ref);
}

static void let_time_pass(struct eng_store *store)
{
    for (uint32_t i = 0; i < store->n_stripes; i++)
        atomic_fetch_add(&store->stripes[i].rt->epoch, 1);
}

TEST(inv_E76_hits_of_one_time_count_once_and_for_all_parts)
{
    struct opening o;
    struct eng_candidate at;
    struct eng_store *store = open_quiet(&o);
    put_object(store, 1);
    struct object object = object_of(store, 1);
    for (int i = 0; i < 10; i++) /* just after it was stored: a burst */
        ask(store, 1);
    CHECK(lookup(store, object.head, &at) && hits_of(&at) == 0);
    for (uint32_t hits = 1; hits <= 5; hits++) {
        let_time_pass(store);
        for (int i = 0; i < 10; i++)
            ask(store, 1);
        CHECK(lookup(store, object.head, &at));
        CHECK_EQ_INT(hits_of(&at), hits < 3 ? hits : 3);
        for (uint32_t part = 0; part < PARTS; part++) {
            CHECK(lookup(store, object.part[part], &at));
            CHECK_EQ_INT(hits_of(&at), hits < 3 ? hits : 3);
        }
    }
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}

enum { OBJECTS = 60 };

struct watch {
    struct eng_store *store;
    struct object objects[OBJECTS];
    uint64_t looks;
};

/* An object whose HEAD is found has all of its parts. */
static void check_whole(struct watch *watch)
{
    struct eng_candidate at;
    watch->looks++;
    for (uint32_t n = 0; n < OBJECTS; n++) {
        uint32_t there = 0;
        for (uint32_t part = 0; part < PARTS; part++)
            there += lookup(watch->store, watch->objects[n].part[part], &at);
        CHECK_MSG(there == PARTS || !lookup(watch->store, watch->objects[n].head, &at),
                  "object %u has its HEAD and %u of %u parts", n, there, PARTS);
    }
}

static gyre_err look_at_step(void *data, const char *name, bool can_fail)
{
    (void)can_fail;
    if (strcmp(name, "judge.head.unlinked") == 0 || strcmp(name, "cleaner.decide.evicted") == 0)
        check_whole(data);
    return GYRE_OK;
}

TEST(inv_E77_a_head_goes_before_its_first_part)
{
    struct opening o;
    static struct watch watch;
    watch.store = open_quiet(&o);
    const struct eng_step_hook hook = {look_at_step, &watch};
    for (uint64_t n = 0; n < OBJECTS; n++)
        put_object(watch.store, n);
    for (uint64_t n = 0; n < OBJECTS; n++)
        watch.objects[n] = object_of(watch.store, n);
    eng_step_install(&hook);
    for (uint64_t n = 0; n < 5 * OBJECTS; n++) { /* all of them have to go */
        put_object(watch.store, 1000 + n);
        check_whole(&watch);
    }
    eng_step_install(NULL);
    uint32_t left = 0;
    struct eng_candidate at;
    for (uint32_t n = 0; n < OBJECTS; n++)
        left += lookup(watch.store, watch.objects[n].head, &at);
    CHECK(left < OBJECTS / 2);
    CHECK(watch.looks >= 5 * OBJECTS);
    CHECK_OK(eng_store_close(watch.store, true));
    opening_fini(&o);
}

/* Puts a part back that was removed while its bytes are still there, as it lies where a process
 * died between publishing what replaced the object and removing its parts. */
struct remains {
    struct eng_stripe *stripe;
    struct eng_place place;
    struct eng_slot record;
    uint64_t entry;
};

static struct remains remains_of(struct eng_store *store, const uint8_t key[32])
{
    struct remains it;
    struct eng_candidate at;
    CHECK(lookup(store, key, &at));
    it.place = eng_place_of(store, ENG_POOL_MAIN, key, &it.stripe);
    it.record = eng_slot_record(&it.stripe->slots[at.slot]);
    it.entry = at.entry;
    return it;
}

static void put_back(const struct remains *it)
{
    struct eng_displaced displaced;
    eng_alloc_lock(it->stripe);
    CHECK_OK(
        eng_directory_insert_locked(it->stripe, &it->place, it->entry, &it->record, &displaced));
    eng_alloc_unlock(it->stripe);
}

TEST(inv_E77_a_part_of_an_older_version_leaves_without_the_present_head)
{
    struct opening o;
    struct remains remains[PARTS];
    struct eng_candidate at;
    uint64_t version = 0, next = 1000;
    opening_init(&o, test_tmpdir());
    o.open.stripes = 2;
    o.open.retention = ENG_RETENTION_FIFO; /* what is newer goes later, whatever happens */
    struct eng_store *store = open_ok(&o);
    eng_keeper_stop(store);
    put_object(store, 1);
    struct object old = object_of(store, 1);
    for (uint32_t i = 0; i < PARTS; i++)
        remains[i] = remains_of(store, old.part[i]);
    for (int i = 0; i < 70; i++) /* 26 MiB of 64 */
        put_object(store, next++);
    const struct put put = {.n = 1, .version = 2, .length = (uint64_t)PARTS * PART_BYTES};
    CHECK_OK(put_parts(store, &put, PART_BYTES, PART_BYTES, NULL));
    for (uint32_t i = 0; i < PARTS; i++) {
        CHECK(!lookup(store, old.part[i], &at));
        put_back(&remains[i]);
    }
    for (uint32_t i = 0; i < PARTS; i++)
        while (lookup(store, old.part[i], &at)) {
            CHECK_MSG(next < 1200, "the hand does not come");
            put_object(store, next++);
        }
    CHECK_OK(read_object(store, 1, ENG_POOL_MAIN, &version));
    CHECK_EQ_U64(version, 2);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(&o);
}
