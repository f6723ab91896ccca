/* A store as a whole: made, opened, closed, opened again. */
#include "tests/engine/open_store.h"

#include <sys/wait.h>

TEST(a_new_store_opens_closes_and_opens_again)
{
    struct opening o;
    uint8_t uuid[16];

    opening_init(&o, test_path("data"));
    struct eng_store *store = open_ok(&o);
    memcpy(uuid, store->super.uuid, sizeof uuid);
    CHECK_EQ_INT(store->n_stripes, 1);
    CHECK_OK(eng_store_close(store, true));
    o.open.may_create = false;
    for (int i = 0; i < 3; i++) {
        store = open_ok(&o);
        CHECK_EQ_MEM(store->super.uuid, uuid, sizeof uuid);
        CHECK_OK(eng_store_close(store, i != 1));
    }
    opening_fini(&o);
}
