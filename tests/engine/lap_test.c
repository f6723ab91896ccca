/* A ring that went round without any sync: after the process died the hand goes on behind the
 * newest documents, not in front of them. */
#include "engine/keeper.h"
#include "tests/engine/objects.h"

static void put_next(struct eng_store *store, uint64_t *next)
{
    uint64_t n = (*next)++;
    struct put put = {.n = n, .version = 1, .length = n % 2 == 0 ? 200000 : 9000};
    CHECK_OK(n % 2 == 0 ? put_parts(store, &put, eng_part_max_bytes(store), 1 << 20, NULL)
                        : put_small(store, &put, NULL));
}

static void expect_last(struct eng_store *store, uint64_t next, uint64_t count)
{
    uint64_t version;
    for (uint64_t n = next > count ? next - count : 0; n < next; n++) {
        gyre_err err = read_object(store, n, 0, &version);
        CHECK_MSG(err == GYRE_OK, "object %ju of %ju: %s", (uintmax_t)n, (uintmax_t)next,
                  gyre_err_name(err));
    }
}

TEST(inv_E14_a_lap_without_sync_and_a_death_cost_no_new_object)
{
    struct opening o;
    uint64_t next = 0;
    opening_init(&o, test_tmpdir());
    o.open.stripes = 1;
    o.open.retention = ENG_RETENTION_FIFO;
    for (int round = 0; round < 8; round++) {
        struct eng_store *store = open_ok(&o);
        eng_keeper_stop(store);
        expect_last(store, next, 400);
        for (int i = 0; i < 100; i++)
            put_next(store, &next);
        expect_last(store, next, 400);
        for (int i = 0; i < 700 + 31 * round; i++)
            put_next(store, &next);
        if (next % 2 == 0)
            put_next(store, &next); /* the last one has a part */
        check_space(&store->stripes[0]);
        CHECK_OK(eng_store_close(store, false));
    }
    opening_fini(&o);
}
