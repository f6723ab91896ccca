#include "engine/tenant.h"

#include "tests/engine/small_store.h"

static uint64_t turn; /* of the random numbers */

static uint64_t bytes_of(struct eng_store *store, uint32_t tenant)
{
    uint64_t bytes;
    uint64_t quota;
    CHECK_OK(eng_tenant_bytes(store, tenant, &bytes, &quota));
    return bytes;
}

static gyre_err put_for(struct eng_store *store, uint16_t tenant, uint64_t n, size_t len)
{
    struct key key = key_of(n);
    uint8_t *body = calloc(1, len + 1);
    struct eng_commit commit = {
        .spec = {.key = key.bytes, .type = ENG_DOC, .total_len = len, .tenant = tenant},
        .body = body,
        .body_len = len,
        .now = 1000,
    };
    uint64_t serial;
    gyre_err err = eng_commit(store, &commit, &serial);
    free(body);
    return err;
}

/* What the headers say, document by document. */
static void sum_up(struct eng_store *store, uint64_t units[8])
{
    memset(units, 0, 8 * sizeof units[0]);
    for (uint32_t i = 0; i < store->n_stripes; i++) {
        struct eng_stripe *stripe = &store->stripes[i];
        for (uint32_t slot = 0; slot < stripe->n_buckets * ENG_BUCKET_ENTRIES; slot++) {
            uint64_t entry = eng_directory_entry(stripe, slot);
            if (entry == 0)
                continue;
            const struct eng_doc *doc =
                (const void *)(stripe->data + (eng_entry_offset(entry) << ENG_UNIT_SHIFT));
            CHECK(doc->tenant < 8);
            units[doc->tenant] += eng_doc_extent_units(doc);
        }
    }
}

static void check_sums(struct eng_store *store)
{
    uint64_t units[8];
    sum_up(store, units);
    for (uint32_t tenant = 0; tenant < 8; tenant++)
        CHECK_EQ_U64(bytes_of(store, tenant), units[tenant] << ENG_UNIT_SHIFT);
}

TEST(inv_E80_a_tenants_bytes_are_the_sum_of_its_documents_in_any_run)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    for (int round = 0; round < 4; round++) {
        for (uint64_t i = 0; i < 300; i++) {
            uint64_t n = (eng_mix64(++turn ^ test_seed()) % 400);
            if ((eng_mix64(++turn ^ test_seed()) % 4) == 0) {
                struct key key = key_of(n);
                gyre_err err = eng_delete(store, ENG_POOL_MAIN, key.bytes, ENG_ALWAYS, 0, false);
                CHECK(err == GYRE_OK || err == GYRE_NOT_FOUND);
            } else {
                CHECK_OK(put_for(store, (uint16_t)(n % 8), n,
                                 (eng_mix64(++turn ^ test_seed()) % 30000)));
            }
        }
        check_sums(store);
        CHECK_OK(eng_store_close(store, round % 2 == 0)); /* in order, or as if killed */
        store = open_ok(&o);
        check_sums(store);
    }
    CHECK(bytes_of(store, 3) > 0);
    close_checked(store, &o);
}

TEST(a_quota_refuses_what_would_go_over_it_and_counts_what_is_replaced_as_gone)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    CHECK_OK(eng_tenant_set_quota(store, 5, 64 << 10));
    for (uint64_t n = 0; n < 4; n++)
        CHECK_OK(put_for(store, 5, n, 15000));
    CHECK_ERR(put_for(store, 5, 100, 15000), GYRE_QUOTA);
    CHECK_OK(put_for(store, 5, 2, 15500));                /* in place of its own */
    CHECK_OK(put_for(store, 6, 100, 15000));              /* somebody else's */
    CHECK_ERR(put_for(store, 5, 100, 15000), GYRE_QUOTA); /* what leaves is not this tenant's */
    struct key key = key_of(1);
    CHECK_OK(eng_delete(store, ENG_POOL_MAIN, key.bytes, ENG_ALWAYS, 0, false));
    CHECK_OK(put_for(store, 5, 101, 15000));
    CHECK_OK(eng_tenant_set_quota(store, 5, 0));
    CHECK_OK(put_for(store, 5, 102, 60000));
    CHECK_EQ_U64(bytes_of(store, 6), 119 * ENG_UNIT);
    close_checked(store, &o);
}

TEST(tenants_beyond_the_table_are_refused)
{
    struct opening o;
    struct eng_store *store = open_small(&o);
    uint64_t bytes;
    uint64_t quota;
    CHECK_ERR(put_for(store, ENG_TENANTS, 1, 10), GYRE_INVALID);
    CHECK_ERR(eng_tenant_bytes(store, ENG_TENANTS, &bytes, &quota), GYRE_INVALID);
    CHECK_ERR(eng_tenant_set_quota(store, ENG_TENANTS, 1), GYRE_INVALID);
    CHECK_OK(put_for(store, ENG_TENANTS - 1, 1, 10));
    close_checked(store, &o);
}
