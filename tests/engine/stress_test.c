/* Several threads on one store so small that the log is lapped many times: what a reader holds
 * never changes, and versions never go back. */
#include <pthread.h>
#include <stdatomic.h>

#include "engine/slab.h"
#include "engine/sync.h"
#include "tests/engine/objects.h"

enum { WRITERS = 3, READERS = 2, HOLDERS = 2, KEYS = 400, HELD = 24 };

struct scene {
    struct eng_store *store;
    _Atomic bool stop;
    _Atomic uint64_t version[KEYS]; /* newest one begun */
    _Atomic uint64_t seen[KEYS];    /* newest one somebody read, or that was committed */
    _Atomic uint64_t puts, refused, reads, found, held, deletes;
};

struct actor {
    struct scene *scene;
    uint64_t number;
    struct test_rng rng;
    pthread_t thread;
};

static void raise_to(_Atomic uint64_t *at, uint64_t value)
{
    uint64_t now = atomic_load(at);
    while (now < value && !atomic_compare_exchange_weak(at, &now, value)) {
    }
}

static bool stopped(const struct scene *scene)
{
    return atomic_load_explicit(&scene->stop, memory_order_relaxed);
}

/* Each key has one writer, so its versions have an order. */
static void *write_objects(void *data)
{
    struct actor *actor = data;
    struct scene *scene = actor->scene;
    while (!stopped(scene)) {
        uint64_t n = test_rng_below(&actor->rng, KEYS / WRITERS) * WRITERS + actor->number;
        struct put put = {.n = n, .version = atomic_fetch_add(&scene->version[n], 1) + 1};
        gyre_err err;
        switch (test_rng_below(&actor->rng, 8)) {
        case 0: {
            struct key key = key_of(n);
            err = eng_delete(scene->store, 0, key.bytes, ENG_ALWAYS, 0, false);
            CHECK(err == GYRE_OK || err == GYRE_NOT_FOUND || err == GYRE_BUSY);
            atomic_fetch_add(&scene->deletes, err == GYRE_OK);
            if (err != GYRE_BUSY)
                raise_to(&scene->seen[n], put.version);
            continue;
        }
        case 1:
            put.length = 65536 + test_rng_below(&actor->rng, 500000);
            err = put_parts(scene->store, &put, eng_part_max_bytes(scene->store), 60000, NULL);
            break;
        case 2:
        case 3:
            put.length = 16000 + test_rng_below(&actor->rng, 40000);
            err = put_small(scene->store, &put, NULL);
            break;
        default:
            put.length = test_rng_below(&actor->rng, 8000);
            err = put_small(scene->store, &put, NULL);
        }
        CHECK_MSG(err == GYRE_OK || err == GYRE_BUSY || err == GYRE_NO_SPACE, "put: %s",
                  gyre_err_name(err));
        atomic_fetch_add(err == GYRE_OK ? &scene->puts : &scene->refused, 1);
        if (err == GYRE_OK)
            raise_to(&scene->seen[n], put.version);
    }
    return NULL;
}

static void *read_objects(void *data)
{
    struct actor *actor = data;
    struct scene *scene = actor->scene;
    while (!stopped(scene)) {
        uint64_t n = test_rng_below(&actor->rng, KEYS);
        uint64_t least = atomic_load(&scene->seen[n]);
        uint64_t version;
        gyre_err err = read_object(scene->store, n, 0, &version);
        atomic_fetch_add(&scene->reads, 1);
        CHECK_MSG(err == GYRE_OK || err == GYRE_NOT_FOUND, "read: %s", gyre_err_name(err));
        if (err != GYRE_OK)
            continue;
        CHECK_MSG(version >= least, "object %ju: version %ju after %ju", (uintmax_t)n,
                  (uintmax_t)version, (uintmax_t)least);
        raise_to(&scene->seen[n], version);
        atomic_fetch_add(&scene->found, 1);
    }
    return NULL;
}

static void check_held(const struct eng_ref *ref, uint64_t n)
{
    struct note note = note_of(ref);
    if (ref->doc->type == ENG_DOC)
        CHECK(body_is(ref->body, 0, ref->doc->body_len, n, note.version));
}

/* Keeps documents pinned while the log turns over many times, then looks at them again. */
static void *hold_objects(void *data)
{
    struct actor *actor = data;
    struct scene *scene = actor->scene;
    struct eng_ref held[HELD] = {{0}};
    uint64_t which[HELD] = {0};
    while (!stopped(scene)) {
        uint64_t i = test_rng_below(&actor->rng, HELD);
        if (held[i].stripe != NULL) {
            check_held(&held[i], which[i]);
            if (test_rng_below(&actor->rng, 50) == 0)
                eng_ref_release(&held[i]);
            continue;
        }
        which[i] = test_rng_below(&actor->rng, KEYS);
        if (find(scene->store, which[i], 0, test_rng_below(&actor->rng, 2) == 0 ? ENG_NOWAIT : 0,
                 &held[i]) == GYRE_OK)
            atomic_fetch_add(&scene->held, 1);
    }
    for (int i = 0; i < HELD; i++) {
        if (held[i].stripe == NULL)
            continue;
        check_held(&held[i], which[i]);
        eng_ref_release(&held[i]);
    }
    return NULL;
}

static void *sync_now_and_then(void *data)
{
    struct actor *actor = data;
    while (!stopped(actor->scene)) {
        CHECK_OK(eng_sync_store(actor->scene->store, false));
        usleep(50000);
    }
    return NULL;
}

static void play(struct scene *scene, unsigned seconds)
{
    static void *(*const roles[])(void *) = {write_objects, read_objects, hold_objects,
                                             sync_now_and_then};
    static const int counts[] = {WRITERS, READERS, HOLDERS, 1};
    struct actor actors[WRITERS + READERS + HOLDERS + 1];
    int n = 0;
    for (int role = 0; role < 4; role++)
        for (int i = 0; i < counts[role]; i++, n++) {
            actors[n] = (struct actor){scene, (uint64_t)i, {test_seed() + (uint64_t)n}, 0};
            CHECK_EQ_INT(pthread_create(&actors[n].thread, NULL, roles[role], &actors[n]), 0);
        }
    for (unsigned i = 0; i < seconds * 10; i++) {
        usleep(100000);
        for (uint32_t k = 0; k < scene->store->n_stripes; k++)
            check_space(&scene->store->stripes[k]);
    }
    atomic_store(&scene->stop, true);
    while (n-- > 0)
        pthread_join(actors[n].thread, NULL);
}

static void run_stress(uint32_t stripes)
{
    struct opening o;
    opening_init(&o, test_tmpdir());
    o.open.size_bytes = STORE_BYTES;
    o.open.stripes = stripes;
    struct scene *scene = calloc(1, sizeof *scene);
    CHECK(scene != NULL);
    struct eng_store *store = scene->store = open_ok(&o);
    play(scene, test_full() ? 120 : 8);
    uint64_t laps = 0;
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        eng_slabs_retire(&store->stripes[i]);
        check_space(&store->stripes[i]);
        laps += store->stripes[i].rt->rings[ENG_POOL_MAIN].laps;
        CHECK_EQ_U64(atomic_load(&store->stripes[i].rt->reserved_units), 0);
    }
    printf("%ju puts, %ju refused, %ju deletes, %ju reads, %ju found, %ju held, %ju laps\n",
           (uintmax_t)scene->puts, (uintmax_t)scene->refused, (uintmax_t)scene->deletes,
           (uintmax_t)scene->reads, (uintmax_t)scene->found, (uintmax_t)scene->held,
           (uintmax_t)laps);
    CHECK(scene->puts > 0 && scene->found > 0 && scene->held > 0);
    for (int i = 0; i < ENG_COUNTER_SHARDS; i++)
        CHECK_EQ_U64(atomic_load(&store->process->counters[i].checksum_failures), 0);
    CHECK_EQ_INT(eng_pin_count(store), 0);
    CHECK_OK(eng_store_close(store, true));
    free(scene);
    opening_fini(&o);
}

TEST(inv_E5_what_is_pinned_never_changes)
{
    run_stress(1);
}

TEST(inv_E6_nobody_shares_log_space)
{
    run_stress(2);
}

/* ---- Conditions under contention ---- */

enum { CONTENDERS = 20, ROUNDS = 200 };

struct contest {
    struct eng_store *store;
    pthread_barrier_t start;
    _Atomic int winners[ROUNDS];
    _Atomic uint64_t serial;
    bool by_serial;
    _Atomic uint64_t number;
};

static void *contend(void *data)
{
    struct contest *contest = data;
    uint64_t me = atomic_fetch_add(&contest->number, 1);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct put put = {.n = contest->by_serial ? 0 : round,
                          .version = me,
                          .length = 200,
                          .condition = ENG_IF_ABSENT};
        pthread_barrier_wait(&contest->start);
        if (contest->by_serial) {
            put.condition = ENG_IF_SERIAL;
            put.if_serial = atomic_load(&contest->serial);
            pthread_barrier_wait(&contest->start);
        }
        uint64_t serial;
        gyre_err err = me % 3 == 0 ? put_parts(contest->store, &put, 150, 100, &serial)
                                   : put_small(contest->store, &put, &serial);
        CHECK_MSG(err == GYRE_OK || err == (contest->by_serial ? GYRE_CHANGED : GYRE_EXISTS), "%s",
                  gyre_err_name(err));
        if (err == GYRE_OK) {
            atomic_fetch_add(&contest->winners[round], 1);
            atomic_store(&contest->serial, serial);
        }
    }
    return NULL;
}

static void run_contest(bool by_serial)
{
    struct opening o;
    opening_init(&o, test_tmpdir());
    o.open.stripes = 1;
    static struct contest contest;
    contest = (struct contest){.store = open_ok(&o), .by_serial = by_serial};
    if (by_serial) {
        uint64_t serial;
        CHECK_OK(put_small(contest.store, &(struct put){.n = 0, .length = 10}, &serial));
        atomic_store(&contest.serial, serial);
    }
    pthread_barrier_init(&contest.start, NULL, CONTENDERS);
    pthread_t threads[CONTENDERS];
    for (int i = 0; i < CONTENDERS; i++)
        CHECK_EQ_INT(pthread_create(&threads[i], NULL, contend, &contest), 0);
    for (int i = 0; i < CONTENDERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < ROUNDS; i++)
        CHECK_EQ_INT(atomic_load(&contest.winners[i]), 1);
    eng_slabs_retire(&contest.store->stripes[0]);
    CHECK_EQ_U64(atomic_load(&contest.store->stripes[0].rt->reserved_units), 0);
    check_space(&contest.store->stripes[0]);
    uint64_t version;
    for (uint64_t n = 0; n < (by_serial ? 1 : ROUNDS); n++)
        CHECK_OK(read_object(contest.store, n, 0, &version));
    CHECK_OK(eng_store_close(contest.store, true));
    opening_fini(&o);
}

TEST(inv_E11_of_many_that_want_to_be_first_one_is)
{
    run_contest(false);
}

TEST(inv_E11_of_many_that_saw_one_serial_one_replaces_it)
{
    run_contest(true);
}
