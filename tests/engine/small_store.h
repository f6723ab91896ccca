/* What tests of a small store by one thread share. */
#pragma once

#include "engine/slab.h"
#include "tests/engine/objects.h"

static inline struct eng_store *open_small(struct opening *o)
{
    opening_init(o, test_tmpdir());
    o->open.stripes = 1;
    return open_ok(o);
}

static inline void close_checked(struct eng_store *store, struct opening *o)
{
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        check_space(&store->stripes[i]);
        eng_slabs_retire(&store->stripes[i]);
        CHECK_EQ_U64(atomic_load(&store->stripes[i].rt->reserved_units), 0);
        check_space(&store->stripes[i]);
    }
    CHECK_EQ_INT(eng_pin_count(store), 0);
    CHECK_OK(eng_store_close(store, true));
    opening_fini(o);
}

static inline void expect(struct eng_store *store, uint64_t n, uint64_t version)
{
    uint64_t got = 0;
    gyre_err err = read_object(store, n, 0, &got);
    CHECK_MSG(err == GYRE_OK && got == version, "object %ju: %s, version %ju, wanted %ju",
              (uintmax_t)n, gyre_err_name(err), (uintmax_t)got, (uintmax_t)version);
}

static inline void expect_none(struct eng_store *store, uint64_t n)
{
    struct eng_ref ref;
    CHECK_ERR(find(store, n, 0, 0, &ref), GYRE_NOT_FOUND);
    CHECK(ref.stripe == NULL);
}
