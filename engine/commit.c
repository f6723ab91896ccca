#include "engine/publish.h"

#include "engine/base/check.h"
#include "engine/base/step.h"
#include "engine/admit.h"
#include "engine/locks.h"
#include "engine/log.h"
#include "engine/sync.h"

/* Each failed round means that somebody else changed the same key or one of its two buckets. */
enum { ROUNDS_MAX = 1000 };

/* One publication in progress. */
struct publication {
    struct eng_store *store;
    const struct eng_commit *commit;
    struct eng_placed *placed;
    struct eng_seen seen;
    struct eng_ref old; /* pinned while it is compared with and replaced; empty: nothing is there */
};

static struct eng_want want_of(const struct eng_spec *spec)
{
    return (struct eng_want){.key = spec->key, .pool = spec->pool};
}

/* Pins what is there now and checks the condition against it. Expired objects count as absent, but
 * their entries are there to be replaced. */
static gyre_err look(struct publication *p)
{
    const struct eng_commit *commit = p->commit;
    struct eng_want want = want_of(&commit->spec);
    gyre_err err =
        eng_find_seen(p->store, &want, commit->now, ENG_NO_COUNT | ENG_ANY_AGE, &p->seen, &p->old);
    if (err != GYRE_OK && err != GYRE_NOT_FOUND)
        return err;
    const struct eng_doc *doc = p->old.doc;
    if (doc != NULL && doc->expires != 0 && commit->now >= doc->expires)
        doc = NULL;
    err = eng_condition_check(commit->condition, commit->if_serial, doc);
    if (err != GYRE_OK)
        eng_ref_release(&p->old);
    return err;
}

static uint64_t new_entry(const struct publication *p)
{
    const struct eng_spec *spec = &p->commit->spec;
    bool keep = (p->store->super.pools[spec->pool].flags & ENG_POOL_NEVER_EVICT) != 0;
    enum eng_kind kind = spec->type == ENG_VECTOR ? ENG_KIND_VECTOR : ENG_KIND_DOC;
    return eng_entry_make(p->seen.place.tag, p->placed->start, p->placed->record.units, kind,
                          eng_ring_kind_of(p->placed->ring), keep, p->placed->serial);
}

/* Puts the entry in if what `look` saw still stands. NOT_FOUND: it does not. NO_SPACE. */
static gyre_err enter_locked(struct publication *p, struct eng_displaced *displaced_out)
{
    struct eng_stripe *stripe = p->seen.stripe;
    *displaced_out = (struct eng_displaced){.slot = ENG_NO_SLOT};
    if (p->old.stripe != NULL) {
        uint32_t slot = eng_directory_locate_locked(stripe, p->old.slot, p->old.entry);
        if (slot == ENG_NO_SLOT)
            return GYRE_NOT_FOUND;
        (void)eng_directory_replace_locked(stripe, slot, p->old.entry, new_entry(p),
                                           &p->placed->record);
        return GYRE_OK;
    }
    if (!eng_directory_unchanged_locked(stripe, &p->seen.place, &p->seen.candidates))
        return GYRE_NOT_FOUND;
    return eng_directory_insert_locked(stripe, &p->seen.place, new_entry(p), &p->placed->record,
                                       displaced_out);
}

/* Publishes the placed document. Leaves the one it replaced pinned in p->old.
 *
 * Two puts of a key may be published in another order than their serials. Only a power loss tells:
 * then what is found again is the one published first, as if the other had not been made yet. */
static gyre_err publish(struct publication *p)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        gyre_err err = look(p);
        if (err != GYRE_OK)
            return err;
        GYRE_STEP("commit.publish.before");
        struct eng_displaced displaced;
        eng_alloc_lock(p->seen.stripe);
        err = enter_locked(p, &displaced);
        if (err == GYRE_OK)
            eng_admitted_locked(p->seen.stripe, &p->seen.place, p->commit->spec.total_len);
        eng_alloc_unlock(p->seen.stripe);
        if (err == GYRE_OK) {
            GYRE_STEP("commit.publish.done");
            if (displaced.slot != ENG_NO_SLOT)
                ENG_COUNT(p->store, displacements, 1);
            return GYRE_OK;
        }
        eng_ref_release(&p->old);
        if (err != GYRE_NOT_FOUND)
            return err;
    }
    return GYRE_BUSY;
}

/* A condition that fails now needs no writing. It is checked again where it counts. */
static gyre_err check_early(struct eng_store *store, const struct eng_commit *commit)
{
    if (commit->condition == ENG_ALWAYS)
        return GYRE_OK;
    struct publication p = {.store = store, .commit = commit};
    gyre_err err = look(&p);
    eng_ref_release(&p.old);
    return err;
}

static gyre_err write_document(struct eng_store *store, const struct eng_commit *commit,
                               struct eng_placed *placed_out)
{
    struct eng_stripe *stripe;
    const struct iovec meta = {(void *)(uintptr_t)commit->meta, commit->meta_len};
    const struct iovec body = {(void *)(uintptr_t)commit->body, commit->body_len};
    (void)eng_place_of(store, commit->spec.pool, commit->spec.key, &stripe);
    uint8_t ring = eng_admit(store, commit->spec.pool, commit->spec.key, commit->spec.total_len,
                             stripe);
    return eng_placed_write(stripe, ring, &commit->spec, &meta, &body, placed_out);
}

/* One bit for each stripe that has a part of the object. */
static uint64_t stripes_touched(const struct eng_commit *commit)
{
    uint64_t touched = 0;
    for (size_t i = 0; i < commit->n_parts; i++)
        touched |= UINT64_C(1) << commit->parts[i].extent.stripe->index;
    return touched;
}

/* The parts' stripes first, so that a durable HEAD has durable parts. */
static gyre_err sync_stripes(struct eng_store *store, uint64_t touched, struct eng_stripe *last)
{
    gyre_err err = GYRE_OK;
    for (uint32_t i = 0; i < store->n_stripes && err == GYRE_OK; i++)
        if ((touched >> i & 1) != 0 && &store->stripes[i] != last)
            err = eng_sync_stripe(&store->stripes[i], false);
    return err == GYRE_OK ? eng_sync_stripe(last, false) : err;
}

static void count_put(struct eng_store *store, const struct eng_commit *commit)
{
    ENG_COUNT(store, puts, 1);
    ENG_COUNT(store, put_bytes, commit->spec.total_len);
}

gyre_err eng_commit(struct eng_store *store, struct eng_commit *commit, uint64_t *serial_out)
{
    struct eng_placed placed = {0};
    struct publication p = {.store = store, .commit = commit, .placed = &placed};
    uint64_t touched = stripes_touched(commit);
    gyre_err err;
    *serial_out = 0;
    TRY(check_early(store, commit));
    TRY(write_document(store, commit, &placed));
    TRY(eng_parts_publish(store, commit->parts, commit->n_parts));
    err = publish(&p);
    if (err != GYRE_OK) {
        eng_parts_withdraw(store, commit->parts, commit->n_parts);
        goto out;
    }
    struct eng_stripe *stripe = placed.stripe;
    *serial_out = placed.serial;
    eng_placed_end(&placed);
    eng_parts_end(commit->parts, commit->n_parts);
    if (p.old.stripe != NULL) {
        eng_parts_remove(store, &p.old);
        eng_ref_release(&p.old);
    }
    count_put(store, commit);
    if (commit->sync)
        err = sync_stripes(store, touched, stripe);
out:
    eng_placed_abort(&placed);
    return err;
}
