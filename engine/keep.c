#include "engine/keep.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/check.h"
#include "engine/base/step.h"
#include "engine/locks.h"
#include "engine/pool.h"
#include "engine/process.h"
#include "engine/slot.h"
#include "engine/upload.h"

#define KEEP_BIT (UINT64_C(1) << ENG_ENTRY_KEEP_SHIFT)

/* ---- One entry ---- */

/* Writes the entry again with the bit as wanted; everything else of its slot stays. */
static gyre_err turn_locked(struct eng_stripe *stripe, uint32_t slot, uint64_t entry, bool keep,
                            bool held)
{
    struct eng_slot record = stripe->slots[slot];
    if (keep == eng_entry_keep(entry))
        return GYRE_OK;
    if (keep) {
        gyre_err err = eng_pool_may_keep_locked(stripe, eng_slot_pool(&record), record.units, held);
        if (err != GYRE_OK)
            return err;
    }
    (void)eng_directory_replace_locked(stripe, slot, entry, entry ^ KEEP_BIT, &record);
    return GYRE_OK;
}

/* A sweep that counts this beginning finds the process at it (A), or done, its reason written down;
 * one that does not sees the count change under the lock of what is kept. */
void eng_keep_begin(struct eng_store *store)
{
    atomic_fetch_add_explicit(&store->process->keeping, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&store->rt.head->keeps_begun, 1, memory_order_release); /* A */
}

void eng_keep_end(struct eng_store *store)
{
    atomic_fetch_sub_explicit(&store->process->keeping, 1, memory_order_release); /* B */
}

/* An entry that somebody else turned or moved meanwhile is looked up again. */
gyre_err eng_keep_part(struct eng_store *store, const struct eng_want *want, bool keep)
{
    for (int round = 0; round < 100; round++) {
        struct eng_ref part;
        gyre_err err = eng_find(store, want, 0, ENG_NO_COUNT | ENG_ANY_AGE | ENG_HEADER, &part);
        if (err != GYRE_OK)
            return err;
        err = eng_alloc_lock_bounded(part.stripe);
        if (err != GYRE_OK) {
            eng_ref_release(&part);
            return err;
        }
        uint32_t slot = eng_directory_locate_locked(part.stripe, part.slot, part.entry);
        if (slot != ENG_NO_SLOT)
            err = turn_locked(part.stripe, slot, part.entry, keep, false);
        eng_alloc_unlock(part.stripe);
        eng_ref_release(&part);
        if (slot != ENG_NO_SLOT)
            return err;
    }
    return GYRE_BUSY;
}

void eng_keep_end_rows(struct eng_store *store, const uint8_t key[32], uint8_t pool,
                       uint64_t object_serial, const struct eng_part_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t part_key[32];
        struct eng_part_row row;
        memcpy(&row, &rows[i], sizeof row);
        eng_part_key(key, object_serial, row.part_no, row.attempt, row.sub, part_key);
        const struct eng_want want = {part_key, pool, true, object_serial};
        /* One that is gone is not kept; one that is busy is left to the sweep. */
        if (eng_keep_part(store, &want, false) != GYRE_OK)
            continue;
        GYRE_STEP("keep.part.ended");
    }
}

bool eng_keep_any(const struct eng_store *store)
{
    for (uint8_t pool = 0; pool < store->super.n_pools; pool++)
        if (!eng_pool_never_evicts(store, pool) && eng_pool_kept_bytes(store, pool) > 0)
            return true;
    return false;
}

/* ---- The sweep ---- */

/* A kept document, and whether somebody wants it. */
struct kept {
    uint32_t stripe, slot;
    uint64_t entry;
    bool wanted;
};

struct sweep {
    struct eng_store *store;
    uint32_t now;
    uint64_t keeps_begun; /* when it began, and nobody was at it */
    struct kept *rows;    /* by stripe and offset */
    size_t n, capacity;
};

/* Bytes that are still being written for are somebody's. */
static bool is_reserved_locked(const struct eng_stripe *stripe, uint64_t offset)
{
    const struct eng_stripe_rt *rt = stripe->rt;
    for (uint32_t i = 0; i < rt->reservations_high; i++)
        if (offset >= rt->reservations[i].start && offset < rt->reservations[i].end &&
            !rt->reservations[i].is_slab)
            return true;
    return false;
}

static gyre_err append(struct sweep *sweep, const struct kept *kept)
{
    if (sweep->n == sweep->capacity) {
        size_t capacity = sweep->capacity == 0 ? 256 : sweep->capacity * 2;
        struct kept *rows = reallocarray(sweep->rows, capacity, sizeof *rows);
        if (rows == NULL)
            return GYRE_NO_MEMORY;
        sweep->rows = rows;
        sweep->capacity = capacity;
    }
    sweep->rows[sweep->n++] = *kept;
    return GYRE_OK;
}

static gyre_err gather(struct sweep *sweep, struct eng_stripe *stripe)
{
    enum { BUCKETS_A_TIME = 4096 };
    gyre_err err = GYRE_OK;
    for (uint32_t first = 0; first < stripe->n_buckets && err == GYRE_OK; first += BUCKETS_A_TIME) {
        uint32_t end =
            first + BUCKETS_A_TIME < stripe->n_buckets ? first + BUCKETS_A_TIME : stripe->n_buckets;
        eng_alloc_lock(stripe);
        for (uint32_t slot = first * ENG_BUCKET_ENTRIES;
             slot < end * ENG_BUCKET_ENTRIES && err == GYRE_OK; slot++) {
            uint64_t entry = eng_directory_entry(stripe, slot);
            if (likely(entry == 0 || !eng_entry_keep(entry)) ||
                eng_pool_never_evicts(stripe->store, eng_slot_pool(&stripe->slots[slot])) ||
                is_reserved_locked(stripe, eng_entry_offset(entry)))
                continue;
            err = append(sweep, &(struct kept){stripe->index, slot, entry, false});
        }
        eng_alloc_unlock(stripe);
    }
    return err;
}

static int by_place(const void *a, const void *b)
{
    const struct kept *x = a;
    const struct kept *y = b;
    if (x->stripe != y->stripe)
        return x->stripe < y->stripe ? -1 : 1;
    uint64_t p = eng_entry_offset(x->entry), q = eng_entry_offset(y->entry);
    return p < q ? -1 : p > q;
}

static void mark(struct sweep *sweep, const struct eng_ref *ref)
{
    const struct kept key = {.stripe = ref->stripe->index, .entry = ref->entry};
    struct kept *found =
        sweep->n > 0 ? bsearch(&key, sweep->rows, sweep->n, sizeof key, by_place) : NULL;
    if (found != NULL)
        found->wanted = true;
}

/* Marks the parts of some rows; a pinned object's are kept again where a power loss forgot it.
 * BUSY.
 */
static gyre_err mark_rows(struct sweep *sweep, const uint8_t key[32], uint8_t pool,
                          uint64_t object_serial, const uint8_t *rows, uint64_t n, bool keep_again)
{
    for (uint64_t i = 0; i < n; i++) {
        uint8_t part_key[32];
        struct eng_part_row row;
        struct eng_ref part;
        memcpy(&row, rows + i * sizeof row, sizeof row);
        eng_part_key(key, object_serial, row.part_no, row.attempt, row.sub, part_key);
        const struct eng_want want = {part_key, pool, true, object_serial};
        gyre_err err =
            eng_find(sweep->store, &want, 0, ENG_NO_COUNT | ENG_ANY_AGE | ENG_HEADER, &part);
        if (err == GYRE_BUSY)
            return err;
        if (err != GYRE_OK)
            continue;
        bool kept = eng_entry_keep(part.entry);
        mark(sweep, &part);
        eng_ref_release(&part);
        if (!kept && keep_again && eng_keep_part(sweep->store, &want, true) != GYRE_OK)
            continue; /* the object is evicted as a whole then */
    }
    return GYRE_OK;
}

static const struct eng_doc *doc_at(const struct eng_stripe *stripe, uint64_t entry)
{
    uint64_t offset = eng_entry_offset(entry);
    if (offset >= stripe->area_bytes >> ENG_UNIT_SHIFT)
        return NULL;
    return (const struct eng_doc *)(const void *)(stripe->data + (offset << ENG_UNIT_SHIFT));
}

/* Pinned objects among the kept documents mark themselves and their parts. Of the bytes found by
 * the entry the key alone is taken, and looked up. BUSY. */
static gyre_err mark_pinned(struct sweep *sweep, const struct kept *kept)
{
    const struct eng_doc *doc = doc_at(&sweep->store->stripes[kept->stripe], kept->entry);
    if (eng_entry_kind(kept->entry) == ENG_KIND_PART || doc == NULL ||
        doc->pool >= sweep->store->super.n_pools)
        return GYRE_OK;
    struct eng_doc head = *doc;
    const struct eng_want want = {.key = head.key, .pool = head.pool};
    struct eng_ref ref;
    gyre_err err = eng_find(sweep->store, &want, sweep->now, ENG_NO_COUNT, &ref);
    if (err != GYRE_OK)
        return err == GYRE_BUSY ? err : GYRE_OK;
    if (ref.doc->pin_until > sweep->now) {
        mark(sweep, &ref);
        if (ref.doc->type == ENG_HEAD)
            err = mark_rows(sweep, ref.doc->key, ref.doc->pool, ref.doc->object_serial, ref.body,
                            ref.doc->body_len / sizeof(struct eng_part_row), true);
    }
    eng_ref_release(&ref);
    return err;
}

/* Whether the record is its upload's and its time is not over. BUSY. */
static gyre_err ask_upload(struct sweep *sweep, const struct eng_upload_record *record,
                           bool *wanted_out)
{
    struct eng_upload_record whole;
    struct eng_ref ref;
    gyre_err err =
        eng_upload_find(sweep->store, record->key, record->id, 0, sweep->now, &ref, &whole);
    eng_ref_release(&ref);
    *wanted_out = err == GYRE_OK && whole.object_serial == record->object_serial;
    return err == GYRE_BUSY ? err : GYRE_OK;
}

/* A record of the meta pool, by the bytes that an entry leads to. */
static gyre_err visit_record(struct sweep *sweep, const struct eng_doc *doc)
{
    struct eng_doc copy = *doc;
    struct eng_upload_record record;
    struct eng_ref ref;
    const struct eng_want want = {.key = copy.key, .pool = ENG_POOL_META};
    if ((copy.flags & ENG_DOC_UPLOAD) == 0 || copy.pool != ENG_POOL_META)
        return GYRE_OK;
    gyre_err err = eng_find(sweep->store, &want, 0, ENG_NO_COUNT | ENG_ANY_AGE, &ref);
    if (err != GYRE_OK)
        return err == GYRE_BUSY ? err : GYRE_OK;
    if (!eng_upload_read(&ref, &record)) {
        eng_ref_release(&ref);
        return GYRE_OK;
    }
    bool wanted;
    err = ask_upload(sweep, &record, &wanted);
    if (err == GYRE_OK && wanted) {
        err = mark_rows(sweep, record.key, ENG_POOL_MAIN, record.object_serial,
                        ref.body + sizeof record, record.n_rows, false);
    }
    eng_ref_release(&ref);
    if (err == GYRE_OK && !wanted)
        err = eng_upload_end(sweep->store, record.key, record.id, false);
    return err == GYRE_NOT_FOUND ? GYRE_OK : err;
}

/* Entries are taken down under the lock, a granule at a time, and looked up without it. */
static gyre_err visit_segment(struct sweep *sweep, struct eng_stripe *stripe, uint32_t segment)
{
    enum { AT_ONCE = 256 };
    uint64_t per_segment = (stripe->segment_units << ENG_UNIT_SHIFT) / ENG_GRANULE;
    for (uint64_t g = segment * per_segment; g < (segment + 1) * per_segment; g++) {
        uint64_t entries[AT_ONCE];
        size_t n = 0;
        eng_alloc_lock(stripe);
        for (uint32_t slot = eng_granule_first_locked(stripe, g);
             slot != ENG_NO_SLOT && n < AT_ONCE; slot = eng_granule_next_locked(stripe, slot))
            entries[n++] = eng_directory_entry(stripe, slot);
        eng_alloc_unlock(stripe);
        for (size_t i = 0; i < n; i++) {
            const struct eng_doc *doc = doc_at(stripe, entries[i]);
            gyre_err err = doc != NULL ? visit_record(sweep, doc) : GYRE_OK;
            if (err != GYRE_OK)
                return err;
        }
    }
    return GYRE_OK;
}

static gyre_err visit_uploads(struct sweep *sweep)
{
    gyre_err err = GYRE_OK;
    for (uint32_t i = 0; i < sweep->store->n_stripes; i++) {
        struct eng_stripe *stripe = &sweep->store->stripes[i];
        for (uint32_t segment = 0; segment < stripe->n_segments && err == GYRE_OK; segment++) {
            eng_alloc_lock(stripe);
            const struct eng_segment_row *row = &stripe->rt->segments[segment];
            bool meta = row->state == ENG_SEGMENT_RING && row->pool == ENG_POOL_META;
            eng_alloc_unlock(stripe);
            if (meta)
                err = visit_segment(sweep, stripe, segment);
        }
    }
    return err;
}

/* Under the lock of what is kept this is true of everything that was kept since the sweep began. */
static bool is_overtaken(const struct sweep *sweep)
{
    return atomic_load_explicit(&sweep->store->rt.head->keeps_begun, memory_order_relaxed) !=
           sweep->keeps_begun;
}

static gyre_err let_go(struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->n; i++) {
        const struct kept *at = &sweep->rows[i];
        struct eng_stripe *stripe = &sweep->store->stripes[at->stripe];
        if (at->wanted)
            continue;
        eng_alloc_lock(stripe);
        if (is_overtaken(sweep)) {
            eng_alloc_unlock(stripe);
            return GYRE_BUSY;
        }
        uint32_t slot = eng_directory_locate_locked(stripe, at->slot, at->entry);
        /* An equal entry of a newer document is a document that was kept after this began. */
        if (slot != ENG_NO_SLOT && !is_reserved_locked(stripe, eng_entry_offset(at->entry)))
            (void)turn_locked(stripe, slot, at->entry, false, false);
        eng_alloc_unlock(stripe);
        GYRE_STEP("keep.sweep.let_go");
    }
    return GYRE_OK;
}

/* What is kept is taken down first: whoever keeps something writes down why before it lets go of
 * the reservation, or before the end of its keeping, so a reason that is not found then does not
 * exist. */
gyre_err eng_keep_sweep(struct eng_store *store, uint32_t now)
{
    struct sweep sweep = {.store = store, .now = now};
    gyre_err err = GYRE_OK;

    sweep.keeps_begun =
        atomic_load_explicit(&store->rt.head->keeps_begun, memory_order_acquire); /* A */
    if (eng_processes_keep(store))
        return GYRE_BUSY;
    for (uint32_t i = 0; i < store->n_stripes; i++)
        TRY(gather(&sweep, &store->stripes[i]));
    if (sweep.n > 0)
        qsort(sweep.rows, sweep.n, sizeof *sweep.rows, by_place);
    TRY(visit_uploads(&sweep));
    for (size_t i = 0; i < sweep.n; i++)
        TRY(mark_pinned(&sweep, &sweep.rows[i]));
    GYRE_STEP("keep.sweep.marked");
    TRY(let_go(&sweep));
out:
    free(sweep.rows);
    return err;
}
