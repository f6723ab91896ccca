#include "engine/publish.h"

#include <string.h>

#include "engine/base/check.h"
#include "engine/base/step.h"
#include "engine/admit.h"
#include "engine/expiry.h"
#include "engine/locks.h"
#include "engine/log.h"
#include "engine/parent.h"
#include "engine/pool.h"
#include "engine/sync.h"
#include "engine/tenant.h"
#include "engine/vector.h"

/* Each failed round means that somebody else changed the same key or one of its two buckets. */
enum { ROUNDS_MAX = 1000 };

/* One publication in progress. */
struct publication {
    struct eng_store *store;
    const struct eng_commit *commit;
    struct eng_placed *placed;
    struct eng_seen seen;
    struct eng_ref old; /* pinned while it is compared with and replaced; empty: nothing is there */
    uint64_t epoch;     /* of the pool, when this began */
    bool purged;        /* the pool was purged since: what was to be published came before that */
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
    if (doc != NULL && eng_stale(p->store, doc, commit->now))
        doc = NULL;
    err = eng_condition_check(commit->condition, commit->if_serial, doc);
    if (err != GYRE_OK)
        eng_ref_release(&p->old);
    return err;
}

static bool is_kept(const struct publication *p)
{
    const struct eng_spec *spec = &p->commit->spec;
    return eng_pool_never_evicts(p->store, spec->pool) || spec->pin_until > p->commit->now;
}

static uint64_t new_entry(const struct publication *p)
{
    const struct eng_spec *spec = &p->commit->spec;
    enum eng_kind kind = spec->type == ENG_VECTOR ? ENG_KIND_VECTOR : ENG_KIND_DOC;
    return eng_entry_make(p->seen.place.tag, p->placed->start, p->placed->record.units, kind,
                          eng_ring_kind_of(p->placed->ring), is_kept(p), p->placed->serial);
}

/* One that replaces a kept document takes over its share. */
static gyre_err may_keep_locked(const struct publication *p)
{
    if (likely(!is_kept(p)) || (p->old.stripe != NULL && eng_entry_keep(p->old.entry)))
        return GYRE_OK;
    return eng_pool_may_keep_locked(p->seen.stripe, p->commit->spec.pool, p->placed->record.units,
                                    false);
}

/* Puts the entry in if what `look` saw still stands. NOT_FOUND: it does not. NO_SPACE, QUOTA. */
static gyre_err enter_locked(struct publication *p, struct eng_displaced *displaced_out)
{
    struct eng_stripe *stripe = p->seen.stripe;
    gyre_err err;
    *displaced_out = (struct eng_displaced){.slot = ENG_NO_SLOT};
    p->purged = eng_pool_epoch(p->store, p->commit->spec.pool) != p->epoch;
    if (p->purged)
        return GYRE_OK;
    TRY(may_keep_locked(p));
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
    err = eng_directory_insert_locked(stripe, &p->seen.place, new_entry(p), &p->placed->record,
                                      displaced_out);
out:
    return err;
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
        err = eng_alloc_lock_bounded(p->seen.stripe);
        if (err != GYRE_OK) {
            eng_ref_release(&p->old);
            return err;
        }
        err = enter_locked(p, &displaced);
        if (err == GYRE_OK)
            eng_admitted_locked(p->seen.stripe, &p->seen.place, p->commit->spec.total_len,
                                p->placed->remembered);
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
    struct eng_place place = eng_place_of(store, commit->spec.pool, commit->spec.key, &stripe);
    return eng_placed_write(stripe, &place, &commit->spec, &meta, &body, placed_out);
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

/* The hand finds the HEAD by its parts. */
static void note_parents(const struct publication *p)
{
    const struct eng_stripe *home = p->seen.stripe;
    const struct eng_place *place = &p->seen.place;
    const struct eng_parent head = {p->seen.stripe,
                                    eng_identity(home, place->bucket[0], place->tag)};
    eng_parts_note(p->store, p->commit->parts, p->commit->n_parts, &head);
}

static void count_put(struct eng_store *store, const struct eng_commit *commit)
{
    ENG_COUNT(store, puts, 1);
    ENG_COUNT(store, put_bytes, commit->spec.total_len);
}

/* What an object takes of the log, in units; `head` is pinned. */
static uint64_t object_units(const struct eng_ref *head)
{
    const struct eng_doc *doc = head->doc;
    uint64_t units = eng_doc_extent_units(doc);
    for (uint64_t i = 0; doc->type == ENG_HEAD && i < doc->body_len / sizeof(struct eng_part_row);
         i++) {
        struct eng_part_row row;
        memcpy(&row, head->body + i * sizeof row, sizeof row);
        if (row.length <= eng_part_max_bytes(head->stripe->store))
            units += eng_doc_units(ENG_PART, 0, row.length);
    }
    return units;
}

/* Whether the tenant's quota has room; what is replaced counts as gone. QUOTA. */
static gyre_err check_quota(struct eng_store *store, const struct eng_commit *commit)
{
    uint64_t labels = commit->spec.n_labels * sizeof(uint64_t);
    uint64_t units = eng_doc_units(commit->spec.type, commit->meta_len + labels, commit->body_len);
    struct eng_want want = want_of(&commit->spec);
    struct eng_ref old;
    uint64_t leaving = 0;

    for (size_t i = 0; i < commit->n_parts; i++)
        units += commit->parts[i].record.units;
    gyre_err err = eng_tenant_admit(store, commit->spec.tenant, units, 0);
    if (likely(err != GYRE_QUOTA) ||
        eng_find(store, &want, 0, ENG_NO_COUNT | ENG_ANY_AGE, &old) != GYRE_OK)
        return err;
    if (old.doc->tenant == commit->spec.tenant)
        leaving = object_units(&old);
    eng_ref_release(&old);
    return eng_tenant_admit(store, commit->spec.tenant, units, leaving);
}

/* A HEAD that is written anew shares parts with the one before, an edited vector its alternates. */
static void remove_replaced(const struct publication *p)
{
    const struct eng_commit *commit = p->commit;
    bool shares = commit->spec.type == ENG_HEAD && p->old.doc->type == ENG_HEAD &&
                  p->old.doc->object_serial == commit->spec.object_serial;
    bool edits = commit->spec.type == ENG_VECTOR;
    if (p->old.doc->type == ENG_VECTOR) {
        eng_alternates_remove(p->store, &p->old, edits ? commit->body : NULL,
                              edits ? commit->body_len : 0);
        return;
    }
    eng_parts_remove(p->store, &p->old, shares ? commit->body : NULL,
                     shares ? commit->body_len / sizeof(struct eng_part_row) : 0);
}

/* The pool was purged while this was on its way: it came first, and is gone. */
static void end_purged(struct eng_store *store, struct eng_commit *commit)
{
    eng_parts_withdraw(store, commit->parts, commit->n_parts);
    for (size_t i = 0; i < commit->n_parts; i++)
        eng_part_abort(&commit->parts[i]);
}

static bool parts_purged(const struct publication *p)
{
    for (size_t i = 0; i < p->commit->n_parts; i++)
        if (p->commit->parts[i].epoch != p->epoch)
            return true;
    return false;
}

gyre_err eng_commit(struct eng_store *store, struct eng_commit *commit, uint64_t *serial_out)
{
    struct eng_placed placed = {0};
    struct publication p = {.store = store, .commit = commit, .placed = &placed};
    uint64_t touched = stripes_touched(commit);
    uint64_t now_ms = commit->now_ms != 0 ? commit->now_ms : commit->now * UINT64_C(1000);
    gyre_err err;
    *serial_out = 0;
    p.epoch = eng_pool_epoch(store, commit->spec.pool);
    if (!commit->keeps_age)
        commit->spec.stored_ticks = eng_ban_clock(store, now_ms);
    if (commit->spec.tenant != 0)
        TRY(eng_feature_use(store, ENG_COMPAT_TENANTS));
    if (unlikely(eng_tenant_bounded(store, commit->spec.tenant)))
        TRY(check_quota(store, commit));
    TRY(check_early(store, commit));
    TRY(write_document(store, commit, &placed));
    TRY(eng_parts_publish(store, commit->parts, commit->n_parts));
    p.purged = parts_purged(&p);
    err = p.purged ? GYRE_OK : publish(&p);
    if (err == GYRE_OK && p.purged) {
        *serial_out = placed.serial;
        eng_ref_release(&p.old);
        end_purged(store, commit);
        goto out;
    }
    if (err != GYRE_OK) {
        eng_parts_withdraw(store, commit->parts, commit->n_parts);
        goto out;
    }
    struct eng_stripe *stripe = placed.stripe;
    *serial_out = placed.serial;
    note_parents(&p);
    eng_placed_end(&placed);
    eng_parts_end(commit->parts, commit->n_parts);
    if (p.old.stripe != NULL) {
        remove_replaced(&p);
        eng_ref_release(&p.old);
    }
    count_put(store, commit);
    if (commit->sync)
        err = sync_stripes(store, touched, stripe);
out:
    eng_placed_abort(&placed);
    return err;
}
