#include "engine/publish.h"

#include "engine/base/check.h"
#include "engine/base/step.h"
#include "engine/locks.h"
#include "engine/log.h"
#include "engine/sync.h"
#include "engine/vector.h"

/* Tombstones go to the main ring whatever their pool: a full pool that never evicts can still
 * forget, and nobody has to make room for what will not be looked up. */
static gyre_err write_tombstone(struct eng_stripe *stripe, uint8_t pool, const uint8_t key[32],
                                struct eng_placed *placed_out)
{
    const struct eng_spec spec = {.key = key, .type = ENG_TOMBSTONE, .pool = pool};
    const struct iovec nothing = {NULL, 0};
    return eng_placed_write(stripe, NULL, &spec, &nothing, &nothing, placed_out);
}

/* Takes the pinned document out; *removed_out false: somebody else did, or replaced it. BUSY. */
static gyre_err unlink_document(const struct eng_ref *ref, bool *removed_out)
{
    struct eng_stripe *stripe = ref->stripe;
    *removed_out = false;
    gyre_err err = eng_alloc_lock_bounded(stripe);
    if (err != GYRE_OK)
        return err;
    uint32_t slot = eng_directory_locate_locked(stripe, ref->slot, ref->entry);
    *removed_out = slot != ENG_NO_SLOT && eng_directory_remove_locked(stripe, slot, ref->entry);
    eng_alloc_unlock(stripe);
    GYRE_STEP("delete.unlinked");
    return GYRE_OK;
}

/* A deletion in progress. */
struct deletion {
    struct eng_store *store;
    struct eng_want want;
    enum eng_condition condition;
    uint64_t if_serial;
    struct eng_placed tombstone; /* held until the end */
    bool removed;
};

/* Removes one document of the key. NOT_FOUND: none is left that is older than the deletion. */
static gyre_err remove_one(struct deletion *d)
{
    struct eng_ref ref;
    gyre_err err = eng_find(d->store, &d->want, 0, ENG_NO_COUNT | ENG_ANY_AGE | ENG_HEADER, &ref);
    if (err != GYRE_OK)
        return err;
    if (!d->removed)
        TRY(eng_condition_check(d->condition, d->if_serial, ref.doc));
    if (d->tombstone.stripe == NULL)
        TRY(write_tombstone(ref.stripe, d->want.pool, d->want.key, &d->tombstone));
    if (ref.doc->serial > d->tombstone.serial) {
        /* Put after this deletion began. It stays, but the one it replaced was deleted here. */
        d->removed = d->removed || d->condition == ENG_ALWAYS;
        err = d->removed ? GYRE_NOT_FOUND : GYRE_CHANGED;
        goto out;
    }
    bool unlinked;
    TRY(unlink_document(&ref, &unlinked));
    if (unlinked) {
        if (ref.doc->type == ENG_VECTOR)
            eng_alternates_remove(d->store, &ref, NULL, 0);
        else
            eng_parts_remove(d->store, &ref, NULL, 0);
        d->removed = true;
    }
out:
    eng_ref_release(&ref);
    return err;
}

/* Several documents of a key can be left by a power loss in the middle of a move; all of them go.
 */
gyre_err eng_delete(struct eng_store *store, uint8_t pool, const uint8_t key[32],
                    enum eng_condition condition, uint64_t if_serial, bool sync)
{
    struct deletion d = {
        .store = store,
        .want = {.key = key, .pool = pool},
        .condition = condition,
        .if_serial = if_serial,
    };
    gyre_err err;
    do
        err = remove_one(&d);
    while (err == GYRE_OK);
    struct eng_stripe *stripe = d.tombstone.stripe;
    if (stripe != NULL && d.removed)
        eng_placed_end(&d.tombstone);
    else
        eng_placed_abort(&d.tombstone);
    if (err != GYRE_NOT_FOUND || !d.removed)
        return err;
    ENG_COUNT(store, deletes, 1);
    return sync ? eng_sync_stripe(stripe, false) : GYRE_OK;
}
